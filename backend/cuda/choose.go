//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
)

// waiting is what the name of a plan in a profile ends with where kernels wait by themselves.
const waiting = "-waiting"

// Measured is the name that a profile has for the times of a plan (cost.Model.Plans): kernels wait by
// themselves, or every launch begins when those before it have ended.
func (p Plan) Measured(waits bool) string {
	if waits && p != Stream { // a launch on a stream never begins early
		return p.String() + waiting
	}
	return p.String()
}

// believe has plans be chosen by what was measured, of this GPU; without it by the figures of an H200, the one
// GPU of NVIDIA's of which there are any.
func (d *Device) believe(m *cost.Model) (err error) {
	switch {
	case m == nil:
		d.costs, err = cost.Chip(cost.H200)
		return err
	case m.Device != "" && m.Device != d.description():
		return fmt.Errorf("cuda: the profile was measured on %q, and this is %q: run `mlxreplay doctor --device cuda --profile FILE` on it, and give it that profile", m.Device, d.description())
	}
	d.costs = m.OrDefault()
	return nil
}

// choose returns how the commands of a graph are launched, and whether its kernels wait by themselves. Of
// [Auto] that is what is modelled to take the least time: commands in a row, each with a launch, against
// epochs that overlap, where each of several commands costs more than a launch.
func (d *Device) choose(g *ir.Graph) (Plan, bool) {
	edges := g.Ordering == ir.ByEdges
	switch {
	case d.plan == Edges && !edges:
		return Chain, d.programmatic
	case d.plan != Auto:
		return d.plan, d.programmatic
	}
	type kind struct {
		plan  Plan
		waits bool
	}
	shape := d.costs.Shape(g)
	var ways []cost.Way
	var of []kind
	for _, k := range []kind{{Chain, true}, {Chain, false}, {Edges, true}, {Edges, false}, {Stream, false}} {
		if k.waits && !d.programmatic || k.plan == Edges && !edges {
			continue
		}
		w := shape.InRow(k.plan.Measured(k.waits))
		if k.plan == Edges {
			w = shape.Together(k.plan.Measured(k.waits))
		}
		w.Encoded, w.Beside = shape.Commands, true
		ways, of = append(ways, w), append(of, k)
	}
	best := of[d.costs.Fastest(ways)]
	return best.plan, best.waits
}
