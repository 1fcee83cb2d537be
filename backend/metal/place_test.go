//go:build linux

package metal_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/ir"
)

// TestPlaces: a memory must begin at a multiple of its alignment, or of 16 bytes if it has none, since copy
// kernels move 16 bytes at a time, and of the alignment of the kernel arguments that are bound to it.
// Other places are refused, in frames, states and live recordings, before anything is sent.
func TestPlaces(t *testing.T) {
	r := gpu(t, fakemetal.Options{}, metal.Options{})
	q := r.queue()
	library := newWorkload(t).graphs[0].Kernels[0].Library
	buffer, err := r.Alloc(backend.BufferSpec{Size: 256})
	require.NoError(t, err)
	for _, c := range []struct {
		memory ir.Memory
		kernel bool // a kernel of u32 writes it; else a copy does
		offset int64
		want   int64 // what the offset is no multiple of; 0: it is accepted
	}{
		{ir.Memory{DType: ir.F32}, false, 4, 16},
		{ir.Memory{DType: ir.F32}, false, 16, 0},
		{ir.Memory{Align: 4}, false, 4, 0},
		{ir.Memory{Align: 64}, false, 16, 64},
		{ir.Memory{Align: 1, DType: ir.F32}, false, 2, 4},
		{ir.Memory{Align: 1}, true, 2, 4},
		{ir.Memory{Align: 1}, true, 4, 0},
		{ir.Memory{Align: 1}, false, 3, 0},
	} {
		for _, kind := range []ir.MemKind{ir.Output, ir.State} {
			b := kernels{ir.NewBuilder("places"), library}
			x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 64})
			m := c.memory
			m.Name, m.Kind, m.Size = "y", kind, 64
			y := b.Memory(m)
			if c.kernel {
				b.dispatch(ir.Dispatch{Kernel: b.kernel("advanced", chosen(3, 1)...), Grid: extent(16, 1, 1), GridKind: ir.Threads, Threadgroup: [3]uint32{16, 1, 1},
					Bindings: []ir.Binding{ir.BufferArg(0, ir.ViewOf(y, 0, 64)), ir.BytesArg(1, ir.ValueBytes(uint32(9)))}})
			} else {
				b.Copy(ir.ViewOf(y, 0, 64), ir.ViewOf(x, 0, 64), "")
			}
			g := b.Unfinished()
			where := fmt.Sprintf("%+v", c)
			expect := func(err error) bool {
				if c.want == 0 {
					require.NoError(t, err, where)
					return false
				}
				require.ErrorContains(t, err, fmt.Sprintf("memory %%y begins at byte %d of a buffer, which is no multiple of %d", c.offset, c.want), where)
				return true
			}
			e, err := r.Compile(t.Context(), &backend.Program{Graph: g})
			require.NoError(t, err)
			places := []backend.Place{{}, {Buffer: buffer, Offset: c.offset}}
			var set backend.States
			if kind == ir.State {
				set, err = e.NewStates(places)
				places = nil
				if expect(err) {
					require.NoError(t, e.Close())
					continue
				}
			}
			f, err := e.NewFrame(backend.FrameSpec{Places: places})
			if kind == ir.Output && expect(err) {
				require.NoError(t, e.Close())
				continue
			}
			require.NoError(t, err)
			require.NoError(t, backend.Wait(t.Context())(q.Submit(t.Context(), backend.Submission{Executable: e, Frame: f, States: set})), where)
			require.NoError(t, f.Close())
			require.NoError(t, e.Close())
		}

		in, err := r.Alloc(backend.BufferSpec{Size: 64})
		require.NoError(t, err)
		b := kernels{ir.NewBuilder("live"), library}
		x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 64})
		m := c.memory
		m.Name, m.Kind, m.Size = "y", ir.Output, 64
		y := b.Memory(m)
		var n ir.Node = &ir.Copy{Dst: ir.ViewOf(y, 0, 64), Src: ir.ViewOf(x, 0, 64)}
		if c.kernel {
			n = &ir.Dispatch{Kernel: b.kernel("advanced", chosen(3, 1)...), Grid: extent(16, 1, 1), GridKind: ir.Threads, Threadgroup: [3]uint32{16, 1, 1},
				Bindings: []ir.Binding{ir.BufferArg(0, ir.ViewOf(y, 0, 64)), ir.BytesArg(1, ir.ValueBytes(uint32(9)))}}
		}
		scope := &backend.Scope{Graph: b.Unfinished(), Places: []backend.Place{backend.At(in), {Buffer: buffer, Offset: c.offset}}}
		cb, err := q.CommandBuffer(t.Context(), backend.Recording{Scope: scope})
		require.NoError(t, err)
		err = cb.Encode(n)
		if c.want == 0 {
			require.NoError(t, err, "%+v", c)
			require.NoError(t, backend.Wait(t.Context())(cb.Commit(t.Context(), "", ir.OrderEvent)))
		} else {
			cb.Discard()
			require.ErrorContains(t, err, fmt.Sprintf("memory %%y begins at byte %d of a buffer, which is no multiple of %d", c.offset, c.want), "%+v", c)
		}
		require.NoError(t, in.Close())
	}
	require.NoError(t, buffer.Close())
	require.NoError(t, q.Close())
}
