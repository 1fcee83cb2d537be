package prove

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// checkInterface compares what the host sees: inputs, outputs, states and weights by
// name, with everything in their declarations, and params. Argument memory is not part
// of it: the host fills it from params, and what a dispatch binds of it is compared as
// an argument.
func checkInterface(b, a *ir.Graph, r *Result) {
	if len(b.Params) != len(a.Params) {
		r.add(Refused, Interface, nil, nil, "%d params before, %d after", len(b.Params), len(a.Params))
		return
	}
	for i := range b.Params {
		// Params are compared by position, because expressions refer to them so.
		if b.Params[i] != a.Params[i] {
			r.add(Refused, Interface, nil, nil, "param $%s differs: %v before, %v after", b.Params[i].Name, b.Params[i], a.Params[i])
		}
	}
	if !sameConstraints(b, a) {
		r.add(Refused, Interface, nil, nil, "constraints between params differ")
	}
	before, after := visible(b), visible(a)
	carried, carriedAfter := carriedTo(b), carriedTo(a)
	for i := range b.Memories {
		name := b.Memories[i].Name
		x, ok := before[name]
		if !ok || x != ir.MemID(i) {
			continue
		}
		y, ok := after[name]
		if !ok {
			r.add(Refused, Interface, nil, nil, "%s %%%s is missing after", b.Memories[x].Kind, name)
			continue
		}
		m, n := &b.Memories[x], &a.Memories[y]
		switch {
		case m.Kind != n.Kind:
			r.add(Refused, Interface, nil, nil, "%%%s is %s before, %s after", name, m.Kind, n.Kind)
		case m.Size != n.Size:
			r.add(Refused, Interface, nil, nil, "%s %%%s has %d bytes before, %d after", m.Kind, name, m.Size, n.Size)
		case m.DType != n.DType || !slices.Equal(m.Shape, n.Shape):
			r.add(Refused, Interface, nil, nil, "%s %%%s is %s before, %s after", m.Kind, name, describe(m), describe(n))
		case m.Storage != n.Storage:
			r.add(Refused, Interface, nil, nil, "%s %%%s has %s storage before, %s after", m.Kind, name, m.Storage, n.Storage)
		case m.Every != n.Every:
			r.add(Refused, Interface, nil, nil, "%%%s is kept of every replay of a submission in one of the graphs only", name)
		case carried[x] != carriedAfter[y]:
			r.add(Refused, Interface, nil, nil, "something is carried to %%%s in one of the graphs only", name)
		case m.Align != n.Align:
			r.add(Refused, Interface, nil, nil, "%s %%%s is aligned to %s before, %s after", m.Kind, name, describeAlign(m), describeAlign(n))
		default:
			checkContents(m, n, r)
		}
	}
	for i := range a.Memories {
		m := &a.Memories[i]
		if _, ok := before[m.Name]; !ok && m.Alias == ir.NoMem && m.Kind != ir.Scratch && m.Kind != ir.Argument {
			r.add(Refused, Interface, nil, nil, "%s %%%s is new after", m.Kind, m.Name)
		}
	}
}

// carriedTo reports for each memory whether something is carried to it.
func carriedTo(g *ir.Graph) []bool {
	out := make([]bool, len(g.Memories))
	for _, n := range g.Nodes {
		if c, ok := n.(*ir.Carry); ok {
			root, _ := g.Root(c.Dst.Mem)
			out[root] = true
		}
	}
	return out
}

// visible returns, by name, the root memories that the host fills or reads, and
// weights.
func visible(g *ir.Graph) map[string]ir.MemID {
	out := map[string]ir.MemID{}
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Alias == ir.NoMem && m.Kind != ir.Scratch && m.Kind != ir.Argument {
			out[m.Name] = ir.MemID(i)
		}
	}
	return out
}

// describe returns the element type and shape of a memory in readable form.
func describe(m *ir.Memory) string {
	if m.DType == ir.Invalid {
		return "of no element type"
	}
	return m.DType.String() + strings.ReplaceAll(fmt.Sprint(m.Shape), " ", ", ")
}

func describeAlign(m *ir.Memory) string {
	if m.Align == 0 {
		return "the device's default"
	}
	return fmt.Sprintf("%d bytes", m.Align)
}

