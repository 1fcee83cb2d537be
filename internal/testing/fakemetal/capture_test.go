//go:build linux

package fakemetal_test

import (
	"debug/macho"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/frontend/trace"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/replay"
)

// shim builds and loads the library that captures programs.
func shim(t testing.TB, macros ...string) (start func(path string, device uintptr) int32, stop func() int32) {
	t.Helper()
	c, err := clang.Find(t.Context())
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "shim.so")
	args := []string{"-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-fPIC", "-shared", "-pthread", "../../../capture/shim.c", "-o", path}
	args = append(args, macros...)
	if triple, _, ok := strings.Cut(os.Getenv("MLXC_EMULATE"), " "); ok && runtime.GOARCH == "arm64" { // as the stand-in itself is built
		args = append(args, "--target="+triple)
	}
	out, err := c.Program(t.Context(), args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	require.NoError(t, err)
	purego.RegisterLibFunc(&start, h, "mlxcapture_start")
	purego.RegisterLibFunc(&stop, h, "mlxcapture_stop")
	shimHandle = h
	return start, stop
}

var shimHandle uintptr // of the library that shim loaded last

// stepsOfShim returns the function of that library which marks steps.
func stepsOfShim(t *testing.T) uintptr {
	t.Helper()
	f, err := purego.Dlsym(shimHandle, "mlxcapture_step")
	require.NoError(t, err)
	return f
}

