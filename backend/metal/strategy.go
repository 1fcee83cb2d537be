package metal

import (
	"errors"
	"fmt"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/cost"
)

// Plan is how replays are encoded.
type Plan uint8

// The plans.
const (
	// Concurrent: an encoder of concurrent dispatches, with the graph's barriers.
	Concurrent Plan = iota
	// Serial: an encoder that runs one dispatch after another, whatever the graph allows. What then
	// changes its results has a race.
	Serial
	// Parallel: several command buffers ([Options.Encoders]), encoded by as many threads, the first
	// of them committed at once.
	Parallel
	// Indirect: indirect command buffers that are encoded once, of which a replay executes a part
	// for each epoch, with barriers between.
	Indirect
	// IndirectBarriers: the same, with the barriers inside. Only for GPUs of which `mlxreplay
	// doctor` has seen that such barriers hold for what comes after ([Options.Measured]).
	IndirectBarriers
	// Auto is for each graph the plan that takes the least time by what was measured of the GPU
	// ([Options.Measured]), Concurrent where nothing was.
	Auto
)

var plans = [...]string{"concurrent", "serial", "parallel", "indirect", "indirect-barriers", "auto"}

func (p Plan) String() string { return plans[p] }

func (p Plan) indirect() bool { return p == Indirect || p == IndirectBarriers }

// mostEncoders is how many command buffers are encoded side by side at most: more have never paid.
const mostEncoders = 8

// encoders is how many are.
func (o *Options) encoders() int {
	if o.Encoders == 0 {
		return 2
	}
	return o.Encoders
}

// proven returns an error if options ask for what nobody has seen to work on the GPU of a name.
func (o *Options) proven(name string) error {
	m := o.Measured
	seen := m != nil && (m.Device == "" || m.Device == name)
	const ask = "run `mlxreplay doctor --profile FILE` on it, and give it that profile"
	switch {
	case m != nil && !seen && (o.Fences || o.Plan >= IndirectBarriers):
		return fmt.Errorf("the profile was measured on %q, and this is %q: %s", m.Device, name, ask)
	case o.Fences && !(seen && m.Litmus.Fences):
		return errors.New("fences were not seen to order encoders on this GPU: " + ask)
	case o.Plan == IndirectBarriers && !(seen && m.Litmus.IndirectBarriers):
		return errors.New("barriers inside indirect command buffers were not seen to hold on this GPU: " + ask)
	}
	return nil
}

// choose returns the plan of a graph that takes the least time, given its plan with barriers.
func (o *Options) choose(p *plan.Plan) Plan {
	switch {
	case o.Plan != Auto:
		return o.Plan
	case o.Measured == nil:
		return Concurrent
	}
	direct := o.Measured.Plans[Concurrent.String()]
	ways, of := []cost.Way{way(Concurrent, direct, p)}, []Plan{Concurrent}
	for x := Serial; x < Auto; x++ {
		if x == IndirectBarriers && !o.Measured.Litmus.IndirectBarriers {
			continue
		}
		ways, of = append(ways, way(x, direct, p)), append(of, x)
	}
	return of[o.Measured.Fastest(ways)]
}

// way is what a replay by a plan consists of, beside the work of its kernels: encoding by the host, then
// launches and barriers. What depends on params is encoded anew also where dispatches are stored.
func way(x Plan, direct cost.PlanTimes, p *plan.Plan) cost.Way {
	w := cost.Way{Plan: x.String(), Encoded: p.Stats.Dispatches, Launches: p.Stats.Dispatches}
	if x != Serial {
		w.Barriers = p.Stats.Barriers
	}
	if x.indirect() {
		last := int32(-1)
		for _, v := range p.Vars {
			if v.Part != plan.Bytes && v.Op != last {
				w.Host, last = w.Host+direct.Encode, v.Op
			}
		}
	}
	return w
}
