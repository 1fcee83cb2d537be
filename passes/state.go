package passes

import (
	"context"
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
)

// State is what a pass works on: the graph, what earlier passes have found out about it, and the
// report that the pass fills.
//
// # What a pass owes
//
// A pass rewrites Graph in place. [Run] checks the form of the result, and the proof (package
// prove) checks whether it computes the same. Neither can make up for the following:
//
//   - Provenance. A dispatch or copy that replaces others lists in From the recorded commands that it
//     stands for: their From, or their own ID if that is empty. Its ID is the ID of one of them. A command
//     that only moves keeps both. The proof looks there first for what a command implements, and may find
//     nothing without it; people see there what became of their recording.
//   - Effects. A dispatch that is new, or whose bindings, grid or constants change, gets the effects that
//     its kernel declares for them (msl.Describe), or those that its recorder gave, moved with its views. A
//     dispatch without effects may touch anything, so that no command can cross it any more.
//   - Order. The list with its barriers and commits, or its edges, must order every conflict of the
//     resulting commands, within a replay and from its end to the start of the next. A pass that makes new
//     conflicts adds what orders them. A pass gets a graph that is serial or ordered by edges as one that
//     barriers order, unless the pass says that it keeps such an order ([Pass]).
//   - Remarks. [State.Did] for each command that was changed, [State.Not] with the reason for what was
//     looked for and not done.
//   - Time. The work is in proportion to the graph, and ends soon after ctx is done.
type State struct {
	Graph *ir.Graph

	report *Report // nil if nobody reads remarks
	given  known   // of the graph before the pass
	kept   known   // of the graph after it
	// changed says what the pass may change. Only this is checked after it.
	changed ir.Changes
}

// known is what passes found out about a graph. Later passes use it as long as it stays true.
// Either field may be nil.
type known struct {
	flow  *dataflow.Flow
	table *hazard.Table
}

// dataflow returns the dataflow of the graph, which an earlier pass may have computed. A pass that
// keeps it valid, or updates it, calls keep.
func (s *State) dataflow(ctx context.Context) *dataflow.Flow {
	if s.given.flow != nil {
		return s.given.flow
	}
	return dataflow.Build(ctx, s.Graph)
}

// hazards returns the table of conflicts of the graph, which an earlier pass may have computed; see
// keepTable.
func (s *State) hazards(ctx context.Context) *hazard.Table {
	if t := s.given.table; t != nil {
		t.Under(ctx)
		return t
	}
	return hazard.NewTable(ctx, s.Graph)
}

// keep passes f on to the next pass, as the dataflow of the graph in its present form.
func (s *State) keep(f *dataflow.Flow) { s.kept.flow = f }

// keepTable is keep for the table of conflicts.
func (s *State) keepTable(t *hazard.Table) { s.kept.table = t }

// reordered keeps what is known, for a pass that only changed the order of the commands: command i
// is the former command order[i].
func (s *State) reordered(t *hazard.Table, order []int32) {
	t.Reorder(order)
	s.keepTable(t)
	// A crowded flow treats some commands as unknown, or as writing more than they do. That is
	// right for their present order only.
	if f := s.given.flow; f != nil && !f.Crowded() && !f.Widened() {
		f.Reorder(order)
		s.keep(f)
	}
}

// stayed keeps what is known, for a pass that changed neither the commands nor their order.
func (s *State) stayed(t *hazard.Table) {
	s.kept = s.given
	s.keepTable(t)
}

// silent reports whether nobody reads remarks. This is also so if s is nil.
func (s *State) silent() bool { return s == nil || s.report == nil }

// Changed counts n more commands or marks that the pass changed, in addition to those of Did.
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

// About adds a remark as [Report.About] does.
func (s *State) About(what, format string, args ...any) {
	if !s.silent() {
		s.report.About(what, format, args...)
	}
}

// NotAbout adds a remark as [Report.NotAbout] does.
func (s *State) NotAbout(what, format string, args ...any) {
	if !s.silent() {
		s.report.NotAbout(what, format, args...)
	}
}

// say adds a remark about n, and counts it if done is set.
func (s *State) say(n ir.Command, done bool, text string) {
	if s.silent() {
		return
	}
	if done {
		s.report.Changed++
	}
	s.report.Remarks = append(s.report.Remarks, Remark{Node: n.Num(), At: s.Graph.Describe(n), Done: done, Text: text})
}

// expect makes room for n remarks.
func (s *State) expect(n int) {
	if !s.silent() {
		s.report.Remarks = slices.Grow(s.report.Remarks, n)
	}
}
