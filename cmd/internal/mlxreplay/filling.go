package mlxreplay

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// filling is the flags of commands that replay a graph for other reasons than its results: they choose the graph and
// its inputs. Inputs that are not given are random, and params have their max.
type filling struct {
	Graph string   `arg:"" help:"Graph file (.mlxg or .mlxt); - is standard input."`
	Name  string   `name:"graph" placeholder:"NAME" help:"Graph to replay (default: the first)."`
	In    []string `placeholder:"NAME=FILE.npy" help:"Fill an input or state (default: random numbers, from --seed; zeros for integers). Repeatable."`
	Set   []string `placeholder:"PARAM=VALUE" help:"Set a param (default: its max). Repeatable."`
	cli.OrderFlag

	in, set []assignment
}

// open reads the flags and opens the file.
func (f *filling) open(env *cli.Env) (_ *inputs.File, err error) {
	if f.in, err = assignments("--in", "NAME=FILE.npy", f.In); err != nil {
		return nil, err
	}
	if f.set, err = assignments("--set", "PARAM=VALUE", f.Set); err != nil {
		return nil, err
	}
	file, err := inputs.Open(env.Context, f.Graph, inputs.Options{})
	if err == nil {
		f.Apply(file.Module.Graphs...)
	}
	return file, err
}

// prepare sets params and fills inputs. A param that --set leaves out gets its max, with which the graph touches the
// most bytes.
func (f *filling) prepare(g *replay.Graph, seed uint64) error {
	most, set := g.IR().Greatest(), f.set
	for i := range g.IR().Params {
		p := &g.IR().Params[i]
		if !slices.ContainsFunc(set, func(a assignment) bool { return a.name == p.Name }) && p.Type != ir.F32 {
			set = append(slices.Clip(set), assignment{p.Name, fmt.Sprint(most[i])})
		}
	}
	if err := setParams(g, set); err != nil {
		return err
	}
	if err := randomInputs(g, seed); err != nil {
		return err
	}
	return fillInputs(g, f.in)
}

// randomInputs fills inputs with random numbers between −1 and 1, and inputs of integers with zeros.
func randomInputs(g *replay.Graph, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range g.IR().Memories {
		m := &g.IR().Memories[i]
		if m.Kind != ir.Input || m.Alias != ir.NoMem {
			continue
		}
		data := make([]byte, m.Size)
		switch {
		case m.DType == ir.F32, !m.DType.Valid(): // without a type, floats are most likely
			for k := 0; k+4 <= len(data); k += 4 {
				binary.LittleEndian.PutUint32(data[k:], math.Float32bits(2*r.Float32()-1))
			}
		case m.DType == ir.F16, m.DType == ir.BF16:
			// Numbers from 0.5 to 1 in bf16, smaller ones in f16, of either sign.
			for k := 0; k+2 <= len(data); k += 2 {
				binary.LittleEndian.PutUint16(data[k:], 0x3f00|uint16(r.Uint32()&0x80ff)&^0x40)
			}
		}
		if err := g.SetInput(m.Name, data); err != nil {
			return err
		}
	}
	return nil
}
