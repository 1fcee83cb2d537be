package record

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// translation maps the memories, kernels and params of a graph to those of an encoder.
type translation struct {
	memories []ir.MemID
	kernels  []ir.KernelID
	params   []ir.ParamID
	same     bool // all params have the same numbers in both
}

func (e *Encoder) translation(g *ir.Graph) (*translation, error) {
	t := &translation{same: true}
	for i, p := range g.Params {
		id, ok := e.paramID(p)
		if !ok {
			return nil, e.err
		}
		t.params, t.same = append(t.params, id), t.same && id == ir.ParamID(i)
	}
	for _, c := range g.Constraints {
		e.Require(t.affine(c.LHS), c.Max)
	}
	for _, k := range g.Kernels {
		at := slices.IndexFunc(e.g.Kernels, func(have ir.Kernel) bool { return sameKernel(&have, &k) })
		if at < 0 {
			k.Name = e.unusedKernel(k.Name)
			at = int(e.Kernel(k))
		}
		t.kernels = append(t.kernels, ir.KernelID(at))
	}
	for i := range g.Memories {
		m := g.Memories[i]
		if m.Alias != ir.NoMem {
			if int(m.Alias) >= i {
				return nil, fmt.Errorf("alias %%%s stands before its parent", ir.QuoteName(m.Name))
			}
			m.Alias = t.memories[m.Alias]
		}
		if m.Kind == ir.Argument {
			return nil, fmt.Errorf("memory %%%s is argument memory, which only a replay fills in: encode the graph as it was before the pass constants", ir.QuoteName(m.Name))
		}
		if m.Kind == ir.Scratch {
			m.Name = g.Name + "." + m.Name
		}
		id, ok := e.names[m.Name]
		if !ok {
			if id = e.memory(m); id == ir.NoMem {
				return nil, e.err
			}
		} else if have := &e.g.Memories[id]; m.Kind == ir.Scratch && have.Kind == m.Kind && have.Alias == m.Alias && have.AliasOff == m.AliasOff {
			have.Size = max(have.Size, m.Size) // a graph that was encoded before needed less
		} else if have := &e.g.Memories[id]; have.Kind != m.Kind || have.Size != m.Size || have.Alias != m.Alias || have.AliasOff != m.AliasOff {
			return nil, fmt.Errorf("memory %%%s is %s of %d bytes in this encoder and %s of %d bytes in the graph: rename one", ir.QuoteName(m.Name), have.Kind, have.Size, m.Kind, m.Size)
		} else if !have.SameContents(&m) {
			return nil, fmt.Errorf("memory %%%s has other contents in this encoder than in the graph: rename one", ir.QuoteName(m.Name))
		}
		t.memories = append(t.memories, id)
	}
	return t, e.err
}

func sameKernel(a, b *ir.Kernel) bool {
	return a.Function == b.Function && a.Library == b.Library && slices.Equal(a.Constants, b.Constants) && slices.Equal(a.Args, b.Args)
}

// command returns a copy of n with another ID, and with the memories, kernels and params of
// the encoder.
func (t *translation) command(n ir.Command, id ir.ID) ir.Command {
	n = ir.CloneNode(n).(ir.Command)
	n.Renumber(id, nil)
	n.EachView(t.view)
	d, ok := n.(*ir.Dispatch)
	if !ok {
		return n
	}
	d.Kernel = t.kernels[d.Kernel]
	for i := range d.Grid {
		d.Grid[i].Num = t.affine(d.Grid[i].Num)
	}
	for i := range d.Bindings {
		d.Bindings[i].Expr = t.affine(d.Bindings[i].Expr)
	}
	if d.Effects != nil {
		for i := range d.Effects.Reads {
			t.region(&d.Effects.Reads[i])
		}
		for i := range d.Effects.Writes {
			t.region(&d.Effects.Writes[i].Region)
		}
	}
	return n
}

func (t *translation) view(v *ir.View) {
	v.Mem, v.Off, v.Len = t.memories[v.Mem], t.affine(v.Off), t.affine(v.Len)
}

func (t *translation) region(r *ir.Region) {
	r.Mem, r.Off, r.Run = t.memories[r.Mem], t.affine(r.Off), t.affine(r.Run)
	for i := range r.Dims {
		r.Dims[i].Count = t.affine(r.Dims[i].Count)
	}
}

func (t *translation) affine(a ir.Affine) ir.Affine {
	if t.same || a.IsConst() {
		return a
	}
	terms := slices.Clone(a.Terms())
	for i := range terms {
		terms[i].Param = t.params[terms[i].Param]
	}
	return ir.Linear(a.Const, terms...)
}
