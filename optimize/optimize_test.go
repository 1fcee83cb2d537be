package optimize_test

import (
	"context"
	"encoding/base64"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

func pipeline(t *testing.T, list string) passes.Pipeline {
	p, err := passes.ParsePipeline(list)
	require.NoError(t, err)
	return p
}

// with inserts a test's pass after the pass called name.
func with(p passes.Pipeline, name string, run func(g *ir.Graph)) (out passes.Pipeline) {
	for _, s := range p {
		out = append(out, s)
		if s.Pass.Name == name {
			out = append(out, passes.Step{Pass: passes.New(passes.Pass{Name: "bad"}, func(_ context.Context, s *passes.State, _ struct{}) error {
				run(s.Graph)
				return nil
			})})
		}
	}
	return out
}

// dropBarriers is a pass with a bug.
func dropBarriers(g *ir.Graph) {
	var kept []ir.Node
	for _, n := range g.Nodes {
		if _, ok := n.(*ir.Barrier); !ok {
			kept = append(kept, n)
		}
	}
	g.Nodes = kept
}

// nudge moves what a kernel without declaration binds to another alignment, so that the recording's
// effects do not say any more what the kernel touches.
func nudge(g *ir.Graph) {
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok && !g.Kernels[d.Kernel].Library.Declared() {
			d.Bindings[0].View.Off = ir.Const(2)
		}
	}
}

func TestProved(t *testing.T) {
	g := recorded.Graph(t, "llama_layer_decode")
	was := mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}})
	done := 0
	r, err := optimize.Run(context.Background(), g, optimize.Options{Pipeline: passes.DefaultPipeline(), Progress: func(n int) { done = n }})
	require.NoError(t, err)
	require.Equal(t, prove.Proved, r.Proof.Verdict, "%s", r.Proof)
	require.Equal(t, was, mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}), "the recording is left alone")
	require.Equal(t, len(r.Rows), done)
	require.Empty(t, r.Undone())
	require.Less(t, r.After.Dispatches, r.Before.Dispatches)
	require.Less(t, r.After.Modelled.GPU, r.Before.Modelled.GPU)
	require.Equal(t, r.After, r.Rows[len(r.Rows)-1].After)
	require.Equal(t, r.After.Epochs, r.After.Depth)
	// The depth of the recording does not depend on whether it has effects.
	require.Equal(t, r.Rows[0].After.Depth, r.Before.Depth)
	require.Equal(t, r.Rows[0].After.Modelled, r.Before.Modelled)
	require.Positive(t, r.Before.Unannotated)
	require.Greater(t, r.Before.Depth, 1)
}

func TestRefusedAndReduced(t *testing.T) {
	g := recorded.Graph(t, "llama_layer_decode")
	o := optimize.Options{Pipeline: with(passes.DefaultPipeline(), "plan", dropBarriers)}
	r, err := optimize.Run(context.Background(), g, o)
	require.NoError(t, err)
	require.Equal(t, prove.Refused, r.Proof.Verdict)
	require.Equal(t, prove.Proved, r.OfRecording, "the recording is not at fault")
	require.Empty(t, r.Undone(), "a wrong pass is never undone in silence")
	require.Nil(t, r.Optimized, "nobody may use it")

	small := optimize.Reduce(context.Background(), g, o, optimize.ReduceLimit)
	require.NotNil(t, small)
	require.Equal(t, prove.Refused, small.Proof.Verdict)
	require.LessOrEqual(t, len(small.Before.Nodes), 3, "two commands and what orders them")
	require.Equal(t, "bad", small.Pipeline[len(small.Pipeline)-1].Pass.Name)
	require.LessOrEqual(t, len(small.Pipeline), 2)
	require.Less(t, len(small.Before.Memories), 8)

	// The text can be parsed, and gives the same result.
	a := txtar.Parse(small.Reproduction("g.mlxg"))
	require.Contains(t, string(a.Comment), "Graph decode of g.mlxg")
	var of [2]*ir.Graph
	for i, name := range []string{"before.mlxt", "after.mlxt"} {
		require.Equal(t, name, a.Files[i].Name)
		m, err := mlxt.Parse(context.Background(), name, a.Files[i].Data)
		require.NoError(t, err)
		of[i] = m.Graphs[0]
	}
	require.Equal(t, prove.Refused, prove.Check(context.Background(), of[0], of[1], prove.Options{}).Verdict)
	require.Equal(t, "proof", a.Files[2].Name)

	// If the time is up at once, it is still a reproduction.
	large := optimize.Reduce(context.Background(), g, o, time.Nanosecond)
	require.NotNil(t, large)
	require.Len(t, large.Before.Nodes, len(g.Nodes))
	o.Pipeline = passes.DefaultPipeline()
	require.Nil(t, optimize.Reduce(context.Background(), g, o, optimize.ReduceLimit), "nothing to reproduce")
}

