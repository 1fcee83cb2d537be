//go:build linux

package fakemetal_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend/trace"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
)

// messages sends what package objc has no methods for.
type messages struct{ send, selector uintptr }

func messagesOf(t *testing.T, l *fakemetal.Library) (m messages) {
	t.Helper()
	h, err := purego.Dlopen(l.Path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	require.NoError(t, err)
	m.send, err = purego.Dlsym(h, "objc_msgSend")
	require.NoError(t, err)
	m.selector, err = purego.Dlsym(h, "sel_registerName")
	require.NoError(t, err)
	return m
}

func (m messages) to(o objc.ID, selector string, args ...uintptr) uintptr {
	text := append([]byte(selector), 0)
	s, _, _ := purego.SyscallN(m.selector, uintptr(unsafe.Pointer(&text[0])))
	r, _, _ := purego.SyscallN(m.send, append([]uintptr{uintptr(o), s}, args...)...)
	return r
}

// block is a block without variables, as compilers lay it out.
type block struct {
	class           uintptr
	flags, reserved int32
	invoke          uintptr
	descriptor      *[2]uintptr
}

var (
	handled atomic.Int64 // calls of the handler
	during  atomic.Int64 // the status of the command buffer in the last one
	global  = block{flags: 1 << 28, invoke: purego.NewCallback(func(_ *block, c objc.ID) uintptr {
		during.Store(int64(objc.BufferStatus.Send(c)))
		handled.Add(1)
		return 0
	}), descriptor: &[2]uintptr{0, unsafe.Sizeof(block{})}}
)

// Handlers are called when a command buffer has completed, and before who waits for it goes on.
func TestCompletedHandlers(t *testing.T) {
	run(t, fakemetal.Options{Seed: 3}, func(e *engine) {
		m := messagesOf(t, e.l)
		p := e.pipeline("advance")
		b := e.buffer(true, 1, 2)
		handled.Store(0)
		for i := range int64(4) {
			c := e.commandBuffer()
			m.to(c, "addCompletedHandler:", uintptr(unsafe.Pointer(&global)))
			m.to(c, "addCompletedHandler:", uintptr(unsafe.Pointer(&global)))
			n := e.encoder(c, false)
			objc.SetPipeline.Send(n, uintptr(p))
			objc.SetBuffer.Send(n, uintptr(b), 0, 0)
			setBytes(n, 1, [2]uint32{3, 1})
			threads(n, size{2, 1, 1}, size{2, 1, 1})
			objc.EndEncoding.Send(n)
			require.NoError(t, finish(c))
			require.Equal(t, 2*i+2, handled.Load())
			require.Equal(t, int64(objc.CommandBufferStatusCompleted), during.Load())
		}
	})
}

// A heap makes buffers until it is full; other ways to make queues, functions and pipelines lead to the same things.
func TestPrograms(t *testing.T) {
	run(t, fakemetal.Options{}, func(e *engine) {
		m := messagesOf(t, e.l)
		class := func(name string) objc.ID {
			h, err := purego.Dlopen(e.l.Path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
			require.NoError(t, err)
			f, err := purego.Dlsym(h, "objc_lookUpClass")
			require.NoError(t, err)
			text := append([]byte(name), 0)
			c, _, _ := purego.SyscallN(f, uintptr(unsafe.Pointer(&text[0])))
			return objc.ID(c)
		}
		require.Zero(t, class("NoSuchClass"))
		pool := objc.ID(m.to(objc.ID(m.to(class("NSAutoreleasePool"), "alloc")), "init"))
		d := objc.ID(m.to(objc.ID(m.to(class("MTLHeapDescriptor"), "alloc")), "init"))
		m.to(d, "setSize:", 1024)
		heap := objc.ID(m.to(e.device, "newHeapWithDescriptor:", uintptr(d)))
		var made []objc.ID
		for range 4 {
			b := objc.ID(m.to(heap, "newBufferWithLength:options:", 200, 0))
			require.NotZero(t, b)
			require.Equal(t, uintptr(heap), m.to(b, "heap"))
			made = append(made, b)
		}
		require.Zero(t, m.to(heap, "newBufferWithLength:options:", 1, 0))
		for _, o := range append(made, heap, d) {
			m.to(o, "release")
		}
		m.to(pool, "release")
		q := objc.ID(m.to(e.device, "newCommandQueue"))
		require.NotZero(t, q)
		m.to(q, "release")
	})
}

// Steps of a program that is called back when command buffers have ended, and waits by itself, are steps of the graph.
func TestShimHandlers(t *testing.T) {
	start, stop := shim(t)
	path := filepath.Join(t.TempDir(), "log.mlxtrace")
	run(t, fakemetal.Options{}, func(e *engine) {
		m := messagesOf(t, e.l)
		require.Zero(t, start(path, uintptr(e.device)))
		p := e.pipeline("advance")
		b := e.buffer(true, 1, 2)
		handled.Store(0)
		for i := range int64(3) {
			c := e.commandBuffer()
			m.to(c, "addCompletedHandler:", uintptr(unsafe.Pointer(&global)))
			n := e.encoder(c, false)
			objc.SetPipeline.Send(n, uintptr(p))
			objc.SetBuffer.Send(n, uintptr(b), 0, 0)
			setBytes(n, 1, [2]uint32{3, uint32(10 + i)})
			threads(n, size{2, 1, 1}, size{2, 1, 1})
			objc.EndEncoding.Send(n)
			objc.Commit.Send(c)
			require.Eventually(t, func() bool { return handled.Load() == i+1 }, 20*time.Second, time.Millisecond)
		}
		require.Zero(t, stop())
	})
	l, err := trace.Open(path)
	require.NoError(t, err)
	defer l.Close()
	r, err := trace.Import(t.Context(), l, trace.Options{Folder: t.TempDir()})
	require.NoError(t, err)
	require.Len(t, r.Module.Graphs, 1)
	require.Equal(t, 1, r.Module.Graphs[0].Stats().Dispatches)
	require.Contains(t, fmt.Sprint(r.Remarks), "was 10 to 12 in 3 runs")
}
