package launchtimes

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
)

// Sample is what rounds of replaying a graph took: seconds on the device, and of the host's work.
type Sample struct{ Device, Host []float64 }

// Times are seconds, a value for each round.
type Times struct {
	Encode []float64 // a dispatch, on the host
	Launch []float64 // a smallest kernel in a row of them, each behind another
	// Fork is what an epoch of [Wide] kernels takes beyond a kernel: to begin them beside one another, and to
	// wait for all of them.
	Fork []float64
}

// Measure measures rows of n kernels and, where the plan follows the edges of graphs, forks. time replays a
// graph for some rounds. The differences of long and short graphs are taken, so that what a submission
// costs by itself is not in them.
func Measure(n int, edges bool, time func(g *ir.Graph) (Sample, error)) (t Times, err error) {
	of := func(make func(n int) *ir.Graph, many, few int) (each []float64, long Sample, err error) {
		short, err := time(make(few))
		if err == nil {
			long, err = time(make(many))
		}
		if err == nil && len(short.Device) != len(long.Device) {
			err = fmt.Errorf("%d rounds, and %d", len(short.Device), len(long.Device))
		}
		for i := range short.Device {
			if err != nil {
				return nil, long, err
			}
			x := (long.Device[i] - short.Device[i]) / float64(many-few)
			if x <= 0 { // noise of a busy machine: then the whole time is divided
				x = long.Device[i] / float64(many)
			}
			each = append(each, x)
		}
		return each, long, err
	}
	n = max(n, 16)
	row := func(n int) *ir.Graph { return Row(n, edges) }
	var long Sample
	if t.Launch, long, err = of(row, n, n/8); err != nil {
		return t, err
	}
	for _, s := range long.Host {
		t.Encode = append(t.Encode, s/float64(n))
	}
	if !edges {
		return t, nil
	}
	pairs := n / (Wide + 1)
	both, _, err := of(Forked, max(2, pairs), max(1, pairs/8))
	for i := range both {
		t.Fork = append(t.Fork, max(0, both[i]-2*t.Launch[i]))
	}
	return t, err
}

// Costs returns the medians.
func (t Times) Costs() cost.PlanTimes {
	return cost.PlanTimes{Encode: middle(t.Encode), Launch: middle(t.Launch), Barrier: middle(t.Fork)}
}

func middle(v []float64) cost.Seconds {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return cost.Seconds(s[len(s)/2])
}

// hostBound reports whether the host took nine tenths of the time of a row of launches, so that the GPU has waited
// for it.
func hostBound(t cost.PlanTimes) bool { return t.Encode >= 0.9*t.Launch }

// Believe sets a model's costs of launches to what was measured, by plan. base is the plan that replays run by as a
// default: in it a barrier costs nothing beside the launch behind it, and commands that overlap cost a share of what
// it takes to fork an epoch.
//
// Where a plan is bound by the host, the time that the GPU takes for a launch by itself was not measured: that of
// the slowest plan that is not bound stands for it. Otherwise a kernel that takes longer than the host's work would
// be charged with both.
func Believe(m *cost.Model, plans map[string]cost.PlanTimes, base string) {
	plans = maps.Clone(plans)
	var slowest cost.Seconds
	for _, t := range plans {
		if !hostBound(t) {
			slowest = max(slowest, t.Launch)
		}
	}
	for name, t := range plans {
		if hostBound(t) && slowest > 0 {
			t.Launch = min(t.Launch, slowest)
			plans[name] = t
		}
	}
	m.Plans = plans
	t, ok := plans[base]
	if !ok {
		return
	}
	m.Launch, m.ConcurrentLaunch, m.Barrier, m.CommandBuffer, m.Event, m.Encode = t.Launch, t.Launch, 0, t.Launch, 0, t.Encode
	for _, name := range []string{"edges", "edges-waiting"} { // the later one counts, if both were measured
		if e, ok := plans[name]; ok {
			m.ConcurrentLaunch = min(t.Launch, e.Barrier/(Wide-1))
		}
	}
}
