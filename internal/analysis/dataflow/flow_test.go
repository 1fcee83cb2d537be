package dataflow_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
)

// graph draws commands over small memories of every kind that commands write, with
// aliases, strides, may-writes, atomics and sometimes unknown effects. If symbolic is
// set, params move ranges.
func graph(t *rapid.T, symbolic bool) *ir.Graph {
	b := ir.NewBuilder("g")
	var pos, n ir.ParamID
	if symbolic {
		pos, n = b.Param("pos", 0, 3), b.Param("n", 1, 4)
		b.Require(ir.Linear(0, ir.Term{Param: pos, Coeff: 1}, ir.Term{Param: n, Coeff: 1}), 5)
	}
	mems := []ir.MemID{
		b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 96}),
		b.Memory(ir.Memory{Name: "out", Kind: ir.Output, Size: 96}),
		b.Memory(ir.Memory{Name: "st", Kind: ir.State, Size: 96, Init: ir.FillU32(0)}),
	}
	in := b.Memory(ir.Memory{Name: "in", Kind: ir.Input, Size: 64})
	mems = append(mems, mems[0], b.Alias("a", mems[0], 8, 80))
	mems = append(mems, b.Alias("aa", mems[4], 8, 72))
	k := b.Kernel(ir.Kernel{Name: "k", Function: "k", Library: ir.Library{Kind: ir.SourceFile, Path: "k.metal"}})
	affine := func(what string, max int64) ir.Affine {
		c := rapid.Int64Range(0, max).Draw(t, what)
		switch {
		case !symbolic || rapid.IntRange(0, 2).Draw(t, what+" const") > 0:
			return ir.Const(c)
		case rapid.Bool().Draw(t, what+" param"):
			return ir.Linear(c, ir.Term{Param: pos, Coeff: 2})
		}
		return ir.Linear(c, ir.Term{Param: n, Coeff: 2})
	}
	region := func(what string) ir.Region {
		r := ir.Region{Mem: rapid.SampledFrom(mems).Draw(t, what), Off: affine(what+" off", 10), Run: affine(what+" run", 8)}
		if rapid.IntRange(0, 3).Draw(t, what+" strided") == 0 {
			r.Dims = []ir.Dim{{Count: affine(what+" count", 2), Stride: rapid.Int64Range(0, 4).Draw(t, what+" stride")}}
		}
		return r
	}
	for range rapid.IntRange(1, 14).Draw(t, "commands") {
		switch rapid.IntRange(0, 9).Draw(t, "command") {
		case 0:
			b.Fill(ir.ViewOf(mems[rapid.IntRange(0, 2).Draw(t, "fill")], rapid.Int64Range(0, 24).Draw(t, "off"), rapid.Int64Range(1, 32).Draw(t, "len")), 0, "")
			continue
		case 1:
			len := rapid.Int64Range(1, 32).Draw(t, "len")
			b.Copy(ir.ViewOf(mems[rapid.IntRange(0, 2).Draw(t, "dst")], rapid.Int64Range(0, 24).Draw(t, "off"), len), ir.ViewOf(in, 0, len), "")
			continue
		}
		d := b.Dispatch(ir.Dispatch{Kernel: k, Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{1, 1, 1}})
		if rapid.IntRange(0, 15).Draw(t, "unknown") == 0 {
			continue
		}
		d.Effects = &ir.Effects{Complete: true}
		for range rapid.IntRange(0, 2).Draw(t, "reads") {
			d.Effects.Reads = append(d.Effects.Reads, region("read"))
		}
		for range rapid.IntRange(0, 2).Draw(t, "writes") {
			d.Effects.Writes = append(d.Effects.Writes, ir.Write{Region: region("write"), Must: rapid.IntRange(0, 3).Draw(t, "must") > 0})
		}
	}
	return b.Unfinished()
}

// def names a write by its command and its number there.
type def [2]int

