package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// sealPass replaces a barrier at the end of the list by an ordered commit. A barrier orders only commands of the same
// encoder, so it would not order the next replay, which may have its own encoder.
var sealPass = passes.New(passes.Pass{Name: "seal", Summary: "end the list in an ordered commit, in place of a barrier", KeepsList: true, KeepsCommands: true},
	func(_ context.Context, s *passes.State, _ struct{}) error {
		if i := lastBarrier(s.Graph); i >= 0 {
			s.Graph.Nodes = slices.Clone(s.Graph.Nodes)
			s.Graph.Nodes[i] = &ir.Commit{Order: ir.OrderEvent}
			s.Changed(1)
		}
		return nil
	})

// lastBarrier returns the index of the barrier at the end of the list, which orders g's commands before those of the
// next replay; −1 if there is none.
func lastBarrier(g *ir.Graph) int {
	if g.Ordering != ir.ByBarriers || g.NextHost {
		return -1
	}
	for i, n := range slices.Backward(g.Nodes) {
		switch n.(type) {
		case *ir.Barrier:
			return i
		case *ir.GroupEnd:
		default:
			return -1
		}
	}
	return -1
}

// lower runs the passes that the device asks for on a copy of g. It returns the copy if it is proved to compute what
// g does; otherwise g itself, with a remark.
func (s *Instance) lower(ctx context.Context, g *ir.Graph) (*ir.Graph, error) {
	info := s.device.Info()
	pipeline, wanted := passes.Pipeline(nil), info.Lower
	if wanted != "" {
		var err error
		if pipeline, err = passes.ParsePipeline(wanted); err != nil {
			return nil, fmt.Errorf("the device %s wants the passes %q: %w", s.device.Name(), wanted, err)
		}
	}
	if info.Apart && (len(pipeline) > 0 || lastBarrier(g) >= 0) {
		pipeline = append(pipeline, passes.Step{Pass: sealPass})
		wanted = strings.TrimPrefix(wanted+","+sealPass.Name, ",")
	}
	if len(pipeline) == 0 {
		return g, nil
	}
	r, err := optimize.Run(ctx, g, optimize.Options{Pipeline: pipeline})
	if err != nil {
		return nil, fmt.Errorf("the passes %q, which the device %s wants: %w", wanted, s.device.Name(), err)
	}
	for _, row := range r.Undone() {
		s.remark("graph %s: %s, which the device %s wants, was left out: %s", ir.QuoteName(g.Name), row.Pass, s.device.Name(), row.Undone)
	}
	out := r.Optimized
	if r.Proof.Verdict != prove.Proved {
		s.remark("graph %s runs as it is: the result of %q, which the device %s wants, is not proved: %s", ir.QuoteName(g.Name), wanted, s.device.Name(), r.Proof.Verdict)
		out = g
	}
	if info.Apart && lastBarrier(out) >= 0 {
		// Waiting on the host between replays only adds order, so it needs no proof.
		hosted := *out
		hosted.NextHost, out = true, &hosted
	}
	return out, nil
}
