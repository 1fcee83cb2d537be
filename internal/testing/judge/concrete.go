package judge

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// runs reports whether the CPU has every kernel of g.
func runs(g *ir.Graph) bool {
	return !slices.ContainsFunc(g.Kernels, func(k ir.Kernel) bool { return k.Library.Kind != ir.Builtin || cpu.Lookup(k.Function) == nil })
}

// SameBits runs two graphs with the same interface on the CPU, in written order, on the
// same random inputs, for three replays of each valuation, and reports whether every
// output and state is the same bit for bit. It sees what tokens do not show: that a
// constant of a kernel makes no difference for the arguments at hand.
func SameBits(before, after *ir.Graph, o Options) (bool, error) {
	if !runs(before) || !runs(after) {
		return false, errors.New("the CPU does not have all kernels")
	}
	o.setDefaults()
	device := cpu.New(1)
	defer device.Close()
	for i, v := range valuations(before, o.Valuations, rand.New(rand.NewPCG(o.Seed, 1))) {
		a, err := results(device, before, before, v, uint64(i))
		if err != nil {
			return false, err
		}
		b, err := results(device, after, before, v, uint64(i))
		if none := (*meaning.Error)(nil); errors.As(err, &none) {
			return false, nil // no replay accepts these params
		}
		if err != nil {
			return false, err
		}
		if !bytes.Equal(a, b) {
			return false, nil
		}
	}
	return true, nil
}

// results runs g three times and returns every output and state after each run, in the
// order that they have in graph names.
func results(device backend.Device, g, names *ir.Graph, params []uint32, seed uint64) (out []byte, err error) {
	s, err := replay.Open(device, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{Poison: true})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p, err := s.Graph(context.Background(), g.Name)
	if err != nil {
		return nil, err
	}
	for i, q := range names.Params {
		v := float64(params[i])
		if q.Type == ir.F32 {
			v = []float64{q.Min, q.Max}[seed%2]
		}
		if err := p.SetParam(q.Name, v); err != nil {
			return nil, err
		}
	}
	for run := range uint64(3) {
		for i, m := range names.Memories {
			if m.Kind == ir.Input && m.Alias == ir.NoMem {
				random := ir.Memory{Size: m.Size, DType: m.DType, Init: ir.Init{Kind: ir.InitRandom, Seed: seed<<16 + run<<8 + uint64(i)}}
				data := make([]byte, m.Size)
				err := random.WriteInit(data)
				if err == nil {
					err = p.SetInput(m.Name, data)
				}
				if err != nil {
					return nil, err
				}
			}
		}
		if _, err := p.Run(context.Background()); err != nil {
			return nil, err
		}
		for _, m := range names.Memories {
			var data []byte
			var err error
			switch {
			case m.Alias != ir.NoMem:
			case m.Kind == ir.Output:
				data, err = p.Output(m.Name)
			case m.Kind == ir.State:
				data, err = p.State(m.Name)
			}
			if err != nil {
				return nil, err
			}
			out = append(out, data...)
		}
	}
	return out, nil
}
