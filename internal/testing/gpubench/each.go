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

// each measures the kernels of a graph on the memories that they have in the graph, so that weights
// are read from where they lie there. It runs all dispatches of a kernel and size one after
// another, each waiting for the one before; the values that they compute mean nothing. The times go
// into the model's fit.
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
		b.known[k] = true // measured, or impossible to measure: it is not tried again
		t, err := b.timeOn(in, all.Graphs[i].Name, 4, b.rounds, set(pos))
		if err != nil {
			b.fail(what, err)
			continue
		}
		// The minimum: disturbances only add to it, and once added so much that a slower form was chosen.
		each := slices.Min(t.device) / float64(len(commands(all.Graphs[i])))
		b.fit.Run(k.function, works[k], cost.Seconds(each))
		b.rows = append(b.rows, map[string]any{"what": "a command, in a row", "kernel": k.function, "bytes": k.bytes, "microseconds": 1e6 * each})
	}
	b.fitted()
	return nil
}

// settles is the maximum of rounds in which settle measures kernels.
const settles = 8

// settle measures the kernels of a recording and of what pipelines make of it, until these choose no kernel that was
// not measured: an unmeasured kernel is modelled as a typical one, and may be chosen for that. Each round measures
// something or is the last; they would end by themselves, but might be many. pipelines is called in each round.
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

// at returns the minima of params, with pos at a position.
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

// fitted puts what was measured of kernels so far into the model. Bandwidth and launches were measured by
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

// modelled returns the modelled seconds of a replay of g at a position, launched by a plan.
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
