package isel

import (
	"math"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Operand is an argument (by index in Decl.Args) of a member of a group.
type Operand struct{ Member, Arg int }

// Group is a set of dispatches that one dispatch may be able to replace.
type Group struct {
	Graph *ir.Graph
	// Members in the order of the list.
	Members []*decl.Instance
	// Source maps each read argument that holds exactly what another member wrote to that written argument. Reads that
	// are not in it are leaves.
	Source map[Operand]Operand
	// Results are the written arguments whose bytes are read outside the group, in the order of the list. Only these
	// must be written.
	Results []Operand
	// Spare are written arguments that are not read outside the group, but whose bytes may be overwritten at
	// the fused dispatch's place.
	Spare []Operand
	// Unrounded, if not nil, says which members' terms lack roundings of intermediates that the recording has
	// (rewrite round). Within a term, no condition or integer may depend on the results of such a member.
	Unrounded []bool
	// Spans, if not nil, are those of each argument of each member (see SpanOf).
	Spans [][]Span
}

// Span says where a device argument lies in its root memory: its view begins at At and, whatever the
// values of the params, lies within [Lo, End).
type Span struct {
	Root    ir.MemID // NoMem: not a device argument, or bound inline
	At      ir.Affine
	Lo, End int64
}

// SpanOf returns the span of argument j of an instance.
func SpanOf(in *decl.Instance, j int) (Span, error) {
	a := &in.Decl.Args[j]
	if a.Kind != ir.DeviceArg || a.Mode == decl.Unused || in.Views[j].Mem == ir.NoMem {
		return Span{Root: ir.NoMem}, nil
	}
	r, err := in.Region(j)
	if err != nil {
		return Span{}, err
	}
	root, off := in.Graph.Root(in.Views[j].Mem)
	s := Span{Root: root, At: in.Views[j].Off.AddConst(off)}
	lo, end := r.Hull()
	var ok1, ok2 bool
	s.Lo, _, ok1 = in.Graph.Range(lo)
	_, s.End, ok2 = in.Graph.Range(end)
	s.Lo, s.End = s.Lo+off, s.End+off
	if !ok1 || !ok2 {
		s.Lo, s.End = 0, in.Graph.Memories[root].Size
	}
	return s, nil
}

// slot is a stretch of memory that several views of a group share. Two views are in one slot only if their bytes may
// overlap, so that conclusions about a group hold for every group whose views have the same relative positions.
type slot struct {
	root   ir.MemID
	at     ir.Affine // bytes, in root
	lo     int64     // its views lie within bytes [lo, end) of root
	end    int64
	filled bool // a weight that is filled with one repeated word
	fill   [4]byte
}

// constant returns the number that every element of the slot has, if there is one.
func (s slot) constant(t ir.DType) (float32, bool) {
	if !s.filled || !s.at.IsConst() || s.at.Const%t.Size() != 0 {
		return 0, false
	}
	var v float32
	switch alike := s.fill[0] == s.fill[2] && s.fill[1] == s.fill[3]; {
	case t == ir.F16 && alike:
		v = float32(term.F16Value(uint16(s.fill[0]) | uint16(s.fill[1])<<8))
		return v, v == v // not for NaN, whose payload a number does not keep
	case t == ir.BF16 && alike:
		v = math.Float32frombits(uint32(s.fill[0])<<16 | uint32(s.fill[1])<<24)
		return v, v == v
	case t != ir.F32:
		return 0, false
	}
	return math.Float32frombits(uint32(s.fill[0]) | uint32(s.fill[1])<<8 | uint32(s.fill[2])<<16 | uint32(s.fill[3])<<24), true
}

// place is the begin of a view, in bytes after the begin of a slot.
type place struct {
	slot int // −1: inline
	off  ir.Affine
}

// layout holds the place of every device argument of the members.
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
			var s Span
			if gr.Spans != nil {
				s = gr.Spans[i][j]
			} else {
				var err error
				if s, err = SpanOf(in, j); err != nil {
					return nil, err
				}
			}
			l.places[i][j] = l.find(s)
		}
	}
	return l, nil
}

// find returns the place of a span, and makes a new slot if it overlaps none.
func (l *layout) find(x Span) place {
	if x.Root == ir.NoMem {
		return place{slot: -1}
	}
	for k := range l.slots {
		s := &l.slots[k]
		if s.root == x.Root && (s.lo < x.End && x.Lo < s.end || s.at.Equal(x.At)) {
			s.lo, s.end = min(s.lo, x.Lo), max(s.end, x.End)
			return place{k, x.At.Sub(s.at)}
		}
	}
	s := slot{root: x.Root, at: x.At, lo: x.Lo, end: x.End}
	if m := &l.g.Memories[x.Root]; m.Kind == ir.Weight && m.Init.Kind == ir.InitFill {
		s.filled, s.fill = true, m.Init.Pattern
	}
	l.slots = append(l.slots, s)
	return place{len(l.slots) - 1, ir.Const(0)}
}

// locate returns the place of a view in an existing slot, or false.
func (l *layout) locate(v ir.View) (place, bool) {
	root, off := l.g.Root(v.Mem)
	at := v.Off.AddConst(off)
	for k := range l.slots {
		if s := &l.slots[k]; s.root == root && s.at.Equal(at) {
			return place{k, ir.Const(0)}, true
		}
	}
	lo, hi, ok := l.g.Range(at)
	for k := range l.slots {
		if s := &l.slots[k]; s.root == root && ok && s.lo <= lo && hi < s.end {
			return place{k, at.Sub(s.at)}, true
		}
	}
	return place{}, false
}

func atMost(g *ir.Graph, a ir.Affine, limit int64) bool {
	_, hi, ok := g.Range(a)
	return ok && hi <= limit
}
