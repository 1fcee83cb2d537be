package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/backend/measure"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// together is the minimum of dispatches in a graph that times one kernel alone.
const together = 30

// alone measures each kernel of the optimized decode by itself: its dispatches in all layers, each of which waits
// for the one before, and nothing between them. So it shows what a kernel costs beside the launch; the time of a
// whole decode does not say which one to work on.
func (b *bench) alone() error {
	shape, pos := demonstration, 96
	if b.tiny {
		shape, pos = small(shape), 8
	}
	recorded, err := shape.Record(b.ctx, frontend.Options{Advance: true})
	if err != nil {
		return err
	}
	m, err := b.optimized(&ir.Module{Graphs: recorded.Graphs[:1]}, strings.Join(defaults(), ","))
	if err != nil {
		return err
	}
	g := m.Graphs[0]
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range histogram(g) {
			if !yield(name) {
				return
			}
		}
	})
	all := &ir.Module{}
	for _, name := range names {
		all.Graphs = append(all.Graphs, only(g, name))
	}
	fmt.Fprintf(b.out, "\n| kernel alone, of %s's decode | a token | µs | µs, waiting by itself | min–max |\n|---|---|---|---|---|\n", shape.Name)
	var times [2][]sample
	for i, p := range []plan{asChain, waiting} {
		d, end, err := b.open(p)
		if err != nil {
			return err
		}
		in, err := replay.Open(d, all, replay.Options{})
		if err != nil {
			end()
			return err
		}
		for _, name := range names {
			var t sample
			if err == nil && !b.late(name) {
				t, err = b.timeOn(in, name, 4, b.rounds, first(pos))
			}
			times[i] = append(times[i], t)
		}
		in.Close()
		end()
		if err != nil {
			return err
		}
	}
	for i, name := range names {
		chain, waits := times[0][i], times[1][i]
		if len(chain.wall) == 0 || len(waits.wall) == 0 {
			continue
		}
		n := float64(len(commands(all.Graphs[i])))
		each := func(s sample) float64 { return 1e6 * measure.Median(s.device) / n }
		b.row(name+", alone", map[string]any{"dispatches": histogram(g)[name], "microseconds": each(chain), "waiting_microseconds": each(waits)},
			"| %.80s | %d | %.2f | %.2f | %.2f–%.2f |\n", name, histogram(g)[name], each(chain), each(waits), 1e6*slices.Min(waits.device)/n, 1e6*slices.Max(waits.device)/n)
	}
	return nil
}

// commands are the dispatches of a graph.
func commands(g *ir.Graph) (out []*ir.Dispatch) {
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			out = append(out, d)
		}
	}
	return out
}

// only is a graph of the dispatches of one kernel, named after it.
func only(g *ir.Graph, kernel string) *ir.Graph {
	return inRow(g, kernel, slices.DeleteFunc(commands(g), func(d *ir.Dispatch) bool { return g.Kernels[d.Kernel].Function != kernel }))
}

// inRow is a graph of some dispatches of g, repeated if they are few, each behind the one before.
func inRow(g *ir.Graph, name string, some []*ir.Dispatch) *ir.Graph {
	out := *g
	out.Name, out.Nodes, out.Edges, out.Ordering, out.Source = name, nil, nil, ir.ByBarriers, nil
	out.Memories = slices.Clone(g.Memories)
	for i := range out.Memories {
		if m := &out.Memories[i]; m.Kind == ir.Scratch || m.Kind == ir.Output {
			m.Kind, m.Every = ir.State, false // what they read need not be written first
		}
	}
	for i := range max(together, len(some)) {
		if i > 0 {
			out.Nodes = append(out.Nodes, &ir.Barrier{})
		}
		d := *some[i%len(some)]
		d.ID = ir.ID(i)
		out.Nodes = append(out.Nodes, &d)
	}
	return &out
}
