package cost_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/record"
)

func TestChips(t *testing.T) {
	require.Contains(t, cost.Chips(), cost.DefaultChip)
	for _, name := range cost.Chips() {
		m, err := cost.Chip(name)
		require.NoError(t, err)
		require.Equal(t, name, m.Name)
		require.Positive(t, m.Bandwidth)
		require.Positive(t, m.Cores)
	}
	a, err := cost.Chip("Apple M4 Max")
	require.NoError(t, err)
	b, err := cost.Chip("m4-max")
	require.NoError(t, err)
	require.Equal(t, a, b)
	_, err = cost.Chip("m9")
	require.ErrorContains(t, err, `there is no chip "m9" (there are m1, m1-pro,`)
}

// graph has a large read of a weight, two small ones, and params.
func graph(t *testing.T) *ir.Graph {
	b := ir.NewBuilder("g")
	pos := b.Param("pos", 0, 100)
	w := b.Memory(ir.Memory{Name: "w", Kind: ir.Weight, Size: 78e6, Init: ir.FillU32(0)})
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 1 << 20})
	k := b.Kernel(ir.Kernel{Name: "k", Function: "gemv", Library: ir.Library{Kind: ir.SourceFile, Path: "k.metal"}})
	grid := func(n int64) [3]ir.Extent { return [3]ir.Extent{ir.Ext(n), ir.Ext(1), ir.Ext(1)} }
	dispatch := func(groups int64, read ir.Region, write ir.Write) {
		b.Dispatch(ir.Dispatch{Kernel: k, Grid: grid(groups), Threadgroup: [3]uint32{32, 1, 1},
			Effects: &ir.Effects{Complete: true, Reads: []ir.Region{read}, Writes: []ir.Write{write}}})
	}
	dispatch(10000, ir.ViewOf(w, 0, 78e6).Contiguous(), ir.Write{Region: ir.ViewOf(s, 0, 0).Contiguous(), Must: true})
	rows := ir.Region{Mem: s, Run: ir.Const(8), Dims: []ir.Dim{{Count: ir.Linear(0, ir.Term{Param: pos, Coeff: 2}), Stride: 16}, {Count: ir.Const(7), Stride: 0}}}
	dispatch(1, rows, ir.Write{Region: ir.ViewOf(s, 4096, 100).Contiguous()})
	b.Barrier()
	b.Copy(ir.ViewOf(s, 8192, 1000), ir.ViewOf(s, 4096, 1000), "")
	b.Commit(ir.OrderEvent, "")
	b.Fill(ir.ViewOf(s, 0, 64), 0, "")
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func TestFormula(t *testing.T) {
	g := graph(t)
	m, err := cost.Chip("m2")
	require.NoError(t, err)
	require.EqualValues(t, 78e9, m.Bandwidth, "100 GB/s, 78 % of them attainable")
	e := m.For(g)
	first := e.Work(g.Nodes[0])
	require.EqualValues(t, 78e6, first.Bytes)
	require.InDelta(t, 1e-3+1.3e-6, float64(first.Alone), 1e-12)
	g.Nodes[0].(*ir.Dispatch).Grid[0] = ir.Ext(2)
	require.EqualValues(t, 2*32*1024, e.Work(g.Nodes[0]).Bytes, "a gather does not read all that it may")
	g.Nodes[0].(*ir.Dispatch).Grid[0] = ir.Ext(10000)
	second := e.Work(g.Nodes[1])
	require.EqualValues(t, 8*100+2*100, second.Bytes, "pos = 50; a stride of 0 repeats nothing; a may-write reads")
	require.InDelta(t, 1.3e-6+1000/(78e9/10), float64(second.Alone), 1e-12, "one threadgroup uses one core of ten")
	cache := ir.Region{Run: ir.Const(1 << 20)}
	rows := &ir.Dispatch{GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(64), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{64, 1, 1}}
	rows.Effects = &ir.Effects{Complete: true, Reads: []ir.Region{cache}, Writes: []ir.Write{{Region: cache}}}
	scatter := e.Work(rows).Bytes
	require.EqualValues(t, 2*64*64, scatter, "rows at indices from memory: a thread writes 64 bytes, which it reads, and not the whole cache")
	rows.Effects.Writes[0].Must = true
	require.EqualValues(t, 1<<20+64*1024, e.Work(rows).Bytes, "all of it is written")
	require.Equal(t, second.Alone, m.Dispatch(g, g.Nodes[1]))
	require.Zero(t, m.Dispatch(g, g.Nodes[2]))
	got := m.Graph(g)
	require.InDelta(t, 4.5e-6, float64(got.Barriers), 1e-12)
	require.InDelta(t, 21.25e-6, float64(got.Buffers), 1e-12)
	require.InDelta(t, 4*0.16e-6, float64(got.Encode), 1e-12)
	epochs := float64(max(first.Alone, cost.Seconds((first.Bytes+second.Bytes)/78e9))) + float64(m.Dispatch(g, g.Nodes[3])) + float64(m.Dispatch(g, g.Nodes[5]))
	require.InDelta(t, epochs, float64(got.Commands), 1e-12)
	require.Equal(t, got.Commands+got.Barriers+got.Buffers, got.GPU())
}

