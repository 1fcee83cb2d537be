package metal

import (
	"errors"
	"fmt"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/cost"
)

// Plan is the way in which replays are encoded.
type Plan uint8

// The plans.
const (
	// Concurrent: one encoder with MTLDispatchTypeConcurrent, and memory barriers where the graph has some.
	Concurrent Plan = iota
	// Serial: an encoder with MTLDispatchTypeSerial, which runs dispatches one by one whatever the graph
	// allows. A graph whose results this changes has a race.
	Serial
	// Parallel: several command buffers ([Options.Encoders]), encoded by as many threads; each is
	// committed as soon as it is encoded.
	Parallel
	// Indirect: indirect command buffers that are encoded once. A replay executes one range for each
	// stretch of commands between two barriers, and encodes those barriers itself.
	Indirect
	// IndirectBarriers: the same, with the barriers in the indirect commands (setBarrier). Only for GPUs on
	// which `mlxreplay doctor` has seen them order later commands too ([Options.Measured]).
	IndirectBarriers
	// Auto takes for each graph the one of the plans above that rests on documented orders alone and is the
	// fastest by the profile of the GPU ([Options.Measured]): not IndirectBarriers. Concurrent without a profile.
	Auto
)

var plans = [...]string{"concurrent", "serial", "parallel", "indirect", "indirect-barriers", "auto"}

func (p Plan) String() string { return plans[p] }

func (p Plan) indirect() bool { return p == Indirect || p == IndirectBarriers }

// mostEncoders is the max number of command buffers that are encoded in parallel: more have never paid.
const mostEncoders = 8

// encoders is the number of command buffers that Parallel encodes at once.
func (o *Options) encoders() int {
	if o.Encoders == 0 {
		return 2
	}
	return o.Encoders
}

// proven returns an error if the options ask for what the profile does not show to work on the GPU name.
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

// choose returns the plan that the options name or, for Auto, the one that the cost model expects to be
// the fastest for a graph. p is the graph lowered for Concurrent.
func (o *Options) choose(p *plan.Plan) Plan {
	switch {
	case o.Plan != Auto:
		return o.Plan
	case o.Measured == nil:
		return Concurrent
	}
	direct := o.Measured.Plans[Concurrent.String()]
	ways, of := []cost.Way{way(Concurrent, direct, p)}, []Plan{Concurrent}
	for x := Serial; x < IndirectBarriers; x++ {
		ways, of = append(ways, way(x, direct, p)), append(of, x)
	}
	return of[o.Measured.Fastest(ways)]
}

// way describes to the cost model what a replay by plan x costs beside the work of its kernels: encoding
// on the host, launches and barriers. Even indirect plans re-encode dispatches that depend on params.
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
