package hazard_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/internal/testing/smallgraph"
	"github.com/mlxc/mlxc/ir"
)

// Where crowds form, more is ordered than conflicts demand, but never less.
func TestCrowdsAgainstBytes(t *testing.T) {
	coarser := 0
	rapid.Check(t, func(t *rapid.T) {
		g := commands(t, false)
		exact, _ := hazard.NewTable(context.Background(), g).Levels()
		defer hazard.Crowd(0, 0, rapid.IntRange(1, 3).Draw(t, "crowd"))()
		table := hazard.NewTable(context.Background(), g)
		same, later := byBytes(g, false), byBytes(g, true)
		levels, _ := table.Levels()
		atLeast(t, "level", longest(same), levels)
		for i := range levels {
			require.GreaterOrEqual(t, levels[i], exact[i])
			if levels[i] > exact[i] {
				coarser++
			}
		}
		atLeast(t, "latest", latestOf(same, later, nil), table.Latest(nil))
		least := make([]int32, table.Len())
		smallgraph.Values(g, func(p []uint32) {
			for i, l := range valuesOf(g, p) {
				least[i] = max(least[i], l)
			}
		})
		valueLevels, _ := table.ValueLevels()
		atLeast(t, "value level", least, valueLevels)

		o := table.Order()
		direct := square(o.Nodes)
		for i := range int32(o.Nodes) {
			for _, j := range o.Successors(i) {
				direct[i][j] = true
			}
		}
		reach := closed(direct)
		for i := range o.Nodes {
			require.False(t, reach[i][i], "a cycle")
		}
		for i := range table.Len() {
			for j := range table.Len() {
				if same[i][j] && !reach[i][j] {
					t.Fatalf("%d conflicts with %d, and the order does not say so", j, i)
				}
				if reach[i][j] && i >= j {
					t.Fatalf("%d is ordered behind %d", j, i)
				}
			}
		}
		// A command of a stream waits for everything that it conflicts with.
		s := hazard.NewStream(context.Background(), g)
		var free []int32
		ended := make([]bool, s.Len())
		for range s.Len() {
			if s.Enter() {
				free = append(free, s.Entered()-1)
			}
			if rapid.Bool().Draw(t, "end") && len(free) > 0 {
				k := rapid.IntRange(0, len(free)-1).Draw(t, "which")
				i := free[k]
				free = append(free[:k], free[k+1:]...)
				for b := range i {
					if same[b][i] && !ended[b] {
						t.Fatalf("%d is free before %d has ended", i, b)
					}
				}
				ended[i] = true
				s.End(i, func(j int32) { free = append(free, j) })
			}
		}
	})
	require.Positive(t, coarser, "no crowd was ever seen")
}

func atLeast(t *rapid.T, what string, least, got []int32) {
	for i := range got {
		if got[i] < least[i] {
			t.Fatalf("%s of command %d is %d, bytes say %d", what, i, got[i], least[i])
		}
	}
}

// overlapping returns a graph of n fills whose ranges params move over one another,
// with the given numbers of params and constraints.
func overlapping(n, params, constraints int) *ir.Graph {
	rng := rand.New(rand.NewPCG(1, 2))
	b := ir.NewBuilder("g")
	var ps []ir.ParamID
	for i := range params {
		ps = append(ps, b.Param(fmt.Sprintf("p%d", i), 0, 1000))
	}
	term := func(i int, k int64) ir.Term { return ir.Term{Param: ps[i%params], Coeff: k} }
	for i := range constraints {
		b.Require(ir.Linear(0, term(i, 1), term(i*7+1, 1), term(i*13+2, 1)), 900)
	}
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 1 << 20})
	for i := range n {
		off := ir.Linear(int64(i%1000), term(rng.IntN(params), 1+rng.Int64N(7)), term(rng.IntN(params), 1+rng.Int64N(7)))
		b.Fill(ir.View{Mem: y, Off: off, Len: ir.Const(100)}, byte(i), "")
	}
	g, err := b.Graph()
	if err != nil {
		panic(err)
	}
	return g
}

// A sweep over ranges that all overlap takes work in proportion to their number, not to
// its square, counted in cells visited.
func TestOverlappingRangesAreLinear(t *testing.T) {
	work := func(n int) float64 {
		table := hazard.NewTable(context.Background(), overlapping(n, 64, 64))
		_, depth := table.Levels()
		require.Greater(t, depth, n/2, "they conflict")
		table.ValueLevels()
		table.Latest(nil)
		table.Order()
		return float64(table.Operations())
	}
	small, large := work(4000), work(16000)
	require.Less(t, large/small, 6.0, "four times the commands")
}

func BenchmarkOverlapping(b *testing.B) {
	for _, params := range []int{1, 64} {
		constraints := params &^ 1
		b.Run(fmt.Sprintf("params=%d", params), func(b *testing.B) {
			g := overlapping(4000, params, constraints)
			b.ReportAllocs()
			for b.Loop() {
				table := hazard.NewTable(context.Background(), g)
				table.Levels()
				table.ValueLevels()
				table.Latest(nil)
				table.Order()
			}
		})
	}
}

// Where crowds form, a race that is called proved is one, although a crowd does not
// know its bytes exactly.
func TestCrowdsProveNoRace(t *testing.T) {
	proved, unsure := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := commands(t, false)
		defer hazard.Crowd(0, 0, rapid.IntRange(1, 3).Draw(t, "crowd"))()
		same := byBytes(g, false)
		j := hazard.NewTable(context.Background(), g).Judge()
		for _, r := range j.Races {
			if !same[r.Earlier][r.Later] {
				t.Fatalf("%d and %d share no byte, and race for it", r.Earlier, r.Later)
			}
		}
		proved += len(j.Races)
		unsure += len(j.Unsure)
	})
	require.Positive(t, proved)
	require.Positive(t, unsure)
}

// Where many commands read what many wrote, and where ranges lie within ranges, each
// question takes work in proportion to the commands, counted in cells visited.
func TestCellsVisitedAreLinear(t *testing.T) {
	boundary := func(n int) func(int) bool { return func(i int) bool { return i%n == n/2 } }
	for graph, of := range map[string]func(int) *ir.Graph{"pieces": benchgraphs.Pieces, "nested": benchgraphs.Nested} {
		for question, ask := range map[string]func(*hazard.Table){
			"levels":            func(t *hazard.Table) { t.Levels() },
			"value levels":      func(t *hazard.Table) { t.ValueLevels() },
			"latest":            func(t *hazard.Table) { t.Latest(nil) },
			"latest by buffers": func(t *hazard.Table) { t.Latest(boundary(t.Len())) },
			"order":             func(t *hazard.Table) { t.Order() },
			"judgement":         func(t *hazard.Table) { t.Judge() },
		} {
			work := func(n int) float64 {
				table := hazard.NewTable(context.Background(), of(n))
				ask(table)
				return float64(table.Operations()) / float64(n)
			}
			small, large := work(10_000), work(40_000)
			t.Logf("%s, %s: %.1f and %.1f a command", graph, question, small, large)
			require.Less(t, large, 1.5*small+1, "%s, %s: four times the commands", graph, question)
		}
	}
}
