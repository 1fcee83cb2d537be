package replay_test

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

func put(t *testing.T, g *replay.Graph, name string, v ...float32) {
	t.Helper()
	require.NoError(t, g.SetInput(name, ir.ValueBytes(v)))
}

func get(b []byte, err error) []float32 {
	if err != nil {
		panic(err)
	}
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func open(t *testing.T, o replay.Options, gs ...*ir.Graph) *replay.Instance {
	d := cpu.New(2)
	s, err := replay.Open(d, &ir.Module{Graphs: gs}, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, d.Close())
	})
	return s
}

func graph(t *testing.T, s *replay.Instance, name string) *replay.Graph {
	g, err := s.Graph(context.Background(), name)
	require.NoError(t, err)
	return g
}

// sum records x added to an accumulating state, which is copied to an output.
func sum(t *testing.T, name string) *ir.Graph {
	r := record.New(name)
	x := r.Input("x", ir.F32, 4)
	acc := r.State("acc", ir.F32, 4)
	y := r.Output("y", ir.F32, 4)
	r.Add(acc, x, record.Into(acc))
	r.Add(acc, acc, record.Into(y))
	g, err := r.Graph()
	require.NoError(t, err)
	return g
}

// A generated kernel runs from its term alone. If its table of arguments is not the term's, it is
// refused before anything runs.
func TestGeneratedKernel(t *testing.T) {
	d, err := decl.Elementwise("out0[i] = round(f32, in0[i] * s0 + 1.0)")
	require.NoError(t, err)
	make := func(change func(*ir.Kernel)) *ir.Graph {
		b := ir.NewBuilder("generated")
		x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 16, DType: ir.F32, Shape: []int64{4}})
		y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 16, DType: ir.F32, Shape: []int64{4}})
		k := d.Kernel("k")
		change(&k)
		b.Dispatch(ir.Dispatch{
			Kernel: b.Kernel(k), GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(4), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{4, 1, 1},
			Bindings: []ir.Binding{ir.BufferArg(0, ir.ViewOf(x, 0, 16)), ir.BufferArg(1, ir.ViewOf(y, 0, 16)), ir.BytesArg(2, ir.ValueBytes(float32(3)))},
		})
		g, err := b.Graph()
		require.NoError(t, err)
		return g
	}
	s := open(t, replay.Options{}, make(func(*ir.Kernel) {}))
	g := graph(t, s, "")
	put(t, g, "x", 1, 2, 3, 4)
	_, err = g.Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, []float32{4, 7, 10, 13}, get(g.Output("y")))

	s = open(t, replay.Options{}, make(func(k *ir.Kernel) { k.Args[0].Name = "another" }))
	_, err = s.Graph(context.Background(), "generated")
	require.ErrorContains(t, err, "the argument table of kernel @k is not that of the generated function")
}

func TestRun(t *testing.T) {
	s := open(t, replay.Options{}, sum(t, "sum"))
	g := graph(t, s, "")
	put(t, g, "x", 1, 2, 3, 4)
	_, err := g.Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, []float32{2, 4, 6, 8}, get(g.Output("y")))
	put(t, g, "x", 10, 0, 0, 0)
	_, err = g.Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, []float32{22, 4, 6, 8}, get(g.Output("y")), "the state survives, the input may change")
	require.Equal(t, []float32{11, 2, 3, 4}, get(g.State("acc")))
	require.NoError(t, s.ResetStates())
	require.Equal(t, []float32{0, 0, 0, 0}, get(g.State("acc")))
}

// States of one name are one memory in all graphs of a module; inputs and
// outputs are not shared.
func TestGraphsShareStates(t *testing.T) {
	s := open(t, replay.Options{Poison: true}, sum(t, "a"), sum(t, "b"))
	a, b := graph(t, s, "a"), graph(t, s, "b")
	put(t, a, "x", 1, 1, 1, 1)
	put(t, b, "x", 2, 2, 2, 2)
	for range 2 {
		_, err := a.Run(context.Background())
		require.NoError(t, err)
		_, err = b.Run(context.Background())
		require.NoError(t, err)
	}
	require.Equal(t, []float32{6, 6, 6, 6}, get(a.State("acc")))
	require.Equal(t, []float32{8, 8, 8, 8}, get(a.Output("y")), "a's output is as a left it")
}

