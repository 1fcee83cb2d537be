//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
)

// waiting is the suffix of a plan's name in a profile for its times with programmatic dependent launches.
const waiting = "-waiting"

// Measured is the name under which a profile has the times of a plan (cost.Model.Plans). waits: launches are
// programmatic dependent ones; otherwise every launch begins when those before it have ended.
func (p Plan) Measured(waits bool) string {
	if waits && p != Stream { // a launch on a stream never begins early
		return p.String() + waiting
	}
	return p.String()
}

// believe sets the costs by which plans are chosen: those of a profile, which must be of this GPU, or without one
// those of an H200, the one GPU of NVIDIA's that has been measured.
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

// choose returns how the commands of a graph are launched, and whether by programmatic dependent launches. [Auto]
// takes what is modelled to take the least time: commands in a row, each of which costs a launch, or epochs of
// commands that overlap, which cost forks and joins where they have several.
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
