//go:build linux && amd64

package fakemetal_test

import (
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend/trace"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/traced"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// send sends a message that package objc does not know.
func (e *engine) send(o objc.ID, selector string, args ...uintptr) uintptr {
	e.t.Helper()
	h, err := purego.Dlopen(e.l.Path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	require.NoError(e.t, err)
	message, err := purego.Dlsym(h, "objc_msgSend")
	require.NoError(e.t, err)
	register, err := purego.Dlsym(h, "sel_registerName")
	require.NoError(e.t, err)
	name := append([]byte(selector), 0)
	s, _, _ := purego.SyscallN(register, uintptr(unsafe.Pointer(unsafe.SliceData(name))))
	r, _, _ := purego.SyscallN(message, append([]uintptr{uintptr(o), s}, args...)...)
	return r
}

// class returns a class by its name, as an object.
func (e *engine) class(name string) objc.ID {
	e.t.Helper()
	h, err := purego.Dlopen(e.l.Path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	require.NoError(e.t, err)
	get, err := purego.Dlsym(h, "objc_getClass")
	require.NoError(e.t, err)
	text := append([]byte(name), 0)
	c, _, _ := purego.SyscallN(get, uintptr(unsafe.Pointer(unsafe.SliceData(text))))
	require.NotZero(e.t, c, name)
	return objc.ID(c)
}

// What a program does with blits, macros of compile options, buffers of the host's memory and buffers that it releases at once is
// in its log: the graph computes what the program did.
func TestBlits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.mlxtrace")
	var want [2][]uint32
	host := make([]uint32, 5) // five words somewhere: no whole pages
	run(t, fakemetal.Options{Anywhere: true, InOrder: true}, func(e *engine) {
		start, stop := shim(t)
		require.Zero(t, start(path, uintptr(e.device)))
		macros := objc.ID(e.send(e.class("NSMutableDictionary"), "dictionary"))
		for name, value := range map[string]string{"FACTOR": "5", "ADD": "2"} {
			e.send(macros, "setObject:forKey:", uintptr(objc.String(value)), uintptr(objc.String(name)))
		}
		o := objc.New("MTLCompileOptions")
		e.send(o, "setPreprocessorMacros:", uintptr(macros))
		l, err := objc.WithError(objc.NewLibraryWithSource, func(slot uintptr) uintptr {
			return objc.NewLibraryWithSource.Send(e.device, uintptr(objc.String(`#include <metal_stdlib>
kernel void scaled(device const uint *x [[buffer(0)]], device uint *y [[buffer(1)]], uint i [[thread_position_in_grid]]) { y[i] = FACTOR * x[i] + ADD; }
`)), uintptr(o), slot)
		})
		require.NoError(t, err)
		objc.Release(o)
		e.own(objc.ID(l))
		f := objc.ID(e.send(objc.ID(l), "newFunctionWithName:", uintptr(objc.String("scaled"))))
		require.NotZero(t, f)
		p := e.own(objc.ID(e.send(e.device, "newComputePipelineStateWithFunction:error:", uintptr(f), 0)))
		require.NotZero(t, p)
		objc.Release(f)

		a, b := e.buffer(true, 0, 0, 0, 0), e.buffer(true, 0, 0, 0, 0, 0, 0)
		for i := range want {
			copy(e.words(a), []uint32{uint32(i), 7, 8, 9})
			c := e.commandBuffer()
			n := e.encoder(c, false)
			objc.SetPipeline.Send(n, uintptr(p))
			objc.SetBuffer.Send(n, uintptr(a), 0, 0)
			objc.SetBuffer.Send(n, uintptr(b), 0, 1)
			threads(n, size{4, 1, 1}, size{4, 1, 1})
			objc.EndEncoding.Send(n)
			at(&host[0], func(memory uintptr) {
				blit := objc.ID(e.send(c, "blitCommandEncoder"))
				e.send(blit, "fillBuffer:range:value:", uintptr(b), 16, 4, 0xa5)
				out := objc.ID(e.send(e.device, "newBufferWithBytesNoCopy:length:options:deallocator:", memory, 20, 0, 0))
				require.NotZero(t, out)
				e.send(blit, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", uintptr(b), 0, uintptr(out), 0, 20)
				e.send(blit, "endEncoding")
				objc.Commit.Send(c)
				objc.Release(out) // the command buffer has it still
				objc.WaitUntilCompleted.Send(c)
			})
			want[i] = append([]uint32{}, host...)
		}
		require.Zero(t, stop())
	})
	require.Equal(t, []uint32{5*1 + 2, 5*7 + 2, 5*8 + 2, 5*9 + 2, 0xa5a5a5a5}, want[1])
	r := traced.Import(t, path, trace.Options{})
	require.Len(t, r.Module.Graphs, 1)
	text := mlxt.Format(r.Module)
	require.Contains(t, text, "copy ", text)
	require.Contains(t, text, "fill ", text)
	require.Len(t, r.Files, 1)
	require.True(t, strings.HasPrefix(string(r.Files[0].Data), "#define ADD 2\n#define FACTOR 5\n#include"), "%.60q", r.Files[0].Data)
	for i, left := range traced.Replay(t, shared, r.Module, r.Runs) {
		require.Len(t, left, 1, text)
		got := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(left[0].Data))), 5)
		require.Equal(t, want[i], append([]uint32{}, got...))
	}
}

// Blits that break a rule are noted and do nothing.
func TestBlitRules(t *testing.T) {
	for what, f := range map[string]func(e *engine, blit, b objc.ID){
		"in a buffer of 16": func(e *engine, blit, b objc.ID) { e.send(blit, "fillBuffer:range:value:", uintptr(b), 12, 8, 1) },
		"two parts of the buffer over": func(e *engine, blit, b objc.ID) {
			e.send(blit, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", uintptr(b), 0, uintptr(b), 4, 8)
		},
		"given nil for a MTLBuffer": func(e *engine, blit, b objc.ID) { e.send(blit, "fillBuffer:range:value:", 0, 0, 4, 1) },
	} {
		run(t, fakemetal.Options{}, func(e *engine) {
			b := e.buffer(true, 1, 2, 3, 4)
			c := e.commandBuffer()
			blit := objc.ID(e.send(c, "blitCommandEncoder"))
			f(e, blit, b)
			e.send(blit, "endEncoding")
			require.NoError(t, finish(c))
			require.Equal(t, []uint32{1, 2, 3, 4}, e.words(b))
			failures := e.l.Failures()
			require.Len(t, failures, 1)
			require.Contains(t, failures[0], what)
		})
	}
}
