package prove

import (
	"bytes"

	"github.com/mlxc/mlxc/ir"
)

// image finds for every command after the command before that it implements.
// Provenance is a hint: what it names is compared like anything else. The
// result maps commands after to commands before, −1 where there is none.
func image(b, a *model, r *Result) []int {
	out := make([]int, len(a.ops))
	used := make([]bool, len(b.ops))
	for i := range a.ops {
		out[i] = -1
		o := &a.ops[i]
		from := provenance(o.node)
		if len(from) > 1 {
			r.add(CannotTell, Fusion, from, []ir.ID{o.id}, "%s implements %v: fusions are not proved yet", a.g.Describe(o.node), from)
			continue
		}
		j, ok := b.byID[from[0]]
		switch {
		case !ok:
			r.add(Refused, Coverage, nil, []ir.ID{o.id}, "%s implements %s, which does not exist before", a.g.Describe(o.node), from[0])
			continue
		case used[j]:
			r.add(Refused, Coverage, from, []ir.ID{o.id}, "%s is implemented twice", b.g.Describe(b.ops[j].node))
			continue
		}
		used[j] = true
		if why := sameCommand(b.g, a.g, b.ops[j].node, o.node); why != "" {
			r.add(Refused, Interface, from, []ir.ID{o.id}, "%s is not %s of before: %s", a.g.Describe(o.node), b.g.Describe(b.ops[j].node), why)
			continue
		}
		if d, ok := o.node.(*ir.Dispatch); ok && a.g.Kernels[d.Kernel].Library.Kind != ir.Builtin && !sameBytes(b.g, a.g, b.ops[j].node, o.node) {
			// Nobody but the recorder knows what it touches, and he said so of the
			// views that he bound.
			r.add(CannotTell, Coverage, from, []ir.ID{o.id}, "%s has no declaration and another view than before", a.g.Describe(o.node))
			continue
		}
		out[i] = j
	}
	for j, u := range used {
		if u {
			continue
		}
		r.Dropped++
		if !b.ops[j].known {
			r.add(Refused, Coverage, []ir.ID{b.ops[j].id}, nil, "%s is left out, but its effects are unknown", b.g.Describe(b.ops[j].node))
		}
	}
	return out
}

func provenance(n ir.Node) []ir.ID {
	var from []ir.ID
	switch n := n.(type) {
	case *ir.Dispatch:
		from = n.From
	case *ir.Copy:
		from = n.From
	case *ir.Fill:
		from = n.From
	}
	if len(from) == 0 {
		id, _ := ir.NodeID(n)
		return []ir.ID{id}
	}
	return from
}

// sameCommand compares everything of an unfused command but where its views
// lie; it returns what differs, or "".
func sameCommand(bg, ag *ir.Graph, x, y ir.Node) string {
	switch x := x.(type) {
	case *ir.Copy:
		y, ok := y.(*ir.Copy)
		if !ok || !x.Dst.Len.Equal(y.Dst.Len) || !x.Src.Len.Equal(y.Src.Len) {
			return "another command or length"
		}
		return ""
	case *ir.Fill:
		y, ok := y.(*ir.Fill)
		if !ok || x.Value != y.Value || !x.Dst.Len.Equal(y.Dst.Len) {
			return "another command, value or length"
		}
		return ""
	}
	d, ok1 := x.(*ir.Dispatch)
	e, ok2 := y.(*ir.Dispatch)
	if !ok1 || !ok2 {
		return "another kind of command"
	}
	if !sameKernel(&bg.Kernels[d.Kernel], &ag.Kernels[e.Kernel]) {
		return "another kernel"
	}
	if d.GridKind != e.GridKind || d.Threadgroup != e.Threadgroup || !d.Grid[0].Equal(e.Grid[0]) || !d.Grid[1].Equal(e.Grid[1]) || !d.Grid[2].Equal(e.Grid[2]) {
		return "another grid or threadgroup"
	}
	if len(d.ThreadgroupMemory) != len(e.ThreadgroupMemory) || len(d.Bindings) != len(e.Bindings) {
		return "other bindings"
	}
	for i := range d.ThreadgroupMemory {
		if d.ThreadgroupMemory[i] != e.ThreadgroupMemory[i] {
			return "other threadgroup memory"
		}
	}
	for i := range d.Bindings {
		p, q := bg.Resolve(d.Bindings[i]), ag.Resolve(e.Bindings[i])
		if p.Slot != q.Slot || p.Kind != q.Kind || p.Type != q.Type {
			return "other bindings"
		}
		if !bytes.Equal(p.Bytes, q.Bytes) || !p.Expr.Equal(q.Expr) {
			return "another argument value"
		}
		if p.Kind == ir.BindView && !p.View.Len.Equal(q.View.Len) {
			return "a view of another length"
		}
	}
	return ""
}

// sameKernel compares the code, its specialization and its argument table.
func sameKernel(k, l *ir.Kernel) bool {
	if k.Library.Kind != l.Library.Kind || k.Library.Digest != l.Library.Digest || k.Function != l.Function ||
		len(k.Constants) != len(l.Constants) || len(k.Args) != len(l.Args) {
		return false
	}
	for i, c := range k.Constants {
		if d := l.Constants[i]; c.Index != d.Index || c.Type != d.Type || c.Bits != d.Bits {
			return false
		}
	}
	for i, x := range k.Args {
		if x != l.Args[i] {
			return false
		}
	}
	return true
}
