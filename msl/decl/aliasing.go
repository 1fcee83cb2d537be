package decl

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// CheckAliasing reports an overlap of a written argument with another one that
// the declaration does not allow.
func (in *Instance) CheckAliasing() error {
	if in.form != nil && in.form.apart(in.Dispatch) {
		return nil
	}
	return in.overlap()
}

// overlap looks at every pair of arguments.
func (in *Instance) overlap() error {
	d, g := in.Decl, in.Graph
	for i := range d.Args {
		if d.Args[i].Kind != ir.DeviceArg || d.Args[i].Mode < Write {
			continue
		}
		for j := range d.Args {
			if !d.mayClash(i, j) || in.Views[j].Mem == ir.NoMem {
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
			inplace := slices.Contains(d.Inplace, [2]int{i, j})
			// Where no term says which elements meet, shapes of other dimensions may be one row of elements.
			if inplace && (in.sameView(i, j) || d.EffectsOnly && w.Equal(r) && in.oneRow(i) && in.oneRow(j) && d.Args[i].Elem.Bits() == d.Args[j].Elem.Bits()) {
				continue
			}
			hint := "it may not overlap"
			if inplace {
				hint = "it may only be the same view: offset, shape, strides and element size"
			}
			return in.errorf("%s %s overlaps %s %s: %s", d.Args[i].Name, g.FormatRegion(w), d.Args[j].Name, g.FormatRegion(r), hint)
		}
	}
	return nil
}

// mayClash reports whether an overlap of arguments i and j has to be looked for: i is
// written, and j is another device argument whose bytes matter. Of two written
// arguments it accepts one order only, so that each pair is looked at once.
func (d *Decl) mayClash(i, j int) bool {
	w, x := &d.Args[i], &d.Args[j]
	return i != j && w.Kind == ir.DeviceArg && w.Mode >= Write &&
		x.Kind == ir.DeviceArg && x.Mode != Unused && (x.Mode < Write || i < j)
}

// disjoint proves that two regions share no byte, for every value of the params.
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
	if ok && x <= 0 || ok2 && y <= 0 {
		return true
	}
	delta := b.Off.AddConst(ob).Sub(a.Off.AddConst(oa))
	return takeTurns(g, a, b, delta, a.Dims) || takeTurns(g, a, b, delta, b.Dims)
}

// takeTurns proves that two regions are disjoint which repeat with a common period
// (the stride of one of dims) and lie apart within each period, as the heads of q and
// of k do in one matrix. delta is the first byte of b relative to that of a.
//
// Every byte of a region lies, modulo the period, within the reach of those
// dimensions whose stride is no multiple of it.
func takeTurns(g *ir.Graph, a, b ir.Region, delta ir.Affine, dims []ir.Dim) bool {
	for _, d := range dims {
		period := d.Stride
		if period <= 0 {
			continue
		}
		first, ok := modulo(delta, period)
		if !ok {
			continue
		}
		wa, ok1 := reach(g, a, period)
		wb, ok2 := reach(g, b, period)
		if ok1 && ok2 && wa <= first && wb <= period-first {
			return true
		}
	}
	return false
}

// modulo returns a mod period, in [0, period). It fails if that depends on a param.
func modulo(a ir.Affine, period int64) (int64, bool) {
	for _, t := range a.Terms() {
		if t.Coeff%period != 0 {
			return 0, false
		}
	}
	m := a.Const % period
	if m < 0 {
		m += period
	}
	return m, true
}

// reach returns how many bytes the run and those dimensions span that lie within one
// period, counted from the first byte.
func reach(g *ir.Graph, r ir.Region, period int64) (int64, bool) {
	end := r.Run
	for _, d := range r.Dims {
		if d.Stride%period != 0 {
			end = end.Add(d.Count.AddConst(-1).Scale(d.Stride))
		}
	}
	_, hi, ok := g.Range(end)
	return hi, ok
}

// sameView reports whether arguments i and j are the same elements under the
// same indices. Equal bytes would not suffice: a square matrix and its transpose
// have the same bytes.
func (in *Instance) sameView(i, j int) bool {
	ma, oa := in.Graph.Root(in.Views[i].Mem)
	mb, ob := in.Graph.Root(in.Views[j].Mem)
	return ma == mb && in.Views[i].Off.AddConst(oa).Equal(in.Views[j].Off.AddConst(ob)) && in.sameElements(i, j)
}

// sameElements reports whether i and j have the same shape, strides and element
// size, so that views that begin together are the same.
func (in *Instance) sameElements(i, j int) bool {
	if in.Decl.Args[i].Elem.Bits() != in.Decl.Args[j].Elem.Bits() || in.Decl.Args[i].Whole != in.Decl.Args[j].Whole {
		return false
	}
	if in.At != nil && !in.At[i].Equal(in.At[j]) {
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

// oneRow reports whether the elements of argument i lie one behind the other, in the order of its indices.
func (in *Instance) oneRow(i int) bool {
	s, stride := in.Shapes[i], int64(1)
	for k := len(s) - 1; k >= 0; k-- {
		switch {
		case s[k].IsConst() && s[k].Const == 1:
		case in.Strides[i][k] != stride:
			return false
		case !s[k].IsConst():
			return in.nextDim(i, 0) == k
		default:
			stride *= s[k].Const
		}
	}
	return true
}

// nextDim returns the first dimension of argument i, from k on, that does not have
// exactly one element. Dimensions of one element do not count, so that the only row of
// a matrix is the same as a vector.
func (in *Instance) nextDim(i, k int) int {
	for s := in.Shapes[i]; k < len(s) && s[k].IsConst() && s[k].Const == 1; k++ {
	}
	return k
}
