package meaning

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// Report is what [Of] found out about one graph.
type Report struct {
	Graph string `json:"-"`
	// Faults are proved. A graph with a fault has no meaning.
	Faults []Fault `json:"faults,omitempty"`
	// Unsure lists, in words, what could not be decided. Assumed lists what must be
	// true of commands of unknown effects.
	Unsure  []string `json:"cannot_tell,omitempty"`
	Assumed []string `json:"assumptions,omitempty"`
	// Undescribed says why the declaration of a kernel does not describe the first
	// dispatch for which that is so; nil if there is none. Such a dispatch counts as a
	// command of unknown effects.
	Undescribed error `json:"-"`

	edges bool // edges order the graph
}

// Fault is a race or an undefined read.
type Fault struct {
	Kind     string   `json:"kind"` // "race" or "undefined"
	Commands []ir.ID  `json:"commands"`
	Mem      ir.MemID `json:"-"`
	Bytes    string   `json:"bytes"` // %name[lo:end] of Mem
	// For names values of the params for which the fault occurs; it is empty if it
	// always does.
	For  string `json:"for,omitempty"`
	Text string `json:"text"`
}

// The hints say what to do about a fault of each kind.
const (
	raceHint      = "put a barrier between them; or, if the list is the order in which they ran, make the graph serial (--recorded-order)"
	edgeHint      = "add an edge, or a path of edges, from the first to the second; or, if the list is the order in which they ran, make the graph serial (--recorded-order)"
	undefinedHint = "scratch and outputs begin undefined: write the bytes first, or make the memory a state"
)

// Of judges a graph that has passed [ir.Graph.Check]. The error is that of an ended
// context.
func Of(ctx context.Context, g *ir.Graph) (r *Report, err error) {
	defer interrupt.Catch(&err)
	r = &Report{Graph: g.Name, edges: g.Ordering == ir.ByEdges}
	declared := msl.NewCache(g)
	var effects ir.Effects
	t := hazard.NewTableOf(ctx, g, func(d *ir.Dispatch) *ir.Effects {
		if !msl.Declared(&g.Kernels[d.Kernel]) {
			return d.Effects
		}
		e, err := declared.DescribeTo(&effects, d)
		if err != nil {
			if r.Undescribed == nil {
				r.Undescribed = err
			}
			return nil
		}
		return e
	})
	r.fill(g, t)
	return r, nil
}

// OfEffects is Of, given what dispatches touch: nil is unknown.
func OfEffects(ctx context.Context, g *ir.Graph, effects func(*ir.Dispatch) *ir.Effects) (r *Report, err error) {
	defer interrupt.Catch(&err)
	r = &Report{Graph: g.Name, edges: g.Ordering == ir.ByEdges}
	r.fill(g, hazard.NewTableOf(ctx, g, effects))
	return r, nil
}

func (r *Report) fill(g *ir.Graph, t *hazard.Table) {
	j := t.Judge()
	name := func(i int32) string { return g.Describe(t.Node(int(i))) }
	id := func(i int32) ir.ID { return t.Node(int(i)).Num() }
	bytes := func(m ir.MemID, lo, end int64) string { return g.FormatView(ir.ViewOf(m, lo, end-lo)) }
	for i := range j.Races {
		x := &j.Races[i]
		f := Fault{Kind: "race", Commands: []ir.ID{id(x.Earlier), id(x.Later)}, Mem: x.Mem, Bytes: bytes(x.Mem, x.Lo, x.End), For: values(g, x.Params)}
		f.Text = fmt.Sprintf("%s and %s both touch %s and nothing orders them (%s%s)", name(x.Earlier), name(x.Later), f.Bytes, verbs(x.Kind), with(f.For))
		r.Faults = append(r.Faults, f)
	}
	for i := range j.Undefined {
		x := &j.Undefined[i]
		f := Fault{Kind: "undefined", Commands: []ir.ID{id(x.Command)}, Mem: x.Mem, Bytes: bytes(x.Mem, x.Lo, x.End), For: values(g, x.Params)}
		f.Text = fmt.Sprintf("%s reads %s, which nothing wrote in this replay, and an output or state depends on it%s", name(x.Command), f.Bytes, with(f.For))
		r.Faults = append(r.Faults, f)
	}
	for i := range j.Unsure {
		x := &j.Unsure[i]
		r.Unsure = append(r.Unsure, fmt.Sprintf("%s and %s may both touch bytes of %s, and nothing orders them: their ranges depend on params and could not be told apart", name(x.Earlier), name(x.Later), bytes(x.Mem, x.Lo, x.End)))
	}
	if j.MoreUnsure > 0 {
		r.Unsure = append(r.Unsure, fmt.Sprintf("%d more pairs that nothing orders may touch the same bytes", j.MoreUnsure))
	}
	for _, p := range j.Unknown {
		r.Assumed = append(r.Assumed, fmt.Sprintf("the recording is race-free at %s,%s", id(p.Earlier), id(p.Later)))
	}
	if j.MoreUnknown > 0 {
		r.Assumed = append(r.Assumed, fmt.Sprintf("the recording is race-free at %d other places", j.MoreUnknown))
	}
}

// verbs says in words what the earlier and the later command do to the bytes.
func verbs(k hazard.Kind) string {
	switch k {
	case hazard.RAW:
		return "the first writes, the second reads"
	case hazard.WAR:
		return "the first reads, the second writes"
	}
	return "both write"
}

func with(values string) string {
	if values == "" {
		return ""
	}
	return ", with " + values
}

// values formats an assignment of the params.
func values(g *ir.Graph, params []uint32) string {
	var parts []string
	for i := range params {
		if p := &g.Params[i]; p.Type == ir.F32 {
			parts = append(parts, fmt.Sprintf("$%s = %g", ir.QuoteName(p.Name), math.Float32frombits(params[i])))
		} else {
			parts = append(parts, fmt.Sprintf("$%s = %d", ir.QuoteName(p.Name), params[i]))
		}
	}
	return strings.Join(parts, ", ")
}

// Error is the error for a graph that has no meaning.
type Error struct{ Report *Report }

// Err returns an [*Error] if there is a fault.
func (r *Report) Err() error {
	if len(r.Faults) == 0 {
		return nil
	}
	return &Error{r}
}

// Strict is Err, but also returns an error if something is unsure or assumed.
func (r *Report) Strict() error {
	if err := r.Err(); err != nil || len(r.Assumed)+len(r.Unsure) == 0 {
		return err
	}
	return fmt.Errorf("graph %s: cannot tell whether it has one meaning\n  %s", ir.QuoteName(r.Graph), strings.Join(r.Doubts(), "\n  "))
}

// Doubts lists what is unsure and what is assumed, as sentences.
func (r *Report) Doubts() []string {
	out := append([]string(nil), r.Unsure...)
	for _, a := range r.Assumed {
		out = append(out, "only given that "+a)
	}
	return out
}

func (e *Error) Error() string {
	return fmt.Sprintf("graph %s has no one meaning\n  %s", ir.QuoteName(e.Report.Graph), strings.Join(e.Report.Lines(), "\n  "))
}

// Lines describes the faults. After the first fault of each kind it says what to do.
func (r *Report) Lines() (out []string) {
	hinted := ""
	for _, f := range r.Faults {
		hint := raceHint
		if r.edges {
			hint = edgeHint
		}
		if f.Kind == "undefined" {
			hint = undefinedHint
		}
		if out = append(out, f.Text); hint != hinted {
			out[len(out)-1] += ": " + hint
			hinted = hint
		}
	}
	return out
}
