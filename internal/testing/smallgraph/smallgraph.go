// Package smallgraph draws regions of a graph that is so small that a test can try
// every value of its params and look at every byte. Tests of what is known about sets
// of bytes use it as their oracle.
package smallgraph

import (
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
)

// Graph returns a graph with a memory that has two aliases, a second memory, and two
// params with a constraint between them.
func Graph() *ir.Graph {
	return &ir.Graph{
		Name:        "t",
		Params:      []ir.Param{{Name: "p", Type: ir.U32, Max: 5}, {Name: "n", Type: ir.U32, Min: 1, Max: 4}},
		Constraints: []ir.Constraint{{LHS: ir.Linear(0, ir.Term{Param: 0, Coeff: 1}, ir.Term{Param: 1, Coeff: 1}), Max: 6}},
		Memories: []ir.Memory{
			{Name: "a", Kind: ir.Scratch, Size: 4096, Alias: ir.NoMem},
			{Name: "a1", Kind: ir.Scratch, Size: 2048, Alias: 0, AliasOff: 16},
			{Name: "a2", Kind: ir.Scratch, Size: 1024, Alias: 1, AliasOff: 8},
			{Name: "b", Kind: ir.Scratch, Size: 4096, Alias: ir.NoMem},
		},
	}
}

// Affine draws an expression over the params of Graph, whose values go up to max or a
// little beyond.
func Affine(t *rapid.T, name string, max int64) ir.Affine {
	c := rapid.Int64Range(0, max).Draw(t, name)
	if rapid.IntRange(0, 2).Draw(t, name+" is const") > 0 {
		return ir.Const(c)
	}
	return ir.Linear(c, ir.Term{Param: ir.ParamID(rapid.IntRange(0, 1).Draw(t, name+" param")), Coeff: rapid.SampledFrom([]int64{1, 2, 8, 16}).Draw(t, name+" coeff")})
}

// Region draws a region of a memory of Graph.
func Region(t *rapid.T) ir.Region {
	r := ir.Region{Mem: ir.MemID(rapid.IntRange(0, 3).Draw(t, "mem")), Off: Affine(t, "off", 64), Run: Affine(t, "run", 12)}
	for range rapid.IntRange(0, 2).Draw(t, "dims") {
		r.Dims = append(r.Dims, ir.Dim{Count: Affine(t, "count", 3), Stride: rapid.SampledFrom([]int64{0, 4, 8, 16, 24, 32, 64}).Draw(t, "stride")})
	}
	return r
}

// Values calls f with every assignment of the params that g admits.
func Values(g *ir.Graph, f func([]uint32)) {
	for p := uint32(0); p <= 5; p++ {
		for n := uint32(1); n <= 4; n++ {
			if p+n <= 6 {
				f([]uint32{p, n})
			}
		}
	}
}

// Touched is the oracle: it lists, one by one, the bytes of a region as offsets in the
// root memory.
func Touched(g *ir.Graph, r ir.Region, params []uint32) map[[2]int64]bool {
	out := map[[2]int64]bool{}
	root, off := g.Root(r.Mem)
	r.Runs(params, func(lo, hi int64) bool {
		for b := lo; b < hi; b++ {
			out[[2]int64{int64(root), b + off}] = true
		}
		return true
	})
	return out
}

// Meet reports whether two regions share a byte for some values of the params.
func Meet(g *ir.Graph, a, b ir.Region) (found bool) {
	Values(g, func(v []uint32) {
		x := Touched(g, a, v)
		for k := range Touched(g, b, v) {
			found = found || x[k]
		}
	})
	return found
}
