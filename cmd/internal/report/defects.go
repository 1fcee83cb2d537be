package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/mlxc/mlxc/ir"
)

// Defects are what `mlxreplay check --json` has found in a graph.
type Defects struct {
	Graph    string `json:"graph"`
	Findings []struct {
		Command  ir.ID  `json:"command"`
		Kernel   string `json:"kernel"`
		Kind     string `json:"kind"`
		Argument string `json:"argument"`
		Line     int    `json:"line"`
		Times    uint64 `json:"times"`
		Text     string `json:"text"`
	} `json:"findings"`
	Order   []string `json:"order"`   // commands that touch the same bytes, and nothing orders them
	Dropped uint64   `json:"dropped"` // how many more there were of dispatches with too many
}

// ParseDefects reads what `mlxreplay check --json` has printed.
func ParseDefects(text []byte) (*Defects, error) {
	out := &Defects{}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(out); err != nil {
		return nil, fmt.Errorf("not what mlxreplay check --json prints: %w", err)
	}
	if out.Graph == "" || out.Findings == nil && out.Order == nil {
		return nil, fmt.Errorf("not what mlxreplay check --json prints: it names no graph, or has no findings")
	}
	return out, nil
}

// Add puts defects of the report's graph, g, before everything that costs. Findings of one kernel that are of one kind, argument
// and line are one.
func (r *Report) Add(g *ir.Graph, of *Defects) error {
	if of.Graph != g.Name {
		return fmt.Errorf("these are findings of graph %s, not of %s", ir.QuoteName(of.Graph), ir.QuoteName(g.Name))
	}
	b := &builder{g: g, found: map[string]*Finding{}}
	commands := map[ir.ID]*ir.Dispatch{}
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			commands[d.ID] = d
		}
	}
	printable := func(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) }
	for _, line := range of.Order {
		if !printable(line) {
			return fmt.Errorf("%q has letters that cannot be printed", line)
		}
	}
	for _, f := range of.Findings {
		if !printable(f.Kind) || !printable(f.Argument) {
			return fmt.Errorf("%q of %q has letters that cannot be printed", f.Kind, f.Argument)
		}
		d := commands[f.Command]
		if d == nil || g.Kernels[d.Kernel].Name != f.Kernel && g.Kernels[d.Kernel].Function != f.Kernel {
			return fmt.Errorf("graph %s has no dispatch %s of kernel %q: these are findings of another graph of this name", ir.QuoteName(g.Name), f.Command, f.Kernel)
		}
		what := fmt.Sprintf("%s: %s", ir.Shorten(f.Kernel), f.Kind)
		if f.Argument != "" {
			what += " of " + f.Argument
		}
		if f.Line > 0 {
			what += fmt.Sprintf(", line %d", f.Line)
		}
		b.add(Defect, what, 0, d)
	}
	for _, line := range of.Order {
		b.add(Defect, line, 0)
	}
	if of.Dropped > 0 {
		b.add(Defect, fmt.Sprintf("%d more, of dispatches with too many", of.Dropped), 0)
	}
	var first []Finding
	for _, key := range b.order {
		first = append(first, *b.found[key])
		r.Defects += b.found[key].Count
	}
	r.Findings = append(first, r.Findings...)
	return nil
}
