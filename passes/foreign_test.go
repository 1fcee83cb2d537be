package passes_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/internal/testing/judge"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

var foreignGraphs = flag.Int("foreign", 150, "graphs of TestForeignKernels")

// foreignGraph draws a graph whose kernels have no declaration: effects that leave
// bindings out, or bytes of them, or lie in several views; ranges that params move,
// down to nothing; void views; strided and uncertain writes; commits. Barriers are
// left to the caller.
type foreignGraph struct {
	*rand.Rand
	b       *ir.Builder
	p, n    ir.ParamID
	sources []ir.MemID
	targets []ir.MemID
	kernels []ir.KernelID
	add     ir.KernelID
}

func drawForeign(rng *rand.Rand) (*ir.Graph, error) {
	x := &foreignGraph{Rand: rng, b: ir.NewBuilder("g")}
	b := x.b
	x.p, x.n = b.Param("p", 0, 4), b.Param("n", 0, 3)
	if rng.IntN(2) == 0 {
		b.Require(ir.Linear(0, ir.Term{Param: x.p, Coeff: 1}, ir.Term{Param: x.n, Coeff: 1}), 5)
	}
	size := func() int64 { return int64(48 + 8*rng.IntN(7)) }
	in := b.Memory(ir.Memory{Name: "in", Kind: ir.Input, Size: size()})
	w := b.Memory(ir.Memory{Name: "w", Kind: ir.Weight, Size: size(), Init: ir.Init{Kind: ir.InitRandom, Seed: 7}})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: size()})
	st := b.Memory(ir.Memory{Name: "st", Kind: ir.State, Size: size()})
	var scratch []ir.MemID
	for i := range 3 {
		scratch = append(scratch, b.Memory(ir.Memory{Name: fmt.Sprintf("s%d", i), Kind: ir.Scratch, Size: size(), Align: []int64{0, 16, 256}[rng.IntN(3)]}))
	}
	a := b.Alias("a0", scratch[0], 8, 40)
	x.targets = append(append([]ir.MemID{y, st, a}, scratch...), scratch...)
	x.sources = append([]ir.MemID{in, w}, x.targets...)
	for i := range 3 {
		t := []ir.DType{ir.U32, ir.F16, ir.U8}[i]
		arg := func(slot uint8, name string, access ir.ArgAccess) ir.Arg {
			return ir.Arg{Slot: slot, Name: name, Kind: ir.DeviceArg, Access: access, Type: t}
		}
		x.kernels = append(x.kernels, b.Kernel(ir.Kernel{Name: fmt.Sprintf("k%d", i), Function: "f", Library: ir.Library{Kind: ir.Metallib, Path: "m.metallib", Digest: ir.Digest{byte(i + 1)}},
			Args: []ir.Arg{arg(0, "a", ir.ReadArg), arg(1, "b", ir.ReadArg), arg(2, "o", ir.ReadWriteArg), arg(3, "q", ir.WriteArg),
				{Slot: 4, Name: "c", Kind: ir.ConstantArg, Access: ir.ReadArg, Type: ir.U32, Count: 2}}}))
	}
	x.add = b.Kernel(msl.Declarations("vv_Addfloat32")[0].Kernel("add"))
	for _, m := range scratch { // else most reads are of bytes that nothing wrote
		b.Fill(ir.ViewOf(m, 0, b.Unfinished().Memories[m].Size), byte(m), "")
	}
	for range 2 + rng.IntN(7) {
		switch rng.IntN(9) {
		case 0:
			b.Commit(ir.CommitOrder(rng.IntN(3)), "")
			fallthrough
		case 1:
			b.Fill(x.view(x.targets), byte(rng.IntN(256)), "")
		case 2, 3:
			v := x.view(x.targets)
			s := x.view(x.sources)
			s.Len = v.Len
			b.Copy(v, s, "")
		case 4:
			n := int64(4 * (1 + rng.IntN(6)))
			at := func(m []ir.MemID) ir.View { v := x.view(m); v.Len = ir.Const(n); return v }
			d := b.Dispatch(ir.Dispatch{Kernel: x.add, Bindings: []ir.Binding{ir.BufferArg(0, at(x.sources)), ir.BufferArg(1, at(x.sources)), ir.BufferArg(2, at(x.targets))},
				Threadgroup: [3]uint32{32, 1, 1}, Grid: [3]ir.Extent{ir.Ext(n / 4), ir.Ext(1), ir.Ext(1)}})
			d.GridKind = ir.Threads
		default:
			x.dispatch()
		}
	}
	b.Copy(ir.ViewOf(y, 0, 16), ir.ViewOf(scratch[rng.IntN(3)], int64(8*rng.IntN(3)), 16), "")
	return b.Graph()
}

