package bytestate

import "github.com/mlxc/mlxc/ir"

// Rooted returns r as a region of its root memory.
func Rooted(g *ir.Graph, r ir.Region) ir.Region {
	root, off := g.Root(r.Mem)
	r.Mem, r.Off = root, r.Off.AddConst(off)
	return r
}

// Empty reports whether r has no byte, whatever the params.
func Empty(r *ir.Region) bool {
	if r.Run.IsConst() && r.Run.Const <= 0 {
		return true
	}
	for i := range r.Dims {
		if n := &r.Dims[i].Count; n.IsConst() && n.Const <= 0 {
			return true
		}
	}
	return false
}

func sameDims(a, b []ir.Dim) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Stride != b[i].Stride || !a[i].Count.Equal(b[i].Count) {
			return false
		}
	}
	return true
}
