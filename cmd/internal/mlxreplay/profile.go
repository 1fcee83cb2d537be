package mlxreplay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// profile sums the times of a graph's commands by kernel, over replays.
type profile struct {
	graph   *ir.Graph
	kernel  map[ir.ID]string
	time    map[string]time.Duration
	count   map[string]int
	replays int
}

func newProfile(g *ir.Graph) *profile {
	p := &profile{graph: g, kernel: map[ir.ID]string{}, time: map[string]time.Duration{}, count: map[string]int{}}
	for _, n := range g.Nodes {
		if c, ok := n.(ir.Command); ok {
			id := c.Num()
			p.kernel[id] = "(copy or fill)"
			if d, ok := n.(*ir.Dispatch); ok {
				p.kernel[id] = g.Kernels[d.Kernel].Function
			}
		}
	}
	return p
}

func (p *profile) add(t replay.Timing) {
	p.replays++
	for _, x := range t.Commands {
		k := p.kernel[x.ID]
		p.time[k] += x.Duration()
		p.count[k]++
	}
}

// perReplay is the mean time of a kernel in one replay, in µs.
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

// print shows the kernels, the most expensive one first.
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
