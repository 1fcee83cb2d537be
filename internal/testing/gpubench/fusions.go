package main

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/backend/measure"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// fusions measures what each pass and each fused kernel is worth to the model of 8 billion parameters in f16: in a token, and
// in a step of eight rows. All forms are graphs of one module, whose weights are loaded once.
func (b *bench) fusions() error {
	shape, tokens, rows := billions, min(b.tokens, 16), 8
	b.shape = shape.Name + ", fusions"
	defer func() { b.shape = "" }()
	if b.tiny {
		shape, tokens = small(shape), 4
	}
	weights, err := shape.Decoder(b.ctx, frontend.Options{Type: ir.F16, Advance: true, Context: shape.Context})
	if err != nil {
		return err
	}
	recorded, err := weights.Module()
	if err != nil {
		return err
	}
	step, err := stepOf(weights, rows)
	if err != nil {
		return err
	}
	type form struct {
		name string
		g    *ir.Graph
	}
	all, names := &ir.Module{}, defaults()
	var forms [2][]form
	for of, g := range []*ir.Graph{recorded.Graphs[0], step} {
		one := &ir.Module{Graphs: []*ir.Graph{g}}
		deeper, fused, err := b.deeper(one, strings.Join(names, ","))
		if err != nil {
			return err
		}
		add := func(name, pipeline string) error {
			m, err := b.blindly(one, pipeline)
			if err != nil {
				return err
			}
			made := m.Graphs[0].Clone()
			made.Name = fmt.Sprintf("%s, form %d", g.Name, len(forms[of]))
			all.Graphs = append(all.Graphs, made)
			forms[of] = append(forms[of], form{name, made})
			return nil
		}
		if err := add("recorded", ""); err != nil {
			return err
		}
		for i := 1; i < len(names); i++ { // to annotate changes nothing that runs
			if err := add("passes to "+names[i], strings.Join(names[:i+1], ",")); err != nil {
				return err
			}
		}
		for i, p := range deeper[:len(deeper)-1] { // the last has all of them
			name := "all passes, without fused kernels"
			if i > 0 {
				name = "and " + fused[i-1]
			}
			if err := add(name, p); err != nil {
				return err
			}
		}
	}
	d, end, err := b.open(waiting)
	if err != nil {
		return err
	}
	defer end()
	in, err := replay.Open(d, all, replay.Options{})
	if err != nil {
		return err
	}
	defer in.Close()
	ids := make([]byte, 0, 4*rows)
	for i := range rows {
		ids = binary.LittleEndian.AppendUint32(ids, uint32(i)%uint32(shape.Vocab))
	}
	for of, what := range []string{"a token", fmt.Sprintf("a step of %d rows", rows)} {
		fmt.Fprintf(b.out, "\n| %s, %s | dispatches | µs | min–max |\n|---|---|---|---|\n", shape.Name, what)
		for _, f := range forms[of] {
			if b.late(f.name) {
				return nil
			}
			burst, set := tokens, first(0)
			if of == 1 {
				burst, set = 1, several(rows, ids)
			}
			t, err := b.timeOn(in, f.g.Name, burst, b.rounds, set)
			if err != nil {
				return err
			}
			dispatches := f.g.Stats().Dispatches
			b.row(f.name, map[string]any{"of": what, "dispatches": dispatches, "device_microseconds": 1e6 * measure.Median(t.device)},
				"| %s | %d | %.1f | %s |\n", f.name, dispatches, 1e6*measure.Median(t.device), around(t.device))
		}
	}
	return nil
}
