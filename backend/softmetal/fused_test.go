package softmetal_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// The dispatches that pass `fuse` makes of a layer compute the same bits as the recorded ones: a fused kernel adds in
// the same order, within simdgroups too, as the kernels that it replaces.
func TestFusedBits(t *testing.T) {
	d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 2})
	require.NoError(t, err)
	defer d.Close()
	for _, file := range sample.Turns(t, t.Name(), []string{"../../passes/testdata/fuse_norm.txtar", "../../passes/testdata/fuse_head.txtar", "../../testdata/graphs/llama_layer_decode.txtar", "../../testdata/graphs/llama_layer_prefill.txtar"}) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			require.NoError(t, err)
			var text []byte
			for _, f := range a.Files {
				if f.Name == "in.mlxt" || f.Name == "recorded.mlxt" {
					text = f.Data
				}
			}
			m, err := mlxt.Parse(context.Background(), file, text)
			require.NoError(t, err)
			recorded := m.Graphs[0]
			fused := recorded.Clone()
			_, err = passes.Run(t.Context(), fused, passes.DefaultPipeline(), passes.Options{})
			require.NoError(t, err)
			require.Less(t, fused.Stats().Dispatches, recorded.Stats().Dispatches)
			require.Equal(t, outputs(t, d, recorded), outputs(t, d, fused))
		})
	}
}

// The same of dense products and of activations in 16 bits, of one row and of many: fused products round where those that they stand for store,
// and generated kernels where the operations do that they are made of.
func TestFusedBitsIn16Bits(t *testing.T) {
	sample.Seldom(t)
	d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 2})
	require.NoError(t, err)
	defer d.Close()
	type kind struct {
		of      ir.DType
		rows    int64
		product string
	}
	for _, kind := range sample.Turns(t, t.Name(), []kind{{ir.BF16, 33, "gemm_nt"}, {ir.F16, 1, "gemv"}, {ir.F16, 33, "gemm_nt"}, {ir.BF16, 1, "gemv"}}) {
		of, rows := kind.of, kind.rows
		r := record.New("dense")
		x, row := r.Input("x", of, rows, 96), r.Input("row", of, 96)
		weight := func(name string, n, k int64) record.Matrix {
			return record.Dense(r.Input(name, of, n, k))
		}
		act := r.Mul(r.Silu(r.Matmul(x, weight("gate", 72, 96))), r.Matmul(x, weight("up", 72, 96)))
		sum := r.Add(x, r.Matmul(act, weight("down of it", 96, 72)))
		q, k := weight("queries", 24, 96), weight("keys", 16, 96)
		r.CopyTo("queries", r.Output("q", of, rows, 24), r.Matmul(sum, q))
		r.CopyTo("keys", r.Output("k", of, rows, 16), r.Matmul(sum, k))
		r.Add(r.Relu(r.Softcap(r.Scale(r.Sub(sum, row), record.Float(0.7)), 5)), row, record.Into(r.Output("y", of, rows, 96)))
		recorded, err := r.Graph()
		require.NoError(t, err)
		fused := recorded.Clone()
		_, err = passes.Run(t.Context(), fused, passes.DefaultPipeline(), passes.Options{})
		require.NoError(t, err)
		var names []string
		for _, k := range fused.Kernels {
			names = append(names, k.Function)
		}
		for _, want := range []string{kind.product + "_silu_mul_", kind.product + "_add_", kind.product + "_x2_", "tanh(round(" + of.String()} {
			require.Contains(t, strings.Join(names, "\n"), want)
		}
		want := outputs(t, d, recorded)
		require.Equal(t, want, outputs(t, d, fused), "%s, %d rows", of, rows)
	}
}

// The same of products with GGML's blocks, of one row and of several.
func TestFusedBitsOfBlocks(t *testing.T) {
	d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 2})
	require.NoError(t, err)
	defer d.Close()
	type kind struct {
		format record.GGMLFormat
		bytes  int
		halves []int // where numbers of f16 lie
		of     ir.DType
	}
	var kinds []kind
	for _, of := range []ir.DType{ir.F16, ir.F32, ir.BF16} {
		kinds = append(kinds, kind{record.Q4_K, 144, []int{0, 2}, of}, kind{record.Q6_K, 210, []int{208}, of}, kind{record.Q8_0, 8 * 34, []int{0, 34, 68, 102, 136, 170, 204, 238}, of})
	}
	for _, of := range sample.Turns(t, t.Name(), kinds) {
		const n, k = 21, 512
		random := rand.New(rand.NewPCG(5, 6))
		r := record.New("blocks")
		weight := func(name string) record.GGMLMatrix {
			w := make([]byte, n*k/256*of.bytes)
			for i := range w {
				w[i] = byte(random.Uint32())
			}
			for b := 0; b < len(w); b += of.bytes {
				for _, at := range of.halves { // so small that sigmoids are not all 0 or 1
					copy(w[b+at:], record.Elements(ir.F16, []float32{float32(random.NormFloat64()) * 0x1p-13}))
				}
			}
			return record.GGMLMatrix{Format: of.format, N: n, K: k, Blocks: r.Weight(name, ir.NewBlob(w), ir.U8, int64(len(w)))}
		}
		gate, up := weight("gate"), weight("up")
		for _, rows := range []int64{1, 3} {
			x := r.Input(fmt.Sprint("x", rows), of.of, rows, k)
			r.Mul(r.Silu(r.MatmulGGML(x, gate)), r.MatmulGGML(x, up), record.Into(r.Output(fmt.Sprint("y", rows), of.of, rows, n)))
		}
		recorded, err := r.Graph()
		require.NoError(t, err)
		fused := recorded.Clone()
		_, err = passes.Run(t.Context(), fused, passes.DefaultPipeline(), passes.Options{})
		require.NoError(t, err)
		require.Equal(t, 2, fused.Stats().Dispatches, "%s %s", of.format, of.of)
		require.Equal(t, outputs(t, d, recorded), outputs(t, d, fused), "%s %s", of.format, of.of)
	}
}