// foreign returns a graph with a kernel that only its recorder knows.
const foreign = `mlxt 1
graph g {
  memory %x input 64 f32[16]
  memory %y output 64 f32[16]
  kernel @own source "own.metal" sha256 0000000000000000000000000000000000000000000000000000000000000001 "own" args(0 a: device f32 read, 1 b: device f32 write)

  #1 @own (a = %x[0:32], b = %y[0:64]) grid threads [16, 1, 1] of [16, 1, 1]
      effects complete reads %x[0:32] writes must %y[0:64]
  barrier
}
`

func TestCannotTellIsUndone(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "g", []byte(foreign))
	require.NoError(t, err)
	g := m.Graphs[0]
	o := optimize.Options{Pipeline: with(pipeline(t, "annotate,barriers"), "annotate", nudge)}
	r, err := optimize.Run(context.Background(), g, o)
	require.NoError(t, err)
	require.Equal(t, prove.Proved, r.Proof.Verdict, "%s", r.Proof)
	undone := r.Undone()
	require.Len(t, undone, 1)
	require.Equal(t, "bad", undone[0].Pass)
	require.Contains(t, undone[0].Undone, "cannot tell (")
	require.Contains(t, undone[0].Remarks[0].String(), "undone: bad: cannot tell (")
	require.Len(t, r.Rows, 3, "the pass keeps its row")
	require.Equal(t, r.Rows[0].After, r.Rows[1].After)
	require.Equal(t, ir.Const(0), r.Optimized.Nodes[0].(*ir.Dispatch).Bindings[0].View.Off, "what it did is gone")

	// Here two passes are at fault.
	o.Pipeline = with(o.Pipeline, "barriers", nudge)
	r, err = optimize.Run(context.Background(), g, o)
	require.NoError(t, err)
	require.Equal(t, prove.Proved, r.Proof.Verdict)
	require.Len(t, r.Undone(), 2)
}

// Of a recording that races by itself no prefix is proved, and the pass is found by
// A recording that races has no one meaning: no pass runs.
func TestOfARace(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "g", []byte(strings.Replace(foreign, "  barrier\n", "  #2 @own (a = %x[0:32], b = %y[0:64]) grid threads [16, 1, 1] of [16, 1, 1]\n      effects complete reads %x[0:32] writes must %y[0:64]\n", 1)))
	require.NoError(t, err)
	g := m.Graphs[0]
	o := optimize.Options{Pipeline: pipeline(t, "annotate,barriers")}
	_, err = optimize.Run(context.Background(), g, o)
	var none *meaning.Error
	require.ErrorAs(t, err, &none)
	require.ErrorIs(t, err, optimize.ErrNoMeaning)
	require.EqualError(t, err, none.Error())
	require.Equal(t, []ir.ID{1, 2}, none.Report.Faults[0].Commands)
	g.Ordering = ir.Serial
	r, err := optimize.Run(context.Background(), g, o)
	require.NoError(t, err, "its list is its order")
	require.Equal(t, prove.Proved, r.Proof.Verdict, "%s", r.Proof)
	require.Equal(t, ir.ByBarriers, r.Optimized.Ordering, "barriers are written down")
}