// An epoch takes no less than each of its commands, no more than all in a row,
// and adding a command never makes it faster.
func TestEpochLaws(t *testing.T) {
	m, err := cost.Chip("")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		var p cost.Epoch
		sum, last := cost.Seconds(0), cost.Seconds(0)
		for range rapid.IntRange(1, 20).Draw(t, "n") {
			bytes := rapid.Float64Range(0, 1e8).Draw(t, "bytes")
			w := cost.Work{Bytes: bytes, Alone: m.Launch + cost.Seconds(bytes/m.Bandwidth*rapid.Float64Range(1, 40).Draw(t, "idle"))}
			p.Add(w)
			sum += w.Alone
			now := m.Of(p)
			require.GreaterOrEqual(t, now, w.Alone)
			require.GreaterOrEqual(t, now, last)
			require.LessOrEqual(t, float64(now), float64(sum)*(1+1e-12))
			last = now
		}
	})
}

func TestProfile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"chip": "m4", "barrier_ns": 1000, "bandwidth_gbs": 50, "cores": 3, "kernels": {"gemv": {"fixed_ns": 7000, "ns_per_byte": 0.5}}}`), 0o644))
	m, err := cost.LoadProfile(path)
	require.NoError(t, err)
	require.InDelta(t, 1e-6, float64(m.Barrier), 1e-15)
	require.EqualValues(t, 50e9, m.Bandwidth)
	require.Equal(t, 3, m.Cores)
	require.InDelta(t, 1.3e-6, float64(m.Launch), 1e-15, "from the chip")
	g := graph(t)
	require.InDelta(t, 7e-6+78e6*0.5e-9, float64(m.Dispatch(g, g.Nodes[0])), 1e-9)
	_, err = cost.LoadProfile(path + "x")
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, k := range []struct{ in, want string }{
		{``, `p: byte 0: the profile ends too soon: it is one JSON object`},
		{`[]`, `p: byte 1: the profile is [, want an object`},
		{`{"barrier_ns": -1}`, `p: byte 17: "barrier_ns" is -1, want a number from 0 on`},
		{`{"barrier_ns": "1"}`, `p: byte 18: "barrier_ns" is 1, want a number from 0 on`},
		{`{"barier_ns": 1}`, `p: byte 12: a profile has no field "barier_ns"`},
		{`{"chip": "m9"}`, `p: byte 13: there is no chip "m9"`},
		{`{"cores": 1.5}`, `p: byte 13: "cores" is 1.5, want a whole number`},
		{`{"device": 3}`, `p: byte 12: "device" is 3, want a name`},
		{`{"litmus": {"fence": true}}`, `p: byte 19: "litmus" has no field "fence", but fences and indirect_barriers`},
		{`{"litmus": {"fences": 1}}`, `p: byte 23: "fences" is 1, want true or false`},
		{`{"plans": {"serial": {"ns": 1}}}`, `p: byte 26: plan "serial" has no field "ns", but encode_ns, launch_ns, barrier_ns and replay_ns`},
		{`{"kernels": {"f": {"ns": 1}}}`, `p: byte 23: kernel "f" has no field "ns", but fixed_ns, ns_per_byte and points`},
		{`{"kernels": 3}`, `p: byte 13: "kernels" is 3, want an object`},
		{`{"cores": 1, "cores": 2}`, `p: byte 20: the profile has "cores" twice`},
		{`{} x`, `p: byte 3: something stands behind the profile`},
		{`{"cores": 1`, `p: byte 11: the profile ends too soon`},
		{`{"cores" 1}`, `p: byte 9: invalid character '1' after object key`},
	} {
		_, err := cost.ParseProfile("p", []byte(k.in))
		require.ErrorContains(t, err, k.want, k.in)
	}
}

func FuzzProfile(f *testing.F) {
	f.Add([]byte(`{"chip": "m4", "kernels": {"gemv": {"fixed_ns": 7000}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := cost.ParseProfile("p", data)
		if err == nil && (m.Bandwidth <= 0 || m.Cores < 1 || m.Barrier < 0) {
			t.Fatalf("%+v", m)
		}
	})
}

// declared makes a graph of one dispatch of a kernel of the library, over as many rows as
// a param says.
func declared(t *testing.T, do func(s *record.Session, x record.Tensor)) (*ir.Graph, *ir.Dispatch) {
	s := record.New("g")
	rows := s.Param("rows", 1, 255)
	x := s.Input("x", ir.F32, 255, 64)
	x.Shape = []ir.Affine{rows, ir.Const(64)}
	do(s, x)
	g, err := s.Graph()
	require.NoError(t, err)
	p, err := passes.ParsePipeline("annotate")
	require.NoError(t, err)
	_, err = passes.Run(context.Background(), g, p, passes.Options{})
	require.NoError(t, err)
	return g, g.Nodes[0].(*ir.Dispatch)
}

// Operations of a term are counted, those of a @where term once for each choice of its indices, with
// the params in the middle of their bounds and at their max.
func TestOperations(t *testing.T) {
	m, err := cost.Chip("m1")
	require.NoError(t, err)
	g, d := declared(t, func(s *record.Session, x record.Tensor) { s.Silu(x) })
	middle, most := m.For(g).Work(d), m.AtMost(g).Work(d)
	require.EqualValues(t, 128*64*8, middle.Bytes, "in and out")
	require.EqualValues(t, 255*64*8, most.Bytes)
	require.InDelta(t, 255.0/128, most.Operations/middle.Operations, 1e-9)
	require.Positive(t, middle.Operations)
	require.Equal(t, middle, m.At(g, []uint32{128}).Work(d))

	// The inverse deviation is computed once per row: 64 products and sums. Each element takes three operations more.
	g, d = declared(t, func(s *record.Session, x record.Tensor) { s.RMSNorm(x, 0) })
	rows := 128.0
	norm := m.For(g).Work(d).Operations
	require.Greater(t, norm, rows*64*(2+2))
	require.Less(t, norm, rows*(64*(3+4)+8))

	// A dispatch bound by arithmetic takes as long as the cores need.
	g, d = declared(t, func(s *record.Session, x record.Tensor) { s.MatmulNN(x, s.RandomWeight("w", 1, ir.F32, 64, 4096)) })
	w := m.AtMost(g).Work(d)
	require.GreaterOrEqual(t, w.Operations, 255.0*4096*64*2)
	require.InDelta(t, float64(m.Launch)+w.Operations/m.Rate, float64(w.Alone), 1e-9)
	require.Greater(t, w.Operations/m.Rate, w.Bytes/m.Bandwidth)
	var p cost.Epoch
	p.Add(w)
	p.Add(w)
	require.InDelta(t, 2*w.Operations/m.Rate, float64(m.Of(p)), 1e-9)
}

// A product with a vector reads its whole matrix, however long the rows are that a thread reads; a lookup reads some rows of its table.
func TestReads(t *testing.T) {
	m, err := cost.Chip("m1")
	require.NoError(t, err)
	const inner, outer = 14336, 512
	s := record.New("g")
	s.Matmul(s.Input("x", ir.F16, 1, inner), record.Dense(s.RandomWeight("w", 1, ir.F16, outer, inner)))
	s.EmbedNarrow(s.Input("tokens", ir.U32, 1), s.RandomWeight("table", 1, ir.F16, 1<<16, 64))
	g, err := s.Graph()
	require.NoError(t, err)
	var work []cost.Work
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			work = append(work, m.For(g).Work(d))
		}
	}
	require.Len(t, work, 2)
	require.EqualValues(t, 2*(inner*outer+inner+outer), work[0].Bytes)
	require.Less(t, work[1].Bytes, float64(2*64<<16)/100)
}