func TestUnknownNames(t *testing.T) {
	s := open(t, replay.Options{}, sum(t, "sum"))
	_, err := s.Graph(context.Background(), "summ")
	require.EqualError(t, err, `the module has no graph "summ" (it has [sum])`)
	g := graph(t, s, "sum")
	require.EqualError(t, g.SetInput("y", nil), "graph sum has no input %y (it has %x)", "an output is no input")
	_, err = g.Output("x")
	require.EqualError(t, err, "graph sum has no output %x (it has %y)")
	_, err = g.State("nobody")
	require.EqualError(t, err, "graph sum has no state %nobody (it has %acc)")
	require.EqualError(t, g.SetParam("pos", 1), "graph sum has no param $pos (it has none)")
}

// rows records a copy of n rows from a row that depends on a param.
func rows(t *testing.T) *ir.Graph {
	r := record.New("rows")
	pos, n := r.Param("pos", 0, 9), r.Param("n", 1, 8)
	r.Require(pos.Add(n), 10)
	x := r.Input("x", ir.F32, 10, 2)
	x.Off, x.Shape = pos.Scale(8), []ir.Affine{n, ir.Const(2)}
	y := r.Output("y", ir.F32, 8, 2)
	y.Shape = x.Shape
	r.Add(x, x, record.Into(y))
	g, err := r.Graph()
	require.NoError(t, err)
	return g
}

func TestParams(t *testing.T) {
	s := open(t, replay.Options{Poison: true}, rows(t))
	g := graph(t, s, "rows")
	ctx := context.Background()
	_, err := g.Run(ctx)
	require.EqualError(t, err, "graph rows: param $pos has no value (it is a u32 in [0, 9])")
	var x []float32
	for i := range 20 {
		x = append(x, float32(i))
	}
	put(t, g, "x", x...)
	require.NoError(t, g.SetParam("pos", 3))
	require.NoError(t, g.SetParam("n", 2))
	_, err = g.Run(ctx)
	require.NoError(t, err)
	require.Equal(t, []float32{12, 14, 16, 18}, get(g.Output("y"))[:4])
	require.NoError(t, g.SetParam("n", 8))
	_, err = g.Run(ctx)
	require.EqualError(t, err, "graph rows: params break $pos + $n <= 10: it is 11")
	require.EqualError(t, g.SetParam("n", 9), "param $n = 9 is outside its bound [1, 8]")
	require.EqualError(t, g.SetParam("n", 1.5), "param $n = 1.5 is no u32")
	require.EqualError(t, g.SetParam("n", math.NaN()), "param $n = NaN is outside its bound [1, 8]")
	require.EqualError(t, g.SetParam("m", 1), "graph rows has no param $m (it has $pos, $n)")
	require.NoError(t, g.SetParam("pos", 2))
	_, err = g.Run(ctx)
	require.NoError(t, err)
}

// With Poison, bytes that nothing has written differ from run to run, so that a host that reads them notices.
func TestPoison(t *testing.T) {
	b := ir.NewBuilder("part")
	in := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 16})
	out := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 32})
	b.Copy(ir.ViewOf(out, 0, 16), ir.ViewOf(in, 0, 16), "writes half of it")
	ir, err := b.Graph()
	require.NoError(t, err)
	s := open(t, replay.Options{Poison: true}, ir)
	g := graph(t, s, "part")
	var seen [][]byte
	for range 3 {
		_, err := g.Run(context.Background())
		require.NoError(t, err)
		y, err := g.Output("y")
		require.NoError(t, err)
		seen = append(seen, y)
	}
	for i := range seen {
		require.Equal(t, seen[i][:16], seen[(i+1)%3][:16])
		require.NotEqual(t, seen[i][16:], seen[(i+1)%3][16:])
	}
}