// touched returns the bytes of a region, as offsets in its root memory.
func touched(g *ir.Graph, r ir.Region, params []uint32) []int64 {
	var out []int64
	r = bytestate.Rooted(g, r)
	r.Runs(params, func(lo, end int64) bool {
		for ; lo < end; lo++ {
			out = append(out, lo)
		}
		return true
	})
	return out
}

// seen is what the slow run saw in one use: the last writers of its bytes, and whether
// some byte had none.
type seen struct {
	sources map[def]bool
	initial bool
	bytes   map[int64]bool
}

// slow runs the list byte by byte for one choice of params. Every byte of every memory
// remembers all writes since its last must-write, that one included.
func slow(g *ir.Graph, f *dataflow.Flow, params []uint32) (uses [][]seen, final map[def]bool) {
	type place struct {
		mem  ir.MemID
		byte int64
	}
	holds := map[place][]def{}
	var all []place
	for m := range g.Memories {
		if x := &g.Memories[m]; x.Alias == ir.NoMem && !x.Kind.ReadOnly() {
			for i := range x.Size {
				all = append(all, place{ir.MemID(m), i})
			}
		}
	}
	root := func(r ir.Region) ir.MemID { m, _ := g.Root(r.Mem); return m }
	for i, n := range f.Commands {
		e := n.Touches()
		if f.Unknown(i) {
			s := seen{sources: map[def]bool{}, initial: true}
			for _, p := range all {
				if l := holds[p]; len(l) > 0 {
					s.sources[l[len(l)-1]] = true
				}
				holds[p] = append(holds[p], def{i, 0})
			}
			uses = append(uses, []seen{s})
			continue
		}
		read := func(r ir.Region) seen {
			s := seen{sources: map[def]bool{}, bytes: map[int64]bool{}}
			for _, x := range touched(g, r, params) {
				s.bytes[x] = true
				if l := holds[place{root(r), x}]; len(l) > 0 {
					s.sources[l[len(l)-1]] = true
				} else {
					s.initial = true
				}
			}
			return s
		}
		var us []seen
		for _, r := range e.Reads {
			us = append(us, read(r))
		}
		writes := slices.Clone(e.Writes)
		for k := range writes { // a wide def counts as writing its whole region
			if d := f.Writes(i)[k]; d.Wide {
				writes[k] = ir.Write{Region: d.Region}
			}
		}
		for _, w := range writes {
			if !w.Must {
				us = append(us, read(w.Region))
			}
		}
		uses = append(uses, us)
		for k, w := range writes {
			for _, x := range touched(g, w.Region, params) {
				p := place{root(w.Region), x}
				if w.Must {
					holds[p] = nil
				}
				holds[p] = append(holds[p], def{i, k})
			}
		}
	}
	final = map[def]bool{}
	for _, p := range all {
		if k := g.Memories[p.mem].Kind; k == ir.Output || k == ir.State {
			for _, d := range holds[p] {
				final[d] = true
			}
		}
	}
	return uses, final
}

func valuations(g *ir.Graph, f func([]uint32)) {
	if len(g.Params) == 0 {
		f(nil)
		return
	}
	for pos := uint32(0); pos <= 3; pos++ {
		for n := uint32(1); n <= 4; n++ {
			if pos+n <= 5 {
				f([]uint32{pos, n})
			}
		}
	}
}

// Whatever the params, a use lists every def that one of its bytes comes from, and says
// if it has bytes that no command wrote.
func TestSourcesCoverWhatIsSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := graph(t, rapid.Bool().Draw(t, "symbolic"))
		covers(t, g, dataflow.Build(context.Background(), g))
	})
}

