package bytestate

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// maxUnion bounds the regions that [Facts.Together] looks at.
const maxUnion = 16

// Together proves that the regions of the given accesses, all in one memory, together contain every
// byte of a, whatever the params: each row of a is filled, from its start to its end, by their
// rows. It looks at only a few regions.
func (f *Facts) Together(a *Access, others []Access) bool {
	if len(others) < 2 || len(others) > maxUnion {
		return false
	}
	want := f.region(a)
	list := make([]ir.Region, len(others))
	for i := range others {
		list[i] = f.region(&others[i])
	}
	if f.filled(&want, list) {
		return true
	}
	// Rows without a gap between them are one run, so a may consist of rows without having a
	// dimension.
	for i := range list {
		if r, ok := f.inRows(&want, list[i].Dims); ok && f.filled(&r, list) {
			return true
		}
	}
	return false
}

func (f *Facts) region(a *Access) ir.Region {
	if a.Region != 0 {
		return f.regions[a.Region].Region
	}
	return ir.ViewOf(ir.MemID(a.Root), a.Lo, a.End-a.Lo).Contiguous()
}

// inRows divides r, which has no dimensions, into rows like those of dims. ok is false if it is not
// known to consist of such rows.
func (f *Facts) inRows(r *ir.Region, dims []ir.Dim) (out ir.Region, ok bool) {
	if len(r.Dims) > 0 || len(dims) == 0 {
		return out, false
	}
	// In order of strides, the rows of each dimension must fill the stride of the next larger one.
	sorted := slices.Clone(dims)
	slices.SortStableFunc(sorted, func(x, y ir.Dim) int { return int(min(1, max(-1, y.Stride-x.Stride))) })
	length := r.Run
	for _, d := range sorted {
		if d.Stride <= 0 || !length.Equal(d.Count.Scale(d.Stride)) {
			return out, false
		}
		length = ir.Const(d.Stride)
	}
	return ir.Region{Mem: r.Mem, Off: r.Off, Run: length, Dims: dims}, true
}

// filled reports whether rows of the listed regions fill each row of r.
func (f *Facts) filled(r *ir.Region, list []ir.Region) bool {
	left := slices.Clone(list)
	at, end := r.Off, r.Off.Add(r.Run)
	for len(left) > 0 {
		k := slices.IndexFunc(left, func(x ir.Region) bool {
			return x.Mem == r.Mem && f.asManyRows(&x, r) && f.bounds.DifferenceAtMost(x.Off, at, 0) && f.bounds.DifferenceAtMost(at, x.Off.Add(x.Run), 0)
		})
		if k < 0 {
			return false
		}
		at = left[k].Off.Add(left[k].Run)
		if f.bounds.DifferenceAtMost(end, at, 0) {
			return true
		}
		left = slices.Delete(left, k, k+1)
	}
	return false
}

// asManyRows reports whether x has at least as many rows as r, at the same distances.
func (f *Facts) asManyRows(x, r *ir.Region) bool {
	if len(x.Dims) != len(r.Dims) {
		return false
	}
	for k, d := range x.Dims {
		if d.Stride != r.Dims[k].Stride || !f.bounds.DifferenceAtMost(r.Dims[k].Count, d.Count, 0) {
			return false
		}
	}
	return true
}
