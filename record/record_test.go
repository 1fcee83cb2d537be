package record_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

func ExampleSession() {
	r := record.New("norm")
	x := r.Input("x", ir.F32, 576)
	y := r.Output("y", ir.F32, 576)
	r.RMSNorm(x, 1e-5, record.Into(y), record.Label("final norm"))
	g, err := r.Graph()
	if err != nil {
		fmt.Println(err)
		return
	}
	d := g.Nodes[0].(*ir.Dispatch)
	fmt.Println(d.ID, g.Kernels[d.Kernel].Function, d.Label, g.FormatView(d.Bindings[0].View))
	// Output: #0 rmsfloat32 final norm %x[0:2304]
}

// shape lists the operations of dispatches and, as "|", barriers, in their order.
func shape(g *ir.Graph) []string {
	var out []string
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.Dispatch:
			out = append(out, n.Op)
		case *ir.Barrier:
			out = append(out, "|")
		}
	}
	return out
}

// A barrier stands exactly where a dispatch conflicts with one since the last barrier:
// not between independent matrix-vector products, but also where scratch is reused.
func TestBarriersOnConflictOnly(t *testing.T) {
	r := record.New("t")
	x := r.Input("x", ir.F32, 64)
	y := r.Output("y", ir.F32, 64)
	d := r.Scratch(ir.F32, record.Dims(64)...)
	mark := r.ScratchMark()
	a := r.Silu(x)
	b := r.Sigmoid(x)
	c := r.Mul(a, b)
	r.Add(c, x, record.Into(d))
	r.ScratchReset(mark)
	r.Silu(x) // reuses a's bytes, which Mul read before the last barrier
	r.Add(d, x, record.Into(y))
	g, err := r.Graph()
	require.NoError(t, err)
	require.Equal(t, []string{"silu", "sigmoid", "|", "elementwise_mul", "|", "elementwise_add", "silu", "|", "elementwise_add"}, shape(g))
}

// ScratchReset gives scratch back, so the arena is only as large as the most that was in use
// at a time.
func TestArenaReuse(t *testing.T) {
	r := record.New("t")
	x := r.Input("x", ir.F32, 1000)
	y := r.Output("y", ir.F32, 1000)
	for range 10 {
		m := r.ScratchMark()
		r.Silu(r.Silu(x))
		r.ScratchReset(m)
	}
	r.Silu(x, record.Into(y))
	g, err := r.Graph()
	require.NoError(t, err)
	require.Equal(t, int64(2*4096), g.Stats().Bytes.Scratch)
}

// Scratch for a number of rows that depends on a param has room for the max number.
func TestScratchForParams(t *testing.T) {
	r := record.New("t")
	n := r.Param("n", 1, 7)
	x := r.Input("x", ir.F32, 7, 100)
	x.Shape[0] = n
	y := r.Output("y", ir.F32, 7, 100)
	y.Shape[0] = n
	r.Silu(r.RMSNorm(x, 1e-5), record.Into(y))
	g, err := r.Graph()
	require.NoError(t, err)
	require.Equal(t, int64(2816), g.Stats().Bytes.Scratch)
	require.Equal(t, "%scratch[0:400*$n]", g.FormatView(g.Nodes[0].(*ir.Dispatch).Binding(2).View))
}

