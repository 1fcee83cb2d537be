package passes

import (
	"fmt"
	"slices"
	"time"

	"github.com/mlxc/mlxc/internal/dataflow"
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
	given   *dataflow.Flow // of the graph before the pass; nil: not known
	flow    *dataflow.Flow // of the graph after it
	moved   bool           // the pass has moved or dropped commands and set marks, and changed nothing else
}

// dataflow returns the flow of g, which a pass before may have found. A pass that
// leaves it true says so by calling keep.
func (r *Report) dataflow(g *ir.Graph) *dataflow.Flow {
	if r != nil && r.given != nil {
		return r.given
	}
	return dataflow.Build(g)
}

// keep hands a flow on to the next pass: it is that of the graph as it is now.
func (r *Report) keep(f *dataflow.Flow) {
	if r != nil {
		r.flow = f
	}
}

// unchanged says that the pass changed no command and no memory: some may have
// moved or gone.
func (r *Report) unchanged() {
	if r != nil {
		r.moved = true
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
func (r *Report) Did(n ir.Node, format string, args ...any) { r.remark(n, true, format, args...) }

// Not records why something was not done to n.
func (r *Report) Not(n ir.Node, format string, args ...any) { r.remark(n, false, format, args...) }

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

func (r *Report) remark(n ir.Node, done bool, format string, args ...any) {
	if r != nil {
		r.say(n, done, fmt.Sprintf(format, args...))
	}
}

// say is Did or Not of a text.
func (r *Report) say(n ir.Node, done bool, text string) {
	if r == nil {
		return
	}
	if done {
		r.Changed++
	}
	id, _ := ir.NodeID(n)
	r.Remarks = append(r.Remarks, Remark{Node: id, At: r.graph.Describe(n), Done: done, Text: text})
}

// expect makes room for so many remarks.
func (r *Report) expect(n int) {
	if r != nil {
		r.Remarks = slices.Grow(r.Remarks, n)
	}
}
