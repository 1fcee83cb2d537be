//go:build unix

package infer

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
)

// A graph that binds one view to an argument that is read and to one that is written gets a declaration that allows
// it, unless threads then race.
func TestInplace(t *testing.T) {
	const text = `#include <metal_stdlib>
using namespace metal;
kernel void own(const device float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) { y[i] = x[i] * 2; }
kernel void rows(const device float* x [[buffer(0)]], device float* y [[buffer(1)]], constant uint& width [[buffer(2)]], uint2 i [[thread_position_in_grid]]) { uint at = i.y * width + i.x; y[i.y * 8 + i.x] = x[at] * 2; }
kernel void next(const device float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]], uint n [[threads_per_grid]]) { y[i] = x[(i + 1) % n]; }
`
	path := filepath.Join(t.TempDir(), "inplace.metal")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	x := observer(t, Options{Shapes: 8, HeldOut: 6, Seed: 1})
	for function, allowed := range map[string]bool{"own": true, "rows": true, "next": false} {
		b := ir.NewBuilder("g")
		m := b.Memory(ir.Memory{Name: "m", Kind: ir.State, Size: 256})
		k := b.Kernel(ir.Kernel{Name: "k", Library: ir.Library{Kind: ir.SourceFile, Path: path, Digest: sha256.Sum256([]byte(text))}, Function: function,
			Args: []ir.Arg{{Slot: 0, Name: "x", Type: ir.F32}, {Slot: 1, Name: "y", Type: ir.F32, Access: ir.WriteArg}}})
		if function == "rows" { // what is read has other expressions than what is written, which are the same here
			u := b.Unfinished()
			u.Kernels[k].Args = append(u.Kernels[k].Args, ir.Arg{Slot: 2, Name: "width", Kind: ir.ConstantArg, Type: ir.U32, Count: 1})
			b.Dispatch(ir.Dispatch{Kernel: k, GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(8), ir.Ext(8), ir.Ext(1)}, Threadgroup: [3]uint32{8, 1, 1},
				Bindings: []ir.Binding{ir.BufferArg(0, ir.ViewOf(m, 0, 256)), ir.BufferArg(1, ir.ViewOf(m, 0, 256)), ir.ScalarArg(2, ir.U32, ir.Const(8))}})
		} else {
			b.Dispatch(ir.Dispatch{Kernel: k, GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(64), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{8, 1, 1},
				Bindings: []ir.Binding{ir.BufferArg(0, ir.ViewOf(m, 0, 256)), ir.BufferArg(1, ir.ViewOf(m, 0, 256))}})
		}
		r, err := x.Propose(context.Background(), []*ir.Graph{b.Unfinished()}, every)
		require.NoError(t, err)
		require.Len(t, r.Proposals, 1, "%v", r.Left)
		if p := &r.Proposals[0]; allowed {
			assert.Contains(t, p.Text, "@inplace  y x")
			assert.Empty(t, p.Notes)
		} else {
			assert.NotContains(t, p.Text, "@inplace")
			require.NotEmpty(t, p.Notes)
			assert.Contains(t, p.Notes[0], "binds one view twice, and the checker finds: race")
		}
	}
}