// affine draws a number of bytes up to most, which may depend on a param.
func (x *foreignGraph) affine(most int64) ir.Affine {
	if x.IntN(4) == 0 && most >= 32 {
		return ir.Linear(8*x.Int64N((most-32)/8+1), ir.Term{Param: []ir.ParamID{x.p, x.n}[x.IntN(2)], Coeff: 8})
	}
	return ir.Const(8 * x.Int64N(most/8+1))
}

func (x *foreignGraph) view(of []ir.MemID) ir.View {
	m := of[x.IntN(len(of))]
	size := x.b.Unfinished().Memories[m].Size
	if x.IntN(4) == 0 {
		return ir.ViewOf(m, 0, size)
	}
	off := x.affine(size - 8)
	_, most, _ := x.b.Unfinished().Range(off)
	v := ir.View{Mem: m, Off: off, Len: ir.Const(8 * x.Int64N((size-most)/8+1))}
	if x.IntN(5) == 0 {
		v.Len = x.affine(size - most)
	}
	if x.IntN(12) == 0 {
		v.Len = ir.Const(0)
	}
	return v
}

// region draws bytes of a view: all, some, rows, none.
func (x *foreignGraph) region(v ir.View) ir.Region {
	r := v.Contiguous()
	if !v.Len.IsConst() || x.IntN(2) == 0 {
		return r
	}
	n := v.Len.Const
	switch x.IntN(5) {
	case 0, 1:
		skip := 8 * x.Int64N(n/8+1)
		r.Off, r.Run = r.Off.AddConst(skip), ir.Const(8*x.Int64N((n-skip)/8+1))
	case 2:
		if n >= 24 {
			r.Run, r.Dims = ir.Const(4), []ir.Dim{{Count: ir.Const(1 + x.Int64N(3)), Stride: 8}}
		}
	case 3:
		if stride := 8 * (1 + x.Int64N(3)); n >= 3*stride { // 0 to 3 rows, or 1 to 4
			rows := ir.Linear(0, ir.Term{Param: x.n, Coeff: 1})
			r.Run, r.Dims = ir.Const(4+4*x.Int64N(2)), []ir.Dim{{Count: rows, Stride: stride}}
			if n >= 4*stride && x.IntN(2) == 0 {
				r.Dims[0].Count = rows.AddConst(1)
			}
		}
	case 4:
		r.Run = ir.Const(0)
	}
	return r
}

func (x *foreignGraph) dispatch() {
	e := &ir.Effects{Complete: x.IntN(40) > 0}
	d := ir.Dispatch{Kernel: x.kernels[x.IntN(len(x.kernels))], Effects: e, Threadgroup: [3]uint32{4, 1, 1}, Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}}
	var views [4]ir.View
	for i := range uint8(4) {
		of := x.sources
		if i > 1 {
			of = x.targets
		}
		if views[i] = x.view(of); i == 2 && x.IntN(3) == 0 && !x.b.Unfinished().Memories[views[0].Mem].Kind.ReadOnly() {
			views[i] = views[0]
		}
		d.Bindings = append(d.Bindings, ir.BufferArg(i, views[i]))
		if x.IntN(5) == 0 {
			continue // the effects leave it out
		}
		if i <= 2 && (i < 2 || x.IntN(3) == 0) {
			e.Reads = append(e.Reads, x.region(views[i]))
		}
		if i >= 2 {
			e.Writes = append(e.Writes, ir.Write{Region: x.region(views[i]), Must: x.IntN(3) > 0})
		}
	}
	switch c := x.view(x.sources); {
	case x.IntN(4) > 0:
		d.Bindings = append(d.Bindings, ir.BytesArg(4, make([]byte, 8)))
	default: // an argument in memory, whatever the effects say
		c.Len = ir.Const(8)
		d.Bindings = append(d.Bindings, ir.BufferArg(4, c))
		if x.IntN(2) == 0 {
			e.Reads = append(e.Reads, c.Contiguous())
		}
	}
	x.b.Dispatch(d)
}

// recordForeign draws a graph that is unambiguous and is proved equal to itself. It has the fewest
// barriers, or one after each command.
func recordForeign(rng *rand.Rand) *ir.Graph {
	for {
		g, err := drawForeign(rng)
		if err != nil || g.Check() != nil {
			continue
		}
		if rng.IntN(3) > 0 {
			judge.PlaceBarriers(g)
		} else {
			var out []ir.Node
			for _, n := range g.Nodes {
				out = append(out, n, &ir.Barrier{})
				if c, ok := n.(*ir.Commit); ok {
					c.Order = ir.OrderEvent
				}
			}
			g.Nodes = out
		}
		if g.Check() != nil {
			continue
		}
		// Passes could not keep the meaning of a graph that reads undefined bytes.
		if found, err := meaning.Of(context.Background(), g); err == nil && found.Err() == nil && prove.Check(context.Background(), g, g.Clone(), prove.Options{}).Verdict == prove.Proved {
			return g
		}
	}
}

