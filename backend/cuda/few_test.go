//go:build linux && (amd64 || arm64) && !gpu

package cuda_test

import (
	"encoding/binary"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/backend/internal/ptxmatrix"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/decoder"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/testing/fakecuda"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/replay"
)

// stepsOf is a graph of a product of $n rows.
const stepsOf = `mlxt 1

graph steps {
  param $n u32 in [1, 100]
  memory %x input 409600 f16[100, 2048]
  memory %y output 9600 f16[100, 48]
  memory %w weight 49152 u32[48, 256] = random seed 6
  memory %w.scales weight 6144 f16[48, 64] = fill 0x20002100
  memory %w.biases weight 6144 f16[48, 64] = fill 0xa400a500
  kernel @k builtin "affine_qmm_t_float16_t_gs_32_b_4_alN_false_batch_0" args(0 w: device u32 read, 1 scales: device f16 read, 2 biases: device f16 read, 3 x: device f16 read, 4 y: device f16 write, 5 K: constant i32, 6 N: constant i32, 7 M: constant i32)

  #0 @k (w = %w[0:49152], scales = %w.scales[0:6144], biases = %w.biases[0:6144], x = %x[0:4096*$n], y = %y[0:96*$n], K = 2048, N = 48, M = $n) grid threadgroups [2, ceildiv($n, 32), 1] of [32, 2, 2] op quantized_matmul
}
`

// denseStepsOf is the same with weights of 16 bits.
const denseStepsOf = `mlxt 1

graph steps {
  param $n u32 in [1, 100]
  memory %x input 409600 f16[100, 2048]
  memory %y output 9600 f16[100, 48]
  memory %w weight 196608 f16[48, 2048] = fill 0x20002100
  kernel @k builtin "gemm_nt_float16" args(0 x: device f16 read, 1 w: device f16 read, 2 y: device f16 write, 3 K: constant i32, 4 N: constant i32, 5 M: constant i32)

  #0 @k (x = %x[0:4096*$n], w = %w[0:196608], y = %y[0:96*$n], K = 2048, N = 48, M = $n) grid threadgroups [2, ceildiv($n, 32), 1] of [32, 2, 2] op matmul
}
`

// TestFewRows: a graph whose products have as many rows as a param says launches them as that number asks, by graphs and one by one, and the results are those
// of clang's code.
func TestFewRows(t *testing.T) {
	sample.Seldom(t)
	for _, text := range sample.Of(t, t.Name()+" of matrices", []string{stepsOf, denseStepsOf}, 2) {
		t.Run("", func(t *testing.T) { fewRows(t, text) })
	}
}

func fewRows(t *testing.T, text string) {
	m, err := mlxt.Parse(t.Context(), "steps.mlxt", []byte(text))
	require.NoError(t, err)
	var mu sync.Mutex
	var most []int
	serve(t, fakecuda.Options{Fits: func(k *air.Kernel, constants []ir.FunctionConstant, note []byte, groups [3]uint64) (grid [3]uint64, threads, shared uint32, err error) {
		f, err := ptxmatrix.Noted(note)
		if err != nil {
			return grid, 0, 0, err
		}
		mu.Lock()
		defer mu.Unlock()
		most = append(most, f.Most)
		grid, threads, shared = ptxmatrix.Of(k, constants, ptxmatrix.Hopper).Launch(groups, f)
		return grid, threads, shared, nil
	}})
	x := make([]byte, 409600)
	for i := range x {
		if x[i] = byte(i*37>>3 + i>>12*29); i%2 == 1 {
			x[i] = 0x38 | x[i]&0x87
		}
		if i%4096 < i>>12*40 { // rows have other sums, whatever they are multiplied by
			x[i] = 0
		}
	}
	rows := []int{3, 100, 64, 8, 9, 65, 3}
	run := func(o cuda.Options) (out []string) {
		d := standIn(t, o)
		s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{m.Graphs[0].Clone()}}, replay.Options{})
		require.NoError(t, err)
		p, err := s.Graph(t.Context(), "")
		require.NoError(t, err)
		f, err := p.NewFrame(t.Context())
		require.NoError(t, err)
		require.NoError(t, f.SetInput("x", x))
		for _, n := range rows {
			require.NoError(t, f.SetParam("n", float64(n)))
			_, err := f.Run(t.Context())
			require.NoError(t, err)
			y, err := f.Output("y")
			require.NoError(t, err)
			out = append(out, string(y[:96*n]))
		}
		require.NoError(t, s.Close())
		require.NoError(t, d.Close())
		return out
	}
	want := run(cuda.Options{Plan: cuda.Edges})
	require.NotEqual(t, want[0][:96], want[0][96:192])
	require.Empty(t, most, "images are launched as they were declared")
	for _, plan := range sample.Turns(t, t.Name(), []cuda.Plan{cuda.Edges, cuda.Stream}) {
		most = nil
		require.Equal(t, want, run(cuda.Options{Plan: plan}.WithFits()))
		require.Equal(t, []int{8, 0, 64, 8, 16, 0, 8}, most)
	}
}

