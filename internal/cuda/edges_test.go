//go:build gpu && linux && (amd64 || arm64)

package cuda

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// edgeKernels is the PTX of TestEdges. producer triggers its dependents, sleeps for some 200 µs, and stores a number
// that the host has set; prompt does the same without the trigger. The kernels of early load that number before
// griddepcontrol.wait, each by another instruction, and each of their blocks stores what it has loaded.
func edgeKernels() string {
	var b strings.Builder
	b.WriteString(".version 8.0\n.target sm_90\n.address_size 64\n")
	for name, trigger := range map[string]string{"producer": "griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;", "prompt": ""} {
		fmt.Fprintf(&b, `.visible .entry %s(.param .u64 to, .param .u64 given) {
	.reg .u64 %%rd<2>;
	.reg .u32 %%r<3>;
	.reg .pred %%p;
	%s
	mov.u32 %%r0, 0;
again:
	nanosleep.u32 10000;
	add.u32 %%r0, %%r0, 1;
	setp.lt.u32 %%p, %%r0, 20;
	@%%p bra again;
	ld.param.u64 %%rd0, [given];
	ld.volatile.global.u32 %%r1, [%%rd0];
	ld.param.u64 %%rd0, [to];
	st.global.u32 [%%rd0], %%r1;
	ret;
}
`, name, trigger)
	}
	for name, load := range early {
		fmt.Fprintf(&b, `.visible .entry %s(.param .u64 from, .param .u64 to) {
	.reg .u64 %%rd<4>;
	.reg .u32 %%r<2>;
	griddepcontrol.launch_dependents;
	ld.param.u64 %%rd0, [from];
	ld.param.u64 %%rd1, [to];
	%s.u32 %%r0, [%%rd0];
	griddepcontrol.wait;
	mov.u32 %%r1, %%ctaid.x;
	mul.wide.u32 %%rd2, %%r1, 4;
	add.u64 %%rd1, %%rd1, %%rd2;
	st.global.u32 [%%rd1], %%r0;
	ret;
}
`, name, load)
	}
	return b.String()
}

// early are the instructions that load before the wait, by the name of their kernel.
var early = map[string]string{"plain": "ld.global", "second": "ld.global.cg", "relaxed": "ld.relaxed.gpu.global", "invariant": "ld.global.nc"}

// TestEdges counts the loads before griddepcontrol.wait that give an old value, by the edges behind the kernel that
// writes, and by instruction. A kernel behind a full edge must begin when its predecessor has ended: loads that
// bypass the L1 cache (cg, relaxed) must then see the write. Other loads may still find the old value in L1.
func TestEdges(t *testing.T) {
	const blocks, runs = 264, 8
	d, err := Open(0)
	require.NoError(t, err)
	require.NoError(t, d.Do(func() error {
		m, err := LoadModule([]byte(edgeKernels()))
		require.NoError(t, err)
		memory, err := Alloc(1 << 16)
		require.NoError(t, err)
		host, err := AllocHost(1 << 16)
		require.NoError(t, err)
		s, err := NewStream()
		require.NoError(t, err)
		block, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		require.NoError(t, err)
		used := 0
		launch := func(name string, a, b int, blocks uint32) *Launch {
			f, err := m.Function(name)
			require.NoError(t, err)
			at := used
			used += 32
			for i, v := range []int{a, b} {
				binary.LittleEndian.PutUint64(block[at+8*i:], uint64(memory)+uint64(v))
				binary.LittleEndian.PutUint64(block[at+16+8*i:], uint64(uintptr(unsafe.Pointer(&block[at+8*i]))))
			}
			return &Launch{Function: f, Grid: [3]uint32{blocks, 1, 1}, Block: 32, Params: uintptr(unsafe.Pointer(&block[at+16]))}
		}
		full, prog := EdgeData{}, Programmatic
		const given, read = 4096, 8192
		const mixed = "both kinds at once"
		value := uint32(0)
		for _, c := range []struct {
			name  string
			first string
			edges []EdgeData // between consecutive kernels; nil: launched on a stream
			holds bool       // all others must begin after the first has ended
		}{
			{"stream", "producer", nil, true},
			{"full, full", "producer", []EdgeData{full, full}, true},
			{"full, programmatic, programmatic", "producer", []EdgeData{full, prog, prog}, true},
			{"prompt, full, programmatic, programmatic", "prompt", []EdgeData{full, prog, prog}, true},
			{"programmatic, programmatic", "producer", []EdgeData{prog, prog}, false},
			{"prompt, programmatic, programmatic", "prompt", []EdgeData{prog, prog}, false},
			{"programmatic edges first", "producer", []EdgeData{full, prog, prog}, true},
			{mixed, "producer", []EdgeData{full, prog, prog}, true},
		} {
			for _, how := range slices.Sorted(maps.Keys(early)) {
				used = 0
				ls := []*Launch{launch(c.first, 0, given, 1)}
				for i := range max(2, len(c.edges)) {
					ls = append(ls, launch(how, 0, read+4096*i, blocks))
				}
				var x GraphExec
				if c.edges != nil {
					g, err := NewGraph()
					require.NoError(t, err)
					var nodes []GraphNode
					for _, l := range ls {
						n, err := g.AddKernel(l)
						require.NoError(t, err)
						nodes = append(nodes, n)
					}
					from, to, data := slices.Clone(nodes[:len(nodes)-1]), slices.Clone(nodes[1:]), slices.Clone(c.edges)
					if c.name == mixed || c.name == "programmatic edges first" {
						slices.Reverse(from)
						slices.Reverse(to)
						slices.Reverse(data)
					}
					if c.name == mixed {
						err = g.addEdges(from, to, data)
					} else {
						err = g.AddEdges(from, to, data)
					}
					require.NoError(t, err)
					x, err = g.Instantiate()
					require.NoError(t, err)
				}
				wrong := make([]int, len(ls)-1)
				for range runs {
					value++
					binary.LittleEndian.PutUint32(host, value)
					require.NoError(t, CopyToDevice(s, memory+given, host[:4]))
					if c.edges == nil {
						for _, l := range ls {
							require.NoError(t, l.Start(s))
						}
					} else {
						require.NoError(t, x.Launch(s))
					}
					require.NoError(t, CopyToHost(s, host, memory))
					require.NoError(t, s.Synchronize())
					for i := range wrong {
						for b := range blocks {
							if binary.LittleEndian.Uint32(host[read+4096*i+4*b:]) != value {
								wrong[i]++
							}
						}
					}
				}
				t.Logf("%s, %s: of %d reads so many were of what was there before: %v", c.name, early[how], runs*blocks, wrong)
				if c.name == mixed && slices.Max(wrong) > 0 {
					t.Logf("this driver takes full edges for programmatic ones when it is given both at once")
				} else if c.holds && (how == "second" || how == "relaxed") && slices.Max(wrong) > 0 {
					t.Errorf("%s: a kernel has begun too early", c.name)
				}
			}
		}
		return nil
	}))
	require.NoError(t, d.Close())
}
