package cpu

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
)

// TestNames pins the library: every name of a recording is looked up in it.
func TestNames(t *testing.T) {
	want := []string{
		"affine_embed_float_gs_32_b_4",
		"affine_embed_float_gs_32_b_8",
		"affine_embed_float_gs_64_b_4",
		"affine_embed_float_gs_64_b_8",
		"affine_qmm_t_float_gs_32_b_4_alN_false_batch_0",
		"affine_qmm_t_float_gs_32_b_4_alN_true_batch_0",
		"affine_qmm_t_float_gs_32_b_8_alN_false_batch_0",
		"affine_qmm_t_float_gs_32_b_8_alN_true_batch_0",
		"affine_qmm_t_float_gs_64_b_4_alN_false_batch_0",
		"affine_qmm_t_float_gs_64_b_4_alN_true_batch_0",
		"affine_qmm_t_float_gs_64_b_8_alN_false_batch_0",
		"affine_qmm_t_float_gs_64_b_8_alN_true_batch_0",
		"affine_qmv_fast_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4",
		"affine_qmv_fast_float_gs_32_b_8_batch_0_pr_0_hgs_0_r_4",
		"affine_qmv_fast_float_gs_64_b_4_batch_0_pr_0_hgs_0_r_4",
		"affine_qmv_fast_float_gs_64_b_8_batch_0_pr_0_hgs_0_r_4",
		"affine_qmv_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4",
		"affine_qmv_float_gs_32_b_8_batch_0_pr_0_hgs_0_r_4",
		"affine_qmv_float_gs_64_b_4_batch_0_pr_0_hgs_0_r_4",
		"affine_qmv_float_gs_64_b_8_batch_0_pr_0_hgs_0_r_4",
		"argmax_float32",
		"embed_float16",
		"embed_float32",
		"g2_Addfloat32",
		"g2_Multiplyfloat32",
		"g2_copyfloat32float32",
		"g3_copyfloat32float32",
		"gemm_nt_float16_float32",
		"gemm_nt_float32",
		"gemv_float16_float32",
		"gemv_float32_bm1_bn1_sm8_sn4_tm1_tn4_nc0_axpby0",
		"gemv_float32_bm1_bn1_sm8_sn4_tm4_tn4_nc0_axpby0",
		"gemv_float32_bm1_bn8_sm1_sn32_tm1_tn4_nc0_axpby0",
		"gemv_float32_bm1_bn8_sm1_sn32_tm4_tn4_nc0_axpby0",
		"gemv_float32_bm4_bn1_sm1_sn32_tm1_tn4_nc0_axpby0",
		"gemv_float32_bm4_bn1_sm1_sn32_tm4_tn4_nc0_axpby0",
		"gemv_float32_bm8_bn1_sm1_sn32_tm4_tn4_nc0_axpby0",
		"gg2_copyfloat32float32",
		"gg3_copyfloat32float32",
		"rms_loopedfloat32",
		"rmsfloat32",
		"rope_float32",
		"rope_single_float32",
		"sdpa_rows_float_128_128",
		"sdpa_rows_float_64_64",
		"sdpa_rows_float_96_96",
		"sdpa_vector_float_128_128",
		"sdpa_vector_float_64_64",
		"sdpa_vector_float_96_96",
		"v_Sigmoidfloat32float32",
		"v_Silufloat32float32",
		"v_copyfloat32float32",
		"vv_Addfloat32",
		"vv_Multiplyfloat32",
	}
	for _, kind := range []string{"x2", "x3", "add", "silu_mul"} {
		want = append(want, "gemv_"+kind+"_float16_float32", "gemm_nt_"+kind+"_float32", "gemm_nt_"+kind+"_float16_float32")
		for _, params := range []string{"float_gs_32_b_4", "float_gs_32_b_8", "float_gs_64_b_4", "float_gs_64_b_8"} {
			want = append(want, "affine_qmv_"+kind+"_"+params, "affine_qmv_fast_"+kind+"_"+params,
				"affine_qmm_t_"+kind+"_"+params+"_alN_false", "affine_qmm_t_"+kind+"_"+params+"_alN_true")
		}
	}
	want = append(want, "add_rmsfloat32", "add_rms_loopedfloat32", "rope_single_x2_float32", "rope_x2_float32",
		"rmsfloat16", "rms_loopedfloat16", "vv_Addfloat16", "vv_Multiplyfloat16", "g2_Addfloat16", "g2_Multiplyfloat16", "v_copyfloat16float16",
		"layer_normfloat32", "layer_norm_loopedfloat32", "layer_normfloat16", "layer_norm_loopedfloat16", "layer_normbfloat16", "layer_norm_loopedbfloat16", "vjp_layer_normfloat32", "vjp_layer_norm_loopedfloat32",
		"col_reduce_small_1_reduce_sumfloat32", "col_reduce_looped_1_32_32_reduce_sumfloat32", "gemm_nn_float32", "gemm_tn_float32")
	want = append(want, "block_softmax_float32", "looped_softmax_float32", "v_Gelufloat32float32", "v_GeluErffloat32float32", "v_Softcapfloat32float32",
		"topk_float32", "gather_gemv_float32", "gather_gemv_float16_float32", "weighted_sum_float32",
		"ggml_mul_mv_q4_0_f32", "ggml_mul_mv_q8_0_f32", "ggml_mul_mv_q6_K_f32",
		"ggml_mul_mv_id_q4_0_f32", "ggml_mul_mv_id_q8_0_f32", "ggml_mul_mv_id_q6_K_f32")
	for _, params := range []string{"float_gs_32_b_4", "float_gs_32_b_8", "float_gs_64_b_4", "float_gs_64_b_8"} {
		want = append(want, "affine_gather_qmv_"+params, "affine_gather_qmv_fast_"+params, "gather_qmv_"+params)
	}
	slices.Sort(want)
	assert.Empty(t, cmp.Diff(want, Names()))
	assert.True(t, slices.IsSorted(Names()))
	for _, n := range want {
		assert.Equal(t, n, Lookup(n).Name)
	}
	assert.Nil(t, Lookup("rmsbfloat16"))
}

func TestRegisterRefusesASecondKernel(t *testing.T) {
	assert.PanicsWithValue(t, "cpu: two kernels are called rmsfloat32", func() { register(&Kernel{Name: "rmsfloat32"}) })
}
