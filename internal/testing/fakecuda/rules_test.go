//go:build linux && (amd64 || arm64)

package fakecuda_test

import (
	"encoding/binary"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/internal/testing/fakecuda"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
)

// source is the kernels that the tests run.
const source = `#include <metal_stdlib>
using namespace metal;

// From one number to the next, in place: the order of two of them shows.
kernel void advance(device uint *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = x[i] * 3 + 1; }

kernel void add(device uint *x [[buffer(0)]], device const uint *w [[buffer(1)]], uint i [[thread_position_in_grid]]) { x[i] += w[i]; }

kernel void before(device uint *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[int(i) - 40] = 0; }

kernel void behind(device uint *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i + 1024] = 0; }
`

const cells = 32

// program is a program that uses the driver: its stream, memory for parameters, and what it does at its end.
type program struct {
	t      *testing.T
	gpu    *fakecuda.GPU
	stream cuda.Stream
	block  []byte // parameters of launches, outside the Go heap
	end    []func() error
}

func (p *program) defers(f func() error) { p.end = append(p.end, f) }

// alloc allocates n bytes of device memory, which hold the numbers 0, 1, … of 32 bits.
func (p *program) alloc(n int64) cuda.Address {
	a, err := cuda.Alloc(n)
	require.NoError(p.t, err)
	p.defers(func() error { return cuda.Free(a) })
	host, err := cuda.AllocHost(int(n))
	require.NoError(p.t, err)
	for i := 0; i+4 <= len(host); i += 4 {
		binary.LittleEndian.PutUint32(host[i:], uint32(i/4))
	}
	require.NoError(p.t, cuda.CopyToDevice(p.stream, a, host))
	require.NoError(p.t, p.stream.Synchronize())
	require.NoError(p.t, cuda.FreeHost(host))
	return a
}

func (p *program) words(a cuda.Address) (out [cells]uint32) {
	host, err := cuda.AllocHost(4 * cells)
	require.NoError(p.t, err)
	require.NoError(p.t, cuda.CopyToHost(p.stream, host, a))
	require.NoError(p.t, p.stream.Synchronize())
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(host[4*i:])
	}
	require.NoError(p.t, cuda.FreeHost(host))
	return out
}

// kernel compiles and loads a kernel of source.
func (p *program) kernel(name string, form nvptx.Launch, early ...int) cuda.Function {
	u, err := mslc.Compile(p.t.Context(), "rules.metal", source, mslc.Options{Kernels: []string{name}})
	require.NoError(p.t, err)
	ir, err := u.Module(name)
	require.NoError(p.t, err)
	text, err := fakecuda.Image(air.Input{Name: "rules.metal", IR: []byte(ir), Kernel: &u.Kernels[0]}, form, early...)
	require.NoError(p.t, err)
	m, err := cuda.LoadModule(text)
	require.NoError(p.t, err)
	p.defers(m.Unload)
	f, err := m.Function(nvptx.Entry)
	require.NoError(p.t, err)
	return f
}

// launch returns a launch of one block, with a thread for each cell.
func (p *program) launch(f cuda.Function, memory ...cuda.Address) *cuda.Launch {
	values := make([]uint64, 0, 8)
	for _, a := range memory {
		values = append(values, uint64(a))
	}
	values = append(values, cells, 1, 1, cells, 1, 1)
	begin := (len(p.block) + 7) &^ 7
	p.block = p.block[:begin+16*len(values)]
	for k, v := range values {
		at := begin + 8*k
		binary.LittleEndian.PutUint64(p.block[at:], v)
		binary.LittleEndian.PutUint64(p.block[at+8*len(values):], uint64(uintptr(unsafe.Pointer(&p.block[at]))))
	}
	return &cuda.Launch{Function: f, Grid: [3]uint32{1, 1, 1}, Block: cells, Params: uintptr(unsafe.Pointer(&p.block[begin+8*len(values)]))}
}

func (p *program) start(l *cuda.Launch) { require.NoError(p.t, l.Start(p.stream)) }

// node adds a launch to a graph.
func (p *program) node(g cuda.Graph, l *cuda.Launch) cuda.GraphNode {
	n, err := g.AddKernel(l)
	require.NoError(p.t, err)
	return n
}

