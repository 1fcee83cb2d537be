package passes

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// Pass is one rewrite of graphs. [New] adds its function and its options.
type Pass struct {
	Name    string
	Summary string // one line, for `mlxc passes`
	// Default says that the pass is part of the default pipeline.
	Default bool
	// Order constrains the pass's place in a pipeline, in addition to [Constraints].
	Order []Constraint
	// KeepsList says that the pass keeps the order of the list and does not read barriers, so that
	// a serial graph stays serial. KeepsCommands says that it also keeps the commands, so that a
	// graph ordered by edges stays so. A pass without the flag gets a graph that is ordered by
	// barriers instead.
	KeepsList, KeepsCommands bool

	options []Option
	bind    func(*source) (func(context.Context, *State) error, error)
}

// New returns p with its function run and the options that settings declare. [State] says what run
// must leave behind, besides a graph that computes the same. If an option is set wrongly, that is
// an error before any pass of the pipeline runs.
//
//	type options struct{ lookahead int }
//
//	var mine = passes.New(passes.Pass{Name: "mine", Summary: "…"}, run,
//		passes.Int("lookahead", 64, 0, 1024, "commands looked at", func(o *options) *int { return &o.lookahead }))
//
//	func run(ctx context.Context, s *passes.State, o options) error { … }
func New[O any](p Pass, run func(context.Context, *State, O) error, settings ...Setting[O]) Pass {
	p.options = nil
	for _, x := range settings {
		p.options = append(p.options, x.options...)
	}
	p.bind = func(from *source) (func(context.Context, *State) error, error) {
		var o O
		for _, x := range settings {
			if err := x.read(&o, from); err != nil {
				return nil, err
			}
		}
		return func(ctx context.Context, s *State) error { return run(ctx, s, o) }, nil
	}
	if _, err := p.bind(&source{run: &Options{}}); err != nil {
		panic(fmt.Sprintf("passes: a default of pass %s: %v", p.Name, err))
	}
	return p
}

// Options returns what `name{option=value}` may set, in the order of the settings.
func (p *Pass) Options() []Option { return slices.Clone(p.options) }

// known returns an error if values has a name that is not an option of p. It names the first one in
// alphabetical order.
func (p *Pass) known(values Values) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.ContainsFunc(p.options, func(o Option) bool { return o.Name == name }) {
			return fmt.Errorf("pass %s has no option %q", p.Name, name)
		}
	}
	return nil
}
