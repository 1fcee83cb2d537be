package prove

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// Verdict is the answer of a proof.
type Verdict uint8

// The verdicts, from best to worst.
const (
	Proved Verdict = iota
	CannotTell
	Refused
)

func (v Verdict) String() string { return [...]string{"proved", "cannot tell", "refused"}[v] }

// MarshalText implements encoding.TextMarshaler.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Point is one of the points of the proof; docs/proof.md explains them.
type Point uint8

// The points of the proof.
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

// Finding is one reason why a proof failed, or could not tell.
type Finding struct {
	Verdict Verdict `json:"verdict"` // Refused or CannotTell
	Point   Point   `json:"point"`
	Text    string  `json:"text"`
	After   []ir.ID `json:"after,omitempty"`  // commands of A
	Before  []ir.ID `json:"before,omitempty"` // commands of B
}

func (f Finding) String() string { return fmt.Sprintf("%s (%s): %s", f.Verdict, f.Point, f.Text) }

// Result is the answer of a proof, with what it looked at.
type Result struct {
	Verdict     Verdict   `json:"result"`
	Commands    int       `json:"commands"`           // of A
	Dropped     int       `json:"dropped"`            // commands of B that no command of A implements
	Dead        int       `json:"dead"`               // commands of A whose results reach nobody
	Fused       int       `json:"fused"`              // commands of A that are proved by terms
	Reads       int       `json:"reads"`              // regions whose values were compared
	Barriers    int       `json:"barriers"`           // barriers that end an epoch of A
	Edges       int       `json:"edges,omitempty"`    // edges of A, if these order it
	Rewrites    []Used    `json:"rewrites,omitempty"` // rewrites used that may change bits
	Assumptions []string  `json:"assumptions,omitempty"`
	Findings    []Finding `json:"findings,omitempty"`
	// Err is the cause with which the context ended the proof; nil if the proof came to
	// an end or its budget ran out.
	Err error `json:"-"`
	// ByTerms are the commands that Fused counts. It is empty if values were proved with the graphs
	// exchanged, where terms were compared for commands of B.
	ByTerms []ir.ID `json:"-"`
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

// maxFindings bounds how many findings, and how many assumptions, one proof lists.
const maxFindings = 10

func (r *Result) add(v Verdict, p Point, before, after []ir.ID, format string, args ...any) {
	r.Verdict = max(r.Verdict, v)
	if len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, Finding{v, p, fmt.Sprintf(format, args...), after, before})
	}
}