// If no pass can be undone, there is no result.
func TestNothingToUndo(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "g", []byte(strings.Replace(foreign, "  barrier\n", "", 1)))
	require.NoError(t, err)
	o := optimize.Options{Proof: prove.Options{Strict: true}}
	r, err := optimize.Run(context.Background(), m.Graphs[0], o)
	require.NoError(t, err)
	require.Equal(t, prove.CannotTell, r.Proof.Verdict, "%s", r.Proof)
	require.Equal(t, prove.CannotTell, r.OfRecording)
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := optimize.Options{Pipeline: passes.DefaultPipeline()}
	o.Progress = func(done int) {
		if done == 2 {
			cancel()
		}
	}
	_, err := optimize.Run(ctx, recorded.Graph(t, "norm_residual"), o)
	require.ErrorIs(t, err, context.Canceled)
}

// A reduced recording keeps the memories and aliases that it uses and loses the others, wherever
// these stand in the tables. Contents become random numbers.
func TestReducedTables(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "g", []byte(`mlxt 1
graph g {
  memory %unused input 64
  memory %w weight 64 f32[16] = blob base64"`+base64.StdEncoding.EncodeToString(make([]byte, 64))+`"
  memory %s scratch 256
  memory %other alias %s + 0 size 64
  memory %a alias %s + 64 size 64
  memory %y output 64 f32[16]
  kernel @gone builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  kernel @silu builtin "v_Silufloat32float32" args(0 in: device f32 read, 1 out: device f32 write)

  #0 @gone (a = %unused[0:64], b = %w[0:64], c = %other[0:64]) grid threads [16, 1, 1] of [16, 1, 1]
  barrier
  #1 @silu (in = %w[0:64], out = %a[0:64]) grid threads [16, 1, 1] of [16, 1, 1]
  barrier
  #2 copy %a[0:64] -> %y[0:64]
  barrier
}
`))
	require.NoError(t, err)
	small := optimize.Reduce(context.Background(), m.Graphs[0], optimize.Options{Pipeline: with(pipeline(t, "annotate"), "annotate", func(g *ir.Graph) {
		for i, n := range g.Nodes { // the barrier before the copy
			if _, ok := n.(*ir.Copy); ok && i > 0 {
				g.Nodes = append(g.Nodes[:i-1:i-1], g.Nodes[i:]...)
				return
			}
		}
	})}, optimize.ReduceLimit)
	require.NotNil(t, small)
	text := mlxt.Format(&ir.Module{Graphs: []*ir.Graph{small.Before}})
	require.NotContains(t, text, "%unused")
	require.NotContains(t, text, "%other")
	require.NotContains(t, text, "@gone")
	require.NotContains(t, text, "blob")
	require.Contains(t, text, "memory %a alias %s + 64 size 64")
	require.Contains(t, text, "#2 copy %a[0:64] -> %y[0:64]")
	again, err := mlxt.Parse(context.Background(), "again", []byte(text))
	require.NoError(t, err)
	require.NoError(t, again.Graphs[0].Check())
}

// A carry names memories as every command does, and memories that no command names are dropped.
func TestReduceKeepsWhatACarryNames(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "g", []byte(`mlxt 1
graph g {
  memory %unused scratch 64
  memory %x input 64 f32[16]
  memory %y output 64 f32[16]
  kernel @silu builtin "v_Silufloat32float32" args(0 in: device f32 read, 1 out: device f32 write)

  #0 @silu (in = %x[0:64], out = %y[0:64]) grid threads [16, 1, 1] of [16, 1, 1]
  barrier
  #1 carry %y[0:64] -> %x[0:64]
  barrier
}
`))
	require.NoError(t, err)
	small := optimize.Reduce(context.Background(), m.Graphs[0], optimize.Options{Pipeline: with(pipeline(t, "annotate"), "annotate", func(g *ir.Graph) {
		for i, n := range g.Nodes { // the barrier behind the carry
			if _, ok := n.(*ir.Carry); ok {
				g.Nodes = g.Nodes[:i+1]
				return
			}
		}
	})}, optimize.ReduceLimit)
	require.NotNil(t, small)
	text := mlxt.Format(&ir.Module{Graphs: []*ir.Graph{small.Before}})
	require.NotContains(t, text, "%unused")
	require.Contains(t, text, "carry %y[0:64] -> %x[0:64]")
}

