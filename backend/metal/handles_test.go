//go:build linux

package metal_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// foreign is the kernel of a program that also uses Metal directly.
const foreign = `#include <metal_stdlib>
kernel void halve(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] /= 2; }
`

// halve acts as that program: given the handles of a device, a queue and a buffer, it compiles its kernel and
// commits a command buffer that runs it on the buffer. It returns the command buffer, retained for the caller.
func halve(t *testing.T, device, queue, buffer uintptr, threads uint64) (committed objc.ID) {
	objc.Pool(func() {
		d := objc.ID(device)
		lib, err := objc.WithError(objc.NewLibraryWithSource, func(slot uintptr) uintptr {
			return objc.NewLibraryWithSource.Send(d, uintptr(objc.String(foreign)), 0, slot)
		})
		require.NoError(t, err)
		defer objc.Release(objc.ID(lib))
		function, err := objc.WithError(objc.NewFunction, func(slot uintptr) uintptr {
			values := objc.New("MTLFunctionConstantValues")
			defer objc.Release(values)
			return objc.NewFunction.Send(objc.ID(lib), uintptr(objc.String("halve")), uintptr(values), slot)
		})
		require.NoError(t, err)
		defer objc.Release(objc.ID(function))
		how := objc.New("MTLComputePipelineDescriptor")
		defer objc.Release(how)
		objc.SetComputeFunction.Send(how, function)
		pipeline, err := objc.WithError(objc.NewPipeline, func(slot uintptr) uintptr {
			return objc.NewPipeline.Send(d, uintptr(how), 0, 0, slot)
		})
		require.NoError(t, err)
		defer objc.Release(objc.ID(pipeline))
		var b objc.Batch
		defer func() { require.NoError(t, b.Close()) }()
		cb := b.Send(objc.CommandBuffer, objc.ID(queue))
		b.SendTo(objc.RetainObject, cb)
		e := b.SendTo(objc.ComputeEncoderOfType, cb, uintptr(objc.DispatchTypeSerial))
		b.SendTo(objc.SetPipeline, e, pipeline)
		b.SendTo(objc.SetBuffer, e, buffer, 0, 0)
		b.SendTo(objc.DispatchThreads, e, b.Size(threads, 1, 1), b.Size(threads, 1, 1))
		b.SendTo(objc.EndEncoding, e)
		b.SendTo(objc.Commit, cb)
		require.NoError(t, b.Run())
		committed = objc.ID(cb.Value())
	})
	return committed
}

// TestHandles: a program gives its own MTLDevice to this package (Options.Adopt), takes the handles of a queue
// and a buffer, and commits a command buffer between two replays. Only the tracked buffer that they share
// orders them.
func TestHandles(t *testing.T) {
	r := gpu(t, fakemetal.Options{Seed: 2}, metal.Options{})
	own := objc.SystemDefaultDevice() // the program's own device
	d := open(t, metal.Options{Adopt: uintptr(own), Device: "of no importance", Log: r.log})
	objc.Release(own) // Open has retained it
	require.Equal(t, uintptr(own), d.Handle())
	var q backend.Queue
	q, err := d.NewQueue()
	require.NoError(t, err)
	b, err := d.Alloc(backend.BufferSpec{Size: 16})
	require.NoError(t, err)
	copy(b.Bytes(), floats(1, 2, 3, 4))

	s := record.New("double")
	x := s.State("x", ir.F32, 4)
	s.Add(x, x, record.Into(x))
	g, err := s.Graph()
	require.NoError(t, err)
	e, err := d.Compile(context.Background(), &backend.Program{Graph: g, Places: []backend.Place{backend.At(b)}})
	require.NoError(t, err)
	f, err := e.NewFrame(backend.FrameSpec{})
	require.NoError(t, err)
	double := func() {
		p, err := q.Submit(t.Context(), backend.Submission{Executable: e, Frame: f})
		require.NoError(t, err)
		require.NoError(t, p.Wait(t.Context()))
	}
	double()
	cb := halve(t, d.Handle(), q.(metal.Object).Handle(), b.(metal.Object).Handle(), 4)
	double() // committed behind cb, so that it begins after cb has ended
	require.Equal(t, []float32{2, 4, 6, 8}, numbers(b.Bytes()))
	objc.Pool(func() {
		objc.WaitUntilCompleted.Send(cb)
		require.NoError(t, objc.Failure(objc.BufferError.SendID(cb)))
	})
	objc.Release(cb)
	require.NoError(t, f.Close())
	require.NoError(t, e.Close())
	require.NoError(t, b.Close())
	require.NoError(t, q.Close())
	require.NoError(t, d.Close())
}

// TestDescription: List returns what the GPU is and can do.
func TestDescription(t *testing.T) {
	gpu(t, fakemetal.Options{WorkingSet: 6 << 30, MaxBuffer: 4 << 30}, metal.Options{})
	all, err := metal.List()
	require.NoError(t, err)
	want := metal.Description{
		Name: "software Metal", Default: true, Family: 7, Memory: 6 << 30, MaxBuffer: 4 << 30, ThreadgroupBytes: 32 << 10,
		Unified: true, RegistryID: 0x4d544c, Architecture: "applegpu_software", Families: "Apple7, Mac2, Metal3",
	}
	require.Equal(t, []metal.Description{want}, all)
	require.Equal(t, "software Metal (applegpu_software), Apple7, Mac2, Metal3; working set 6144 MiB, buffers of at most 4096 MiB, 32 KiB of threadgroup memory, unified memory", want.String())
}
