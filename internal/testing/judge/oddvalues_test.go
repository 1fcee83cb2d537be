package judge_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
	"github.com/mlxc/mlxc/replay"
)

var (
	oddGraphs = flag.Int("judge.values", 400, "random graphs whose values TestOddValues compares")
	oddFirst  = flag.Uint64("judge.first", 0, "number of the first of them")
)

// TestOddValues checks that what is proved, without any rewrite that must be allowed by
// name, has the same bits. Graphs of elementwise terms, norms, softmax and rope run on
// zeros of both signs, NaNs with payloads, subnormals, infinities and extremes of f32,
// f16 and bf16: as recorded, as optimized by default, and changed by hand where the
// prover says that the change is harmless.
func TestOddValues(t *testing.T) {
	sample.Seldom(t)
	d := cpu.New(1)
	defer d.Close()
	pipeline, err := passes.ParsePipeline("")
	require.NoError(t, err)
	var fused, mutants, proved, seen int
	numbers := []uint64{1216, 1255, 1008546, 1011811} // graphs that found something before
	for k := range *oddGraphs {
		numbers = append(numbers, *oddFirst+uint64(k))
	}
	for _, n := range numbers {
		g := oddGraph(n)
		require.NoError(t, g.Check(), "graph %d\n%s", n, text(g))
		want, err := oddRun(d, g, n)
		require.NoError(t, err, "graph %d\n%s", n, text(g))
		same := func(what string, after *ir.Graph) {
			got, err := oddRun(d, after, n)
			require.NoError(t, err, "graph %d, %s\n%s", n, what, text(after))
			if diff := oddDifference(want, got); diff != "" {
				t.Fatalf("graph %d, %s: %s\nbefore\n%s\nafter\n%s", n, what, diff, text(g), text(after))
			}
		}
		r, err := optimize.Run(context.Background(), g, optimize.Options{Pipeline: pipeline})
		require.NoError(t, err)
		require.Equal(t, prove.Proved, r.Proof.Verdict, "graph %d: %s\n%s", n, r.Proof, text(g))
		require.Empty(t, r.Proof.Rewrites)
		fused += r.Proof.Fused
		same("optimized", r.Optimized)
		rng := rand.New(rand.NewPCG(n, 4))
		for k := range 6 {
			of := g
			if k%3 == 2 {
				of = r.Optimized
			}
			m := mutate(of, rng)
			if m == nil {
				continue
			}
			mutants++
			if prove.Check(context.Background(), g, m, prove.Options{}).Verdict == prove.Proved {
				proved++
				same("changed", m)
			} else if n%4 == 0 { // count whether the change can be seen
				if got, err := oddRun(d, m, n); err == nil && oddDifference(want, got) != "" {
					seen++
				}
			}
		}
	}
	t.Logf("%d graphs, %d commands fused, %d of %d changes proved, 0 bits differ; of every 4th graph's changes that are not proved %d show",
		len(numbers), fused, proved, mutants, seen)
	if *oddGraphs >= 100 {
		require.Positive(t, fused)
		require.Positive(t, seen)
		require.Greater(t, proved, mutants/10)
	}
}

// oddRun replays g once with the inputs of graph number n, and returns its outputs.
func oddRun(d backend.Device, g *ir.Graph, n uint64) (map[string][]byte, error) {
	s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{Poison: true})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p, err := s.Graph(context.Background(), g.Name)
	if err != nil {
		return nil, err
	}
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.Input {
			var number uint64
			if _, err := fmt.Sscanf(m.Name, "m%d", &number); err != nil {
				return nil, err
			}
			data := make([]byte, m.Size)
			oddBytes(data, m.DType, rand.New(rand.NewPCG(n, number)))
			if err := p.SetInput(m.Name, data); err != nil {
				return nil, err
			}
		}
	}
	if _, err := p.Run(context.Background()); err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.Output {
			if out[m.Name], err = p.Output(m.Name); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func oddDifference(want, got map[string][]byte) string {
	if len(want) != len(got) {
		return fmt.Sprintf("%d and %d outputs", len(want), len(got))
	}
	for name, w := range want {
		if g := got[name]; !bytes.Equal(w, g) {
			i := 0
			for i < min(len(w), len(g)) && w[i] == g[i] {
				i++
			}
			at := i / 4 * 4
			return fmt.Sprintf("%%%s[%d:] is %x, was %x", name, at, g[at:min(at+4, len(g))], w[at:min(at+4, len(w))])
		}
	}
	return ""
}
