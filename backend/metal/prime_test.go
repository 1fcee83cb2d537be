//go:build linux

package metal_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/ir"
)

// TestPrime: on GPUs before Apple9 a pipeline for indirect command buffers is dispatched once before its
// first use, with an empty grid and all argument slots bound; on other GPUs, and for other plans, it is not.
func TestPrime(t *testing.T) {
	l := fakemetal.Build(t)
	const dispatch, bind, room = "dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup:", "setBuffer:offset:atIndex:", "setThreadgroupMemoryLength:atIndex:"
	g := chain(t, "v_Sigmoidfloat32float32", "v_Silufloat32float32", "v_Sigmoidfloat32float32")
	for _, c := range []struct {
		family, want int
		plan         metal.Plan
	}{{7, 2, metal.Indirect}, {8, 2, metal.Indirect}, {9, 0, metal.Indirect}, {10, 0, metal.Indirect}, {7, 0, metal.Concurrent}, {8, 0, metal.Parallel}} {
		m := serve(t, fakemetal.Options{Family: c.family})
		d := open(t, metal.Options{Plan: c.plan})
		for _, want := range []int{c.want, 0} { // compiled again, the graph finds its pipelines made
			dispatched, bound, commits := l.Sent(dispatch), l.Sent(bind), l.Sent("commit")
			_, err := prepared(d, g)
			require.NoError(t, err)
			assert.Equal(t, want, l.Sent(dispatch)-dispatched, "%+v", c)
			assert.Equal(t, want, l.Sent("commit")-commits, "%+v", c)
			assert.Equal(t, 31*want, l.Sent(bind)-bound, "%+v", c)
		}
		require.NoError(t, d.Close())
		m.Close()
	}
	// If this dispatch fails, compiling the graph fails, and the next attempt makes it again.
	m := serve(t, fakemetal.Options{Faults: []fakemetal.Fault{{On: fakemetal.CommandBuffer, Nth: 1, Code: 8}}})
	d := open(t, metal.Options{Plan: metal.Indirect})
	_, err := prepared(d, chain(t, "v_Sigmoidfloat32float32"))
	require.ErrorContains(t, err, "the empty dispatch before its use in indirect command buffers: metal: the command buffer failed: out of memory")
	_, err = prepared(d, chain(t, "v_Sigmoidfloat32float32"))
	require.NoError(t, err)
	require.NoError(t, d.Close())
	m.Close()

	// For a kernel that takes threadgroup memory, its length is set.
	serve(t, fakemetal.Options{})
	d = open(t, metal.Options{Plan: metal.Indirect})
	sent := l.Sent(room)
	_, err = prepared(d, withThreadgroup(t))
	require.NoError(t, err)
	assert.Equal(t, 1, l.Sent(room)-sent)
	require.NoError(t, d.Close())
}

// withThreadgroup returns a graph of one kernel, which takes threadgroup memory.
func withThreadgroup(t testing.TB) *ir.Graph {
	t.Helper()
	path := filepath.Join(t.TempDir(), "room.metal")
	text := "#include <metal_stdlib>\nusing namespace metal;\n" +
		"kernel void room(device float* out [[buffer(0)]], threadgroup float* at [[threadgroup(0)]], uint i [[thread_position_in_threadgroup]]) { at[i] = i; out[i] = at[i]; }\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	b := ir.NewBuilder("room")
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 16})
	k := b.Kernel(ir.Kernel{Name: "room", Library: ir.Library{Kind: ir.SourceFile, Path: path}, Function: "room", Args: []ir.Arg{
		{Slot: 0, Name: "out", Kind: ir.DeviceArg, Access: ir.WriteArg, Type: ir.F32}, {Slot: 0, Name: "at", Kind: ir.ThreadgroupArg, Access: ir.ReadWriteArg, Type: ir.F32},
	}})
	b.Dispatch(ir.Dispatch{Kernel: k, Grid: [3]ir.Extent{ir.Ext(4), ir.Ext(1), ir.Ext(1)}, GridKind: ir.Threads, Threadgroup: [3]uint32{4, 1, 1},
		Bindings: []ir.Binding{ir.BufferArg(0, ir.ViewOf(y, 0, 16))}, ThreadgroupMemory: []ir.ThreadgroupMemory{{Slot: 0, Bytes: 16}}})
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}