func (p *program) graph() cuda.Graph {
	g, err := cuda.NewGraph()
	require.NoError(p.t, err)
	p.defers(g.Destroy)
	return g
}

func (p *program) run(g cuda.Graph) {
	x, err := g.Instantiate()
	require.NoError(p.t, err)
	require.NoError(p.t, x.Launch(p.stream))
	require.NoError(p.t, p.stream.Synchronize())
	require.NoError(p.t, x.Destroy())
}

// TestRules: mistakes of a program are noted, and nothing else.
func TestRules(t *testing.T) {
	sample.Long(t)
	early := nvptx.Launch{Programmatic: true}
	for _, c := range []struct {
		name string
		do   func(p *program)
		want string // a part of a failure; "": there is none
	}{
		{"nothing", func(p *program) {}, ""},
		{"kernels in order", func(p *program) {
			x, k := p.alloc(4*cells), p.kernel("advance", nvptx.Launch{})
			for range 3 {
				p.start(p.launch(k, x))
			}
			assert.EqualValues(p.t, 13+27*5, p.words(x)[5])
		}, ""},
		{"memory leaks", func(p *program) { _, _ = cuda.Alloc(256) }, "1 of memory leaked"},
		{"an event leaks", func(p *program) { _, _ = cuda.NewEvent(true) }, "1 of event leaked"},
		{"memory is freed twice", func(p *program) {
			_ = cuda.Free(func() cuda.Address { a, _ := cuda.Alloc(256); _ = cuda.Free(a); return a }())
		}, "freed before"},
		{"a stream is destroyed twice", func(p *program) { s, _ := cuda.NewStream(); _ = s.Destroy(); _ = s.Destroy() }, "was a stream that has been destroyed"},
		{"an event for a stream", func(p *program) {
			e, _ := cuda.NewEvent(true)
			_ = cuda.Stream(e).Synchronize()
			_ = e.Destroy()
		}, "is a event"},
		{"a copy of freed memory", func(p *program) {
			a, _ := cuda.Alloc(256)
			_ = cuda.Free(a)
			_ = cuda.CopyWithin(p.stream, p.alloc(256), a, 256)
		}, "are not there, or no longer"},
		{"a copy behind the end", func(p *program) { _ = cuda.CopyWithin(p.stream, p.alloc(256), p.alloc(512), 260) }, "are not there, or no longer"},
		{"memory is freed too early", func(p *program) {
			a, _ := cuda.Alloc(4 * cells)
			p.start(p.launch(p.kernel("advance", nvptx.Launch{}), a))
			_ = cuda.Free(a)
		}, "operations that have not ended use it"},
		{"pinned memory is freed too early", func(p *program) {
			a, b := p.alloc(256), func() []byte { b, _ := cuda.AllocHost(256); return b }()
			_ = cuda.CopyToDevice(p.stream, a, b)
			_ = cuda.FreeHost(b)
		}, "copies that have not ended use it"},
		{"pinned memory is written behind its end", func(p *program) {
			b, _ := cuda.AllocHost(100)
			unsafe.Slice(unsafe.SliceData(b), 101)[100] = 1
			_ = cuda.FreeHost(b)
		}, "was written behind its end"},
		{"a kernel writes before its memory", func(p *program) {
			p.start(p.launch(p.kernel("before", nvptx.Launch{}), p.alloc(256)))
			_ = p.stream.Synchronize()
		}, "was written before its beginning"},
		{"too many threads", func(p *program) {
			l := p.launch(p.kernel("advance", nvptx.Launch{}), p.alloc(4*cells))
			l.Block = 1025
			_ = l.Start(p.stream)
		}, "cuLaunchKernel: the arguments are not valid"},
		{"no blocks", func(p *program) {
			l := p.launch(p.kernel("advance", nvptx.Launch{}), p.alloc(4*cells))
			l.Grid[1] = 0
			_ = l.Start(p.stream)
		}, "cuLaunchKernel: the arguments are not valid"},
		{"too much shared memory", func(p *program) {
			l := p.launch(p.kernel("advance", nvptx.Launch{}), p.alloc(4*cells))
			l.Shared = 49 << 10
			_ = l.Start(p.stream)
		}, "cuLaunchKernel: the arguments are not valid"},
		{"blocks that are not those of the parameters", func(p *program) {
			l := p.launch(p.kernel("advance", nvptx.Launch{}), p.alloc(4*cells))
			l.Grid[0] = 2
			_ = l.Start(p.stream)
			_ = p.stream.Synchronize()
		}, "2 blocks are launched in dimension 0"},
		{"a threadgroup that is said to be whole", func(p *program) {
			l := p.launch(p.kernel("advance", nvptx.Launch{}), p.alloc(4*cells))
			values := p.block[len(p.block)-16*7:] // an address, the grid's threads, and a threadgroup's
			binary.LittleEndian.PutUint64(values[8*1:], cells-1)
			binary.LittleEndian.PutUint64(values[8*6:], 1|nvptx.WholeThreadgroups)
			_ = l.Start(p.stream)
			_ = p.stream.Synchronize()
		}, "31 threads are in threadgroups of 32 in dimension 0, where all should be whole"},
		{"an edge twice", func(p *program) {
			x, k, g := p.alloc(4*cells), p.kernel("advance", nvptx.Launch{}), p.graph()
			a, b := p.node(g, p.launch(k, x)), p.node(g, p.launch(k, x))
			_ = g.AddEdges([]cuda.GraphNode{a, a}, []cuda.GraphNode{b, b}, make([]cuda.EdgeData, 2))
		}, "already"},
		{"a ring of edges", func(p *program) {
			x, k, g := p.alloc(4*cells), p.kernel("advance", nvptx.Launch{}), p.graph()
			a, b := p.node(g, p.launch(k, x)), p.node(g, p.launch(k, x))
			_ = g.AddEdges([]cuda.GraphNode{a, b}, []cuda.GraphNode{b, a}, make([]cuda.EdgeData, 2))
			_, err := g.Instantiate()
			assert.Error(p.t, err)
		}, "cuGraphInstantiateWithFlags: the arguments are not valid"},
		{"a node of a graph that has ended", func(p *program) {
			x, k := p.alloc(4*cells), p.kernel("advance", nvptx.Launch{})
			g, _ := cuda.NewGraph()
			n := p.node(g, p.launch(k, x))
			e, _ := g.Instantiate()
			_ = g.Destroy()
			_ = e.Set(n, p.launch(k, x))
			_ = e.Destroy()
		}, "was a graph node that has been destroyed"},
		{"edges of two kinds at once", func(p *program) {
			x, k, g := p.alloc(4*cells), p.kernel("advance", early), p.graph()
			n := []cuda.GraphNode{p.node(g, p.launch(k, x)), p.node(g, p.launch(k, x)), p.node(g, p.launch(k, x))}
			data := []cuda.EdgeData{cuda.Programmatic, {}}
			var pin runtime.Pinner
			defer pin.Unpin()
			pin.Pin(&n[0])
			pin.Pin(&data[0])
			_, _, _ = purego.SyscallN(fakecuda.Address("cuGraphAddDependencies_v2"), uintptr(g), uintptr(unsafe.Pointer(&n[0])), uintptr(unsafe.Pointer(&n[1])), uintptr(unsafe.Pointer(&data[0])), 2)
		}, "edges of two kinds"},
		{"what is read early is written", func(p *program) {
			x, w, g := p.alloc(4*cells), p.alloc(4*cells), p.graph()
			a, b := p.node(g, p.launch(p.kernel("advance", early), w)), p.node(g, p.launch(p.kernel("add", early, 1), x, w))
			require.NoError(p.t, g.AddEdges([]cuda.GraphNode{a}, []cuda.GraphNode{b}, []cuda.EdgeData{cuda.Programmatic}))
			p.run(g)
			assert.EqualValues(p.t, 5+5, p.words(x)[5], "it has read what was there before")
		}, "what it reads before it waits is written by a launch that may run then"},
		{"what is read early is not written", func(p *program) {
			x, w, g := p.alloc(4*cells), p.alloc(4*cells), p.graph()
			a, b := p.node(g, p.launch(p.kernel("advance", early), x)), p.node(g, p.launch(p.kernel("add", early, 1), x, w))
			require.NoError(p.t, g.AddEdges([]cuda.GraphNode{a}, []cuda.GraphNode{b}, []cuda.EdgeData{cuda.Programmatic}))
			p.run(g)
			assert.EqualValues(p.t, 5*3+1+5, p.words(x)[5])
		}, ""},
		{"an edge to nothing that waits", func(p *program) {
			x, k, g := p.alloc(4*cells), p.kernel("advance", early), p.graph()
			a, b := p.node(g, p.launch(k, x)), p.node(g, p.launch(k, x))
			require.NoError(p.t, g.AddEdges([]cuda.GraphNode{a}, []cuda.GraphNode{b}, []cuda.EdgeData{cuda.Programmatic}))
			e, _ := g.Instantiate()
			require.NoError(p.t, e.Enable(a, false))
			_ = e.Launch(p.stream)
			_ = e.Destroy()
		}, "a node with a programmatic edge does nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			failures := with(t, fakecuda.Options{Seed: 2}, c.do)
			if c.want == "" {
				assert.Empty(t, failures)
			} else {
				assert.Contains(t, strings.Join(failures, "\n"), c.want)
			}
		})
	}
}