// somePipeline draws passes in an order that the table allows: one, two, or more.
func somePipeline(rng *rand.Rand) passes.Pipeline {
	all := passes.All()
	for {
		n := 1 + rng.IntN(2)
		if rng.IntN(3) == 0 {
			n = 3 + rng.IntN(len(all)-2)
		}
		text := ""
		for _, k := range rng.Perm(len(all))[:n] {
			text += "," + all[k].Name
			if all[k].Name == "rename" {
				text += "{budget=" + []string{"0", "16", "1x", "3x", "unlimited"}[rng.IntN(5)] + "}"
			}
			if all[k].Name == "split" {
				text += fmt.Sprintf("{first=%d,n=%d}", 1+rng.IntN(3), 2+rng.IntN(3))
			}
		}
		if p, err := passes.ParsePipeline(text[1:]); err == nil {
			return p
		}
	}
}

// Whichever passes run, in whatever order, a recording that is proved equal to itself becomes a
// graph that is proved, if need be with passes undone. No result is refused, and no pass breaks the
// graph. Proved results are also compared byte by byte.
func TestForeignKernels(t *testing.T) {
	undone, ran := map[string]int{}, map[string]int{}
	for i := range *foreignGraphs {
		rng := rand.New(rand.NewPCG(10, uint64(i)))
		g := recordForeign(rng)
		for range 6 {
			p := somePipeline(rng)
			if rng.IntN(6) == 0 {
				p = passes.DefaultPipeline()
			}
			r, err := optimize.Run(context.Background(), g, optimize.Options{Pipeline: p})
			text := func() string { return fmt.Sprintf("%v\n%s", p, mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}})) }
			if err != nil {
				t.Fatalf("graph %d: %v\n%s", i, err, text())
			}
			if r.Proof.Verdict != prove.Proved {
				t.Fatalf("graph %d: %v\n%s", i, r.Proof, text())
			}
			for _, s := range p {
				ran[s.Pass.Name]++
			}
			for _, u := range r.Undone() {
				undone[u.Pass+": "+u.Undone]++
			}
			if rng.IntN(8) == 0 && len(g.Nodes) < 30 {
				j := judge.Judge(g, r.Optimized, judge.Options{Valuations: 3})
				require.NotEqual(t, judge.Harmful, j.Verdict, "graph %d: %s\n%s", i, j.Reason, text())
			}
		}
	}
	most := ""
	n := 0
	for u, k := range undone {
		n += k
		if k > undone[most] {
			most = u
		}
	}
	t.Logf("ran %v; undone %d, most often %s", ran, n, most)
}

// Without fuse, no pipeline makes a graph of foreign kernels worse: never more
// barriers than the recording needs for its order, and no byte of scratch beyond what
// rename may add.
func TestForeignKernelsGain(t *testing.T) {
	sample.Seldom(t)
	fewer, smaller, ran := 0, 0, 0
	for i := range 14 * *foreignGraphs {
		rng := rand.New(rand.NewPCG(11, uint64(i)))
		g := recordForeign(rng)
		for budget, most := range map[string]int64{"0": 1, "1x": 2} {
			p, err := passes.ParsePipeline("annotate,dce,rename{budget=" + budget + "},schedule,barriers,plan")
			require.NoError(t, err)
			r, err := optimize.Run(context.Background(), g, optimize.Options{Pipeline: p})
			require.NoError(t, err)
			text := mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}})
			require.Equal(t, prove.Proved, r.Proof.Verdict, "graph %d: %v\n%s", i, r.Proof, text)
			require.LessOrEqual(t, r.After.Barriers, r.Before.Barriers, "graph %d, budget %s\n%s\nafter\n%s", i, budget, text, mlxt.Format(&ir.Module{Graphs: []*ir.Graph{r.Optimized}}))
			require.LessOrEqual(t, r.After.Bytes.Scratch, most*r.Before.Bytes.Scratch, "graph %d, budget %s\n%s", i, budget, text)
			ran++
			if r.After.Barriers < r.Before.Barriers {
				fewer++
			}
			if r.After.Bytes.Scratch < r.Before.Bytes.Scratch {
				smaller++
			}
		}
	}
	t.Logf("%d of %d have fewer barriers, %d less scratch", fewer, ran, smaller)
}

// What the pass barriers places is what the order needs, so that is what is counted.
func TestBarriersCountsWhatThePassPlaces(t *testing.T) {
	p, err := passes.ParsePipeline("annotate,barriers")
	require.NoError(t, err)
	for i := range 2 * *foreignGraphs {
		g := recordForeign(rand.New(rand.NewPCG(12, uint64(i))))
		_, err := passes.Run(context.Background(), g, p, passes.Options{})
		require.NoError(t, err)
		require.Equal(t, g.Stats().Barriers, hazard.NewTable(context.Background(), g).Barriers(), "graph %d", i)
	}
}
