package passes_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// A pass is one file, one row of a table and one golden. Here the file is this one, the
// row stands in TestNewPass, and the golden is testdata/new/forward.txtar. The tests show
// that nothing else is needed, and what becomes of a pass that does not do what it owes.

// forwardOptions are the options of forward. A mistake is one that only a test makes.
type forwardOptions struct {
	readers int
	mistake string
}

var forwardPass = passes.New(passes.Pass{
	Name: "forward", Summary: "read inputs and weights where they are, and not a copy of them",
	Order: []passes.Constraint{{Before: "forward", After: "dce", Reason: "the copy is dead then"}},
}, forward,
	passes.Int("readers", 4, 1, 1024, "dispatches that may read one copy", func(o *forwardOptions) *int { return &o.readers }),
	passes.Parsed("mistake", "none", "what a test gets wrong", func(s string) (string, error) { return s, nil }, func(o *forwardOptions) *string { return &o.mistake }))

// forward has dispatches that read a copy of an input or weight read the original. The
// copy lies in scratch that no other command writes, so that the two hold the same bytes
// wherever the copy may be read.
func forward(_ context.Context, s *passes.State, o forwardOptions) error {
	g := s.Graph
	copies := map[ir.MemID]*ir.Copy{} // by destination
	written := map[ir.MemID]int{}
	readers := map[ir.MemID]int{}
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.Copy:
			if k := g.Memories[n.Src.Mem].Kind; k == ir.Input || k == ir.Weight {
				copies[n.Dst.Mem] = n
			}
			written[n.Dst.Mem]++
		case *ir.Fill:
			written[n.Dst.Mem]++
		case *ir.Dispatch:
			if n.Effects == nil {
				return nil // it may write anything
			}
			for _, w := range n.Effects.Writes {
				written[w.Region.Mem]++
			}
			for _, b := range n.Bindings {
				if b.Kind == ir.BindView {
					readers[b.View.Mem]++
				}
			}
		}
	}
	for _, n := range g.Nodes {
		d, ok := n.(*ir.Dispatch)
		if !ok {
			continue
		}
		for i := range d.Bindings {
			v := &d.Bindings[i].View
			c := copies[v.Mem]
			if d.Bindings[i].Kind != ir.BindView || c == nil || written[v.Mem] > 1 || g.Memories[v.Mem].Kind != ir.Scratch {
				continue
			}
			if readers[v.Mem] > o.readers {
				s.Not(d, "reads %s, as too many others do", g.FormatView(*v))
				continue
			}
			*v = ir.View{Mem: c.Src.Mem, Off: v.Off.Sub(c.Dst.Off).Add(c.Src.Off), Len: v.Len}
			if len(d.From) == 0 {
				d.From = []ir.ID{d.ID}
			}
			d.From = append([]ir.ID{c.ID}, d.From...)
			effects, err := msl.Describe(g, d)
			switch o.mistake {
			case "from":
				d.From = []ir.ID{d.ID}
			case "id":
				d.ID = c.ID
			case "bytes":
				v.Off = v.Off.AddConst(4)
				effects, err = msl.Describe(g, d)
			case "outside":
				v.Off = v.Off.AddConst(1 << 20)
			case "kernel":
				d.Kernel++
			case "effects":
				effects = d.Effects
			}
			if err != nil {
				return err
			}
			d.Effects = effects
			s.Did(d, "reads %s, of which %%%s is a copy", g.FormatView(*v), g.Memories[c.Dst.Mem].Name)
		}
	}
	if o.mistake == "order" {
		g.Nodes = slices.DeleteFunc(g.Nodes, func(n ir.Node) bool { _, ok := n.(*ir.Barrier); return ok })
	}
	return nil
}

func TestNewPass(t *testing.T) {
	passExample(t, append(passes.All(), forwardPass), "testdata/new/forward.txtar")
}

// TestNewPassMistakes: what a pass gets wrong is told by the check around it, or by the
// proof, after which it is undone.
func TestNewPassMistakes(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "g.mlxt", []byte(`mlxt 1

graph g {
  memory %x input 64
  memory %t scratch 48
  memory %y output 48
  memory %z output 48
  kernel @add builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)

  #0 copy %x[8:56] -> %t[0:48]
  barrier
  #1 @add (a = %t[0:48], b = %x[0:48], c = %y[0:48]) grid threads [12, 1, 1] of [12, 1, 1]
  barrier
  #2 copy %y[0:48] -> %z[0:48]
}
`))
	require.NoError(t, err)
	for _, c := range []struct {
		mistake string
		err     string // of the check
		proof   string // what it finds
	}{
		{"none", "", ""},
		{"from", "", ""}, // here the proof finds by itself what the reader stands for
		{"id", "#0 vv_Addfloat32: another command has this id (ids are unique in a graph)", ""},
		{"outside", "#1 vv_Addfloat32: binding a %x[1048584:1048632] leaves the memory (64 bytes) (shorten the view or grow the memory)", ""},
		{"kernel", "#1: runs kernel 1 of 1", ""},
		{"bytes", "", "#1 vv_Addfloat32 for [#0 #1]: its term is (f32@2[32·i0] + f32@1[32·i0]), theirs (f32@1[32·i0] + f32@0[32·i0])"},
		{"effects", "", "#1 vv_Addfloat32: the stored effects leave out bytes that the kernel touches, or promise writes that it does not"},
		{"order", "", "#1 vv_Addfloat32 and #2 copy both touch %y[0:48] and nothing orders them"},
	} {
		t.Run(c.mistake, func(t *testing.T) {
			p, err := append(passes.All(), forwardPass).Parse("annotate,forward{mistake=" + c.mistake + "}")
			require.NoError(t, err)
			r, err := optimize.Run(context.Background(), m.Graphs[0], optimize.Options{Pipeline: p})
			if c.err != "" {
				require.ErrorContains(t, err, "pass forward{mistake="+c.mistake+"} broke graph g")
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.proof == "", r.Proof.Verdict == prove.Proved, "%s", r.Proof)
			require.Contains(t, r.Proof.String(), c.proof)
		})
	}
}
