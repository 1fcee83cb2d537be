package passes

import (
	"context"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

var annotatePass = New(Pass{Name: "annotate", Summary: "give each dispatch the effects that its kernel declares", Default: true, KeepsList: true, KeepsCommands: true}, annotate)

// annotate gives each dispatch of a builtin kernel the effects that the kernel's declaration yields
// for its bindings and grid. If the recorder gave other effects, the declaration wins, because it
// is tested, and a remark says so. A dispatch that does not fit its declaration gets unknown
// effects. A dispatch of a foreign kernel keeps the effects that the recorder gave.
func annotate(ctx context.Context, s *State, _ struct{}) error {
	g := s.Graph
	s.changed = ir.EffectsChange
	declared := msl.NewCache(g)
	var from []ir.ID // the From lists of all dispatches, in one allocation
	var polls interrupt.Every
	for i, n := range g.Nodes {
		polls.Poll(ctx, 64)
		d, ok := n.(*ir.Dispatch)
		if !ok {
			continue
		}
		if d.From == nil {
			if from == nil {
				from = make([]ir.ID, 0, len(g.Nodes)-i)
			}
			from = append(from, d.ID)
			d.From = from[len(from)-1 : len(from) : len(from)]
		}
		if !msl.Declared(&g.Kernels[d.Kernel]) {
			if !d.Effects.Known() {
				s.Not(d, "kernel %s has no declaration and the recording gives no complete effects", g.Kernels[d.Kernel].Function)
			}
			continue
		}
		e, err := declared.Describe(d)
		if err != nil {
			s.Not(d, "%v", err)
			d.Effects = nil // the recorder's effects are dropped, because nobody has tested them
			continue
		}
		switch {
		case d.Effects == nil:
			s.Changed(1)
		case !d.Effects.Equal(e):
			s.Did(d, "the recorder's effects differ from those of the declaration, which replace them")
		}
		d.Effects = e
	}
	return nil
}