// checkContents compares the initial contents of two memories of the same size and
// type.
func checkContents(m, n *ir.Memory, r *Result) {
	if m.Init.Kind != ir.InitBlob || n.Init.Kind != ir.InitBlob {
		if !m.SameContents(n) {
			r.add(Refused, Interface, nil, nil, "%s %%%s has other initial contents", m.Kind, m.Name)
		}
		return
	}
	if why := blobsDiffer(m.Init.Blob, n.Init.Blob); why != "" {
		r.add(Refused, Interface, nil, nil, "%s %%%s has other initial contents: %s", m.Kind, m.Name, why)
	}
}

// blobsDiffer says why the contents of two blobs differ; empty if they do not. Bytes
// that are present are compared, or hashed and compared with the digest of the other. A
// digest that stands beside bytes is not believed. Bytes that are not present have the
// digest that their file must have.
func blobsDiffer(x, y *ir.Blob) (why string) {
	if x == y {
		return ""
	}
	if x.Length != y.Length {
		return fmt.Sprintf("%d bytes before, %d after", x.Length, y.Length)
	}
	if x.Loaded() && y.Loaded() {
		p, _ := x.Bytes()
		q, _ := y.Bytes()
		if len(p) > 0 && &p[0] != &q[0] && !bytes.Equal(p, q) {
			return "other bytes"
		}
		return ""
	}
	if x.Digest != y.Digest {
		return fmt.Sprintf("sha256 %s before, %s after", x.Digest, y.Digest)
	}
	for _, b := range []*ir.Blob{x, y} {
		if !b.Loaded() {
			continue
		}
		if err := b.Verify(); err != nil {
			return err.Error()
		}
	}
	return ""
}

// CheckModules compares what two files hold besides what their graphs compute: the
// names and the order of the graphs, of which the first is the default, and the data
// sections. [Check] compares the graphs themselves.
func CheckModules(before, after *ir.Module) *Result {
	r := &Result{}
	if len(before.Graphs) != len(after.Graphs) {
		r.add(Refused, Interface, nil, nil, "%d graph(s) before, %d after", len(before.Graphs), len(after.Graphs))
	}
	for _, g := range before.Graphs {
		if after.Graph(g.Name) == nil {
			r.add(Refused, Interface, nil, nil, "graph %s is missing after", ir.QuoteName(g.Name))
		}
	}
	for _, g := range after.Graphs {
		if before.Graph(g.Name) == nil {
			r.add(Refused, Interface, nil, nil, "graph %s is new after", ir.QuoteName(g.Name))
		}
	}
	for i := range before.Graphs {
		if x, y := before.Graphs[i].Name, after.Graphs[min(i, len(after.Graphs)-1)].Name; r.Verdict == Proved && x != y {
			r.add(Refused, Interface, nil, nil, "graph %d is %s before, %s after: their order says which is the default", i+1, ir.QuoteName(x), ir.QuoteName(y))
		}
	}
	for _, d := range before.Data {
		switch b := after.Lookup(d.Name); {
		case b == nil:
			r.add(Refused, Interface, nil, nil, "data %s is missing after", ir.QuoteName(d.Name))
		default:
			if why := blobsDiffer(d.Blob, b); why != "" {
				r.add(Refused, Interface, nil, nil, "data %s has other contents: %s", ir.QuoteName(d.Name), why)
			}
		}
	}
	for _, d := range after.Data {
		if before.Lookup(d.Name) == nil {
			r.add(Refused, Interface, nil, nil, "data %s is new after", ir.QuoteName(d.Name))
		}
	}
	return r
}

// sameConstraints reports whether two graphs admit the same values of the params: the
// constraints of each hold wherever those of the other do.
func sameConstraints(b, a *ir.Graph) bool {
	return implied(b, a) && implied(a, b)
}

// implied proves that the constraints of h hold for all params that g admits.
func implied(g, h *ir.Graph) bool {
	for _, c := range h.Constraints {
		if !slices.ContainsFunc(g.Constraints, func(d ir.Constraint) bool { return c.Max == d.Max && c.LHS.Equal(d.LHS) }) && !atMost(g, c.LHS, c.Max) {
			return false
		}
	}
	return true
}
