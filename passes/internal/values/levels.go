package values

import (
	"context"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/ir"
)

// Levels computes, access by access in list order, the length of the longest chain of conflicting commands that ends
// in each. It is for use while places are still being chosen, when internal/analysis/hazard, which needs a finished
// graph, cannot be used: the caller says where an access lies, as a region of a root memory.
type Levels struct {
	facts *bytestate.Facts
	state *bytestate.State // holds levels
}

// NewLevels returns levels without an access.
func NewLevels(ctx context.Context, f *dataflow.Flow) *Levels {
	return &Levels{facts: f.Facts(), state: bytestate.NewState(ctx, f.Facts(), f.Uses()+f.Defs())}
}

// After returns the max level of the accesses that an access conflicts with, 0 if there are none.
func (l *Levels) After(r ir.Region, write bool) int32 {
	a, ok := l.facts.Resolve(&r)
	if !ok {
		return 0
	}
	top := int32(0)
	l.state.Begin()
	for _, h := range l.state.Look(&a) {
		c := l.state.Cell(h)
		top = max(top, c.W)
		if write {
			top = max(top, c.R)
		}
	}
	return top
}

// Add records an access of the given level, which must be higher than what After returned for it.
func (l *Levels) Add(r ir.Region, write bool, level int32) {
	a, ok := l.facts.Resolve(&r)
	if !ok {
		return
	}
	l.state.Begin()
	if write {
		l.state.AddWrite(0, &a, level)
	} else {
		l.state.AddRead(0, &a, level)
	}
}
