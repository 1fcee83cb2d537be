package passes

import (
	"fmt"
	"time"

	"github.com/mlxc/mlxc/ir"
)

// Report is what one pass did to one graph.
type Report struct {
	Pass    string        `json:"pass"`
	Before  ir.Stats      `json:"before"`
	After   ir.Stats      `json:"after"`
	Time    time.Duration `json:"time_ns"`
	Changed int           `json:"changed"` // commands or marks that the pass changed
	Remarks []Remark      `json:"remarks"`
}

// About adds a remark about a change of something other than a command, such as a memory.
func (r *Report) About(what, format string, args ...any) {
	r.Remarks = append(r.Remarks, Remark{At: what, Done: true, Text: fmt.Sprintf(format, args...)})
}

// NotAbout adds a remark about why something other than a command was not changed.
func (r *Report) NotAbout(what, format string, args ...any) {
	r.Remarks = append(r.Remarks, Remark{At: what, Text: fmt.Sprintf(format, args...)})
}

// Remark says what was done, or what was not done and why.
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
