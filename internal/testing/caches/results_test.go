package caches

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/internal/testing/judge"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// pipelines contain every pass between them, and the rewrite that may change bits.
var pipelines = []string{
	"annotate,fuse{allow=round},dce,rename,schedule,barriers,plan,split{first=2},constants",
	"annotate,fuse{generate=false},dce,rename,reorder,barriers,edges",
}

// How much random input there is. A run of make test takes a quarter of it, with another seed each time.
const (
	randomPipelines = 400
	randomGraphs    = 50
	randomLayers    = 100
	changesOfEach   = 3 // of each kind of change, of each random graph
)

// results returns the results for all graphs, which caches must not change.
func results(t *testing.T) (out []section) {
	part := func(n int) int {
		if sample.Whole() {
			return n
		}
		return n / 4
	}
	optimized := func(name string, g *ir.Graph, p passes.Pipeline) {
		out = append(out, section{fmt.Sprintf("%s, %s", name, judge.PipelineText(p)), optimizedText(g, p)})
	}
	ps := []passes.Pipeline{passes.DefaultPipeline()}
	for _, text := range pipelines {
		p, err := passes.ParsePipeline(text)
		require.NoError(t, err)
		ps = append(ps, p)
	}
	for _, name := range recorded.Names(t) {
		for _, p := range ps {
			optimized(name, recorded.Graph(t, name), p)
		}
	}
	for _, p := range ps {
		layer := benchgraphs.Chained(recorded.Graph(t, "llama_layer_decode"))
		optimized("layers", benchgraphs.Layers(layer, layer.Stats().Dispatches, 4), p)
		for _, f := range append(benchgraphs.ElementwiseFamilies(), benchgraphs.CopyFamilies()...) {
			optimized(f.Name, f.Make(64), p)
		}
	}
	rng := rand.New(rand.NewPCG(11, uint64(sample.Run())))
	for i := range part(randomPipelines) {
		g, err := judge.GenerateBuiltin(rng)
		require.NoError(t, err)
		p, err := judge.Pipeline(rng)
		require.NoError(t, err)
		optimized(fmt.Sprint("random ", i), g, p)
	}
	// Layers repeat nearly everything, so that caches are used most, but for the few commands that are changed.
	layer := benchgraphs.Chained(recorded.Graph(t, "llama_layer_decode"))
	layers := benchgraphs.Layers(layer, layer.Stats().Dispatches, 3)
	for i := range part(randomLayers) {
		g := layers.Clone()
		for range 1 + rng.IntN(3) {
			if d, ok := g.Nodes[rng.IntN(len(g.Nodes))].(*ir.Dispatch); ok {
				b := &d.Bindings[rng.IntN(len(d.Bindings))]
				if b.Kind == ir.BindView {
					b.View.Off = b.View.Off.AddConst(64 * int64(rng.IntN(9)-4))
				}
			}
		}
		if g.Check() == nil {
			optimized(fmt.Sprint("layers with changes ", i), g, ps[i%len(ps)])
		}
		m := judge.Mutations[i%len(judge.Mutations)]
		if after, ok := m.Apply(rng, layers); ok {
			out = append(out, section{fmt.Sprintf("change %d of layers, %s", i, m.Name), text(prove.Check(context.Background(), layers, after, prove.Options{}))})
		}
	}
	for i := range part(randomGraphs) {
		g, err := judge.Generate(rng, judge.Options{}, func(g *ir.Graph) error {
			judge.PlaceBarriers(g)
			return nil
		})
		require.NoError(t, err)
		for _, m := range judge.Mutations {
			for n := range changesOfEach {
				if after, ok := m.Apply(rng, g); ok {
					p := prove.Check(context.Background(), g, after, prove.Options{Allow: []string{"round"}[:n%2]})
					out = append(out, section{fmt.Sprintf("change %d of graph %d, %s", n, i, m.Name), text(p) + format(after)})
				}
			}
		}
	}
	return out
}

func format(g *ir.Graph) string { return mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}) }

// text returns v as JSON, with one field a line.
func text(v any) string {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		panic(err)
	}
	return string(data) + "\n"
}

// optimizedText returns the results of optimizing a graph, without the time that it takes.
func optimizedText(g *ir.Graph, p passes.Pipeline) string {
	r, err := optimize.Run(context.Background(), g, optimize.Options{Pipeline: p})
	if err != nil {
		return err.Error()
	}
	for i := range r.Rows {
		r.Rows[i].Report.Time = time.Duration(0)
	}
	var b strings.Builder
	b.WriteString(text(r))
	if r.Optimized != nil { // it is proved
		b.WriteString(format(r.Optimized))
	}
	return b.String()
}