// A program that knows nothing of it is captured: what it sends becomes a graph that computes the program's own numbers, for a
// value of its param that was not captured too.
func TestShim(t *testing.T) {
	start, stop := shim(t)
	path := filepath.Join(t.TempDir(), "log.mlxtrace")
	const runs = 3
	want := map[int][]uint32{} // what the program computes, by run
	run(t, fakemetal.Options{}, func(e *engine) {
		require.Zero(t, start(path, uintptr(e.device)))
		tripled, advance, reversed := e.pipeline("tripled"), e.pipeline("advance"), e.pipeline("reversed")
		special := e.pipeline("special", constant{4, uintptr(objc.DataTypeBool), 1}, constant{7, uintptr(objc.DataTypeInt), 5})
		a, b := e.buffer(true, 1, 2, 3, 4), e.buffer(true, 0, 0, 0, 0)
		event := e.own(objc.NewSharedEvent.SendID(e.device))
		for i := range runs + 1 {
			if i == runs { // the last one is not captured
				require.Zero(t, stop())
			}
			copy(e.words(a), []uint32{uint32(i), 2, 3, 4})
			c := e.commandBuffer()
			n := e.encoder(c, true)
			objc.SetPipeline.Send(n, uintptr(tripled))
			objc.SetBuffer.Send(n, uintptr(a), 0, 0)
			objc.SetBuffer.Send(n, uintptr(b), 0, 1)
			threads(n, size{4, 1, 1}, size{4, 1, 1})
			objc.MemoryBarrier.Send(n, 1)
			objc.SetPipeline.Send(n, uintptr(advance))
			objc.SetBuffer.Send(n, uintptr(b), 0, 0)
			setBytes(n, 1, [2]uint32{uint32(10 + i), 7})
			threads(n, size{4, 1, 1}, size{4, 1, 1})
			objc.EndEncoding.Send(n)
			n = e.encoder(c, false)
			objc.SetPipeline.Send(n, uintptr(reversed))
			objc.SetBuffer.Send(n, uintptr(b), 0, 0)
			objc.SetThreadgroupMemory.Send(n, 16, 0)
			groups(n, size{1, 1, 1}, size{4, 1, 1})
			objc.SetPipeline.Send(n, uintptr(special))
			threads(n, size{4, 1, 1}, size{4, 1, 1})
			objc.EndEncoding.Send(n)
			if i == 1 { // another way to wait
				objc.EncodeSignalEvent.Send(c, uintptr(event), 7)
				objc.Commit.Send(c)
				require.NotZero(t, objc.WaitUntilValue.Send(event, 7, 60_000))
			} else {
				require.NoError(t, finish(c))
			}
			want[i] = append([]uint32{}, e.words(b)...)
		}
	})
	l, err := trace.Open(path)
	require.NoError(t, err)
	defer l.Close()
	dir := t.TempDir()
	r, err := trace.Import(t.Context(), l, trace.Options{Folder: dir, Trust: os.Getenv("MLXC_EMULATE") != ""}) // an emulator has no cage
	require.NoError(t, err)
	text := mlxt.Format(r.Module)
	require.Len(t, r.Module.Graphs, 1, text)
	g := r.Module.Graphs[0]
	require.Equal(t, 4, g.Stats().Dispatches, text)
	require.Contains(t, text, "$pos", text)
	require.Contains(t, fmt.Sprint(r.Remarks), "was 10 to 12 in 3 runs", r.Remarks)

	// It computes what the program did, run by run, with the state that the run before left, and once more beyond.
	for _, f := range r.Files {
		require.NoError(t, os.WriteFile(f.Path, f.Data, 0o600))
	}
	in, out := "", ""
	for i := range g.Memories {
		switch m := &g.Memories[i]; m.Kind {
		case ir.Input:
			in = m.Name
		case ir.State:
			out = m.Name
		}
	}
	require.NotEmpty(t, in, text)
	require.NotEmpty(t, out, text)
	d, err := fakemetal.SoftMetal(softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer d.Close()
	instance, err := replay.Open(d, r.Module, replay.Options{})
	require.NoError(t, err)
	defer instance.Close()
	p, err := instance.Graph(t.Context(), g.Name)
	require.NoError(t, err)
	for i := range runs + 1 {
		require.NoError(t, p.SetParam("pos", float64(10+i)))
		require.NoError(t, p.SetInput(in, ir.ValueBytes(uint32(i), uint32(2), uint32(3), uint32(4))))
		_, err := p.Run(t.Context())
		require.NoError(t, err)
		raw, err := p.State(out)
		require.NoError(t, err)
		require.Equal(t, ir.ValueBytes(want[i][0], want[i][1], want[i][2], want[i][3]), raw, "run %d", i)
	}
}

// The same file becomes a library for Macs, whose functions a program can find.
func TestShimForMacs(t *testing.T) {
	sample.Seldom(t)
	c, err := clang.Find(t.Context())
	require.NoError(t, err)
	if !strings.Contains(filepath.Base(c.Path), "zig") {
		t.Skip("only zig's clang links for Macs here")
	}
	path := filepath.Join(t.TempDir(), "mlxcapture.dylib")
	out, err := exec.CommandContext(t.Context(), c.Path, "cc", "-target", "aarch64-macos", "-O2", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-shared", "../../../capture/shim.c", "-o", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	f, err := macho.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, macho.CpuArm64, f.Cpu)
	require.Equal(t, macho.TypeDylib, f.Type)
	symbols := map[string]bool{}
	for _, s := range f.Symtab.Syms {
		symbols[s.Name] = symbols[s.Name] || s.Sect > 0
	}
	for _, name := range []string{"start", "step", "param", "stop"} {
		require.True(t, symbols["_mlxcapture_"+name], name)
	}
	libraries, err := f.ImportedLibraries()
	require.NoError(t, err)
	require.Equal(t, []string{"/usr/lib/libSystem.B.dylib"}, libraries) // neither Metal nor the runtime: both are found by name
	signed := false
	for _, l := range f.Loads {
		if raw := l.Raw(); len(raw) >= 4 {
			signed = signed || f.ByteOrder.Uint32(raw) == 0x1d // LC_CODE_SIGNATURE
		}
	}
	require.True(t, signed, "arm64 Macs load nothing that is not signed")
}

// events calls do with the code and the fields of each event of a log, a file that may end anywhere.
func events(data []byte, do func(code uint32, fields []byte)) {
	for at := 16; at+8 <= len(data); {
		size := int(binary.LittleEndian.Uint32(data[at:]))
		if at+8+size > len(data) {
			return
		}
		do(binary.LittleEndian.Uint32(data[at+4:]), data[at+8:at+8+size])
		at += 8 + (size+7)&^7
	}
}

// Threads encode at the same time, each with an encoder of its own, more than one keeps in memory at once, while others make buffers and
// the log ends. What each of them sent is in the log in its order, up to the end of its encoder.
func TestShimThreads(t *testing.T) {
	start, stop := shim(t)
	path := filepath.Join(t.TempDir(), "log.mlxtrace")
	const workers, rounds, many = 4, 3, 7000 // 1.2 MB of events an encoder
	run(t, fakemetal.Options{}, func(e *engine) {
		require.Zero(t, start(path, uintptr(e.device)))
		p, x := e.pipeline("advance"), e.buffer(true, 1, 2, 3, 4)
		e.commands()
		var group sync.WaitGroup
		for n := range workers {
			group.Go(func() {
				for round := range rounds {
					objc.Pool(func() {
						k := e.encoder(e.commandBuffer(), true)
						for i := range many {
							objc.SetPipeline.Send(k, uintptr(p))
							objc.SetBuffer.Send(k, uintptr(x), 0, 0)
							setBytes(k, 1, [2]uint32{uint32(rounds*n + round), uint32(i)})
							threads(k, size{4, 1, 1}, size{4, 1, 1})
							if i%1000 == 0 {
								objc.Release(objc.NewBuffer.SendID(e.device, 16, uintptr(objc.ResourceStorageModeShared)))
							}
						}
						objc.EndEncoding.Send(k) // it is not committed: what runs is tested elsewhere
					})
					if n == 0 && round == rounds-1 {
						require.Zero(t, stop())
					}
				}
			})
		}
		group.Wait()
	})
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	got, by, ended, at := map[uint64][]uint32{}, map[uint64]uint32{}, map[uint64]bool{}, map[uint64]string{}
	next := map[uint32][2]string{17: {"", "use"}, 18: {"use", "bind"}, 19: {"bind", "bytes"}, 23: {"bytes", ""}, 16: {"", ""}} // by the event's code
	events(data, func(code uint32, f []byte) {
		encoder := uint64(0)
		if len(f) >= 8 {
			encoder = binary.LittleEndian.Uint64(f)
		}
		if step, ok := next[code]; ok {
			require.Equal(t, step[0], at[encoder])
			at[encoder] = step[1]
		}
		switch code {
		case 19: // of the bytes the thread's number and the dispatch's
			require.Len(t, f, 28)
			got[encoder] = append(got[encoder], binary.LittleEndian.Uint32(f[24:]))
			if who, ok := by[encoder]; ok {
				require.Equal(t, who, binary.LittleEndian.Uint32(f[20:]))
			}
			by[encoder] = binary.LittleEndian.Uint32(f[20:])
		case 16:
			ended[encoder] = true
		}
	})
	require.GreaterOrEqual(t, len(ended), rounds)
	for encoder := range ended {
		require.Len(t, got[encoder], many)
		for i, v := range got[encoder] {
			require.EqualValues(t, i, v)
		}
	}
}