// A graph is refused if its result depends on bytes that nothing wrote, or on an order that nothing enforces.
func TestNoMeaning(t *testing.T) {
	for name, want := range map[string]string{
		"leak": "graph leak has no one meaning\n  #0 copy reads %s[0:16], which nothing wrote in this replay, and an output or state depends on it: scratch and outputs begin undefined: write the bytes first, or make the memory a state",
		"race": "graph race has no one meaning\n  #0 copy and #1 copy both touch %s[0:16] and nothing orders them (the first writes, the second reads): put a barrier between them; or, if the list is the order in which they ran, make the graph serial (--recorded-order)",
	} {
		b := ir.NewBuilder(name)
		x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 16})
		scratch := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 16})
		out := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 16})
		if name == "race" {
			b.Copy(ir.ViewOf(scratch, 0, 16), ir.ViewOf(x, 0, 16), "")
		}
		b.Copy(ir.ViewOf(out, 0, 16), ir.ViewOf(scratch, 0, 16), "")
		g, err := b.Graph()
		require.NoError(t, err)
		_, err = open(t, replay.Options{}, g).Graph(context.Background(), "")
		require.EqualError(t, err, want)
		if name == "race" {
			g.Ordering = ir.Serial
			p := graph(t, open(t, replay.Options{Poison: true}, g), "")
			require.NoError(t, p.SetInput("x", []byte("sixteen bytes, x")))
			_, err := p.Run(context.Background())
			require.NoError(t, err)
			y, err := p.Output("y")
			require.NoError(t, err)
			require.Equal(t, "sixteen bytes, x", string(y))
		}
	}
}

func TestCancel(t *testing.T) {
	s := open(t, replay.Options{}, sum(t, "sum"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := graph(t, s, "").Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestProfile(t *testing.T) {
	s := open(t, replay.Options{Profile: true}, sum(t, "sum"))
	timing, err := graph(t, s, "").Run(context.Background())
	require.NoError(t, err)
	require.Len(t, timing.Commands, 2)
	require.Equal(t, ir.ID(0), timing.Commands[0].ID)
	require.Positive(t, timing.Duration())
}

// overlapping hands out one buffer for every memory.
type overlapping struct {
	backend.Device
	one backend.Buffer
}

func (d *overlapping) Alloc(s backend.BufferSpec) (backend.Buffer, error) {
	if d.one == nil {
		s.Size = 1 << 16
		d.one, _ = d.Device.Alloc(s)
	}
	return d.one, nil
}

func TestOverlappingBuffersAreRefused(t *testing.T) {
	d := cpu.New(1)
	defer d.Close()
	r := record.New("two")
	r.Add(r.State("a", ir.F32, 4), r.State("b", ir.F32, 4), record.Into(r.State("a", ir.F32, 4)))
	g, err := r.Graph()
	require.NoError(t, err)
	s, err := replay.Open(&overlapping{Device: d}, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{})
	require.NoError(t, err)
	_, err = s.Graph(context.Background(), "two")
	require.EqualError(t, err, "graph two: memories %a and %b overlap on the device: give each its own buffer, or make one an alias")
}

// A weight whose file was not loaded is an error before anything runs.
func TestUnloadedWeights(t *testing.T) {
	r := record.New("w")
	w := r.Weight("w", ir.ExternalBlob("model.bin", 64, 16, ir.Digest{}), ir.F32, 4)
	r.Silu(w, record.Into(r.Output("y", ir.F32, 4)))
	g, err := r.Graph()
	require.NoError(t, err)
	s := open(t, replay.Options{}, g)
	_, err = s.Graph(context.Background(), "w")
	require.EqualError(t, err, `graph w: memory %w: contents of "model.bin" [64:80] are not loaded: open the graph together with that file`)
}
