//go:build linux

package fakemetal_test

import (
	"context"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/store"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// shared is the software Metal that all tests use, since starting one is slow.
var shared *softmetal.Device

// TestMain lets the tests use a cache in the tree's folder for build results.
func TestMain(m *testing.M) {
	store.Use()
	if c, err := clang.Find(context.Background()); err == nil {
		os.Setenv(clang.Env, c.Path)
	}
	code := m.Run()
	if shared != nil {
		shared.Close()
	}
	os.Exit(code)
}

// source has the kernels that the tests run.
const source = `#include <metal_stdlib>
using namespace metal;

kernel void add(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                device float *c [[buffer(2)]], constant float &scale [[buffer(3)]],
                uint i [[thread_position_in_grid]]) {
  c[i] = a[i] + scale * b[i];
}

// From one number to the next, in place: the order of two of them shows.
kernel void advance(device uint *x [[buffer(0)]], constant uint2 &f [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  x[i] = x[i] * f.x + f.y;
}

// From one buffer to another.
kernel void tripled(device const uint *in [[buffer(0)]], device uint *out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = in[i] * 3 + 1;
}

kernel void reversed(device uint *x [[buffer(0)]], threadgroup uint *room [[threadgroup(0)]],
                     uint i [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
  room[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = room[n - 1 - i];
}

constant bool doubled [[function_constant(4)]];
constant int more [[function_constant(7)]];

kernel void special(device int *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  x[i] = (doubled ? 2 * x[i] : x[i]) + more;
}

kernel void stray(device uint *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i + (1u << 30)] = i; }
`

// engine is a program that uses Metal by its messages, without package metal.
type engine struct {
	t testing.TB
	*fakemetal.Metal
	l       *fakemetal.Library
	device  objc.ID
	queue   objc.ID
	library objc.ID
	owned   []objc.ID
}

// run serves a device and calls f with an engine on it, within an autorelease pool.
func run(t testing.TB, o fakemetal.Options, f func(e *engine)) *fakemetal.Library {
	t.Helper()
	l := fakemetal.Build(t)
	require.NoError(t, objc.Load(l.Path))
	if o.Device == nil {
		if shared == nil {
			var err error
			shared, err = fakemetal.SoftMetal(softmetal.Options{Workers: 1})
			require.NoError(t, err)
		}
		o.Device = shared
	}
	m := l.Serve(t, o)
	e := &engine{t: t, Metal: m, l: l}
	objc.Pool(func() {
		e.device = e.own(objc.SystemDefaultDevice())
		require.NotZero(t, e.device)
		defer e.releaseAll()
		f(e)
	})
	m.Close()
	return l
}

func (e *engine) own(o objc.ID) objc.ID {
	e.owned = append(e.owned, o)
	return o
}

func (e *engine) releaseAll() {
	for i := len(e.owned) - 1; i >= 0; i-- {
		objc.Release(e.owned[i])
	}
}

// at calls f with the address of a value, which is pinned until f returns.
func at[T any](v *T, f func(p uintptr)) {
	var pin runtime.Pinner
	pin.Pin(v)
	defer pin.Unpin()
	f(uintptr(unsafe.Pointer(v)))
}

// commands returns the engine's queue, which the first call makes.
func (e *engine) commands() objc.ID {
	if e.queue == 0 {
		e.queue = e.own(objc.NewQueue.SendID(e.device, 64))
		require.NotZero(e.t, e.queue)
	}
	return e.queue
}

// compile compiles a source without fast math.
func (e *engine) compile(text string) (objc.ID, error) {
	o := objc.New("MTLCompileOptions")
	defer objc.Release(o)
	objc.SetFastMath.Send(o, 0)
	objc.SetLanguageVersion.Send(o, uintptr(objc.LanguageVersion3_1))
	r, err := objc.WithError(objc.NewLibraryWithSource, func(slot uintptr) uintptr {
		return objc.NewLibraryWithSource.Send(e.device, uintptr(objc.String(text)), uintptr(o), slot)
	})
	return objc.ID(r), err
}

func (e *engine) sources() objc.ID {
	if e.library == 0 {
		l, err := e.compile(source)
		require.NoError(e.t, err)
		e.library = e.own(l)
	}
	return e.library
}

// constant is the value of a function constant.
type constant struct {
	index, typ uintptr
	value      uint64
}

func (e *engine) function(library objc.ID, name string, values ...constant) (objc.ID, error) {
	v := objc.New("MTLFunctionConstantValues")
	defer objc.Release(v)
	for _, c := range values {
		at(&c.value, func(p uintptr) { objc.SetConstantValue.Send(v, p, c.typ, c.index) })
	}
	r, err := objc.WithError(objc.NewFunction, func(slot uintptr) uintptr {
		return objc.NewFunction.Send(library, uintptr(objc.String(name)), uintptr(v), slot)
	})
	return objc.ID(r), err
}

// descriptor makes the descriptor of a pipeline.
func (e *engine) descriptor(f objc.ID, indirect bool) objc.ID {
	d := e.own(objc.New("MTLComputePipelineDescriptor"))
	objc.SetComputeFunction.Send(d, uintptr(f))
	if indirect {
		objc.SetSupportIndirect.Send(d, 1)
	}
	return d
}

func (e *engine) build(d objc.ID, options uint64) (objc.ID, error) {
	r, err := objc.WithError(objc.NewPipeline, func(slot uintptr) uintptr {
		return objc.NewPipeline.Send(e.device, uintptr(d), uintptr(options), 0, slot)
	})
	return objc.ID(r), err
}

// pipeline makes the pipeline of a kernel of source, for use in indirect command buffers too.
func (e *engine) pipeline(name string, values ...constant) objc.ID {
	e.t.Helper()
	f, err := e.function(e.sources(), name, values...)
	require.NoError(e.t, err)
	defer objc.Release(f)
	p, err := e.build(e.descriptor(f, true), 0)
	require.NoError(e.t, err)
	return e.own(p)
}

// buffer makes a buffer with these words, with hazard tracking or without.
func (e *engine) buffer(tracked bool, words ...uint32) objc.ID {
	e.t.Helper()
	mode := objc.ResourceHazardTrackingModeUntracked
	if tracked {
		mode = objc.ResourceHazardTrackingModeTracked
	}
	b := objc.NewBuffer.SendID(e.device, uintptr(4*len(words)), uintptr(objc.ResourceStorageModeShared|mode))
	require.NotZero(e.t, b)
	copy(e.words(b), words)
	return e.own(b)
}

// words returns the contents of a buffer.
func (e *engine) words(b objc.ID) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(objc.Bytes(objc.Contents.Send(b), 4)))), objc.BufferLength.Send(b)/4)
}