// TestFewQueries: a prompt's graph launches attention of a few tokens as that of a step, with clusters, and computes the same.
func TestFewQueries(t *testing.T) {
	sample.Seldom(t)
	shape := decoder.Synthetic{Config: decoder.Config{
		Name: "few", Layers: 1, Embedding: 256, FFN: 256, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 64, Context: 64, RopeTheta: 10000, NormEps: 1e-5,
	}, Bits: 4, EmbeddingBits: 4, Untied: true}
	m, err := shape.Record(t.Context(), frontend.Options{Context: shape.Context, Prefill: 40, Type: ir.F16})
	require.NoError(t, err)
	var mu sync.Mutex
	var clusters [][2]int // query heads and queries of a cluster; no heads: other code is launched
	serve(t, fakecuda.Options{Fits: func(k *air.Kernel, constants []ir.FunctionConstant, note []byte, groups [3]uint64) (grid [3]uint64, threads, shared uint32, err error) {
		f, err := ptxmatrix.Noted(note)
		if err != nil {
			return grid, 0, 0, err
		}
		if strings.HasPrefix(k.Name, "sdpa_rows") {
			mu.Lock()
			clusters = append(clusters, [2]int{f.Heads, f.Rows})
			mu.Unlock()
		}
		grid, threads, shared = ptxmatrix.Of(k, constants, ptxmatrix.Hopper).Launch(groups, f)
		return grid, threads, shared, nil
	}})
	run := func(o cuda.Options) (out []string) {
		d := standIn(t, o)
		s, err := replay.Open(d, &ir.Module{Data: m.Data, Graphs: []*ir.Graph{m.Graphs[1].Clone()}}, replay.Options{})
		require.NoError(t, err)
		p, err := s.Graph(t.Context(), "")
		require.NoError(t, err)
		f, err := p.NewFrame(t.Context())
		require.NoError(t, err)
		for _, n := range []int{3, 40, 8, 9} {
			require.NoError(t, f.SetParam("pos", 5))
			require.NoError(t, f.SetParam("n", float64(n)))
			require.NoError(t, f.SetInput("tokens", binary.LittleEndian.AppendUint32(nil, 7)))
			_, err := f.Run(t.Context())
			require.NoError(t, err)
			y, err := f.Output("logits")
			require.NoError(t, err)
			out = append(out, string(y))
		}
		require.NoError(t, s.Close())
		require.NoError(t, d.Close())
		return out
	}
	want := run(cuda.Options{Plan: cuda.Edges})
	require.Empty(t, clusters)
	require.Equal(t, want, run(cuda.Options{Plan: cuda.Edges}.WithFits()))
	require.Equal(t, [][2]int{{2, 2}, {0, 64}, {2, 2}, {0, 64}}, clusters)
}