// A pass that takes more than its budget, of time or of memory, is undone with a
// remark; the others run, and the result is proved.
func TestOverBudgetIsUndone(t *testing.T) {
	sample.Seldom(t)
	var kept [][]byte
	for what, run := range map[string]func(ctx context.Context){
		"time": func(ctx context.Context) {
			for {
				interrupt.Poll(ctx)
			}
		},
		"memory": func(ctx context.Context) {
			for range 4096 { // 4 GiB if nothing stops it
				interrupt.Poll(ctx)
				kept = append(kept, make([]byte, 1<<20))
				time.Sleep(time.Millisecond)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			// The pass after it must stay within the budget however busy the machine is.
			budget := map[string]passes.Budget{"time": {Time: time.Second}, "memory": {Memory: 64 << 20, Time: time.Minute}}[what]
			hungry := passes.Step{Pass: passes.New(passes.Pass{Name: "hungry"}, func(ctx context.Context, s *passes.State, _ struct{}) error {
				dropBarriers(s.Graph) // undoes what the pass did
				run(ctx)
				return nil
			})}
			p := append(passes.Pipeline{hungry}, pipeline(t, "annotate")...)
			r, err := optimize.Run(context.Background(), recorded.Graph(t, "norm_residual"), optimize.Options{Pipeline: p, Passes: passes.Options{Budget: budget}})
			kept = nil
			require.NoError(t, err)
			require.Equal(t, prove.Proved, r.Proof.Verdict, "%s", r.Proof)
			require.Len(t, r.Undone(), 1)
			require.Equal(t, "hungry", r.Undone()[0].Pass)
			require.Contains(t, r.Undone()[0].Undone, "more than its budget")
			require.Contains(t, r.Undone()[0].Undone, what)
			require.Contains(t, r.Rows[0].Remarks[0].String(), "more than its budget")
			require.Equal(t, r.Before.Barriers, r.After.Barriers)
			require.Zero(t, r.After.Unannotated)
		})
	}
}

// A proof that takes more than its budget, of time or of memory, is "cannot tell", and says why.
// The passes are not tried one by one, because each proof would take as long.
func TestProofOverBudget(t *testing.T) {
	sample.Seldom(t)
	for what, budget := range map[string]prove.Budget{"1ms of time": {Time: time.Millisecond}, "1 MiB of memory": {Memory: 1 << 20}} {
		t.Run(what, func(t *testing.T) {
			// Garbage from before would count as memory of the proof, so there is little when it
			// begins.
			defer debug.SetGCPercent(debug.SetGCPercent(5))
			g := benchgraphs.Decode(200_000) // its proof takes longer than a busy machine takes to look at the budget
			runtime.GC()
			starts := 0
			pass := passes.Step{Pass: passes.New(passes.Pass{Name: "nothing"}, func(context.Context, *passes.State, struct{}) error {
				starts++
				runtime.GC() // collects the garbage from before the pass; the proof comes next
				return nil
			})}
			r, err := optimize.Run(context.Background(), g, optimize.Options{Pipeline: passes.Pipeline{pass}, Proof: prove.Options{Budget: budget}})
			require.NoError(t, err)
			require.Equal(t, prove.CannotTell, r.Proof.Verdict)
			require.True(t, r.Proof.OverBudget())
			require.NoError(t, r.Proof.Err)
			require.Contains(t, r.Proof.String(), "cannot tell (stopped): the proof took more than its budget of "+what)
			require.Empty(t, r.Undone())
			require.Equal(t, 1, starts)
		})
	}
}
