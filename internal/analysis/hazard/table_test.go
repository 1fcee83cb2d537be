package hazard_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/testing/smallgraph"
	"github.com/mlxc/mlxc/ir"
)

// commands draws a graph of commands, of a kernel without declaration, over the
// memories of smallgraph. With plain they touch contiguous constant ranges only, for
// which everything is exact.
func commands(t *rapid.T, plain bool) *ir.Graph {
	g := smallgraph.Graph()
	n := rapid.IntRange(1, 14).Draw(t, "commands")
	some := func() ir.Region {
		if plain || rapid.Bool().Draw(t, "plain") {
			lo := rapid.Int64Range(0, 20).Draw(t, "lo")
			return ir.ViewOf(ir.MemID(rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "mem")), lo, rapid.Int64Range(1, 24).Draw(t, "len")).Contiguous()
		}
		return smallgraph.Region(t)
	}
	for i := range n {
		d := &ir.Dispatch{ID: ir.ID(i)}
		if rapid.IntRange(0, 19).Draw(t, "unknown") > 0 {
			d.Effects = &ir.Effects{Complete: true}
			for range rapid.IntRange(0, 2).Draw(t, "reads") {
				d.Effects.Reads = append(d.Effects.Reads, some())
			}
			for range rapid.IntRange(0, 2).Draw(t, "writes") {
				d.Effects.Writes = append(d.Effects.Writes, ir.Write{Region: some(), Must: rapid.IntRange(0, 3).Draw(t, "must") > 0})
			}
		}
		g.Nodes = append(g.Nodes, d)
		if rapid.IntRange(0, 5).Draw(t, "mark") == 0 {
			g.Nodes = append(g.Nodes, &ir.Barrier{})
		}
	}
	return g
}

type byteSet map[[2]int64]bool

// footprint is what a command touches for one value of the params.
type footprint struct {
	pillar      bool
	reads, must byteSet
	writes      byteSet
}

func footprints(g *ir.Graph, params []uint32) (out []footprint) {
	for _, n := range g.Nodes {
		c, ok := n.(ir.Command)
		if !ok {
			continue
		}
		e := c.Touches()
		f := footprint{pillar: !e.Known(), reads: byteSet{}, writes: byteSet{}, must: byteSet{}}
		if e.Known() {
			for _, r := range e.Reads {
				for b := range smallgraph.Touched(g, r, params) {
					f.reads[b] = true
				}
			}
			for _, w := range e.Writes {
				for b := range smallgraph.Touched(g, w.Region, params) {
					f.writes[b] = true
					if w.Must {
						f.must[b] = true
					} else {
						f.reads[b] = true
					}
				}
			}
		}
		out = append(out, f)
	}
	return out
}

func (a *footprint) conflicts(b *footprint) bool {
	if a.pillar || b.pillar {
		return true
	}
	for x := range a.writes {
		if b.reads[x] || b.writes[x] {
			return true
		}
	}
	for x := range a.reads {
		if b.writes[x] {
			return true
		}
	}
	return false
}

// byBytes compares all pairs of commands byte by byte for all values of the params.
// With later, the second command has params of its own.
func byBytes(g *ir.Graph, later bool) [][]bool {
	var all [][]footprint
	smallgraph.Values(g, func(p []uint32) { all = append(all, footprints(g, p)) })
	n := len(all[0])
	out := square(n)
	for v := range all {
		for u := range all {
			if !later && u != v {
				continue
			}
			for i := range n {
				for j := range n {
					if !out[i][j] && (i < j || later) {
						out[i][j] = all[v][i].conflicts(&all[u][j])
					}
				}
			}
		}
	}
	return out
}

func square(n int) [][]bool {
	out := make([][]bool, n)
	for i := range out {
		out[i] = make([]bool, n)
	}
	return out
}

// byPairs compares all pairs of commands by Disjoint.
func byPairs(t *hazard.Table, later bool) [][]bool {
	out := square(t.Len())
	for i := range out {
		for j := range out {
			switch {
			case later:
				out[i][j] = t.BetweenReplays(i, j) != hazard.None
			case i < j:
				out[i][j] = t.Between(i, j) != hazard.None
			}
		}
	}
	return out
}

