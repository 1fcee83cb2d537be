package passes

import (
	"context"
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
)

// State is what a pass works on: the graph, what passes before it have found out
// about the graph, and the report that it fills.
//
// # What a pass owes
//
// A pass rewrites Graph in place. [Run] checks the form of what it leaves behind, and
// the proof (package prove) whether it computes the same. What neither can make up for:
//
//   - Provenance. A dispatch or copy that replaces others lists in From the recorded
//     commands that it stands for: their From, or their own ID where that is empty.
//     Its ID is that of one of them. A command that only moves keeps both. The proof
//     looks there first for what a command implements, and may find nothing without it;
//     people see by it what became of their recording.
//   - Effects. A dispatch that is new, or whose bindings, grid or constants change, gets
//     the effects that its kernel declares then (msl.Describe), or those that its recorder
//     gave, moved with its views. A dispatch without effects may touch anything: nothing
//     crosses it any more.
//   - Order. The list with its barriers and commits, or its edges, orders every
//     conflict of the commands that the pass leaves behind, within a replay and from its
//     end to the beginning of the next. A pass that makes new conflicts places what
//     orders them. A graph whose Ordering is serial or by edges comes as one ordered by
//     barriers, unless the pass says that it keeps such an order ([Pass]).
//   - Remarks. [State.Did] for each command that was changed, [State.Not] for what was
//     looked for and left, with the reason.
//   - Time. Work in proportion to the graph, which ends soon after ctx is done.
type State struct {
	Graph *ir.Graph

	report *Report // nil: nobody reads it
	given  known   // of the graph before the pass
	kept   known   // of the graph after it
	// changed says what the pass changes at most, so that only this is checked after it.
	changed ir.Changes
}

// known is what passes found out about a graph, for those after them as long as it
// stays true. Either may be nil.
type known struct {
	flow  *dataflow.Flow
	table *hazard.Table
}

// dataflow returns the flow of the graph, which a pass before may have found. A pass
// that leaves it true, or makes it follow what it does, says so by calling keep.
func (s *State) dataflow(ctx context.Context) *dataflow.Flow {
	if s.given.flow != nil {
		return s.given.flow
	}
	return dataflow.Build(ctx, s.Graph)
}

// hazards returns the table of conflicts of the graph, which a pass before may have
// found; see keepTable.
func (s *State) hazards(ctx context.Context) *hazard.Table {
	if t := s.given.table; t != nil {
		t.Under(ctx)
		return t
	}
	return hazard.NewTable(ctx, s.Graph)
}

// keep hands a flow on to the next pass: it is that of the graph as it is now.
func (s *State) keep(f *dataflow.Flow) { s.kept.flow = f }

// keepTable is keep for the table of conflicts.
func (s *State) keepTable(t *hazard.Table) { s.kept.table = t }

// reordered keeps what is known, for a pass that put the commands into another
// order: command i is what was order[i].
func (s *State) reordered(t *hazard.Table, order []int32) {
	t.Reorder(order)
	s.keepTable(t)
	// In a crowded flow some commands count as unknown, or as writers of more than they
	// write, and what is assumed of them holds for their present order only.
	if f := s.given.flow; f != nil && !f.Crowded() && !f.Widened() {
		f.Reorder(order)
		s.keep(f)
	}
}

// stayed keeps what is known, for a pass that left the commands as they were, in
// their order.
func (s *State) stayed(t *hazard.Table) {
	s.kept = s.given
	s.keepTable(t)
}

// silent reports whether nobody reads remarks. A nil state has no reader either.
func (s *State) silent() bool { return s == nil || s.report == nil }

// Changed counts n more commands or marks that the pass has changed, beside those of Did.
func (s *State) Changed(n int) {
	if !s.silent() {
		s.report.Changed += n
	}
}

// Did remarks that n was changed, and counts it.
func (s *State) Did(n ir.Command, format string, args ...any) {
	if !s.silent() {
		s.say(n, true, fmt.Sprintf(format, args...))
	}
}

// Not remarks why something was not done to n.
func (s *State) Not(n ir.Command, format string, args ...any) {
	if !s.silent() {
		s.say(n, false, fmt.Sprintf(format, args...))
	}
}

// About is [Report.About].
func (s *State) About(what, format string, args ...any) {
	if !s.silent() {
		s.report.About(what, format, args...)
	}
}

// NotAbout is [Report.NotAbout].
func (s *State) NotAbout(what, format string, args ...any) {
	if !s.silent() {
		s.report.NotAbout(what, format, args...)
	}
}

// say adds a remark on n, and counts it if the thing was done.
func (s *State) say(n ir.Command, done bool, text string) {
	if s.silent() {
		return
	}
	if done {
		s.report.Changed++
	}
	s.report.Remarks = append(s.report.Remarks, Remark{Node: n.Num(), At: s.Graph.Describe(n), Done: done, Text: text})
}

// expect makes room for so many remarks.
func (s *State) expect(n int) {
	if !s.silent() {
		s.report.Remarks = slices.Grow(s.report.Remarks, n)
	}
}
