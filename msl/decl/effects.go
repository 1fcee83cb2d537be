package decl

import (
	"cmp"
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
		if a.Kind != ir.DeviceArg || a.Mode == Unused {
			continue
		}
		r, err := in.Region(i)
		if err != nil {
			return nil, err
		}
		if in.Views[i].Mem == ir.NoMem || r.Run.IsConst() && r.Run.Const == 0 {
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
// form: outer dimensions have the greater strides (0 counts as the greatest),
// none has one element, no two are one, and an empty region has no run.
func (in *Instance) Region(i int) (ir.Region, error) {
	a := &in.Decl.Args[i]
	v := in.Views[i]
	r := ir.Region{Mem: v.Mem, Off: v.Off}
	dims, empty, err := in.dims(i)
	if err != nil || empty {
		return r, err
	}
	// The run: the dimensions of the least strides as long as they follow one
	// another.
	run := ir.Const(int64(a.Elem.Bits()))
	for len(dims) > 0 && run.IsConst() && dims[0].Stride == run.Const {
		run = dims[0].Count.Scale(run.Const)
		dims = dims[1:]
	}
	bytes, ok := exactBytes(run)
	if !ok {
		return r, in.errorf("%s: a row of %s bits is no whole number of bytes", a.Name, in.Graph.FormatAffine(run))
	}
	r.Run = bytes
	for _, d := range dims {
		if d.Stride%8 != 0 {
			return r, in.errorf("%s: a stride of %d bits is no whole number of bytes", a.Name, d.Stride)
		}
		d.Stride /= 8
		if n := len(r.Dims) - 1; n >= 0 && r.Dims[n].Count.IsConst() && r.Dims[n].Count.Const*r.Dims[n].Stride == d.Stride {
			r.Dims[n].Count = d.Count.Scale(r.Dims[n].Count.Const)
			continue
		}
		r.Dims = append(r.Dims, d)
	}
	slices.Reverse(r.Dims)
	if len(r.Dims) > 4 {
		return r, in.errorf("%s: more than 4 strided dimensions", a.Name)
	}
	return r, in.inside(a, i, r)
}

// dims returns the dimensions of argument i that say something, the innermost
// of the canonical form first, with strides in bits, or that the argument is empty whatever the params.
func (in *Instance) dims(i int) (dims []ir.Dim, empty bool, err error) {
	a := &in.Decl.Args[i]
	bits := int64(a.Elem.Bits())
	for j := len(in.Shapes[i]) - 1; j >= 0; j-- {
		n, s := in.Shapes[i][j], in.Strides[i][j]
		lo, hi, ok := in.Graph.Range(n)
		if !ok {
			return nil, false, in.errorf("%s: dimension %d, %s, leaves 64 bits", a.Name, j, in.Graph.FormatAffine(n))
		}
		if hi == 0 {
			return nil, true, nil
		}
		if n.IsConst() && n.Const == 1 {
			continue
		}
		// INVARIANT: the region reaches less than 2^limitBits bits, so that no sum
		// or product of its numbers leaves 64.
		if _, ok := scale(ir.Const(hi), s); !ok {
			return nil, false, in.errorf("%s: dimension %d of up to %d elements %d apart is absurd", a.Name, j, hi, s)
		}
		if s == 0 {
			if a.Mode != Read {
				return nil, false, in.errorf("%s: dimension %d is written with stride 0", a.Name, j)
			}
			// The same bytes again and again: once, unless there may be none.
			if lo >= 1 {
				continue
			}
		}
		dims = append(dims, ir.Dim{Count: n, Stride: s * bits})
	}
	slices.SortStableFunc(dims, func(x, y ir.Dim) int {
		return cmp.Compare(uint64(x.Stride-1), uint64(y.Stride-1)) // 0 comes last
	})
	return dims, false, nil
}

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
func (in *Instance) inside(a *Arg, i int, r ir.Region) error {
	_, end := r.Hull()
	v := in.Views[i]
	limit := v.End()
	if v.Mem == ir.NoMem {
		limit = ir.Const(inlineSize(in.Dispatch.Binding(a.Slot)))
	}
	_, over, ok := in.Graph.Range(end.Sub(limit))
	if ok && over <= 0 {
		return nil
	}
	if v.Mem == ir.NoMem {
		return in.errorf("%s: the kernel touches %d bytes past its %d inline bytes", a.Name, over, limit.Const)
	}
	return in.errorf("%s: the kernel touches %s, %d bytes past the bound view %s", a.Name, in.Graph.FormatRegion(r), over, in.Graph.FormatView(v))
}

func inlineSize(b *ir.Binding) int64 {
	if b.Kind == ir.BindScalar {
		return b.Type.Size()
	}
	return int64(len(b.Bytes))
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
			if slices.Contains(d.Inplace, [2]int{i, j}) && in.sameView(i, j) {
				continue
			}
			hint := "it may not overlap"
			if slices.Contains(d.Inplace, [2]int{i, j}) {
				hint = "it may only be the same view: offset, shape, strides and element size"
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
	if ma != mb || a.Run.IsConst() && a.Run.Const == 0 || b.Run.IsConst() && b.Run.Const == 0 {
		return true
	}
	alo, aend := a.Hull()
	blo, bend := b.Hull()
	_, x, ok := g.Range(aend.AddConst(oa).Sub(blo.AddConst(ob)))
	_, y, ok2 := g.Range(bend.AddConst(ob).Sub(alo.AddConst(oa)))
	return ok && x <= 0 || ok2 && y <= 0
}

// sameView reports whether arguments i and j are the same elements under the
// same indices: equal bytes do not suffice, a square matrix and its transpose
// have these too. Dimensions of one element count for nothing: the only row of a
// matrix is a vector.
func (in *Instance) sameView(i, j int) bool {
	ma, oa := in.Graph.Root(in.Views[i].Mem)
	mb, ob := in.Graph.Root(in.Views[j].Mem)
	if ma != mb || !in.Views[i].Off.AddConst(oa).Equal(in.Views[j].Off.AddConst(ob)) ||
		in.Decl.Args[i].Elem.Bits() != in.Decl.Args[j].Elem.Bits() {
		return false
	}
	a, b := in.nextDim(i, 0), in.nextDim(j, 0)
	for ; a < len(in.Shapes[i]) && b < len(in.Shapes[j]); a, b = in.nextDim(i, a+1), in.nextDim(j, b+1) {
		if !in.Shapes[i][a].Equal(in.Shapes[j][b]) || in.Strides[i][a] != in.Strides[j][b] {
			return false
		}
	}
	return a == len(in.Shapes[i]) && b == len(in.Shapes[j])
}

// nextDim returns the first dimension of argument i, from k on, of more or
// less than one element.
func (in *Instance) nextDim(i, k int) int {
	for s := in.Shapes[i]; k < len(s) && s[k].IsConst() && s[k].Const == 1; k++ {
	}
	return k
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
