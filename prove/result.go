package prove

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// Verdict is the answer.
type Verdict uint8

// The answers, the worse the greater.
const (
	Proved Verdict = iota
	CannotTell
	Refused
)

func (v Verdict) String() string { return [...]string{"proved", "cannot tell", "refused"}[v] }

// MarshalText implements encoding.TextMarshaler.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Point is one of the points of the proof (docs/proof.md).
type Point uint8

// The points.
const (
	Interface Point = iota
	Coverage
	Values
	FinalBytes
	Order
	Fusion
	Aliasing
	Stopped // the proof was ended by its context, or took more than its budget
)

func (p Point) String() string {
	return [...]string{"interface", "coverage", "values", "final bytes", "order", "fusion", "aliasing", "stopped"}[p]
}

// MarshalText implements encoding.TextMarshaler.
func (p Point) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Finding is a reason against a proof.
type Finding struct {
	Verdict Verdict `json:"verdict"` // Refused or CannotTell
	Point   Point   `json:"point"`
	Text    string  `json:"text"`
	After   []ir.ID `json:"after,omitempty"`  // commands of the graph after
	Before  []ir.ID `json:"before,omitempty"` // commands of the graph before
}

func (f Finding) String() string { return fmt.Sprintf("%s (%s): %s", f.Verdict, f.Point, f.Text) }

// Result is what a proof found.
type Result struct {
	Verdict     Verdict   `json:"result"`
	Commands    int       `json:"commands"`           // of the graph after
	Dropped     int       `json:"dropped"`            // commands before that nothing implements
	Dead        int       `json:"dead"`               // commands after whose results reach nobody
	Fused       int       `json:"fused"`              // commands after that are proved by terms
	Reads       int       `json:"reads"`              // regions whose values were compared
	Barriers    int       `json:"barriers"`           // that end an epoch of the graph after
	Edges       int       `json:"edges,omitempty"`    // that order it instead
	Rewrites    []Used    `json:"rewrites,omitempty"` // that may change bits
	Assumptions []string  `json:"assumptions,omitempty"`
	Findings    []Finding `json:"findings,omitempty"`
	// Err is the cause of the context that ended the proof before it knew; nil if its
	// budget did.
	Err error `json:"-"`
}

// OverBudget reports whether the proof ended because it took more than its budget.
func (r *Result) OverBudget() bool {
	return r.Err == nil && len(r.Findings) > 0 && r.Findings[0].Point == Stopped
}

func (r *Result) String() string {
	var b strings.Builder
	marks, kind := r.Barriers, "barriers"
	if r.Edges > 0 {
		marks, kind = r.Edges, "edges"
	}
	fmt.Fprintf(&b, "%s: %d commands, %d fused, %d dropped, %d values, %d %s", r.Verdict, r.Commands, r.Fused, r.Dropped, r.Reads, marks, kind)
	for _, u := range r.Rewrites {
		fmt.Fprintf(&b, "\n  rewrite %s, %d times: %s", u.Name, u.Count, u.Bound)
	}
	for _, f := range r.Findings {
		b.WriteString("\n  " + f.String())
	}
	return b.String()
}

// maxFindings bounds what one proof reports.
const maxFindings = 10

func (r *Result) add(v Verdict, p Point, before, after []ir.ID, format string, args ...any) {
	r.Verdict = max(r.Verdict, v)
	if len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, Finding{v, p, fmt.Sprintf(format, args...), after, before})
	}
}
