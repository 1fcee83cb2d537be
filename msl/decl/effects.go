package decl

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Effects returns what the dispatch touches: the bytes of the declared shapes
// under their strides. They are complete.
func (in *Instance) Effects() (*ir.Effects, error) {
	e := &ir.Effects{Complete: true}
	for i := range in.Decl.Args {
		a := &in.Decl.Args[i]
		if a.Kind != ir.DeviceArg || a.Mode == Unused || in.Views[i].Mem == ir.NoMem {
			continue
		}
		r, err := in.Region(i)
		if err != nil {
			return nil, err
		}
		if r.Run.IsConst() && r.Run.Const == 0 {
			continue
		}
		switch a.Mode {
		case Read:
			e.Reads = append(e.Reads, r)
		default:
			e.Writes = append(e.Writes, ir.Write{Region: r, Must: a.Mode == Write, Atomic: a.Mode == Atomic})
		}
	}
	return e, nil
}

// Region returns the bytes of device argument i (of Decl.Args), in canonical
// form: no dimension of one element, no two dimensions that are one.
func (in *Instance) Region(i int) (ir.Region, error) {
	a := &in.Decl.Args[i]
	v := in.Views[i]
	shape, strides := in.Shapes[i], in.Strides[i]
	bits := int64(a.Elem.Bits())
	r := ir.Region{Mem: v.Mem, Off: v.Off}

	// The run: the innermost dimensions as long as they are contiguous.
	j := len(shape) - 1
	run := ir.Const(bits) // in bits, until the dimensions are through
	for ; j >= 0; j-- {
		if one(shape[j]) {
			continue
		}
		if !run.IsConst() || strides[j]*bits != run.Const {
			break
		}
		run = shape[j].Scale(run.Const)
	}
	bytes, ok := exactBytes(run)
	if !ok {
		return r, in.errorf("%s: a row of %s bits is no whole number of bytes", a.Name, in.Graph.FormatAffine(run))
	}
	r.Run = bytes
	// The dimensions outside, innermost first; stride 0 repeats the same bytes.
	for ; j >= 0; j-- {
		if one(shape[j]) {
			continue
		}
		s := strides[j] * bits
		if s%8 != 0 {
			return r, in.errorf("%s: a stride of %d bits is no whole number of bytes", a.Name, s)
		}
		s /= 8
		if s == 0 {
			if a.Mode != Read {
				return r, in.errorf("%s: dimension %d is written with stride 0", a.Name, j)
			}
			// An empty dimension would still empty the region.
			if lo, _, ok := in.Graph.Range(shape[j]); ok && lo >= 1 {
				continue
			}
		}
		if n := len(r.Dims); n > 0 && r.Dims[n-1].Count.IsConst() && r.Dims[n-1].Count.Const*r.Dims[n-1].Stride == s {
			r.Dims[n-1].Count = shape[j].Scale(r.Dims[n-1].Count.Const)
			continue
		}
		r.Dims = append(r.Dims, ir.Dim{Count: shape[j], Stride: s})
	}
	slices.Reverse(r.Dims)
	if len(r.Dims) > 4 {
		return r, in.errorf("%s: more than 4 strided dimensions", a.Name)
	}
	return r, in.inside(a, v, r)
}

func one(a ir.Affine) bool { return a.IsConst() && a.Const == 1 }

func exactBytes(bits ir.Affine) (ir.Affine, bool) {
	if !divides(8, bits) {
		return bits, false
	}
	terms := slices.Clone(bits.Terms())
	for i := range terms {
		terms[i].Coeff /= 8
	}
	return ir.Linear(bits.Const/8, terms...), true
}

// inside checks that the region ends within the bound view, for every value of
// the params: a kernel that reads past its view reads somebody else's bytes.
func (in *Instance) inside(a *Arg, v ir.View, r ir.Region) error {
	_, end := r.Hull()
	_, over, ok := in.Graph.Range(end.Sub(v.End()))
	if !ok || over > 0 {
		return in.errorf("%s: the kernel touches %s, %d bytes past the bound view %s", a.Name, in.Graph.FormatRegion(r), over, in.Graph.FormatView(v))
	}
	return nil
}

// CheckAliasing reports an overlap of a written argument with another one that
// the declaration does not allow.
func (in *Instance) CheckAliasing() error {
	d, g := in.Decl, in.Graph
	for i := range d.Args {
		if d.Args[i].Kind != ir.DeviceArg || d.Args[i].Mode < Write {
			continue
		}
		for j := range d.Args {
			if i == j || d.Args[j].Kind != ir.DeviceArg || in.Views[j].Mem == ir.NoMem || d.Args[j].Mode == Unused || d.Args[j].Mode >= Write && j < i {
				continue
			}
			w, err := in.Region(i)
			if err != nil {
				return err
			}
			r, err := in.Region(j)
			if err != nil {
				return err
			}
			if disjoint(g, w, r) {
				continue
			}
			if slices.Contains(d.Inplace, [2]int{i, j}) && sameBytes(g, w, r) && d.Args[i].Elem == d.Args[j].Elem {
				continue
			}
			hint := "it may not overlap"
			if slices.Contains(d.Inplace, [2]int{i, j}) {
				hint = "it may only be the very same bytes"
			}
			return in.errorf("%s %s overlaps %s %s: %s", d.Args[i].Name, g.FormatRegion(w), d.Args[j].Name, g.FormatRegion(r), hint)
		}
	}
	return nil
}

// disjoint proves that the hulls do not meet, for every value of the params.
func disjoint(g *ir.Graph, a, b ir.Region) bool {
	ma, oa := g.Root(a.Mem)
	mb, ob := g.Root(b.Mem)
	if ma != mb {
		return true
	}
	alo, aend := a.Hull()
	blo, bend := b.Hull()
	_, x, ok := g.Range(aend.AddConst(oa).Sub(blo.AddConst(ob)))
	_, y, ok2 := g.Range(bend.AddConst(ob).Sub(alo.AddConst(oa)))
	return ok && x <= 0 || ok2 && y <= 0
}

func sameBytes(g *ir.Graph, a, b ir.Region) bool {
	ma, oa := g.Root(a.Mem)
	mb, ob := g.Root(b.Mem)
	a.Mem, b.Mem = ma, mb
	a.Off, b.Off = a.Off.AddConst(oa), b.Off.AddConst(ob)
	return a.Equal(b)
}

// Concrete evaluates the instance for given values of the params: the shapes
// of all arguments.
func (in *Instance) Concrete(params []uint32) [][]int64 {
	out := make([][]int64, len(in.Shapes))
	for i, s := range in.Shapes {
		for _, d := range s {
			out[i] = append(out[i], d.Eval(params))
		}
	}
	return out
}

func (in *Instance) String() string {
	return fmt.Sprintf("%s %s", in.Dispatch.ID, in.Decl.Name)
}
