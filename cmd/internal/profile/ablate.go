package profile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cmd/internal/part"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// Ablated is the time of a kernel by ablation.
type Ablated struct {
	Kernel string
	// Takes is how much longer the whole replay took than one without the kernel's commands: the median of all pairs. It may
	// be less than 0, where the kernel's time cannot be told from noise.
	Takes  time.Duration
	Spread time.Duration // half of the range between the quartiles
}

// Options say how [Ablate] measures.
type Options struct {
	Rounds int // pairs of replays for each kernel
	// Prepare sets the params and fills the inputs of a graph.
	Prepare func(g *replay.Graph) error
	// Allowed, if not nil, returns an error if so many replays of the graph would be too much work.
	Allowed  func(g *replay.Graph, replays int) error
	Progress func(done float64)
}

// Ablate times replays of g on a device, and replays in which the commands of one kernel are left out, one kernel after the
// other. A replay without a kernel runs right behind a whole one, on what that has left in memory: scratch memory and outputs
// are states here, so that the other commands work on numbers like those of a whole replay. It returns the durations of the
// whole replays too.
func Ablate(ctx context.Context, d backend.Device, g *ir.Graph, o Options) (all []Ablated, whole []replay.Timing, err error) {
	kept := part.Kept(g)
	m := &ir.Module{Graphs: []*ir.Graph{kept}}
	var names []string
	for _, c := range part.Commands(kept) {
		if k := KernelOf(kept, c); !slices.Contains(names, k) {
			names = append(names, k)
		}
	}
	for i, name := range names {
		x := part.Of(kept, func(c ir.Command) bool { return KernelOf(kept, c) != name })
		x.Name = fmt.Sprintf("without %d", i)
		if x.Name == kept.Name {
			x.Name += " kernels"
		}
		m.Graphs = append(m.Graphs, x)
	}
	s, err := replay.Open(d, m, replay.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	graphs := make([]*replay.Graph, len(m.Graphs))
	for i, x := range m.Graphs {
		if graphs[i], err = s.Graph(ctx, x.Name); err != nil {
			return nil, nil, fmt.Errorf("by ablation: %w", err)
		}
		if err := o.Prepare(graphs[i]); err != nil {
			return nil, nil, err
		}
	}
	if o.Allowed != nil {
		if err := o.Allowed(graphs[0], 2*len(names)*(o.Rounds+1)); err != nil {
			return nil, nil, err
		}
	}
	for i, name := range names {
		var differ []time.Duration
		for round := range o.Rounds + 1 {
			if o.Progress != nil {
				o.Progress((float64(i) + float64(round)/float64(o.Rounds+1)) / float64(len(names)))
			}
			a, err := graphs[0].Run(ctx)
			if err != nil {
				return nil, nil, err
			}
			b, err := graphs[i+1].Run(ctx)
			if err != nil {
				return nil, nil, err
			}
			if round > 0 { // the first pair fills caches
				a.Params = graphs[0].Params()
				differ, whole = append(differ, a.Duration()-b.Duration()), append(whole, a)
			}
		}
		slices.Sort(differ)
		n := len(differ)
		all = append(all, Ablated{name, differ[n/2], (differ[3*n/4] - differ[n/4]) / 2})
	}
	return all, whole, nil
}