func longest(conflicts [][]bool) (levels []int32) {
	levels = make([]int32, len(conflicts))
	for j := range levels {
		for i := range j {
			if conflicts[i][j] {
				levels[j] = max(levels[j], levels[i]+1)
			}
		}
	}
	return levels
}

// between requires least ≤ got ≤ most for each element, and for plain graphs that all
// three are equal.
func between(t *rapid.T, what string, plain bool, least, got, most []int32) {
	if plain {
		require.Equal(t, least, got, what)
		require.Equal(t, most, got, what)
	}
	for i := range got {
		if got[i] < least[i] || got[i] > most[i] {
			t.Fatalf("%s of command %d is %d, bytes say %d, pairs of regions %d", what, i, got[i], least[i], most[i])
		}
	}
}

func TestLevelsAgainstBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.Bool().Draw(t, "plain")
		g := commands(t, plain)
		table := hazard.NewTable(context.Background(), g)
		got, depth := table.Levels()
		between(t, "level", plain, longest(byBytes(g, false)), got, longest(byPairs(table, false)))
		top := int32(0)
		for _, l := range got {
			top = max(top, l+1)
		}
		require.EqualValues(t, top, depth)
	})
}

// A reordered table equals the table of the reordered list.
func TestReorder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := commands(t, false)
		table := hazard.NewTable(context.Background(), g)
		table.Levels()
		order := make([]int32, table.Len())
		for i := range order {
			order[i] = int32(i)
		}
		order = rapid.Permutation(order).Draw(t, "order")
		moved := *g
		moved.Nodes = nil
		for _, i := range order {
			moved.Nodes = append(moved.Nodes, table.Node(int(i)))
		}
		table.Reorder(order)
		anew := hazard.NewTable(context.Background(), &moved)
		for i := range order {
			require.Equal(t, anew.Node(i), table.Node(i))
			require.Equal(t, anew.Pillar(i), table.Pillar(i))
		}
		want, _ := anew.Levels()
		got, _ := table.Levels()
		require.Equal(t, want, got)
		require.Equal(t, anew.Latest(nil), table.Latest(nil))
	})
}

// latestOf is the slow form of Table.Latest.
func latestOf(same, later [][]bool, ends []bool) []int32 {
	n := len(same)
	out := make([]int32, 2*n)
	for j := range out {
		out[j] = -1
		from := j - 1
		if ends != nil {
			for from >= 0 && !ends[from%n] {
				from--
			}
		}
		for i := from; i >= 0; i-- {
			if i/n == j/n && same[i%n][j%n] || i/n != j/n && later[i%n][j%n] {
				out[j] = int32(i)
				break
			}
		}
	}
	return out
}

func TestLatestAgainstBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.Bool().Draw(t, "plain")
		g := commands(t, plain)
		table := hazard.NewTable(context.Background(), g)
		var ends []bool
		var boundary func(int) bool
		if rapid.Bool().Draw(t, "boundaries") {
			for range table.Len() {
				ends = append(ends, rapid.IntRange(0, 3).Draw(t, "end") == 0)
			}
			boundary = func(i int) bool { return ends[i] }
		}
		got := table.Latest(boundary)
		between(t, "latest", plain, latestOf(byBytes(g, false), byBytes(g, true), ends), got, latestOf(byPairs(table, false), byPairs(table, true), ends))
	})
}

// closed returns the transitive closure.
func closed(direct [][]bool) [][]bool {
	n := len(direct)
	out := square(n)
	for i := range out {
		copy(out[i], direct[i])
	}
	for k := range n {
		for i := range n {
			for j := range n {
				out[i][j] = out[i][j] || out[i][k] && out[k][j]
			}
		}
	}
	return out
}

