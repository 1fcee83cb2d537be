package prove

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// maxUnited bounds the number of writes whose union united computes.
const maxUnited = 16

// united proves that the must-writes of a list together contain every byte of a, for all values of
// the params. It joins writes without a gap between them: writes of rows side by side, such as the
// halves of each row that two commands write, and writes of one row after another, such as the rows
// of a cache before a position and the row at that position.
func (h *history) united(list []int32, a *access) bool {
	if len(list) < 2 || len(list) > maxUnited {
		return false
	}
	m := h.m
	var all []ir.Region
	for _, i := range list {
		if w := &m.writes[i]; w.must && w.mem == a.mem {
			all = append(all, m.unbroken(m.region(&w.access)))
		}
	}
	want := m.unbroken(m.region(a))
	for i := 0; i < len(all); {
		merged := false
		for k := i + 1; k < len(all) && !merged; k++ {
			h.looked++
			r, ok := m.merged(&all[i], &all[k])
			if !ok {
				r, ok = m.merged(&all[k], &all[i])
			}
			if ok {
				all[i], merged = m.unbroken(r), true
				all = slices.Delete(all, k, k+1)
			}
		}
		switch {
		case merged:
			if regionCovers(m.bounds, all[i], want) {
				return true
			}
			i = 0 // the joined write may touch one that was tried before
		default:
			i++
		}
	}
	return false
}

// merged returns the union of two regions. It fails if that is no region that begins where x
// begins.
func (m *model) merged(x, y *ir.Region) (ir.Region, bool) {
	if len(x.Dims) != len(y.Dims) {
		return ir.Region{}, false
	}
	differing := -1
	for k, d := range x.Dims {
		e := y.Dims[k]
		switch {
		case d.Stride != e.Stride || differing >= 0 && !d.Count.Equal(e.Count):
			return ir.Region{}, false
		case !d.Count.Equal(e.Count):
			differing = k
		}
	}
	g := m.bounds
	if differing < 0 {
		// Each run of y begins within the run of x, or where that ends.
		xend, yend := x.Off.Add(x.Run), y.Off.Add(y.Run)
		if g.DifferenceAtMost(x.Off, y.Off, 0) && g.DifferenceAtMost(y.Off, xend, 0) {
			switch {
			case g.DifferenceAtMost(xend, yend, 0):
				r := *x
				r.Run = yend.Sub(x.Off)
				return r, true
			case g.DifferenceAtMost(yend, xend, 0):
				return *x, true
			}
		}
	}
	// The rows of y continue those of x.
	for k, d := range x.Dims {
		if differing >= 0 && k != differing || !x.Run.Equal(y.Run) || !y.Off.Equal(x.Off.Add(d.Count.Scale(d.Stride))) || !m.atLeast(d.Count, 0) || !m.atLeast(y.Dims[k].Count, 0) {
			continue
		}
		r := *x
		r.Dims = slices.Clone(x.Dims)
		r.Dims[k].Count = d.Count.Add(y.Dims[k].Count)
		return r, true
	}
	return ir.Region{}, false
}

func (m *model) atLeast(a ir.Affine, limit int64) bool {
	lo, _, ok := m.bounds.Range(a)
	return ok && lo >= limit
}

// unbroken joins the rows of a region into one run if there is no gap between them.
func (m *model) unbroken(r ir.Region) ir.Region {
	for k := len(r.Dims) - 1; k >= 0; k-- {
		d := r.Dims[k]
		if !r.Run.IsConst() || r.Run.Const < d.Stride || d.Stride < 0 || !(r.Run.Const == d.Stride && m.atLeast(d.Count, 0) || m.atLeast(d.Count, 1)) {
			continue
		}
		r.Run = d.Count.AddConst(-1).Scale(d.Stride).Add(r.Run)
		r.Dims = slices.Delete(slices.Clone(r.Dims), k, k+1)
		k = len(r.Dims) // a longer run may close the gaps of another dimension
	}
	return r
}
