package measure

import (
	"maps"

	"github.com/mlxc/mlxc/cost"
)

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
