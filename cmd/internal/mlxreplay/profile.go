package mlxreplay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/replay"
)

// profile sums, over replays, the times of a graph's commands by kernel.
type profile struct {
	graph   *ir.Graph
	fit     *cost.Fit // nil if no fit is wanted
	work    *ir.Graph // the graph with the effects that its kernels declare
	nodes   map[ir.ID]ir.Command
	kernel  map[ir.ID]string
	time    map[string]time.Duration
	count   map[string]int
	replays int
}

func newProfile(ctx context.Context, g *ir.Graph, fit *cost.Fit) *profile {
	p := &profile{graph: g, fit: fit, kernel: map[ir.ID]string{}, time: map[string]time.Duration{}, count: map[string]int{}}
	for _, n := range g.Nodes {
		if c, ok := n.(ir.Command); ok {
			id := c.Num()
			p.kernel[id] = "(copy or fill)"
			if d, ok := n.(*ir.Dispatch); ok {
				p.kernel[id] = g.Kernels[d.Kernel].Function
			}
		}
	}
	if fit != nil {
		p.work, p.nodes = optimize.Annotated(ctx, g), map[ir.ID]ir.Command{}
		for _, n := range p.work.Nodes {
			if c, ok := n.(ir.Command); ok {
				p.nodes[c.Num()] = c
			}
		}
	}
	return p
}

func (p *profile) add(t replay.Timing) {
	p.replays++
	if p.fit != nil {
		p.fitTo(t)
	}
	for _, x := range t.Commands {
		k := p.kernel[x.ID]
		p.time[k] += x.Duration()
		p.count[k]++
	}
}

// perReplay returns the mean time that a kernel takes in one replay, in µs.
func (p *profile) perReplay(kernel string) float64 {
	return float64(p.time[kernel].Nanoseconds()) / 1e3 / float64(p.replays)
}

func (p *profile) microseconds() map[string]float64 {
	out := map[string]float64{}
	for k := range p.time {
		out[k] = round3(p.perReplay(k))
	}
	return out
}

// print prints the kernels, the most expensive one first.
func (p *profile) print(env *cli.Env) error {
	names := slices.Collect(maps.Keys(p.time))
	total := time.Duration(0)
	for _, v := range p.time {
		total += v
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(p.time[b], p.time[a]), cmp.Compare(a, b)) })
	t := cli.Table{Header: []string{"kernel", "dispatches", "µs a replay", "share"}}
	for _, k := range names {
		t.Add(k, fmt.Sprintf("%.4g", float64(p.count[k])/float64(p.replays)), fmt.Sprintf("%.1f", p.perReplay(k)), fmt.Sprintf("%.1f %%", 100*float64(p.time[k])/float64(max(total, 1))))
	}
	fmt.Fprintf(env.Stdout, "\ngraph %s, mean of %d replays:\n", ir.QuoteName(p.graph.Name), p.replays)
	return t.Print(env.Stdout)
}

// fitTo adds the times of a replay to the fit.
func (p *profile) fitTo(t replay.Timing) {
	e := cost.Model{Cores: 1, Bandwidth: 1, Rate: 1}.At(p.work, t.Params)
	beside := t.Duration()
	for _, x := range t.Commands {
		beside -= x.Duration()
		if d, ok := p.nodes[x.ID].(*ir.Dispatch); ok {
			p.fit.Run(p.kernel[x.ID], e.Work(d), cost.Seconds(x.Duration().Seconds()))
		}
	}
	p.fit.Replay(cost.Seconds(beside.Seconds()), p.graph.Stats().Barriers, cost.Seconds(t.Encode.Seconds()), len(t.Commands))
}
