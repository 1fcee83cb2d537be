package optimize

import (
	"context"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
)

// Figures are the counts and the modelled time of one graph.
type Figures struct {
	ir.Stats
	// Barriers counts the barriers of the list ([Measure]), or those that the order of the list
	// needs ([Compare]).
	Barriers int `json:"barriers"`
	// Depth is the length of the longest chain of conflicting commands. ValueDepth (depth∞) is that
	// of the longest chain of value edges. A command of unknown effects conflicts with all others.
	Depth      int `json:"depth"`
	ValueDepth int `json:"depth_infinity"`
	// Modelled is the time of one replay.
	Modelled Modelled `json:"modelled"`
}

// Modelled is a time that package cost models, in microseconds.
type Modelled struct {
	GPU      float64 `json:"gpu_us"` // the sum of the next three
	Commands float64 `json:"commands_us"`
	Barriers float64 `json:"barriers_us"`
	Buffers  float64 `json:"buffers_us"`
	Encode   float64 `json:"encode_us"` // on the host
	Bytes    float64 `json:"bytes"`     // moved
}

// Measure computes the figures of g. Depths and times use the effects that kernels declare, whether
// or not g has them; Unannotated is that of g itself, which is not changed. It fails only if ctx is
// done, with the cause of that.
func Measure(ctx context.Context, g *ir.Graph, m cost.Model) (Figures, error) {
	return measure(ctx, g, m, false)
}

// Compare is Measure for graphs that are compared with one another. Their barriers, and the time of
// these, are those that the order of the list needs in addition to its commits. A barrier after the
// last command counts if the next replay needs it, whether or not it is in the list: a recording
// leaves it to its host, and a pass that adds it makes nothing slower.
func Compare(ctx context.Context, g *ir.Graph, m cost.Model) (Figures, error) {
	return measure(ctx, g, m, true)
}

func measure(ctx context.Context, g *ir.Graph, m cost.Model, needed bool) (f Figures, err error) {
	defer interrupt.Catch(&err)
	f = Figures{Stats: g.Stats()}
	f.Barriers = f.Stats.Barriers
	if f.Unannotated > 0 {
		g = Annotated(ctx, g)
	}
	table := hazard.NewTable(ctx, g)
	_, f.Depth = table.Levels()
	_, f.ValueDepth = table.ValueLevels()
	if needed {
		f.Barriers = table.Barriers()
	}
	m = m.OrDefault()
	t := m.Graph(g)
	t.Barriers += m.Barrier * cost.Seconds(f.Barriers-f.Stats.Barriers)
	f.Modelled = Modelled{
		GPU: t.GPU().Microseconds(), Commands: t.Commands.Microseconds(), Barriers: t.Barriers.Microseconds(),
		Buffers: t.Buffers.Microseconds(), Encode: t.Encode.Microseconds(), Bytes: t.Bytes,
	}
	return f, nil
}

// Annotated returns a copy of g with the effects that kernels declare.
func Annotated(ctx context.Context, g *ir.Graph) *ir.Graph {
	out := g.Clone()
	if p, err := passes.ParsePipeline("annotate"); err == nil {
		// Dispatches that cannot be annotated keep unknown effects, which the figures show.
		_, _ = passes.Run(ctx, out, p, passes.Options{})
	}
	return out
}

// ParamValue is a param and the value at which times are modelled.
type ParamValue struct {
	Name  string `json:"name"`
	Value uint32 `json:"value"`
}

// ModelledAt lists the values of the params at which [Measure] models g.
func ModelledAt(g *ir.Graph, m cost.Model) []ParamValue {
	out := []ParamValue{}
	e := m.OrDefault().For(g)
	for i := range g.Params {
		if g.Params[i].Type == ir.U32 {
			out = append(out, ParamValue{g.Params[i].Name, e.Param(ir.ParamID(i))})
		}
	}
	return out
}
