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

// namesOf reads patterns of names joined by +, or none.
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

// fuse replaces groups of dispatches by one that computes the same terms, to
// the bit unless allowed otherwise (passes/internal/fusion, passes/internal/isel). Of the rewrites that may
// change bits only round concerns it.
func fuse(ctx context.Context, s *State, o fuseOptions) error {
	opt := fusion.Options{MaxThreads: int64(o.maxThreads), Generate: o.generate, Model: o.model, Unrounded: slices.Contains(o.allow, term.Unrounded)}
	if len(o.without) > 0 {
		opt.Library = isel.Without(o.without)
	}
	remarks, flow := fusion.Run(ctx, s.Graph, opt)
	s.keep(flow)
	s.expect(len(remarks))
	fused := false
	for _, m := range remarks {
		s.say(m.Node, m.Done, m.Text)
		fused = fused || m.Done
	}
	if !fused {
		s.changed = ir.NoChange
	}
	return nil
}
