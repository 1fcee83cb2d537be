package optimize_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
	"github.com/mlxc/mlxc/record"
)

// TestFastestKernel: if several kernels compute the same, a group becomes the one that is fastest
// by the profile, and a single dispatch is replaced likewise. Without a profile, it becomes the one
// that is most like the recorded ones. Both results are proved.
func TestFastestKernel(t *testing.T) {
	s := record.New("products")
	weight := func(name string, n, k int64) record.QTensor {
		return record.QTensor{
			W:      s.Weight(name, ir.NewBlob(make([]byte, n*k/2)), ir.U32, n, k/8),
			Scales: s.Weight(name+"_scales", ir.NewBlob(make([]byte, n*k/8)), ir.F32, n, k/32),
			Biases: s.Weight(name+"_biases", ir.NewBlob(make([]byte, n*k/8)), ir.F32, n, k/32),
			N:      n, K: k, Bits: 4, Group: 32,
		}
	}
	// Two products by themselves, one of a row that no piece divides, and one with what is added to it.
	for i, k := range []int64{2048, 2048, 512} {
		in := s.Input(fmt.Sprint("x", i), ir.F32, 1, k)
		s.Matmul(in, record.Quantized(weight(fmt.Sprint("w", i), 64, k)), record.Into(s.Output(fmt.Sprint("y", i), ir.F32, 1, 64)))
	}
	s.Add(s.Input("r", ir.F32, 1, 64), s.Matmul(s.Input("x", ir.F32, 1, 2048), record.Quantized(weight("w3", 64, 2048))), record.Into(s.Output("sum", ir.F32, 1, 64)))
	g, err := s.Graph()
	require.NoError(t, err)

	const recorded = "affine_qmv_fast_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4"
	run := func(times map[string]int) (kernels []string, said string) {
		var m cost.Model
		if times != nil {
			var rows []string
			for name, ns := range times {
				rows = append(rows, fmt.Sprintf("%q: {\"fixed_ns\": %d}", name, ns))
			}
			m, err = cost.ParseProfile("p", []byte(`{"kernels": {`+strings.Join(rows, ",")+`}}`))
			require.NoError(t, err)
		}
		p, err := passes.ParsePipeline("annotate,fuse")
		require.NoError(t, err)
		r, err := optimize.Run(t.Context(), g, optimize.Options{Pipeline: p, Passes: passes.Options{Model: m}})
		require.NoError(t, err)
		require.Equal(t, prove.Proved, r.Proof.Verdict)
		for _, n := range r.Optimized.Nodes {
			if d, ok := n.(*ir.Dispatch); ok {
				kernels = append(kernels, strings.TrimSuffix(r.Optimized.Kernels[d.Kernel].Function, "_float_gs_32_b_4"))
			}
		}
		for _, p := range r.Rows {
			for _, x := range p.Remarks {
				said += x.Text + "\n"
			}
		}
		slices.Sort(kernels)
		return kernels, said
	}
	kernels, said := run(nil)
	require.Equal(t, []string{"affine_qmv_fast_add", recorded, recorded, recorded}, kernels)
	require.NotContains(t, said, "in place of")
	times := map[string]int{recorded: 20000, "affine_qmv_whole_float_gs_32_b_4": 9000, "affine_qmv_piped_float_gs_32_b_4": 12000, "affine_qmv_fast_add_float_gs_32_b_4": 21000, "affine_qmv_piped_add_float_gs_32_b_4": 13000, "vv_Addfloat32": 1000}
	kernels, said = run(times)
	require.Equal(t, []string{"affine_qmv_piped_add", "affine_qmv_whole", "affine_qmv_whole", "affine_qmv_whole"}, kernels)
	require.Equal(t, 3, strings.Count(said, "in place of "+recorded+", which takes longer by the profile\n"))
	times["affine_qmv_whole_float_gs_32_b_4"], times["affine_qmv_piped_add_float_gs_32_b_4"] = 22000, 30000
	kernels, _ = run(times)
	require.Equal(t, []string{recorded, "affine_qmv_piped", "affine_qmv_piped", "affine_qmv_piped", "vv_Addfloat32"}, kernels, "two dispatches take 13 µs, in place of 21")
	delete(times, "affine_qmv_piped_float_gs_32_b_4") // a kernel that was not measured is not taken for faster
	kernels, _ = run(times)
	require.Equal(t, []string{"affine_qmv_fast_add", recorded, recorded, recorded}, kernels)
}