// Matmul chooses its kernel by shape: a matrix-vector kernel for few rows, a matrix-matrix
// kernel for many, and the fast variant where K allows it.
func TestMatmulRoutes(t *testing.T) {
	for _, k := range []struct {
		rows, n, k, bits, group int64
		want                    string
	}{
		{1, 64, 512, 4, 32, "affine_qmv_fast_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4"},
		{1, 64, 576, 4, 32, "affine_qmv_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4"},
		{1, 60, 512, 4, 32, "affine_qmv_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4"},
		{1, 64, 256, 8, 64, "affine_qmv_fast_float_gs_64_b_8_batch_0_pr_0_hgs_0_r_4"},
		{5, 64, 64, 8, 64, "affine_qmv_float_gs_64_b_8_batch_0_pr_0_hgs_0_r_4"},
		{13, 64, 64, 4, 64, "affine_qmv_float_gs_64_b_4_batch_0_pr_0_hgs_0_r_4"},
		{14, 64, 64, 4, 64, "affine_qmm_t_float_gs_64_b_4_alN_true_batch_0"},
		{40, 60, 64, 4, 32, "affine_qmm_t_float_gs_32_b_4_alN_false_batch_0"},
		{1, 64, 512, 2, 128, "affine_qmv_fast_float_gs_128_b_2_batch_0_pr_0_hgs_0_r_4"},
		{1, 64, 256, 5, 128, "affine_qmv_float_gs_128_b_5_batch_0_pr_0_hgs_0_r_4"},
		{1, 64, 256, 6, 64, "affine_qmv_fast_float_gs_64_b_6_batch_0_pr_0_hgs_0_r_4"},
		{40, 60, 96, 3, 32, "affine_qmm_t_float_gs_32_b_3_alN_false_batch_0"},
	} {
		r := record.New("t")
		x := r.Input("x", ir.F32, k.rows, k.k)
		y := r.Output("y", ir.F32, k.rows, k.n)
		w := record.Quantized(record.QTensor{
			W:      r.RandomWeight("w", 1, ir.U32, k.n, k.k*k.bits/32),
			Scales: r.RandomWeight("s", 2, ir.F32, k.n, k.k/k.group), Biases: r.RandomWeight("b", 3, ir.F32, k.n, k.k/k.group),
			N: k.n, K: k.k, Bits: k.bits, Group: k.group,
		})
		r.Matmul(x, w, record.Into(y))
		g, err := r.Graph()
		require.NoError(t, err, k.want)
		require.Equal(t, k.want, g.Kernels[0].Function)
	}
	for _, k := range []struct {
		rows, n, k int64
		t          ir.DType
		want       string
	}{
		{1, 576, 576, ir.F32, "gemv_float32_bm4_bn1_sm1_sn32_tm4_tn4_nc0_axpby0"},
		{1, 4096, 576, ir.F32, "gemv_float32_bm8_bn1_sm1_sn32_tm4_tn4_nc0_axpby0"},
		{1, 576, 64, ir.F32, "gemv_float32_bm1_bn1_sm8_sn4_tm4_tn4_nc0_axpby0"},
		{1, 8, 576, ir.F32, "gemv_float32_bm1_bn8_sm1_sn32_tm4_tn4_nc0_axpby0"},
		{1, 576, 576, ir.F16, "gemv_float16_float32"},
		{3, 576, 576, ir.F32, "gemm_nt_float32"},
		{3, 576, 576, ir.F16, "gemm_nt_float16_float32"},
	} {
		r := record.New("t")
		x := r.Input("x", ir.F32, k.rows, k.k)
		y := r.Output("y", ir.F32, k.rows, k.n)
		r.Matmul(x, record.Dense(r.RandomWeight("w", 1, k.t, k.n, k.k)), record.Into(y))
		g, err := r.Graph()
		require.NoError(t, err, k.want)
		require.Equal(t, k.want, g.Kernels[0].Function)
	}
}

