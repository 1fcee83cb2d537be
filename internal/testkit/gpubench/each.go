package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/replay"
)

// kind are dispatches that should take the same time.
type kind struct {
	function          string
	bytes, operations float64
}

// each measures the kernels of a graph as they run in it: all dispatches of a kernel and size in a row,
// each behind the one before, on the memories that they have in the graph, so that weights come from where
// they would. What they compute is of no use. The fit of the model gets what one takes.
func (b *bench) each(m *ir.Module, pos int, set func(pos int) setter) error {
	g := optimize.Annotated(b.ctx, m.Graphs[0])
	work := b.model.OrDefault().At(g, at(g, pos))
	of := map[kind][]*ir.Dispatch{}
	var order []kind
	works := map[kind]cost.Work{}
	for _, d := range commands(g) {
		w := work.Work(d)
		k := kind{g.Kernels[d.Kernel].Function, w.Bytes, w.Operations}
		if b.known[k] {
			continue
		}
		if of[k] == nil {
			order = append(order, k)
			works[k] = w
		}
		of[k] = append(of[k], d)
	}
	if len(order) == 0 {
		return nil
	}
	d, end, err := b.open(waiting)
	if err != nil {
		return err
	}
	defer end()
	all := &ir.Module{Data: m.Data}
	for i, k := range order {
		all.Graphs = append(all.Graphs, inRow(g, fmt.Sprint("kind ", i), of[k]))
	}
	in, err := replay.Open(d, all, replay.Options{})
	if err != nil {
		return err
	}
	defer in.Close()
	for i, k := range order {
		what := fmt.Sprintf("%.60s, %.0f bytes", k.function, k.bytes)
		if b.late(what) {
			break
		}
		b.known[k] = true // or cannot be: nobody tries again
		t, err := b.timeOn(in, all.Graphs[i].Name, 4, b.rounds, set(pos))
		if err != nil {
			b.fail(what, err)
			continue
		}
		// The least: whatever else happens makes it more, once so much that a slower form was chosen for it.
		each := slices.Min(t.device) / float64(len(commands(all.Graphs[i])))
		b.fit.Run(k.function, works[k], cost.Seconds(each))
		b.rows = append(b.rows, map[string]any{"what": "a command, in a row", "kernel": k.function, "bytes": k.bytes, "microseconds": 1e6 * each})
	}
	b.fitted()
	return nil
}

// settles is how often what is chosen is looked at for kernels that were not measured.
const settles = 8

// settle measures the kernels of a recording and of what pipelines make of it, until those choose nothing that was
// not measured: a kernel of which nothing is known is modelled as a typical one, and may be chosen for that. Each
// look measures something or is the last; there are only so many kernels, but nobody waits for all of them.
// pipelines is asked anew each time.
func (b *bench) settle(recorded *ir.Module, pos int, set func(pos int) setter, pipelines func() ([]string, error)) error {
	for range settles {
		if b.late("commands, one by one") {
			return nil
		}
		before := len(b.known)
		all, err := pipelines()
		if err != nil {
			return err
		}
		for _, p := range all {
			m, err := b.optimized(recorded, p)
			if err == nil {
				err = b.each(m, pos, set)
			}
			if err != nil {
				return err
			}
		}
		if len(b.known) == before {
			return nil
		}
	}
	return fmt.Errorf("after %d looks kernels are chosen that were not measured before: what is chosen may not be the best", settles)
}

// at are the least values of params, and a position.
func at(g *ir.Graph, pos int) []uint32 {
	params := make([]uint32, len(g.Params))
	for i, p := range g.Params {
		params[i] = uint32(max(0, p.Min))
		if p.Name == "pos" {
			params[i] = uint32(pos)
		}
	}
	return params
}

// fitted has the model believe what was measured of kernels so far. Bandwidth and launches were measured by
// themselves.
func (b *bench) fitted() {
	if b.model.Bandwidth == 0 {
		return
	}
	clear(b.made)
	m := b.fit.Model()
	if b.model.Kernels == nil {
		b.model.Kernels = map[string]cost.Kernel{}
	}
	maps.Copy(b.model.Kernels, m.Kernels)
	b.model.Rate = m.Rate
	b.model.Latency = max(0, m.Launch+m.Latency-b.model.Launch)
}

// modelled is what a replay of g is modelled to take, in seconds, at a position, launched by a plan.
func (b *bench) modelled(g *ir.Graph, p plan, pos int) float64 {
	g = optimize.Annotated(b.ctx, g)
	m := b.model.OrDefault()
	s := m.At(g, at(g, pos)).Shape()
	w := s.InRow(p.measured)
	if p.cuda == "edges" && g.Ordering == ir.ByEdges {
		w = s.Together(p.measured)
	}
	w.Encoded, w.Beside = s.Commands, true
	t, ok := m.Plans[p.measured]
	if !ok {
		t = cost.PlanTimes{Launch: m.Launch}
	}
	return float64(t.Of(w))
}
