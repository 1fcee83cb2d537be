package passes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// Values are the settings of one pass in one pipeline.
type Values map[string]string

// Step is one pass with its settings.
type Step struct {
	Pass   Pass
	Values Values
}

func (s Step) String() string {
	if len(s.Values) == 0 {
		return s.Pass.Name
	}
	var parts []string
	for _, o := range s.Pass.Options {
		if v, ok := s.Values[o.Name]; ok {
			parts = append(parts, o.Name+"="+v)
		}
	}
	return s.Pass.Name + "{" + strings.Join(parts, ",") + "}"
}

// Pipeline is a list of passes in the order in which they run.
type Pipeline []Step

// DefaultPipeline returns the passes that run when nobody asks for others.
func DefaultPipeline() Pipeline {
	var out Pipeline
	for _, p := range table {
		if p.Default {
			out = append(out, Step{Pass: p})
		}
	}
	return out
}

// ParsePipeline reads `annotate,reorder{lookahead=64},barriers`. The empty
// string is the default pipeline, "none" the empty one.
func ParsePipeline(s string) (Pipeline, error) {
	switch strings.TrimSpace(s) {
	case "":
		return DefaultPipeline(), nil
	case "none":
		return nil, nil
	}
	var out Pipeline
	for rest := s; ; {
		end, depth := len(rest), 0
		for i, c := range rest {
			if c == '{' {
				depth++
			}
			if c == '}' {
				depth--
			}
			if c == ',' && depth == 0 {
				end = i
				break
			}
		}
		step, err := parseStep(strings.TrimSpace(rest[:end]))
		if err != nil {
			return nil, err
		}
		out = append(out, step)
		if end == len(rest) {
			break
		}
		rest = rest[end+1:]
	}
	return out, out.check()
}

func parseStep(s string) (Step, error) {
	name, settings, braces := strings.Cut(s, "{")
	p, ok := lookup(strings.TrimSpace(name))
	if !ok {
		var names []string
		for _, q := range table {
			names = append(names, q.Name)
		}
		return Step{}, fmt.Errorf("there is no pass %q (there are %s)", name, strings.Join(names, ", "))
	}
	step := Step{Pass: p}
	if !braces {
		return step, nil
	}
	settings, ok = strings.CutSuffix(settings, "}")
	if !ok {
		return step, fmt.Errorf("pass %s: { without }", p.Name)
	}
	step.Values = Values{}
	for _, kv := range strings.Split(settings, ",") {
		k, v, ok := strings.Cut(strings.TrimSpace(kv), "=")
		if !ok {
			return step, fmt.Errorf("pass %s: want option=value, found %q", p.Name, kv)
		}
		known := false
		for _, o := range p.Options {
			known = known || o.Name == k
		}
		if !known {
			return step, fmt.Errorf("pass %s has no option %q", p.Name, k)
		}
		step.Values[k] = v
	}
	return step, nil
}

// check applies the order constraints of the table.
func (p Pipeline) check() error {
	for _, o := range order {
		seenAfter := false
		for _, s := range p {
			switch s.Pass.Name {
			case o.After:
				seenAfter = true
			case o.Before:
				if seenAfter {
					return fmt.Errorf("pass %s must run before %s: %s", o.Before, o.After, o.Reason)
				}
			}
		}
	}
	return nil
}

// Options of a run.
type Options struct {
	// Chip and Profile are what modelled times follow; a single pass that sets
	// either for itself takes neither. See [cost.Chip] and [cost.LoadProfile].
	Chip, Profile string
	// Allow names the rewrites that may change bits ([term.Rewrites]) and may be
	// used; the option allow of a single pass wins.
	Allow []string
	// Budget is what each pass may take; see [OverBudget].
	Budget Budget
	// After, if not nil, is called with the graph after each pass.
	After func(s Step, g *ir.Graph) error
}

// values returns the settings of a step, with those of the run where the pass
// has an option of the name and the step does not set it.
func (o Options) values(s Step) Values {
	out := Values{}
	own := s.Values["chip"] != "" || s.Values["profile"] != ""
	for _, p := range s.Pass.Options {
		switch {
		case own:
		case p.Name == "chip" && o.Chip != "":
			out[p.Name] = o.Chip
		case p.Name == "profile" && o.Profile != "":
			out[p.Name] = o.Profile
		case p.Name == "allow" && len(o.Allow) > 0:
			out[p.Name] = strings.Join(o.Allow, "+")
		}
		if v, ok := s.Values[p.Name]; ok {
			out[p.Name] = v
		}
	}
	return out
}

// Allowed returns the names of the rewrites that some step may use: those of the
// run and those that the text of the pipeline allows (`fuse{allow=round}`). The
// proof of what the pipeline makes has to allow them too.
func (p Pipeline) Allowed(o Options) []string {
	out := slices.Clone(o.Allow)
	for _, s := range p {
		if list := o.values(s)["allow"]; list != "" && list != "none" {
			out = append(out, strings.Split(list, "+")...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Validate says what is wrong with the settings of the pipeline: each pass is
// asked for a graph without commands.
func (p Pipeline) Validate(o Options) error {
	if err := p.check(); err != nil {
		return err
	}
	for _, s := range p {
		if err := s.Pass.run(context.Background(), &ir.Graph{Name: "none"}, o.values(s), nil); err != nil {
			return fmt.Errorf("pass %s: %w", s, err)
		}
	}
	return nil
}

// Run runs the pipeline on g, in place, and reports one entry a pass. The
// graph is checked before the first pass and after each (after one that says that it
// changed nothing but the list, or effects, these alone; all of it after the last):
// a pass that breaks it is a bug of ours, and the error names the pass. Once ctx is
// done the error is its cause. After an error g is of no use.
func Run(ctx context.Context, g *ir.Graph, p Pipeline, o Options) (out []*Report, err error) {
	defer interrupt.Catch(&err)
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := g.CheckContext(ctx); err != nil {
		return nil, err
	}
	g.Own()
	stats := g.Stats()
	var found known
	for i, s := range p {
		r := &Report{Pass: s.String(), graph: g, Before: stats, given: found, check: (*ir.Graph).CheckContext}
		start := time.Now()
		if by := g.Ordering; by == ir.Serial && !s.Pass.listed || by == ir.ByEdges && !s.Pass.edged {
			explicit(ctx, g, r)
		}
		if err := o.run(ctx, i, s, g, r); err != nil {
			var over *OverBudget
			if errors.As(err, &over) {
				return out, over
			}
			return out, fmt.Errorf("pass %s: graph %s: %w", s, ir.QuoteName(g.Name), err)
		}
		r.Time = time.Since(start)
		if i == len(p)-1 {
			r.check = (*ir.Graph).CheckContext
		}
		if err := r.check(g, ctx); err != nil {
			return out, fmt.Errorf("pass %s broke graph %s (a bug of mlxc; please report it): %w", s, ir.QuoteName(g.Name), err)
		}
		stats = g.Stats()
		r.After = stats
		found, r.given, r.kept = r.kept, known{}, known{}
		out = append(out, r)
		if o.After != nil {
			if err := o.After(s, g); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}
