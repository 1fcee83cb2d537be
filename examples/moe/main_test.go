package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// The command writes a file whose replay is what plain Go computes.
func TestRun(t *testing.T) {
	for seed := range uint64(5) {
		var out bytes.Buffer
		require.NoError(t, run(&out, filepath.Join(t.TempDir(), "moe.mlxg"), seed), "seed %d: %s", seed, &out)
		require.Contains(t, out.String(), "12 dispatches")
	}
}

func TestRunSaysWhatWentWrong(t *testing.T) {
	require.ErrorContains(t, run(&bytes.Buffer{}, filepath.Join(t.TempDir(), "no", "moe.mlxg"), 1), "no such file")
}

// The passes make fewer dispatches of it, proved, and the same bits.
func TestOptimized(t *testing.T) {
	w := newWeights(7)
	recorded, err := recordLayer(w)
	require.NoError(t, err)
	g, err := recordLayer(w)
	require.NoError(t, err)
	reports, err := passes.Run(context.Background(), g, passes.DefaultPipeline(), passes.Options{})
	require.NoError(t, err)
	require.NotEmpty(t, reports)
	proof := prove.Check(context.Background(), recorded, g, prove.Options{})
	require.Equal(t, prove.Proved, proof.Verdict, "%v", proof)

	var functions []string
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			name, _, _ := strings.Cut(g.Kernels[d.Kernel].Function, "_float")
			functions = append(functions, name)
		}
	}
	require.ElementsMatch(t, []string{
		"rmsfloat32", "gemm_nt", "topk", "block_softmax", "affine_gather_qmv", "affine_gather_qmv",
		"out0[i] = round(f32, in0[i] / (1.0 + exp(-in0[i])) * in1[i])", "affine_gather_qmv", "weighted_sum", "vv_Addfloat32",
	}, functions)

	x := make([]float32, tokens*width)
	for i := range x {
		x[i] = float32(i%17) - 8
	}
	var results [2][]float32
	for i, g := range []*ir.Graph{recorded, g} {
		path := filepath.Join(t.TempDir(), "moe.mlxg")
		require.NoError(t, mlxg.WriteFile(context.Background(), path, &ir.Module{Graphs: []*ir.Graph{g}}, mlxg.WriteOptions{}))
		results[i], err = replayFile(path, x)
		require.NoError(t, err)
	}
	require.Equal(t, results[0], results[1])
}
