package hazard_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
)

// graph has one memory with two aliases, a second memory, and two params with a
// constraint, all small enough to try every value.
func graph() *ir.Graph {
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

func affine(t *rapid.T, name string, max int64) ir.Affine {
	c := rapid.Int64Range(0, max).Draw(t, name)
	if rapid.IntRange(0, 2).Draw(t, name+" is const") > 0 {
		return ir.Const(c)
	}
	return ir.Linear(c, ir.Term{Param: ir.ParamID(rapid.IntRange(0, 1).Draw(t, name+" param")), Coeff: rapid.SampledFrom([]int64{1, 2, 8, 16}).Draw(t, name+" coeff")})
}

func region(t *rapid.T) ir.Region {
	r := ir.Region{Mem: ir.MemID(rapid.IntRange(0, 3).Draw(t, "mem")), Off: affine(t, "off", 64), Run: affine(t, "run", 12)}
	for range rapid.IntRange(0, 2).Draw(t, "dims") {
		r.Dims = append(r.Dims, ir.Dim{Count: affine(t, "count", 3), Stride: rapid.SampledFrom([]int64{0, 4, 8, 16, 24, 32, 64}).Draw(t, "stride")})
	}
	return r
}

// values calls f with every allowed value of the params.
func values(g *ir.Graph, f func([]uint32)) {
	for p := uint32(0); p <= 5; p++ {
		for n := uint32(1); n <= 4; n++ {
			if p+n <= 6 {
				f([]uint32{p, n})
			}
		}
	}
}

// touched is the oracle: the bytes of the root memory, one by one.
func touched(g *ir.Graph, r ir.Region, params []uint32) map[[2]int64]bool {
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

func meet(g *ir.Graph, a, b ir.Region) (found bool) {
	values(g, func(v []uint32) {
		x := touched(g, a, v)
		for k := range touched(g, b, v) {
			found = found || x[k]
		}
	})
	return found
}

// Disjoint is sound: it never calls two regions disjoint that share a byte for
// some value. How often it misses a disjoint pair is counted by the test below.
func TestDisjointIsSound(t *testing.T) {
	g := graph()
	rapid.Check(t, func(t *rapid.T) {
		a, b := region(t), region(t)
		if hazard.Disjoint(g, a, b) && meet(g, a, b) {
			t.Fatalf("%s and %s share a byte", g.FormatRegion(a), g.FormatRegion(b))
		}
		require.Equal(t, hazard.Disjoint(g, a, b), hazard.Disjoint(g, b, a), "symmetry of %s and %s", g.FormatRegion(a), g.FormatRegion(b))
	})
}

func TestDisjointKnowsTheUsualCases(t *testing.T) {
	g := graph()
	pos, n := ir.Linear(0, ir.Term{Param: 0, Coeff: 1}), ir.Linear(0, ir.Term{Param: 1, Coeff: 1})
	at := func(mem ir.MemID, off, run ir.Affine, dims ...ir.Dim) ir.Region {
		return ir.Region{Mem: mem, Off: off, Run: run, Dims: dims}
	}
	c := ir.Const
	cases := []struct {
		name string
		a, b ir.Region
		want bool
	}{
		{"ranges that only touch (B10)", at(0, c(0), c(64)), at(0, c(64), c(64)), true},
		{"one byte shared", at(0, c(0), c(65)), at(0, c(64), c(64)), false},
		{"other root", at(0, c(0), c(64)), at(3, c(0), c(64)), true},
		{"alias of the same bytes", at(0, c(24), c(8)), at(2, c(0), c(8)), false},
		{"alias beside", at(0, c(0), c(24)), at(2, c(0), c(8)), true},
		{"cache rows before pos and the row at pos", at(0, c(0), pos.Scale(16)), at(0, pos.Scale(16), c(16)), true},
		{"cache rows up to pos+n and rows from pos", at(0, c(0), pos.Add(n).Scale(16)), at(0, pos.Scale(16), n.Scale(16)), false},
		{"interleaved columns", at(0, c(0), c(8), ir.Dim{Count: c(10), Stride: 32}), at(0, c(8), c(24), ir.Dim{Count: c(10), Stride: 32}), true},
		{"interleaved columns that overlap", at(0, c(0), c(9), ir.Dim{Count: c(10), Stride: 32}), at(0, c(8), c(24), ir.Dim{Count: c(10), Stride: 32}), false},
		{"two heads' rows at pos, other rows", at(0, pos.Scale(16), c(16), ir.Dim{Count: c(2), Stride: 512}), at(0, pos.Scale(16).AddConst(16), c(16), ir.Dim{Count: c(2), Stride: 512}), true},
		{"different strides", at(0, c(0), c(4), ir.Dim{Count: c(10), Stride: 12}), at(0, c(4), c(4), ir.Dim{Count: c(10), Stride: 16}), false},
		{"empty", at(0, c(0), c(0)), at(0, c(0), c(64)), true},
		{"constraint keeps them apart", at(0, c(96), c(8)), at(0, pos.Add(n).Scale(16).AddConst(-16), c(16)), true},
	}
	for _, k := range cases {
		require.Equal(t, k.want, hazard.Disjoint(g, k.a, k.b), k.name)
		require.Equal(t, k.want, !meet(g, k.a, k.b), "the oracle disagrees: %s", k.name)
	}
}

// effects draws complete effects, sometimes unknown ones.
func effects(t *rapid.T) *ir.Effects {
	if rapid.IntRange(0, 15).Draw(t, "unknown") == 0 {
		return nil
	}
	e := &ir.Effects{Complete: true}
	for range rapid.IntRange(0, 2).Draw(t, "reads") {
		e.Reads = append(e.Reads, region(t))
	}
	for range rapid.IntRange(0, 2).Draw(t, "writes") {
		e.Writes = append(e.Writes, ir.Write{Region: region(t), Must: true})
	}
	return e
}

// slowConflict compares with every remembered command.
func slowConflict(g *ir.Graph, before []*ir.Effects, e *ir.Effects) bool {
	for _, b := range before {
		if !b.Known() || !e.Known() {
			return true
		}
		for _, w := range b.Writes {
			for _, r := range e.Reads {
				if !hazard.Disjoint(g, w.Region, r) {
					return true
				}
			}
			for _, x := range e.Writes {
				if !hazard.Disjoint(g, w.Region, x.Region) {
					return true
				}
			}
		}
		for _, r := range b.Reads {
			for _, x := range e.Writes {
				if !hazard.Disjoint(g, r, x.Region) {
					return true
				}
			}
		}
	}
	return false
}

// The tracker finds a conflict exactly when comparing with every earlier
// command does, across resets.
func TestTrackerAgainstAllPairs(t *testing.T) {
	g := graph()
	rapid.Check(t, func(t *rapid.T) {
		tr := hazard.NewTracker(g)
		var before []*ir.Effects
		for i := range rapid.IntRange(1, 30).Draw(t, "commands") {
			e := effects(t)
			c, got := tr.Conflict(e)
			require.Equal(t, slowConflict(g, before, e), got, "command %d", i)
			if got && len(before) > 0 {
				require.Less(t, int(c.With), i)
				require.NotEqual(t, hazard.None, c.Kind)
			}
			if rapid.IntRange(0, 9).Draw(t, "reset") == 0 {
				tr.Reset()
				before, got = nil, false
			}
			if rapid.Bool().Draw(t, "try") {
				again, found := tr.Try(ir.ID(i), e)
				require.Equal(t, got, found, "command %d", i)
				if found {
					require.Equal(t, c, again)
					if rapid.Bool().Draw(t, "drop") {
						continue // it is not added
					}
					tr.AddTried(ir.ID(i), e)
				}
			} else {
				tr.Add(ir.ID(i), e)
			}
			before = append(before, e)
		}
	})
}

func TestKindsOfConflict(t *testing.T) {
	g := graph()
	r := ir.ViewOf(0, 0, 16).Contiguous()
	read := &ir.Effects{Complete: true, Reads: []ir.Region{r}}
	write := &ir.Effects{Complete: true, Writes: []ir.Write{{Region: r, Must: true}}}
	for _, k := range []struct {
		first, second *ir.Effects
		want          hazard.Kind
	}{{write, read, hazard.RAW}, {read, write, hazard.WAR}, {write, write, hazard.WAW}, {read, read, hazard.None}, {nil, read, hazard.Unknown}, {read, nil, hazard.Unknown}} {
		tr := hazard.NewTracker(g)
		tr.Add(7, k.first)
		c, ok := tr.Conflict(k.second)
		require.Equal(t, k.want, c.Kind)
		require.Equal(t, k.want != hazard.None, ok)
		if ok {
			require.Equal(t, ir.ID(7), c.With)
		}
	}
}