// A norm that is a dispatch of its own is computed once. Fused into a product, it is computed by every
// threadgroup, which reads the row and the norm's weights again; more cores share that repeated work.
func TestRepeated(t *testing.T) {
	const k, n = 576, 1536
	m, err := cost.Chip("m1")
	require.NoError(t, err)
	g, d := declared(t, func(s *record.Session, x record.Tensor) { s.RMSNorm(x, 0) })
	require.Zero(t, m.For(g).Work(d).Repeated)
	require.Zero(t, m.AtMost(g).Work(d).Repeated)

	archive, err := txtar.ParseFile("../passes/testdata/fuse_norm.txtar")
	require.NoError(t, err)
	module, err := mlxt.Parse(context.Background(), "fuse_norm", archive.Files[2].Data)
	require.NoError(t, err)
	g = module.Graphs[0]
	var fused *ir.Dispatch
	for _, node := range g.Nodes {
		if d, ok := node.(*ir.Dispatch); ok && strings.Contains(g.Kernels[d.Kernel].Function, "rms_silu_mul") {
			fused = d
		}
	}
	require.NotNil(t, fused)
	w := m.For(g).Work(fused)
	others := float64(n/4 - 1) // the threadgroups that repeat the norm
	require.InDelta(t, others*(2*k+k)*4, w.Repeated.Bytes, 1e-6, "x for the sum of squares, x and weights for the product")
	require.Greater(t, w.Repeated.Operations, others*k*(2+2))
	require.Less(t, w.Repeated.Operations, others*k*(2+5))
	filling := m
	filling.Filling = regexp.MustCompile("^" + g.Kernels[fused.Kernel].Function + "$")
	require.InDelta(t, float64(m.Cores-1)*(2*k+k)*4, filling.For(g).Work(fused).Repeated.Bytes, 1e-6, "one block a core repeats the norm")
	with, err := cost.Chip("m3-max")
	require.NoError(t, err)
	own := func(m cost.Model) float64 {
		plain := w
		plain.Repeated = cost.Repeated{}
		var a, b cost.Epoch
		w := m.For(g).Work(fused)
		w.Alone, plain.Alone = 0, 0
		a.Add(w)
		b.Add(plain)
		return float64(m.Of(a) - m.Of(b))
	}
	require.InDelta(t, float64(with.Cores)/float64(m.Cores), own(m)/own(with), 1e-6)
}
