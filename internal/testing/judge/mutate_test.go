package judge_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/judge"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/passes"
)

// placeBarriers runs the barriers pass on a generated graph.
func placeBarriers(g *ir.Graph) error {
	p, err := passes.ParsePipeline("barriers")
	if err != nil {
		return err
	}
	_, err = passes.Run(context.Background(), g, p, passes.Options{})
	return err
}

// recordedGraphs returns the graphs of testdata/graphs, changed so that their replays
// may follow one another.
func recordedGraphs(t testing.TB) []*ir.Graph {
	var out []*ir.Graph
	for i, g := range recorded.Graphs(t) {
		if i%2 == 1 { // with the declared effects stored
			p, err := passes.ParsePipeline("annotate")
			require.NoError(t, err)
			_, err = passes.Run(context.Background(), g, p, passes.Options{})
			require.NoError(t, err)
		}
		if !judge.Close(g, judge.Options{}) {
			require.NoError(t, placeBarriers(g)) // a racy recording
			if !judge.Close(g, judge.Options{}) {
				t.Logf("%s: not free of races: %+v", g.Name, judge.Judge(g, g, judge.Options{}))
			}
		}
		out = append(out, g)
	}
	return out
}

// readings are the ways in which replays and commits may be ordered. A generated graph
// is free of races under one of them, which its seed picks.
var readings = []judge.Options{{}, {Replays: judge.Waited}, {}, {Replays: judge.Committed}}

func generate(t testing.TB, seed uint64) (*ir.Graph, judge.Options) {
	o := readings[seed%uint64(len(readings))]
	g, err := judge.Generate(rand.New(rand.NewPCG(seed, 2)), o, placeBarriers)
	require.NoError(t, err)
	return g, o
}

func text(g *ir.Graph) string { return mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}) }

// Every mutation finds places and leaves its argument unchanged, and together they give
// enough of both verdicts. The counts are printed.
func TestCensus(t *testing.T) {
	sample.Seldom(t)
	start := time.Now()
	graphs := recordedGraphs(t)
	options := make([]judge.Options, len(graphs))
	for seed := range uint64(24) {
		g, o := generate(t, seed)
		graphs, options = append(graphs, g), append(options, o)
	}
	t.Logf("%d graphs in %v", len(graphs), time.Since(start))
	rng := rand.New(rand.NewPCG(3, 4))
	counts := map[string]*[3]int{}
	var sum [3]int
	remarks := 0
	for i, g := range graphs {
		was := text(g)
		o := options[i]
		if len(g.Nodes) > 25 {
			o.Valuations = 2 // a transformer layer takes seconds otherwise
		}
		referee := judge.NewReferee(g, o)
		for _, m := range judge.Mutations {
			if counts[m.Name] == nil {
				counts[m.Name] = new([3]int)
			}
			h, ok := m.Apply(rng, g)
			if !ok {
				continue
			}
			require.NoError(t, h.Check())
			j := referee.Judge(h)
			counts[m.Name][j.Verdict]++
			sum[j.Verdict]++
			if j.Verdict != judge.Harmless {
				require.NotEmpty(t, j.Reason)
			} else if len(j.Remarks) > 0 {
				remarks++
			}
		}
		require.Equal(t, was, text(g), "a mutation changed its argument")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%-28s %9s %9s %9s\n", "mutation", "harmless", "harmful", "undecided")
	for _, m := range judge.Mutations {
		c := counts[m.Name]
		fmt.Fprintf(&b, "%-28s %9d %9d %9d\n", m.Name, c[0], c[1], c[2])
		require.Positive(t, c[0]+c[1]+c[2], "%s found no place", m.Name)
	}
	total := sum[0] + sum[1] + sum[2]
	fmt.Fprintf(&b, "%-28s %9d %9d %9d of %d; %d harmless with remarks; %v", "all", sum[0], sum[1], sum[2], total, remarks, time.Since(start).Round(time.Millisecond))
	t.Log("\n" + b.String())
	require.Greater(t, total, 600)
	require.Greater(t, sum[judge.Harmful]*10, total*3)
	require.Greater(t, sum[judge.Harmless]*5, total)
}