// The explicit order contains every conflict, directly or by way of other commands, and
// orders nothing else.
func TestOrderAgainstBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.Bool().Draw(t, "plain")
		g := commands(t, plain)
		table := hazard.NewTable(context.Background(), g)
		bytes, pairs := byBytes(g, false), byPairs(table, false)
		var hazards []hazard.Hazard
		o := table.Hazards(func(h hazard.Hazard) { hazards = append(hazards, h) })
		direct := square(o.Nodes)
		waits := make([]int32, o.Nodes)
		for i := range int32(o.Nodes) {
			for _, j := range o.Successors(i) {
				direct[i][j] = true
				waits[j]++
			}
		}
		require.Equal(t, waits, o.Waits)
		reach, least, most := closed(direct), closed(bytes), closed(pairs)
		for i := range table.Len() {
			for j := range table.Len() {
				if least[i][j] && !reach[i][j] || reach[i][j] && !most[i][j] {
					t.Fatalf("order of %d and %d is %v, bytes say %v, pairs of regions %v", i, j, reach[i][j], least[i][j], most[i][j])
				}
			}
		}
		sets := footprints(g, []uint32{0, 1})
		for _, h := range hazards {
			require.Less(t, int(h.To), table.Len())
			require.True(t, reach[h.From][h.To], "%v", h)
			if int(h.From) >= table.Len() || h.Kind == hazard.Unknown || !plain {
				continue
			}
			for b := h.Lo; b < h.End; b++ { // exactly these bytes
				k := [2]int64{int64(h.Mem), b}
				x, y := sets[h.From], sets[h.To]
				switch h.Kind {
				case hazard.RAW:
					require.True(t, x.writes[k] && (y.reads[k] || y.writes[k]), "%v", h)
				case hazard.WAR:
					require.True(t, (x.reads[k] || x.writes[k]) && y.writes[k], "%v", h)
				case hazard.WAW:
					require.True(t, x.writes[k] && y.writes[k], "%v", h)
				}
			}
		}
	})
}

// A stream says of each entered command whether all commands have ended that the order
// puts before it, whichever of the free ones end when.
func TestStreamAgainstOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := commands(t, rapid.Bool().Draw(t, "plain"))
		table := hazard.NewTable(context.Background(), g)
		o := table.Order()
		direct := square(o.Nodes)
		for i := range int32(o.Nodes) {
			for _, j := range o.Successors(i) {
				direct[i][j] = true
			}
		}
		reach := closed(direct)
		s := hazard.NewStream(context.Background(), g)
		n := table.Len()
		require.Equal(t, n, s.Len())
		free, ended := make([]bool, n), make([]bool, n)
		for left := n; left > 0; {
			if x := int(s.Entered()); x < n && rapid.Bool().Draw(t, "enter") {
				require.Equal(t, table.Node(x), s.Node(x))
				require.Equal(t, table.Pillar(x), s.Pillar(x))
				free[x] = s.Enter()
			} else if x > 0 {
				i := rapid.IntRange(0, x-1).Draw(t, "end")
				if !free[i] || ended[i] {
					continue
				}
				ended[i] = true
				left--
				s.End(int32(i), func(j int32) {
					require.False(t, free[j])
					free[j] = true
				})
			}
			for j := range int(s.Entered()) {
				want := true
				for i := range n {
					want = want && (!reach[i][j] || ended[i])
				}
				require.Equal(t, want, free[j], "%d is free", j)
			}
		}
	})
}

// valuesOf is the slow form of ValueLevels, for one value of the params.
func valuesOf(g *ir.Graph, params []uint32) []int32 {
	fs := footprints(g, params)
	levels := make([]int32, len(fs))
	for j := range fs {
		f := &fs[j]
		for i := range j {
			if f.pillar || fs[i].pillar {
				levels[j] = max(levels[j], levels[i]+1)
			}
		}
		for b := range f.reads {
			for i := j - 1; i >= 0; i-- {
				if fs[i].writes[b] {
					levels[j] = max(levels[j], levels[i]+1)
				}
				if fs[i].must[b] || fs[i].pillar {
					break
				}
			}
		}
	}
	return levels
}

func TestValueLevelsAgainstBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.Bool().Draw(t, "plain")
		g := commands(t, plain)
		table := hazard.NewTable(context.Background(), g)
		got, depth := table.ValueLevels()
		least := make([]int32, table.Len())
		smallgraph.Values(g, func(p []uint32) {
			for i, l := range valuesOf(g, p) {
				least[i] = max(least[i], l)
			}
		})
		all, most := table.Levels()
		between(t, "value level", false, least, got, all)
		require.LessOrEqual(t, depth, most)
		if plain {
			require.Equal(t, least, got)
		}
	})
}

