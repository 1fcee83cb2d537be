package passes_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/prove"
	"github.com/mlxc/mlxc/replay"
)

// runs replays g several times with other params each time, and returns the bytes
// of all outputs and states after each.
func runs(t *testing.T, g *ir.Graph, params []map[string]float64) (out []string) {
	s, err := replay.Open(cpu.New(0), &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{})
	require.NoError(t, err)
	defer s.Close()
	p, err := s.Graph(context.Background(), "")
	require.NoError(t, err)
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.Input {
			data := make([]byte, m.Size)
			require.NoError(t, (&ir.Memory{Size: m.Size, DType: ir.F32, Init: ir.Init{Kind: ir.InitRandom, Seed: 5}}).WriteInit(data))
			require.NoError(t, p.SetInput(m.Name, data))
		}
	}
	for _, values := range params {
		for name, v := range values {
			require.NoError(t, p.SetParam(name, v))
		}
		_, err := p.Run(context.Background())
		require.NoError(t, err)
		for i := range g.Memories {
			m := &g.Memories[i]
			get := p.Output
			switch m.Kind {
			case ir.State:
				get = p.State
			case ir.Output:
			default:
				continue
			}
			data, err := get(m.Name)
			require.NoError(t, err)
			out = append(out, m.Name+string(data))
		}
	}
	return out
}

// Nothing is bound inline afterwards, every dispatch computes the same for every
// value of the params, and the prover sees it.
func TestConstantsKeepValues(t *testing.T) {
	for name, params := range map[string][]map[string]float64{
		"llama_layer_decode":  {{"pos": 0}, {"pos": 1}, {"pos": 2}},
		"llama_layer_prefill": {{"pos": 0, "n": 5}, {"pos": 5, "n": 1}, {"pos": 6, "n": 16}},
		"norm_residual":       {nil},
	} {
		g := recorded.Graph(t, name)
		after := g.Clone()
		r := runPasses(t, after, "annotate,barriers,constants")[2]
		inline := 0
		for _, n := range g.Nodes {
			if d, ok := n.(*ir.Dispatch); ok && slices.ContainsFunc(d.Bindings, func(b ir.Binding) bool { return b.Kind != ir.BindView }) {
				inline++
			}
		}
		require.Equal(t, inline, r.Changed)
		require.Positive(t, after.Stats().Bytes.Argument)
		for _, n := range after.Nodes {
			if d, ok := n.(*ir.Dispatch); ok {
				for _, b := range d.Bindings {
					require.Equal(t, ir.BindView, b.Kind, "%s: %s", name, d.ID)
				}
			}
		}
		require.Equal(t, runs(t, g, params), runs(t, after, params), name)
		require.Equal(t, prove.Proved, prove.Check(context.Background(), g, after, prove.Options{}).Verdict, name)
		require.Equal(t, prove.Proved, prove.Check(context.Background(), after, after.Clone(), prove.Options{}).Verdict, name)
		again := after.Clone()
		require.Zero(t, runPasses(t, again, "constants")[0].Changed)
		require.Len(t, again.Memories, len(after.Memories))

		// Annotating again sees through argument memory.
		require.Empty(t, runPasses(t, again, "annotate")[0].Remarks)

		// The prover refuses argument memory with one value changed.
		for i := range after.Memories[len(after.Memories)-1].Init.Values {
			bad := after.Clone()
			v := &bad.Memories[len(bad.Memories)-1].Init.Values[i]
			if v.Bytes != nil {
				v.Bytes[0] ^= 4
			} else {
				v.Expr = v.Expr.Scale(0)
			}
			require.NoError(t, bad.Check())
			require.NotEqual(t, prove.Proved, prove.Check(context.Background(), g, bad, prove.Options{}).Verdict, "%s: value %d", name, i)
		}
	}
}

// What depends on params in a command is named, and nothing else.
func TestConstantsNameVariableCommands(t *testing.T) {
	b := ir.NewBuilder("g")
	pos := ir.Linear(0, ir.Term{Param: b.Param("pos", 0, 3), Coeff: 1})
	m := b.Memory(ir.Memory{Name: "m", Kind: ir.State, Size: 256})
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 256})
	k := b.Kernel(ir.Kernel{Name: "k", Function: "k", Library: ir.Library{Kind: ir.SourceFile, Path: "k.metal"}, Args: []ir.Arg{{Slot: 0, Name: "out", Access: ir.WriteArg, Type: ir.F32}, {Slot: 1, Name: "n", Kind: ir.ConstantArg, Type: ir.U32, Count: 1}, {Slot: 2, Name: "m", Kind: ir.ConstantArg, Type: ir.I64, Count: 1}}})
	at := func(off, n ir.Affine) ir.View { return ir.View{Mem: m, Off: off, Len: n} }
	one := [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}
	dispatch := func(v ir.View, grid [3]ir.Extent) {
		b.Dispatch(ir.Dispatch{Kernel: k, Bindings: []ir.Binding{ir.BufferArg(0, v), ir.ScalarArg(1, ir.U32, pos), ir.ScalarArg(2, ir.I64, pos)}, Grid: grid, Threadgroup: [3]uint32{1, 1, 1}})
		b.Barrier()
	}
	dispatch(at(ir.Const(0), pos.Scale(4)), one)
	dispatch(at(pos.Scale(4), ir.Const(4)), one)
	dispatch(at(ir.Const(0), ir.Const(4)), [3]ir.Extent{{Num: pos, Div: 2}, ir.Ext(1), {Num: pos, Div: 1}})
	b.Fill(at(ir.Const(0), pos.Scale(4)), 0, "")
	b.Barrier()
	b.Copy(at(ir.Const(0), ir.Const(4)), ir.ViewOf(x, 0, 4), "")
	g, err := b.Graph()
	require.NoError(t, err)
	before := g.Clone()
	r := runPasses(t, g, "constants")[0]
	var got []string
	for _, m := range r.Remarks {
		got = append(got, m.At+": "+strings.TrimPrefix(m.Text, "a variable command"))
	}
	require.Equal(t, []string{
		"#1 k: , to be rewritten for each replay: out begins at 4*$pos (or a kernel variant that adds the offset from argument memory)",
		"#2 k: , to be rewritten for each replay: threadgroups[0] is ceil(($pos) / 2), threadgroups[2] is $pos (or indirect dispatch arguments, or the greatest grid and a bound in argument memory)",
		"#3 fill: : %m[0:4*$pos] (to be rewritten for each replay)",
	}, got)
	require.Equal(t, []ir.Value{{Off: 0, Type: ir.U32, Expr: pos}, {Off: 32, Type: ir.I64, Expr: pos}}, g.Memories[2].Init.Values, "a place for each value and type")
	require.Equal(t, prove.Proved, prove.Check(context.Background(), before, g, prove.Options{}).Verdict, "a foreign kernel's arguments move too")
}

func TestConstantsAlign(t *testing.T) {
	g := recorded.Graph(t, "norm_residual")
	runPasses(t, g, "constants{align=256}")
	m := g.Memories[len(g.Memories)-1]
	require.Equal(t, int64(256), m.Align)
	for _, v := range m.Init.Values {
		require.Zero(t, v.Off%256)
	}
	require.Zero(t, m.Size%256)
}
