package passes

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
)

// Report is what one pass did to one graph. Its methods work on a nil report.
type Report struct {
	Pass    string        `json:"pass"`
	Before  ir.Stats      `json:"before"`
	After   ir.Stats      `json:"after"`
	Time    time.Duration `json:"time_ns"`
	Changed int           `json:"changed"` // commands or marks that the pass changed
	Remarks []Remark      `json:"remarks"`
	graph   *ir.Graph
	given   known // of the graph before the pass
	kept    known // of the graph after it
	check   func(*ir.Graph, context.Context) error
}

// known is what passes found out about a graph, for those after them as long as it
// stays true. Each of both may be nil.
type known struct {
	flow  *dataflow.Flow
	table *hazard.Table
}

// dataflow returns the flow of g, which a pass before may have found. A pass that
// leaves it true, or makes it follow what it does, says so by calling keep.
func (r *Report) dataflow(ctx context.Context, g *ir.Graph) *dataflow.Flow {
	if r != nil && r.given.flow != nil {
		return r.given.flow
	}
	return dataflow.Build(ctx, g)
}

// hazards is dataflow for the table of conflicts; see keepTable.
func (r *Report) hazards(ctx context.Context, g *ir.Graph) *hazard.Table {
	if r != nil && r.given.table != nil {
		r.given.table.Under(ctx)
		return r.given.table
	}
	return hazard.NewTable(ctx, g)
}

// keep hands a flow on to the next pass: it is that of the graph as it is now.
func (r *Report) keep(f *dataflow.Flow) {
	if r != nil {
		r.kept.flow = f
	}
}

// keepTable is keep for the table of conflicts.
func (r *Report) keepTable(t *hazard.Table) {
	if r != nil {
		r.kept.table = t
	}
}

// reordered keeps what is known, for a pass that put the commands into another
// order: command i is what was order[i].
func (r *Report) reordered(t *hazard.Table, order []int32) {
	if r == nil {
		return
	}
	t.Reorder(order)
	r.keepTable(t)
	// What commands that count as unknown read and write holds for their order only.
	if f := r.given.flow; f != nil && !f.Crowded() {
		f.Reorder(order)
		r.keep(f)
	}
}

// stayed keeps what is known, for a pass that left the commands as they were, in
// their order.
func (r *Report) stayed(t *hazard.Table) {
	if r != nil {
		r.kept = r.given
		r.keepTable(t)
	}
}

// unchanged says that the pass changed no command and no memory: some may have
// moved or gone. What has been checked of them stays true.
func (r *Report) unchanged() { r.changed((*ir.Graph).CheckList) }

// described says that the pass changes the effects of commands and nothing else. They
// are checked as it goes on; r is not nil.
func (r *Report) described(g *ir.Graph) *ir.EffectsCheck {
	c := ir.NewEffectsCheck(g)
	r.changed(func(_ *ir.Graph, ctx context.Context) error { return c.Finish(ctx) })
	return c
}

// changed says which check finds all that the pass can have done wrong; without
// it, everything is checked.
func (r *Report) changed(check func(*ir.Graph, context.Context) error) {
	if r != nil {
		r.check = check
	}
}

// Remark says what was done, or what was not and why.
type Remark struct {
	Node ir.ID  `json:"node"`
	At   string `json:"at"` // "#12 rms_norm"
	Done bool   `json:"done"`
	Text string `json:"text"`
}

func (m Remark) String() string {
	verb := "not done"
	if m.Done {
		verb = "done"
	}
	return fmt.Sprintf("%s: %s: %s", m.At, verb, m.Text)
}

// Did records a change to d.
func (r *Report) Did(n ir.Command, format string, args ...any) { r.remark(n, true, format, args...) }

// Not records why something was not done to n.
func (r *Report) Not(n ir.Command, format string, args ...any) { r.remark(n, false, format, args...) }

// About records something that was done to what is no command: a memory, say.
func (r *Report) About(what string, format string, args ...any) {
	if r != nil {
		r.Remarks = append(r.Remarks, Remark{At: what, Done: true, Text: fmt.Sprintf(format, args...)})
	}
}

// NotAbout is About for what was not done.
func (r *Report) NotAbout(what string, format string, args ...any) {
	if r != nil {
		r.Remarks = append(r.Remarks, Remark{At: what, Text: fmt.Sprintf(format, args...)})
	}
}

func (r *Report) remark(n ir.Command, done bool, format string, args ...any) {
	if r != nil {
		r.say(n, done, fmt.Sprintf(format, args...))
	}
}

// say is Did or Not of a text.
func (r *Report) say(n ir.Command, done bool, text string) {
	if r == nil {
		return
	}
	if done {
		r.Changed++
	}
	r.Remarks = append(r.Remarks, Remark{Node: n.Num(), At: r.graph.Describe(n), Done: done, Text: text})
}

// expect makes room for so many remarks.
func (r *Report) expect(n int) {
	if r != nil {
		r.Remarks = slices.Grow(r.Remarks, n)
	}
}