// Finish returns the first mistake, and its text has the shapes.
func TestMistakes(t *testing.T) {
	cases := []struct {
		name string
		make func(r *record.Session)
		want string
	}{
		{"into has another shape", func(r *record.Session) {
			r.Silu(r.Input("x", ir.F32, 4, 8), record.Into(r.Output("y", ir.F32, 32)))
		}, "record t: silu gives f32[4, 8], Into has f32[32]"},
		{"shapes do not fit", func(r *record.Session) {
			r.Mul(r.Input("x", ir.F32, 4, 8), r.Input("w", ir.F32, 4))
		}, "record t: elementwise_mul: [4, 8] and [4] do not fit: the second must have the first's shape or be one row of it"},
		{"matmul of other rows", func(r *record.Session) {
			r.Matmul(r.Input("x", ir.F32, 1, 32), record.Dense(r.RandomWeight("w", 1, ir.F32, 8, 64)))
		}, "record t: matmul: rows of 32 elements times a matrix [8, 64]"},
		{"heads do not divide", func(r *record.Session) {
			kv := r.State("k", ir.F32, 16, 2, 64)
			r.SDPA(r.Input("q", ir.F32, 1, 3, 64), kv, kv, ir.Const(4), 1)
		}, "record t: sdpa: the number of query heads, 3, is not a multiple of the number of key heads, 2"},
		{"head dim without a kernel", func(r *record.Session) {
			kv := r.State("k", ir.F32, 16, 2, 80)
			r.SDPA(r.Input("q", ir.F32, 1, 2, 80), kv, kv, ir.Const(4), 1)
		}, `record t: the kernel library has no function "sdpa_rows_float_80_80" (there is sdpa_rows_float_128_128, sdpa_rows_float_256_256, sdpa_rows_float_64_64, sdpa_rows_float_96_96)`},
		{"negative window", func(r *record.Session) {
			kv := r.State("k", ir.F32, 16, 2, 64)
			r.SDPABy(r.Input("q", ir.F32, 1, 2, 64), kv, kv, ir.Const(4), record.Attention{Scale: 1, Window: -1})
		}, "record t: sdpa: a window of -1 positions, scores within ±0, sinks: false: want no negative numbers, and no sinks beside a bound of scores"},
		{"sinks beside a bound", func(r *record.Session) {
			kv := r.State("k", ir.F32, 16, 2, 64)
			r.SDPABy(r.Input("q", ir.F32, 1, 2, 64), kv, kv, ir.Const(4), record.Attention{Scale: 1, Cap: 5, Sinks: r.Input("s", ir.F32, 2)})
		}, "record t: sdpa: a window of 0 positions, scores within ±5, sinks: true: want no negative numbers, and no sinks beside a bound of scores"},
		{"sinks of other heads", func(r *record.Session) {
			kv := r.State("k", ir.F32, 16, 2, 64)
			r.SDPABy(r.Input("q", ir.F32, 1, 2, 64), kv, kv, ir.Const(4), record.Attention{Scale: 1, Sinks: r.Input("s", ir.F32, 3)})
		}, "record t: sdpa: sinks are f32[3]: want f32[2]"},
		{"scratch that depends on an inner param", func(r *record.Session) {
			r.Scratch(ir.F32, ir.Const(2), r.Param("n", 1, 4))
		}, "record t: scratch [2, $n]: only the outermost dimension of a tensor may depend on params"},
		{"result overlaps an operand", func(r *record.Session) {
			y := r.State("y", ir.F32, 96)
			shifted := y
			shifted.Off, shifted.Shape = ir.Const(128), record.Dims(64)
			y.Shape = record.Dims(64)
			r.Silu(y, record.Into(shifted))
		}, "record t: #0 v_Silufloat32float32: out %y[128:384] overlaps in %y[0:256]: it may only be the same view: offset, shape, strides and element size"},
	}
	for _, c := range cases {
		r := record.New("t")
		c.make(r)
		_, err := r.Graph()
		requireMistake(t, err, c.want, c.name)
	}
}

// Into belongs to one operation. Operations that compute its arguments do not see it.
func TestIntoDoesNotLeakIntoArguments(t *testing.T) {
	r := record.New("t")
	x := r.Input("x", ir.F32, 64)
	y := r.Output("y", ir.F32, 64)
	r.Add(x, r.Silu(x), record.Into(y))
	g, err := r.Graph()
	require.NoError(t, err)
	silu := g.Nodes[0].(*ir.Dispatch)
	require.Equal(t, "%scratch[0:256]", g.FormatView(silu.Binding(1).View))
}