// If too many writes that params move meet, a command that reads them counts as one of unknown
// effects, and a write counts as one of all their bytes. The flow must be right for that. A wide
// def contains every byte that the command writes.
func TestCrowdsCoverWhatIsSeen(t *testing.T) {
	crowded, wide := 0, 0
	property := func(t *rapid.T) {
		defer dataflow.Crowd(0, 0, rapid.IntRange(0, 2).Draw(t, "crowd"))()
		g := graph(t, true)
		f := dataflow.Build(context.Background(), g)
		covers(t, g, f)
		for i, n := range f.Commands {
			known := n.Touches().Known()
			require.True(t, known || f.Unknown(i))
			if known && f.Unknown(i) {
				crowded++
				require.True(t, f.Crowded())
				require.Contains(t, f.Why(i), "too many ranges")
			}
			if f.Unknown(i) {
				continue
			}
			for k, d := range f.Writes(i) {
				if d.Wide {
					wide++
					require.True(t, f.Widened() && !d.Must)
					require.True(t, bytestate.Covers(g, d.Region, n.Touches().Writes[k].Region))
				}
			}
		}
	}
	// One round of random cases nearly always has both kinds.
	for round := 0; round < 20 && (crowded == 0 || wide == 0); round++ {
		rapid.Check(t, property)
	}
	require.Positive(t, crowded)
	require.Positive(t, wide)
}

// A command has two wide writes. The bytes of each def are those of its use, although the def of
// the first is already entered when the second is widened. Otherwise the bytes that the second
// hides would be lost: a later read of byte 1 sees #1.
func TestWideWritesOfOneCommand(t *testing.T) {
	b := ir.NewBuilder("g")
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 24})
	for _, at := range []int64{0, 0, 10, 20} { // the first two meet, which is more than may be
		b.Fill(ir.ViewOf(s, at, 4), 0, "")
	}
	k := b.Kernel(ir.Kernel{Name: "k", Function: "k", Library: ir.Library{Kind: ir.SourceFile, Path: "k.metal"}})
	d := b.Dispatch(ir.Dispatch{Kernel: k, Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{1, 1, 1}})
	d.Effects = &ir.Effects{Complete: true, Writes: []ir.Write{
		{Region: ir.ViewOf(s, 2, 10).Contiguous()}, {Region: ir.ViewOf(s, 11, 11).Contiguous()},
	}}
	g := b.Unfinished()
	rapid.Check(t, func(t *rapid.T) {
		defer dataflow.Crowd(0, 0, rapid.IntRange(0, 2).Draw(t, "crowd"))()
		f := dataflow.Build(context.Background(), g)
		covers(t, g, f)
	})
}

// The same holds for a flow that followed a new order of the commands, and its sources
// are among those that a new flow of that order lists.
func TestReorderFollows(t *testing.T) {
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		g := graph(t, rapid.Bool().Draw(t, "symbolic"))
		f := dataflow.Build(context.Background(), g)
		order := make([]int32, len(f.Commands))
		for i := range order {
			order[i] = int32(i)
		}
		table := hazard.NewTable(context.Background(), g)
		for range 3 * len(order) {
			i := rapid.IntRange(0, len(order)-1).Draw(t, "swap")
			if i > 0 && table.Between(int(min(order[i-1], order[i])), int(max(order[i-1], order[i]))) == hazard.None {
				order[i-1], order[i] = order[i], order[i-1]
				moved++
			}
		}
		if rapid.Bool().Draw(t, "drop what is dead") {
			order = slices.DeleteFunc(order, func(i int32) bool { return !f.Live(int(i)) })
		}
		g.Nodes = make([]ir.Node, len(order))
		for i, j := range order {
			g.Nodes[i] = f.Commands[j]
		}
		f.Reorder(order)
		covers(t, g, f)
		anew := dataflow.Build(context.Background(), g)
		require.Equal(t, anew.Commands, f.Commands)
		for i := range f.Commands {
			require.Equal(t, anew.Unknown(i), f.Unknown(i))
			for k, u := range f.Reads(i) {
				require.True(t, anew.Reads(i)[k].Region.Equal(u.Region))
				require.Subset(t, places(anew.Reads(i)[k].Sources), places(u.Sources))
			}
		}
	})
	require.Positive(t, moved)
}

func places(ss []dataflow.Source) (out []def) {
	for _, s := range ss {
		out = append(out, def{int(s.Command), int(s.Write)})
	}
	return out
}