func (e *engine) commandBuffer() objc.ID {
	c := objc.CommandBuffer.SendID(e.commands())
	require.NotZero(e.t, c)
	return c
}

// encoder makes a concurrent or a serial encoder.
func (e *engine) encoder(c objc.ID, concurrent bool) objc.ID {
	typ := objc.DispatchTypeSerial
	if concurrent {
		typ = objc.DispatchTypeConcurrent
	}
	n := objc.ComputeEncoderOfType.SendID(c, uintptr(typ))
	require.NotZero(e.t, n)
	return n
}

func setBytes[T any](encoder objc.ID, slot uintptr, v T) {
	at(&v, func(p uintptr) { objc.SetBytes.Send(encoder, p, unsafe.Sizeof(v), slot) })
}

// size is an MTLSize.
type size = [3]uint64

func threads(encoder objc.ID, grid, group size) {
	at(&grid, func(g uintptr) { at(&group, func(p uintptr) { objc.DispatchThreads.Send(encoder, g, p) }) })
}

func groups(encoder objc.ID, grid, group size) {
	at(&grid, func(g uintptr) { at(&group, func(p uintptr) { objc.DispatchThreadgroups.Send(encoder, g, p) }) })
}

// finish commits a command buffer, waits for it and returns its error.
func finish(c objc.ID) error {
	objc.Commit.Send(c)
	objc.WaitUntilCompleted.Send(c)
	if objc.BufferStatus.Send(c) == uintptr(objc.CommandBufferStatusCompleted) {
		return nil
	}
	return objc.Failure(objc.BufferError.SendID(c))
}
