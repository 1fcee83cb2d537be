package passes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
)

// Values are the options that a pipeline sets for one pass, as text.
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
	for _, o := range s.Pass.options {
		if v, ok := s.Values[o.Name]; ok {
			parts = append(parts, o.Name+"="+v)
		}
	}
	return s.Pass.Name + "{" + strings.Join(parts, ",") + "}"
}

// Pipeline is a list of passes in the order in which they run.
type Pipeline []Step

// DefaultPipeline returns the passes that run unless others are named.
func DefaultPipeline() Pipeline { return builtin.pipeline() }

// ParsePipeline is [Table.Parse] for the passes of this package.
func ParsePipeline(s string) (Pipeline, error) { return builtin.Parse(s) }

func (t Table) pipeline() (out Pipeline) {
	for _, p := range t {
		if p.Default {
			out = append(out, Step{Pass: p})
		}
	}
	return out
}

// Parse parses `annotate,reorder{lookahead=64},barriers`. The empty string is the default pipeline,
// "none" is the empty one. [Pipeline.Validate] and [Run] parse the values of options.
func (t Table) Parse(s string) (Pipeline, error) {
	switch strings.TrimSpace(s) {
	case "":
		return t.pipeline(), nil
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
		step, err := t.step(strings.TrimSpace(rest[:end]))
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

func (t Table) step(s string) (Step, error) {
	name, settings, braces := strings.Cut(s, "{")
	p, ok := t.lookup(strings.TrimSpace(name))
	if !ok {
		var names []string
		for _, q := range t {
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
		step.Values[k] = v
	}
	return step, p.known(step.Values)
}

// check returns an error if the passes break a constraint on their order.
func (p Pipeline) check() error {
	all := order
	for _, s := range p {
		all = slices.Concat(all, s.Pass.Order)
	}
	for _, o := range all {
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

// Options are the settings of a run.
type Options struct {
	// Model gives the times that passes compare, unless the pipeline sets the chip or the
	// profile of a pass. With the zero value each pass has its own default.
	Model cost.Model
	// Allow names the rewrites that may change bits ([term.Rewrites]) and may be used. The option
	// allow of a step takes precedence.
	Allow []string
	// Budget is what each pass may take; see [OverBudget].
	Budget Budget
	// After, if not nil, is called with the graph after each pass.
	After func(s Step, g *ir.Graph) error
}

// boundStep is a step whose options have been read.
type boundStep struct {
	Step
	run   func(context.Context, *State) error
	allow []string // names of the rewrites that the step may use
}

// bind parses the options of every step.
func (p Pipeline) bind(o Options) ([]boundStep, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	out := make([]boundStep, len(p))
	for i, s := range p {
		from := &source{values: s.Values, run: &o}
		if err := s.Pass.known(s.Values); err != nil {
			return nil, err
		}
		run, err := s.Pass.bind(from)
		if err != nil {
			return nil, fmt.Errorf("pass %s: %w", s, err)
		}
		out[i] = boundStep{s, run, from.allow}
	}
	return out, nil
}

// Validate returns an error if the order or the options of the pipeline are wrong.
func (p Pipeline) Validate(o Options) error {
	_, err := p.bind(o)
	return err
}

// Allowed returns the names of the rewrites that some step may use: those of the run and those that
// the text of the pipeline allows (`fuse{allow=round}`). The proof of the resulting graph has to
// allow them too.
func (p Pipeline) Allowed(o Options) ([]string, error) {
	steps, err := p.bind(o)
	out := slices.Clone(o.Allow)
	for _, s := range steps {
		out = append(out, s.allow...)
	}
	slices.Sort(out)
	return slices.Compact(out), err
}

// Run runs the pipeline on g, in place, and returns one report for each pass. It checks the whole
// graph before the first pass and after the last one, and after each pass the parts that it may
// have changed. A pass that breaks the graph is a bug, and the error names the pass. If a pass
// takes too much, the error is an [OverBudget]. Once ctx is done, the error is the cause of that.
// After an error g is unusable, and the reports are those of the passes that finished.
func Run(ctx context.Context, g *ir.Graph, p Pipeline, o Options) (out []*Report, err error) {
	defer interrupt.Catch(&err)
	steps, err := p.bind(o)
	if err != nil {
		return nil, err
	}
	if err := g.CheckContext(ctx); err != nil {
		return nil, err
	}
	g.Own()
	stats := g.Stats()
	var found known
	for i, s := range steps {
		r := &Report{Pass: s.String(), Before: stats}
		x := &State{Graph: g, report: r, given: found}
		start := time.Now()
		converted := false
		if by := g.Ordering; by == ir.Serial && !s.Pass.KeepsList || by == ir.ByEdges && !s.Pass.KeepsCommands {
			explicit(ctx, x)
			converted = true
		}
		if err := o.run(ctx, i, s, x); err != nil {
			var over *OverBudget
			if errors.As(err, &over) {
				return out, over
			}
			return out, fmt.Errorf("pass %s: graph %s: %w", s, ir.QuoteName(g.Name), err)
		}
		r.Time = time.Since(start)
		switch {
		case i == len(p)-1 || !invariants.Caches:
			x.changed = ir.AnyChange
		case converted && x.changed == ir.NoChange:
			x.changed = ir.ListChange
		}
		if err := g.Recheck(ctx, x.changed); err != nil {
			return out, fmt.Errorf("pass %s broke graph %s (a bug of mlxc; please report it): %w", s, ir.QuoteName(g.Name), err)
		}
		if x.changed != ir.NoChange {
			stats = g.Stats()
		}
		r.After = stats
		found = x.kept
		out = append(out, r)
		if o.After != nil {
			if err := o.After(s.Step, g); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}