func covers(t *rapid.T, g *ir.Graph, f *dataflow.Flow) {
	consistent(t, f)
	valuations(g, func(params []uint32) {
		uses, final := slow(g, f, params)
		for i := range f.Commands {
			require.Len(t, f.Reads(i), len(uses[i]))
			for k, u := range f.Reads(i) {
				s := uses[i][k]
				listed := map[def]bool{}
				for j, x := range u.Sources {
					d := def{int(x.Command), int(x.Write)}
					listed[d] = true
					if j > 0 {
						last := u.Sources[j-1]
						require.True(t, last.Command < x.Command || last.Command == x.Command && last.Write < x.Write, "sources ascend")
					}
					if x.Whole && s.bytes != nil && f.Writes(d[0])[d[1]].Region.Mem != ir.NoMem {
						w := map[int64]bool{}
						for _, b := range touched(g, f.Writes(d[0])[d[1]].Region, params) {
							w[b] = true
						}
						for b := range s.bytes {
							require.True(t, w[b], "#%d covers byte %d of use %d of #%d", d[0], b, k, i)
						}
					}
				}
				for d := range s.sources {
					require.True(t, listed[d], "use %d of #%d sees write %v, params %v", k, i, d, params)
				}
				if s.initial && (len(s.bytes) > 0 || f.Unknown(i)) {
					require.True(t, u.Initial, "use %d of #%d sees initial bytes, params %v", k, i, params)
				}
				if u.Certain && f.Graph.Memories[u.Region.Mem].Kind != ir.Input {
					require.True(t, s.initial, "use %d of #%d sees no initial bytes, params %v", k, i, params)
				}
			}
		}
		for d := range final {
			require.True(t, f.Writes(d[0])[d[1]].Final, "write %v is final, params %v", d, params)
		}
	})
}

// consistent checks that readers are the sources turned around, and that every live
// command has a reason to be live.
func consistent(t require.TestingT, f *dataflow.Flow) {
	forth, back := map[[4]int]int{}, map[[4]int]int{}
	for i := range f.Commands {
		for k, u := range f.Reads(i) {
			for _, s := range u.Sources {
				forth[[4]int{int(s.Command), int(s.Write), i, k}]++
			}
		}
		live := f.Unknown(i)
		for k, d := range f.Writes(i) {
			live = live || d.Final
			for j, r := range d.Readers {
				if j > 0 {
					last := d.Readers[j-1]
					require.True(t, last.Command < r.Command || last.Command == r.Command && last.Read < r.Read, "readers ascend")
				}
				back[[4]int{i, k, int(r.Command), int(r.Read)}]++
				live = live || f.Live(int(r.Command))
			}
		}
		require.Equal(t, live, f.Live(i))
		id := f.Commands[i].Num()
		at, ok := f.Index(id)
		require.True(t, ok)
		require.Equal(t, i, at)
	}
	require.Equal(t, forth, back)
	for _, n := range forth {
		require.Equal(t, 1, n)
	}
}

// Where no param moves anything, the sources of an unstrided use are exact: every
// source listed is seen. (A strided use may list what lies between its runs.)
func TestSourcesAreExactWithoutParams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := graph(t, false)
		f := dataflow.Build(context.Background(), g)
		uses, _ := slow(g, f, nil)
		for i := range f.Commands {
			for k, u := range f.Reads(i) {
				s := uses[i][k]
				for _, x := range u.Sources {
					require.True(t, s.sources[def{int(x.Command), int(x.Write)}] || len(u.Region.Dims) > 0, "use %d of #%d lists write %d of #%d, which it does not see", k, i, x.Write, x.Command)
				}
				if u.Region.Mem == ir.NoMem || len(s.bytes) == 0 || len(u.Region.Dims) > 0 {
					continue
				}
				require.Equal(t, s.initial || f.Graph.Memories[u.Region.Mem].Kind == ir.Input, u.Initial, "use %d of #%d", k, i)
				require.Equal(t, u.Initial, u.Certain)
			}
		}
	})
}
