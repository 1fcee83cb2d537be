package mlxreplay

import (
	"fmt"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// spent sums the times that replays of a graph took on the host and on the device.
type spent struct {
	graph        string
	replays      int
	host, device time.Duration
	first        bool // only the first submission, which includes one-time preparation, is counted so far
}

// accounts hold the times by graph, in the order in which graphs were first replayed.
type accounts struct{ graphs []*spent }

// add adds the times of a submission. A graph's first submission counts only until there is a second one.
func (a *accounts) add(g *ir.Graph, t replay.Timing) {
	var s *spent
	for _, x := range a.graphs {
		if x.graph == g.Name {
			s = x
		}
	}
	if s == nil {
		s = &spent{graph: g.Name, first: true}
		a.graphs = append(a.graphs, s)
	} else if s.first {
		*s = spent{graph: g.Name} // drop the first submission, which includes one-time preparation
	}
	s.replays += t.Replays
	s.host += t.Encode
	s.device += t.Duration()
}

// String describes the mean times of a graph's replays for people.
func (s *spent) String() string {
	each := func(d time.Duration) float64 { return 1e6 * d.Seconds() / float64(max(1, s.replays)) }
	text := fmt.Sprintf("%s: a replay took %.1f µs of the host and %.1f µs of the GPU, in the mean of %d", ir.QuoteName(s.graph), each(s.host), each(s.device), s.replays)
	if s.first {
		text += ", the first ones"
	}
	return text
}

// say prints what a device has counted and the times of replays on it; if it counts nothing, it prints nothing.
func (a *accounts) say(env *cli.Env, d backend.Device) {
	c, ok := d.(backend.Counted)
	if !ok {
		return
	}
	text, _ := c.Counts()
	fmt.Fprintf(env.Stderr, "%s: %s\n", d.Name(), text)
	for _, s := range a.graphs {
		fmt.Fprintf(env.Stderr, "%s: %s\n", d.Name(), s)
	}
}

// mention adds the same to a JSON object.
func (a *accounts) mention(d backend.Device, out map[string]any) map[string]any {
	c, ok := d.(backend.Counted)
	if !ok {
		return out
	}
	graphs := map[string]any{}
	for _, s := range a.graphs {
		graphs[s.graph] = map[string]any{
			"replays": s.replays, "host_seconds": round9(s.host.Seconds()), "gpu_seconds": round9(s.device.Seconds()), "first": s.first,
		}
	}
	_, counts := c.Counts()
	counts["description"], counts["graphs"] = d.Info().Description, graphs
	out["gpu"] = counts
	return out
}
