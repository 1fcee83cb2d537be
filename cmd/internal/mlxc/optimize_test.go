package mlxc

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

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

func bad(run func(g *ir.Graph)) passes.Pipeline {
	return passes.Pipeline{{Pass: passes.New(passes.Pass{Name: "bad"}, func(_ context.Context, s *passes.State, _ struct{}) error {
		run(s.Graph)
		return nil
	})}}
}

func run(t *testing.T, o optimize.Options) (*ir.Graph, *optimize.Result) {
	m, err := mlxt.Parse(context.Background(), "g", []byte(foreign))
	require.NoError(t, err)
	r, err := optimize.Run(context.Background(), m.Graphs[0], o)
	require.NoError(t, err)
	return m.Graphs[0], r
}

// A pass that was undone has its row in the table, its line and its place in the JSON.
func TestUndonePassIsPrinted(t *testing.T) {
	_, r := run(t, optimize.Options{Pipeline: bad(func(g *ir.Graph) { g.Nodes[0].(*ir.Dispatch).Bindings[0].View.Off = ir.Const(2) })})
	require.Equal(t, prove.Proved, r.Proof.Verdict)
	var out bytes.Buffer
	c := optimizeCmd{Output: "o.mlxg", Remarks: remarksFlag{on: true}}
	model, err := c.model()
	require.NoError(t, err)
	require.NoError(t, c.print(&cli.Env{Stdout: &out}, []*optimize.Result{r}, model))
	why := "cannot tell (coverage): #1 own has no declaration, and its views changed so that the recording does not say what it touches"
	require.Contains(t, out.String(), " bad (undone) ")
	require.Contains(t, out.String(), "\ngraph g: undone: bad: "+why+"\n")
	require.Contains(t, out.String(), "\ng: bad: the pass: not done: undone: bad: "+why+"\n")
	require.Contains(t, out.String(), "\ngraph g: proved: ")

	data, err := json.Marshal(r)
	require.NoError(t, err)
	var back struct {
		Passes []struct {
			Pass, Undone string
			After        struct{ Depth int }
		}
		Proof struct{ Result string }
	}
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, "bad", back.Passes[0].Pass)
	require.Equal(t, why, back.Passes[0].Undone)
	require.Equal(t, 1, back.Passes[0].After.Depth)
	require.Equal(t, "proved", back.Proof.Result)
}

// A refusal that a pass caused names the pass, and a reproduction is kept.
func TestRefusalKeepsAReproduction(t *testing.T) {
	o := optimize.Options{Pipeline: bad(func(g *ir.Graph) { g.Nodes = g.Nodes[:0] })}
	g, r := run(t, o)
	require.Equal(t, prove.Refused, r.Proof.Verdict)
	c := optimizeCmd{Graph: "dir/g.mlxg", Output: filepath.Join(t.TempDir(), "o.mlxg")}
	err := c.unproved(&cli.Env{Context: context.Background()}, &output.Files{}, g, r, o)
	require.ErrorContains(t, err, "graph g is not proved to compute what dir/g.mlxg does; nothing was written\nrefused")
	require.ErrorContains(t, err, "this is a bug of mlxc: please report it")
	require.ErrorContains(t, err, "a small recording with the same refusal: "+c.Output+".refused.txtar")
	a, err := txtar.ParseFile(c.Output + ".refused.txtar")
	require.NoError(t, err)
	require.Len(t, a.Files, 3)
	_, err = os.Stat(c.Output)
	require.ErrorIs(t, err, os.ErrNotExist)
}