// A write hides an earlier write of the same region, although params move it.
func TestValueLevelsSeeThroughParams(t *testing.T) {
	g := smallgraph.Graph()
	n := ir.Linear(0, ir.Term{Param: 1, Coeff: 16})
	r := ir.View{Mem: 0, Len: n}.Contiguous()
	other := ir.ViewOf(3, 0, 16).Contiguous()
	add := func(reads, writes ir.Region) {
		g.Nodes = append(g.Nodes, &ir.Dispatch{ID: ir.ID(len(g.Nodes)), Effects: &ir.Effects{Complete: true, Reads: []ir.Region{reads}, Writes: []ir.Write{{Region: writes, Must: true}}}})
	}
	add(other, r)
	add(r, other)
	add(ir.ViewOf(3, 100, 4).Contiguous(), r) // it waits for nothing
	add(r, ir.ViewOf(3, 200, 4).Contiguous())
	levels, depth := hazard.NewTable(context.Background(), g).ValueLevels()
	require.Equal(t, []int32{0, 1, 0, 1}, levels)
	require.Equal(t, 2, depth)
	_, depth = hazard.NewTable(context.Background(), g).Levels()
	require.Equal(t, 4, depth)
}

// Where many commands read what many wrote, and many overwrite it, edges stay few and
// the order stays exact. The block of readers and writers alone has 2·width·readers
// conflicting pairs.
func TestDenseBlocksHaveFewEdges(t *testing.T) {
	const width, readers = 64, 200
	g := smallgraph.Graph()
	add := func(reads []ir.Region, writes ...ir.Region) {
		d := &ir.Dispatch{ID: ir.ID(len(g.Nodes)), Effects: &ir.Effects{Complete: true, Reads: reads}}
		for _, w := range writes {
			d.Effects.Writes = append(d.Effects.Writes, ir.Write{Region: w, Must: true})
		}
		g.Nodes = append(g.Nodes, d)
	}
	part := func(i int) ir.Region { return ir.ViewOf(0, int64(8*i), 8).Contiguous() }
	for i := range width {
		add(nil, part(i))
	}
	for range readers {
		add([]ir.Region{ir.ViewOf(0, 0, 8*width).Contiguous()})
	}
	for i := range width {
		add(nil, part(i))
	}
	table := hazard.NewTable(context.Background(), g)
	o := table.Order()
	require.Less(t, len(o.Next), 20*table.Len(), "of %d pairs", 2*width*readers)
	direct := square(o.Nodes)
	for i := range int32(o.Nodes) {
		for _, j := range o.Successors(i) {
			direct[i][j] = true
		}
	}
	reach := closed(direct)
	want := closed(byPairs(table, false))
	for i := range want {
		require.Equal(t, want[i], reach[i][:len(want)], "successors of command %d", i)
	}
}

// Reads of many pieces use joins and groups. With many commands on a few bytes, the
// order stays exact and has no cycles.
func TestOrderOfManyPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := smallgraph.Graph()
		for i := range rapid.IntRange(1, 60).Draw(t, "commands") {
			e := &ir.Effects{Complete: true}
			r := ir.ViewOf(0, 0, 12)
			if rapid.IntRange(0, 2).Draw(t, "part") > 0 {
				lo := rapid.Int64Range(0, 11).Draw(t, "lo")
				r = ir.ViewOf(0, lo, rapid.Int64Range(1, min(3, 12-lo)).Draw(t, "len"))
			}
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0, 1, 2:
				e.Reads = append(e.Reads, r.Contiguous())
			case 3:
				e.Reads = append(e.Reads, ir.ViewOf(0, 0, 12).Contiguous())
				e.Writes = append(e.Writes, ir.Write{Region: r.Contiguous()})
			default:
				e.Writes = append(e.Writes, ir.Write{Region: r.Contiguous(), Must: true})
			}
			g.Nodes = append(g.Nodes, &ir.Dispatch{ID: ir.ID(i), Effects: e})
		}
		table := hazard.NewTable(context.Background(), g)
		o := table.Order()
		direct := square(o.Nodes)
		for i := range int32(o.Nodes) {
			for _, j := range o.Successors(i) {
				direct[i][j] = true
			}
		}
		reach, want := closed(direct), closed(byPairs(table, false))
		for i := range want {
			require.Equal(t, want[i], reach[i][:len(want)], "successors of command %d", i)
		}
		for i := range reach {
			require.False(t, reach[i][i], "node %d waits for itself", i)
		}
	})
}
