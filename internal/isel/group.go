package isel

import (
	"math"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

// Operand is an argument (by index in Decl.Args) of a member of a group.
type Operand struct{ Member, Arg int }

// Group is a set of dispatches that might be one.
type Group struct {
	Graph *ir.Graph
	// Members in the order of the list.
	Members []*decl.Instance
	// Source says which read arguments hold what another member wrote, whole:
	// the read region is the written one. All others are leaves.
	Source map[Operand]Operand
	// Results are the written arguments whose bytes somebody outside the group
	// reads, in the order of the list; no others need to be written.
	Results []Operand
	// Spare are written arguments that nobody outside reads but whose bytes are
	// free to be written where the fused dispatch will stand.
	Spare []Operand
	// Regions, if not nil, are the bytes of each device argument of each member;
	// those of arguments that are not touched do not matter.
	Regions [][]ir.Region
}

// slot is a place in memory that views of a group share: two views lie in one
// slot only if their bytes meet, so that what is known about a group holds for
// any other one whose views lie to each other in the same way.
type slot struct {
	root   ir.MemID
	off    ir.Affine // bytes, in root
	end    ir.Affine // of what was seen of it
	filled bool      // a weight that repeats one word
	fill   [4]byte
}

// constant returns the f32 that every element of the slot is.
func (s slot) constant(t ir.DType) (float32, bool) {
	if !s.filled || t != ir.F32 || !s.off.IsConst() || s.off.Const%4 != 0 {
		return 0, false
	}
	return math.Float32frombits(uint32(s.fill[0]) | uint32(s.fill[1])<<8 | uint32(s.fill[2])<<16 | uint32(s.fill[3])<<24), true
}

// place is where a view begins: bytes after the begin of a slot.
type place struct {
	slot int // −1: inline
	off  ir.Affine
}

// layout gives every device argument of the members its place.
type layout struct {
	g      *ir.Graph
	slots  []slot
	places [][]place // by member, by argument
}

func newLayout(gr *Group) (*layout, error) {
	l := &layout{g: gr.Graph, places: make([][]place, len(gr.Members))}
	for i, in := range gr.Members {
		l.places[i] = make([]place, len(in.Decl.Args))
		for j := range in.Decl.Args {
			a := &in.Decl.Args[j]
			l.places[i][j].slot = -1
			if a.Kind != ir.DeviceArg || a.Mode == decl.Unused || in.Views[j].Mem == ir.NoMem {
				continue
			}
			r, err := gr.region(i, j)
			if err != nil {
				return nil, err
			}
			l.places[i][j] = l.find(in.Views[j], r)
		}
	}
	return l, nil
}

func (gr *Group) region(i, j int) (ir.Region, error) {
	if gr.Regions != nil {
		return gr.Regions[i][j], nil
	}
	return gr.Members[i].Region(j)
}

// find returns the place of a view whose kernel touches region r, in a new slot
// if it meets none.
func (l *layout) find(v ir.View, r ir.Region) place {
	root, off := l.g.Root(v.Mem)
	lo, end := r.Hull()
	lo, end = lo.AddConst(off), end.AddConst(off)
	for k := range l.slots {
		s := &l.slots[k]
		if s.root != root {
			continue
		}
		if s.off.Equal(lo) || !atMost(l.g, s.end.Sub(lo), 0) && !atMost(l.g, end.Sub(s.off), 0) {
			if atMost(l.g, s.end.Sub(end), 0) {
				s.end = end
			}
			return place{k, v.Off.AddConst(off).Sub(s.off)}
		}
	}
	s := slot{root: root, off: v.Off.AddConst(off), end: end}
	if m := &l.g.Memories[root]; m.Kind == ir.Weight && m.Init.Kind == ir.InitFill {
		s.filled, s.fill = true, m.Init.Pattern
	}
	l.slots = append(l.slots, s)
	return place{len(l.slots) - 1, ir.Const(0)}
}

// locate finds the place of a view in the slots that exist.
func (l *layout) locate(v ir.View) (place, bool) {
	root, off := l.g.Root(v.Mem)
	at := v.Off.AddConst(off)
	for k := range l.slots {
		s := &l.slots[k]
		if s.root == root && (s.off.Equal(at) || !atMost(l.g, s.end.Sub(at), 0) && atMost(l.g, s.off.Sub(at), 0)) {
			return place{k, at.Sub(s.off)}, true
		}
	}
	return place{}, false
}

func atMost(g *ir.Graph, a ir.Affine, limit int64) bool {
	_, hi, ok := g.Range(a)
	return ok && hi <= limit
}
