package cost_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
)

// started counts, one by one, the threads and the lanes of the threadgroups of a grid.
func started(kind ir.GridKind, grid, group [3]int) (groups, threads, lanes int) {
	inside := func(dim, g int) int { // threads of threadgroup g in a dimension
		if kind == ir.Threadgroups {
			return group[dim]
		}
		return min(group[dim], grid[dim]-g*group[dim])
	}
	number := func(dim int) int {
		if kind == ir.Threadgroups {
			return grid[dim]
		}
		return (grid[dim] + group[dim] - 1) / group[dim]
	}
	for x := range number(0) {
		for y := range number(1) {
			for z := range number(2) {
				n := inside(0, x) * inside(1, y) * inside(2, z)
				groups++
				threads += n
				lanes += (n + 31) / 32 * 32
			}
		}
	}
	return groups, threads, lanes
}

func TestOccupancy(t *testing.T) {
	m, err := cost.Chip("m1")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]ir.GridKind{ir.Threads, ir.Threadgroups}).Draw(t, "kind")
		var grid, group [3]int
		d := ir.Dispatch{GridKind: kind, Effects: &ir.Effects{Complete: true}}
		for i := range 3 {
			grid[i], group[i] = rapid.IntRange(1, 20).Draw(t, "grid"), rapid.IntRange(1, 9).Draw(t, "group")
			d.Grid[i], d.Threadgroup[i] = ir.Ext(int64(grid[i])), uint32(group[i])
		}
		g := &ir.Graph{Kernels: []ir.Kernel{{Function: "f", Library: ir.Library{Kind: ir.Metallib}}}, Nodes: []ir.Node{&d}}
		o := m.For(g).Occupancy(&d)
		groups, threads, lanes := started(kind, grid, group)
		assert.InDelta(t, groups, o.Groups, 1e-9)
		assert.InDelta(t, threads, o.Threads, 1e-9)
		assert.InDelta(t, 1-float64(threads)/float64(lanes), o.Idle, 1e-9)
		assert.InDelta(t, min(1, float64(groups)/float64(m.Cores)), o.Cores, 1e-9)
	})
}

// With as many cores as it has threadgroups, a dispatch takes what it is said to save less.
func TestOccupancySaves(t *testing.T) {
	m, err := cost.Chip("m3-max")
	require.NoError(t, err)
	read := ir.ViewOf(0, 0, 1<<24).Contiguous()
	d := &ir.Dispatch{Grid: [3]ir.Extent{ir.Ext(4), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{64, 1, 1}, Effects: &ir.Effects{Complete: true, Reads: []ir.Region{read}}}
	g := &ir.Graph{Memories: []ir.Memory{{Name: "m", Kind: ir.Input, Size: 1 << 24, Alias: ir.NoMem}}, Kernels: []ir.Kernel{{Function: "f", Library: ir.Library{Kind: ir.Metallib}}}, Nodes: []ir.Node{d}}
	o := m.For(g).Occupancy(d)
	require.Positive(t, o.Saves)
	few := m
	few.Cores = 4
	assert.InDelta(t, float64(few.Dispatch(g, d)), float64(m.Dispatch(g, d)-o.Saves), 1e-12)
	m.Kernels = map[string]cost.Kernel{"f": {Fixed: 1}}
	assert.Zero(t, m.For(g).Occupancy(d).Saves)
}
