package values

import (
	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/collections/interval"
	"github.com/mlxc/mlxc/ir"
)

// Levels computes, access by access in list order, the length of the longest
// chain of conflicting commands that ends in each: for places that are still
// being chosen, where internal/analysis/hazard wants a finished graph. Regions are of
// roots; the caller says where an access lies.
type Levels struct {
	g    *ir.Graph
	f    *dataflow.Flow // for its hulls
	mems []levelsOf

	loose, added int // parts that accesses were compared with so far, and accesses
}

// What params move is compared one by one as long as that is no more than this.
const (
	looseFree      = 1 << 16
	loosePerAccess = 32 // and for each access
)

// levelsOf is a root: runs know their levels exactly; what params move, or is
// strided, lies over them.
type levelsOf struct {
	runs  interval.Partition[cell]
	over  interval.Tree[int32]
	parts []levelPart
	gone  int
}

// cell holds the greatest level of a write and of any access.
type cell struct{ write, any int32 }

type levelPart struct {
	region ir.Region
	level  int32
	write  bool
	gone   bool
}

// NewLevels returns levels without an access.
func NewLevels(f *dataflow.Flow) *Levels {
	return &Levels{g: f.Graph, f: f, mems: make([]levelsOf, len(f.Graph.Memories))}
}

// After returns the greatest level of what an access conflicts with, 0 if
// nothing.
func (l *Levels) After(r ir.Region, write bool) int32 {
	if dataflow.Empty(&r) || l.f.Fixed(r.Mem) {
		return 0
	}
	m := &l.mems[r.Mem]
	lo, end := l.f.Hull(&r)
	exact := r.Off.IsConst() && r.Run.IsConst() && len(r.Dims) == 0
	top := int32(0)
	m.runs.Each(lo, end, func(a, z int64, c cell) bool {
		x := c.write
		if write {
			x = c.any
		}
		if x > top && (exact || !hazard.DisjointIn(l.f.Bounds(), r, ir.ViewOf(r.Mem, a, z-a).Contiguous())) {
			top = x
		}
		return true
	})
	if m.over.Len() > m.gone {
		m.over.Overlapping(lo, end, func(k int32) bool {
			l.loose++
			if p := &m.parts[k]; !p.gone && p.level > top && (write || p.write) && !hazard.DisjointIn(l.f.Bounds(), r, p.region) {
				top = p.level
			}
			return true
		})
	}
	return top
}

// Add enters an access of the given level, which is greater than what After
// returned for it.
func (l *Levels) Add(r ir.Region, write bool, level int32) {
	if dataflow.Empty(&r) || l.f.Fixed(r.Mem) {
		return
	}
	m := &l.mems[r.Mem]
	l.added++
	lo, end := l.f.Hull(&r)
	same := false
	if m.over.Len() > m.gone {
		m.over.Overlapping(lo, end, func(k int32) bool {
			p := &m.parts[k]
			l.loose++
			switch {
			case p.gone:
			case write && dataflow.Covers(l.f.Bounds(), r, p.region):
				p.gone = true
				m.gone++
			case !write && !p.write && p.region.Equal(r):
				p.level = max(p.level, level)
				same = true
				return false
			}
			return true
		})
		if m.gone > 32 && 2*m.gone > m.over.Len() {
			m.compact(l.f)
		}
	}
	if r.Off.IsConst() && r.Run.IsConst() && len(r.Dims) == 0 {
		if write {
			m.runs.Set(lo, end, cell{level, level})
		} else {
			m.runs.Update(lo, end, func(c cell) cell { return cell{c.write, max(c.any, level)} })
		}
		return
	}
	if same {
		return
	}
	if l.loose > looseFree+loosePerAccess*l.added {
		// Too many to be compared one by one: it counts as an access to every byte of
		// its hull that leaves there what was there.
		m.runs.Update(lo, end, func(c cell) cell {
			if write {
				c.write = max(c.write, level)
			}
			return cell{c.write, max(c.any, level)}
		})
		return
	}
	m.parts = append(m.parts, levelPart{r, level, write, false})
	m.over.Insert(lo, end, int32(len(m.parts)-1))
}

// compact rebuilds the tree without what is gone.
func (m *levelsOf) compact(f *dataflow.Flow) {
	kept := m.parts[:0]
	for _, p := range m.parts {
		if !p.gone {
			kept = append(kept, p)
		}
	}
	m.parts, m.gone = kept, 0
	m.over.Reset()
	for k := range m.parts {
		lo, end := f.Hull(&m.parts[k].region)
		m.over.Insert(lo, end, int32(k))
	}
}