// The same of queries, keys and values of many rows, in tiles of 32 rows and of 64, of which the last ones have few.
func TestFusedBitsOfTurnedRows(t *testing.T) {
	sample.Long(t)
	d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 2})
	require.NoError(t, err)
	defer d.Close()
	type kind struct {
		of, cache                ir.DType
		heads, dims, rows, group int64
		traditional              bool
	}
	for _, x := range sample.Turns(t, t.Name(), []kind{
		{ir.F32, ir.F16, 64, 64, 70, 64, false}, {ir.F16, ir.F16, 32, 128, 70, 32, true}, {ir.F32, ir.F32, 5, 20, 35, 32, true}, {ir.BF16, ir.BF16, 3, 64, 35, 64, false},
	}) {
		random := rand.New(rand.NewPCG(7, 8))
		const keys, k = 2, 64
		r := record.New("turned")
		weight := func(name string, n int64) record.Matrix {
			codes := make([]byte, n*k/2)
			for i := range codes {
				codes[i] = byte(random.Uint32())
			}
			numbers := func(name string) record.Tensor {
				v := make([]float32, n*k/x.group)
				for i := range v {
					v[i] = float32(random.NormFloat64()) / 8
				}
				return r.Weight(name, ir.NewBlob(record.Elements(x.of, v)), x.of, n, k/x.group)
			}
			return record.Quantized(record.QTensor{W: r.Weight(name, ir.NewBlob(codes), ir.U32, n, k/8), Scales: numbers(name + ".scales"), Biases: numbers(name + ".biases"), N: n, K: k, Bits: 4, Group: x.group})
		}
		in := r.Input("x", x.of, x.rows, k)
		product := func(name string, heads int64) record.Tensor {
			return r.Matmul(in, weight(name, heads*x.dims)).Reshape(ir.Const(x.rows), ir.Const(heads), ir.Const(x.dims))
		}
		queries, key, value := product("queries", x.heads), product("keys", keys), product("values", keys)
		kcache, vcache := r.State("k", x.cache, x.rows+9, keys, x.dims), r.State("v", x.cache, x.rows+9, keys, x.dims)
		r.Rope(queries, ir.Const(5), 1e4, x.traditional, record.Into(r.Output("q", x.of, x.rows, x.heads, x.dims)))
		turned := r.Rope(key, ir.Const(5), 1e4, x.traditional)
		if x.of == x.cache {
			r.KVWrite(kcache, turned, ir.Const(5))
			r.KVWrite(vcache, value, ir.Const(5))
		} else {
			r.KVWriteRounded(kcache, vcache, turned, value, ir.Const(5))
		}
		recorded, err := r.Graph()
		require.NoError(t, err)
		fused := recorded.Clone()
		_, err = passes.Run(t.Context(), fused, passes.DefaultPipeline(), passes.Options{})
		require.NoError(t, err)
		require.Equal(t, 1, fused.Stats().Dispatches, "%v", x)
		require.Equal(t, outputs(t, d, recorded), outputs(t, d, fused), "%v", x)
	}
}

// outputs returns the contents of g's outputs and states after each of two replays.
func outputs(t *testing.T, d *softmetal.Device, g *ir.Graph) (out []map[string][]byte) {
	s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	p, err := s.Graph(t.Context(), g.Name)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	for r := range 2 {
		for _, q := range g.Params {
			require.NoError(t, p.SetParam(q.Name, math.Floor(float64(q.Min+q.Max)/2)-float64(r)))
		}
		result := map[string][]byte{}
		for i := range g.Memories {
			if m := &g.Memories[i]; m.Kind == ir.Input {
				of := m.DType
				if !of.Float() {
					of = ir.F32
				}
				var in []byte
				for range m.Size / of.Size() {
					in = append(in, record.Elements(of, []float32{float32(random.NormFloat64())})...)
				}
				require.NoError(t, p.SetInput(m.Name, in))
			}
		}
		_, err := p.Run(t.Context())
		require.NoError(t, err)
		for i := range g.Memories {
			switch m := &g.Memories[i]; m.Kind {
			case ir.Output:
				result[m.Name], err = p.Output(m.Name)
			case ir.State:
				result[m.Name], err = p.State(m.Name)
			}
			require.NoError(t, err)
		}
		out = append(out, result)
	}
	return out
}
