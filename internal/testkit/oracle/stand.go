package oracle

import "github.com/mlxc/mlxc/ir"

// Stand says that a dispatch of after computes what several commands of before
// compute one after another, with their intermediate results kept private: the
// declared term of its kernel composes theirs. The oracle takes that as given
// and computes the fused dispatch's tokens by the commands of before.
type Stand struct {
	Name  string // of the equivalence, for reasons
	Steps []Step
}

// Step is a command of before, with its arguments elsewhere.
type Step struct {
	Of ir.ID
	// At says where the argument in each slot of the command lies. A copy has
	// its source in slot 0 and its destination in slot 1, a fill its destination
	// in slot 0.
	At map[uint8]Operand
}

// Operand is a view of after, or the private memory numbered Temp if the view
// is nil.
type Operand struct {
	View *ir.View
	Temp int
}

// Equivalence recognizes dispatches of after that stand for commands of before.
type Equivalence func(before, after *ir.Graph, d *ir.Dispatch) (Stand, bool)

// steps places the commands that a fused one stands for. It returns nil when an
// effect of one of them lies in no binding, so that nobody can say where it is
// now.
func (m *machine) steps(s Stand, before []*command, l *lowerer) []step {
	byID := map[ir.ID]*command{}
	for _, c := range before {
		byID[c.id] = c
	}
	var out []step
	for _, st := range s.Steps {
		c := byID[st.Of]
		if c == nil || c.unknown {
			return nil
		}
		move := func(areas []area) (moved []area, ok bool) {
			for _, a := range areas {
				to, found := st.At[uint8(max(a.slot, 0))]
				if a.slot < 0 || !found {
					return nil, false
				}
				base := byteAt{mem: ir.MemID(-2 - to.Temp)}
				if to.View != nil {
					base = l.place(*to.View)
				}
				b := a
				b.runs = nil
				for _, r := range a.runs {
					b.runs = append(b.runs, l.run(base.mem, r.lo-a.base.off+base.off, r.hi-a.base.off+base.off))
				}
				moved = append(moved, b)
			}
			return moved, true
		}
		reads, ok1 := move(c.reads)
		writes, ok2 := move(c.writes)
		if !ok1 || !ok2 {
			return nil
		}
		x := step{text: c.text}
		switch c.node.(type) {
		case *ir.Copy:
			x.copies = true
		case *ir.Fill:
			x.fills = true
		}
		x.reads, x.writes = m.refs(reads, !x.copies), m.targets(writes)
		out = append(out, x)
	}
	return out
}
