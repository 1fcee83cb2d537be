package passes

import (
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
	"github.com/mlxc/mlxc/passes/internal/fusion"
	"github.com/mlxc/mlxc/passes/internal/isel"
)

type fuseOptions struct {
	maxThreads int
	generate   bool
	without    []string
	allow      []string
	model      cost.Model
}

var fusePass = New(Pass{Name: "fuse", Summary: "replace groups of dispatches by one that computes the same terms", Default: true}, fuse,
	Int("max-threads", 1024, 1, math.MaxInt32, "threads of a threadgroup that a pipeline of the device has at most", func(o *fuseOptions) *int { return &o.maxThreads }),
	Bool("generate", true, "true: elementwise commands become kernels of their own where the library has none", func(o *fuseOptions) *bool { return &o.generate }),
	Parsed("without", "none", "kernels that groups do not become, by their names, in which * stands for any letters, joined by +: to see what each is worth", namesOf, func(o *fuseOptions) *[]string { return &o.without }),
	allowing(func(o *fuseOptions) *[]string { return &o.allow }),
	Modelled(cost.DefaultChip, chipHelp, func(o *fuseOptions) *cost.Model { return &o.model }),
)

// namesOf parses patterns of names joined by +, or none.
func namesOf(text string) ([]string, error) {
	if text == "none" {
		return nil, nil
	}
	names := strings.FieldsFunc(text, func(c rune) bool { return c == '+' })
	for _, n := range names {
		if _, err := path.Match(n, ""); err != nil {
			return nil, fmt.Errorf("%q is no pattern: %w", n, err)
		}
	}
	return names, nil
}

// fuse replaces groups of dispatches by one dispatch that computes the same terms, to the bit
// unless the options allow otherwise (passes/internal/fusion, passes/internal/isel). Of the
// rewrites that may change bits it uses only round. It first drops the commands that dce would
// drop, so that a value that only dead commands read outside of a group does not count as needed.
func fuse(ctx context.Context, s *State, o fuseOptions) error {
	f := s.dataflow(ctx)
	dropped := f.Pillar() < 0 && s.dropDead(f)
	opt := fusion.Options{MaxThreads: int64(o.maxThreads), Generate: o.generate, Model: o.model, Unrounded: slices.Contains(o.allow, term.Unrounded)}
	if without := s.better(ctx, opt, o.without); len(without) > 0 {
		opt.Library = isel.Without(s.Graph, without)
	}
	opt.Flow = f
	remarks, flow := fusion.Run(ctx, s.Graph, opt)
	s.keep(flow)
	s.expect(len(remarks))
	fused := false
	for _, m := range remarks {
		s.say(m.Node, m.Done, m.Text)
		fused = fused || m.Done
	}
	switch {
	case fused:
	case dropped:
		s.changed = ir.ListChange
	default:
		s.changed = ir.NoChange
	}
	return nil
}

// maxTries bounds how often the groups of a graph are chosen again without some kernel.
const maxTries = 48

// better returns the kernels that groups must not become: without, and others whose exclusion makes
// the whole graph faster. A round takes the groups that gain most by themselves. If a profile gives
// the times of kernels, that need not leave the most for the rounds after it: a sum and a norm that
// become one kernel keep the norm away from the product behind it. So the graph is tried without
// each kernel that a group became. The kernel whose exclusion gains most is excluded, and so on
// until none gains.
func (s *State) better(ctx context.Context, opt fusion.Options, without []string) []string {
	if len(opt.Model.Kernels) == 0 {
		return without
	}
	model := opt.Model.OrDefault()
	alone := map[ir.ID]cost.Seconds{} // times of single commands of the graph
	e := model.AtMost(s.Graph)
	for _, n := range s.Graph.Nodes {
		if c, ok := n.(ir.Command); ok {
			alone[c.Num()] = e.Work(n).Alone
		}
	}
	tries := 0
	try := func(without []string) (takes cost.Seconds, become []string) {
		tries++
		g, opt := s.Graph.Clone(), opt
		if len(without) > 0 {
			opt.Library = isel.Without(s.Graph, without)
		}
		_, flow := fusion.Run(ctx, g, opt)
		if !flow.Crowded() {
			_, depth := flow.Levels()
			takes = model.Barrier * cost.Seconds(depth)
		}
		e := model.AtMost(g)
		for _, n := range g.Nodes {
			d, ok := n.(*ir.Dispatch)
			if !ok || len(d.From) < 2 {
				takes += e.Work(n).Alone
				continue
			}
			longest := cost.Seconds(0)
			for _, id := range d.From {
				longest = max(longest, alone[id])
			}
			k := &g.Kernels[d.Kernel]
			takes += model.Unmeasured(k.Function, e.Work(n).Alone, longest)
			if k.Library.Kind != ir.Generated && !slices.Contains(become, k.Function) {
				become = append(become, k.Function)
			}
		}
		return takes, become
	}
	least, become := try(without)
	for {
		best, took, next := "", least, []string(nil)
		for _, k := range become {
			if tries == maxTries {
				break
			}
			if t, b := try(append(slices.Clip(without), k)); t < took {
				best, took, next = k, t, b
			}
		}
		if best == "" {
			return without
		}
		s.NotAbout(best, "nothing becomes one: by the profile the commands take %.1f µs then, in place of %.1f", took.Microseconds(), least.Microseconds())
		without, least, become = append(slices.Clip(without), best), took, next
	}
}
