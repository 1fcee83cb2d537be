//go:build unix

package softmetal_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// step records a layer of a small transformer as a decoder has it: attention over a cache that
// grows by a row with each replay, and an MLP.
func step(t *testing.T) *ir.Graph {
	t.Helper()
	const dim, heads, size, most = 128, 2, 64, 1024
	s := record.New("step")
	pos := s.Param("pos", 0, most-1)
	x := s.Input("x", ir.F32, 1, dim)
	matrix := func(name string, seed uint64, rows, columns int64) record.Matrix {
		return record.Dense(s.RandomWeight(name, seed, ir.F32, rows, columns))
	}
	k, v := s.State("k", ir.F32, most, heads, size), s.State("v", ir.F32, most, heads, size)
	norm := s.Mul(s.RMSNorm(x, 1e-5), s.RandomWeight("norm", 1, ir.F32, dim))
	part := func(name string, seed uint64) record.Tensor {
		return s.Matmul(norm, matrix(name, seed, dim, dim)).Reshape(ir.Const(1), ir.Const(heads), ir.Const(size))
	}
	s.KVWrite(k, s.Rope(part("wk", 2), pos, 10000, false), pos)
	s.KVWrite(v, part("wv", 3), pos)
	attention := s.SDPA(s.Rope(part("wq", 4), pos, 10000, false), k, v, pos.AddConst(1), 0.125)
	h := s.Add(x, s.Matmul(attention.Reshape(ir.Const(1), ir.Const(dim)), matrix("wo", 5, dim, dim)))
	y := s.Add(h, s.Matmul(s.Silu(s.Matmul(s.RMSNorm(h, 1e-5), matrix("up", 6, 4*dim, dim))), matrix("down", 7, dim, 4*dim)))
	s.Softmax(y, record.Into(s.Output("y", ir.F32, 1, dim)))
	g, err := s.Graph()
	require.NoError(t, err)
	return g
}

// TestDeterminism: many steps give the same bits however many workers there are, and from
// one run to the next.
func TestDeterminism(t *testing.T) {
	sample.Seldom(t)
	ctx, steps := context.Background(), 200
	if sample.Whole() {
		steps = 1000
	}
	run := func(workers int) (sums []uint64) {
		d, err := softmetal.New(ctx, softmetal.Options{Workers: workers})
		require.NoError(t, err)
		defer func() { require.NoError(t, d.Close()) }()
		s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{step(t)}}, replay.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		g, err := s.Graph(ctx, "step")
		require.NoError(t, err)
		in := make([]byte, 4*128)
		for i := range steps {
			for k := range 128 {
				binary.LittleEndian.PutUint32(in[4*k:], math.Float32bits(float32((i*31+k*7)%97)/50-1))
			}
			require.NoError(t, g.SetInput("x", in))
			require.NoError(t, g.SetParam("pos", float64(i)))
			_, err := g.Run(ctx)
			require.NoError(t, err)
			out, err := g.Output("y")
			require.NoError(t, err)
			total := float64(0)
			for k := range 128 {
				total += float64(math.Float32frombits(binary.LittleEndian.Uint32(out[4*k:])))
			}
			require.InDelta(t, 1, total, 1e-4, "a softmax")
			h := fnv.New64a()
			h.Write(out)
			sums = append(sums, h.Sum64())
		}
		return sums
	}
	want := run(1)
	for _, workers := range []int{4, 4} {
		got := run(workers)
		for i := range got {
			require.Equal(t, want[i], got[i], fmt.Sprint("step ", i))
		}
	}
}