// with runs a program on a stand-in, and returns what that has noted.
func with(t *testing.T, o fakecuda.Options, do func(p *program)) []string {
	t.Helper()
	if shared == nil {
		var err error
		shared, err = fakecuda.SoftMetal()
		require.NoError(t, err)
	}
	o.Device = shared
	g := fakecuda.Serve(t, o)
	d, err := cuda.Open(0)
	require.NoError(t, err)
	block, err := syscall.Mmap(-1, 0, 1<<16, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	_ = d.Do(func() (err error) {
		p := &program{t: t, gpu: g, block: block[:0]}
		p.stream, err = cuda.NewStream()
		require.NoError(t, err)
		do(p)
		_ = p.stream.Synchronize()
		for i := len(p.end) - 1; i >= 0; i-- {
			_ = p.end[i]()
		}
		return p.stream.Destroy()
	})
	_ = d.Close()
	g.Close()
	require.NoError(t, syscall.Munmap(block))
	return g.Failures()
}

// TestStray: a kernel that writes outside its memory loses the context, and all later calls fail by that.
func TestStray(t *testing.T) {
	assert.Empty(t, with(t, fakecuda.Options{}, func(p *program) {
		x := p.alloc(256)
		p.start(p.launch(p.kernel("behind", nvptx.Launch{}), x))
		for range 2 {
			err := p.stream.Synchronize()
			assert.True(t, cuda.Sticky(err), "%v", err)
			assert.ErrorContains(t, err, "CUDA_ERROR_ILLEGAL_ADDRESS")
		}
		_, err := cuda.Alloc(256)
		assert.True(t, cuda.Sticky(err), "%v", err)
	}))
}

// TestThreads: a call on a thread without a context is noted.
func TestThreads(t *testing.T) {
	failures := with(t, fakecuda.Options{}, func(p *program) {
		done := make(chan error)
		go func() { // on another thread, as this one is taken
			_, err := cuda.NewStream()
			done <- err
		}()
		assert.ErrorContains(t, <-done, "CUDA_ERROR_INVALID_CONTEXT")
	})
	assert.Equal(t, []string{"cuStreamCreate is called on a thread without a context"}, failures)
}

// TestMemory: no more is allocated than the GPU has, unwritten memory holds no zeros, and no address comes twice.
func TestMemory(t *testing.T) {
	assert.Empty(t, with(t, fakecuda.Options{Memory: 1 << 20}, func(p *program) {
		seen := map[cuda.Address]bool{}
		for range 20 {
			a, err := cuda.Alloc(1 << 19)
			require.NoError(t, err)
			assert.False(t, seen[a])
			assert.Zero(t, a%256)
			seen[a] = true
			assert.NotContains(t, p.words(a), uint32(0))
			_, err = cuda.Alloc(1<<19 + 1)
			assert.ErrorContains(t, err, "CUDA_ERROR_OUT_OF_MEMORY")
			require.NoError(t, cuda.Free(a))
		}
	}))
}
