package oracle

import "github.com/mlxc/mlxc/ir"

// Stand says that a dispatch of after computes what several commands of before compute
// one after another, with their intermediate results in private memory: the declared
// term of its kernel is the composition of theirs. The oracle takes that for granted,
// and computes the tokens of the fused dispatch by the commands of before.
type Stand struct {
	Name  string // of the equivalence, for messages
	Steps []Step
}

// Step is a command of before, applied to other arguments.
type Step struct {
	Of ir.ID
	// At says where the argument of each slot lies. A copy has its source in slot 0 and
	// its destination in slot 1, a fill its destination in slot 0.
	At map[uint8]Operand
}

// Operand is a view of after or, if the view is nil, the private memory numbered Temp.
type Operand struct {
	View *ir.View
	Temp int
}

// Equivalence recognizes dispatches of after that stand for commands of before.
type Equivalence func(before, after *ir.Graph, d *ir.Dispatch) (Stand, bool)

// steps returns the commands that a fused command stands for, with their arguments. It
// returns nil if an effect of one of them lies in no binding, so that it is unknown
// where it lies now.
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
