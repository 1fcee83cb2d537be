package kernelcases

import (
	"fmt"
	"regexp"
	"strings"
)

// Family is a template of kernels in one of MLX's files.
type Family struct {
	File, Template string
	name           *regexp.Regexp // of its kernels
}

// Families are the families of MLX 0.32.4's library, in the order of the files. Every kernel of the library belongs
// to one.
var Families = families(`
arange.h arange arange.*
arg_reduce.metal arg_reduce_general arg(min|max)_.*
binary.h binary_ss ss_BINARY
binary.h binary_sv svn?_BINARY
binary.h binary_vs vsn?_BINARY
binary.h binary_vv vvn?_BINARY
binary.h binary_sv2 sv2_BINARY
binary.h binary_vs2 vs2_BINARY
binary.h binary_vv2 vv2_BINARY
binary.h binary_g_nd1 g1(large)?_BINARY
binary.h binary_g_nd2 g2(large)?_BINARY
binary.h binary_g_nd3 g3(large)?_BINARY
binary.h binary_g gn(2|4large)_BINARY
binary_two.h binary_ss ss_DivMod.*
binary_two.h binary_sv svn?_DivMod.*
binary_two.h binary_vs vsn?_DivMod.*
binary_two.h binary_vv vvn?_DivMod.*
binary_two.h binary_sv2 sv2_DivMod.*
binary_two.h binary_vs2 vs2_DivMod.*
binary_two.h binary_vv2 vv2_DivMod.*
binary_two.h binary_g_nd1 g1(large)?_DivMod.*
binary_two.h binary_g_nd2 g2(large)?_DivMod.*
binary_two.h binary_g_nd3 g3(large)?_DivMod.*
binary_two.h binary_g gn(2|4large)_DivMod.*
conv.metal naive_unfold_Nd naive_unfold_nd_.*
conv.metal naive_unfold_transpose_Nd naive_unfold_transpose_nd_.*
conv.metal depthwise_conv_1d depthwise_conv_1d_.*
conv.metal depthwise_conv_2d depthwise_conv_2d_.*
conv.metal winograd_conv_2d_weight_transform winograd_conv_2d_weight_transform_.*
conv.metal winograd_conv_2d_input_transform winograd_conv_2d_input_transform_.*
conv.metal winograd_conv_2d_output_transform winograd_conv_2d_output_transform_.*
copy.h copy_s sn?_copy.*
copy.h copy_v vn?_copy.*
copy.h copy_s2 s2_copy.*
copy.h copy_v2 v2_copy.*
copy.h copy_g_nd1 g1(large)?_copy.*
copy.h copy_g_nd2 g2(large)?_copy.*
copy.h copy_g_nd3 g3(large)?_copy.*
copy.h copy_g gn(2|4large)_copy.*
copy.h copy_gg_nd1 gg1(large)?_copy.*
copy.h copy_gg_nd2 gg2(large)?_copy.*
copy.h copy_gg_nd3 gg3(large)?_copy.*
copy.h copy_gg ggn(2|4large)_copy.*
copy.h copy_gg_dynamic_nd1 gg1(large)?_dynamic_copy.*
copy.h copy_gg_dynamic_nd2 gg2(large)?_dynamic_copy.*
copy.h copy_gg_dynamic_nd3 gg3(large)?_dynamic_copy.*
copy.h copy_gg_dynamic ggn(2|4large)_dynamic_copy.*
cross_entropy.h cross_entropy cross_entropy_FLOAT
cross_entropy.h cross_entropy_vjp cross_entropy_vjp_.*
dot.h dot_product dot_product_.*
fft.h fft fft_mem_.*
fft.h rader_fft rader_fft_mem_.*
fft.h bluestein_fft bluestein_fft_mem_.*
fft.h four_step_fft four_step_mem_.*
fft.metal generate_bluestein_twiddles generate_bluestein_twiddles
fp_quantized.h fp_quantize FP_quantize_GROUP_b_4_hgs_.*|FP_quantize_GROUP_b_8_hgs_.*
fp_quantized.h fp_dequantize FP_dequantize_.*
fp_quantized.h fp_quantize_dequantize FP_quantize_dequantize_.*
fp_quantized.h fp_qmv_quad FP_qmv_quad_.*
fp_quantized.h fp_qmv_fast FP_qmv_fast_.*
fp_quantized.h fp_qmv_wide FP_qmv_wide_.*
fp_quantized.h fp_qmv FP_qmv_(float|bfloat16_t|float16_t)_.*
fp_quantized.h fp_qvm FP_qvm_(float|bfloat16_t|float16_t)_.*
fp_quantized.h fp_qvm_split_k FP_qvm_split_k_.*
fp_quantized.h fp_qmm_t FP_qmm_t_(float|bfloat16_t|float16_t)_.*
fp_quantized.h fp_qmm_t_splitk FP_qmm_t_splitk_.*
fp_quantized.h fp_qmm_n FP_qmm_n_.*
fp_quantized.h fp_gather_qmv_fast FP_gather_qmv_fast_.*
fp_quantized.h fp_gather_qmv FP_gather_qmv_(float|bfloat16_t|float16_t)_.*
fp_quantized.h fp_gather_qvm FP_gather_qvm_.*
fp_quantized.h fp_gather_qmm_t FP_gather_qmm_t_.*
fp_quantized.h fp_gather_qmm_n FP_gather_qmm_n_.*
fp_quantized.h fp_gather_qmm_rhs FP_gather_qmm_rhs_.*
gated_delta_update.h seq_gated_delta seq_gated_delta_(float|bfloat16|float16|half|bfloat).*
gated_delta_update.h gated_delta_fused_chunk gated_delta_fused_chunk_.*
gated_delta_update_vjp.h seq_gated_delta_vjp seq_gated_delta_vjp_.*
gemv.h gemv gemv_FLOAT_bm.*
gemv.h gemv_t gemv_t_FLOAT_bm.*
gemv.h gemv_wide gemv_wide_FLOAT_.*
gemv.h gemv_gather gemv_gather_.*
gemv.h gemv_t_gather gemv_t_gather_.*
gemv.h gemv_wide_gather gemv_wide_gather_.*
gemv_masked.h gemv_masked gemv_outmask_.*
gemv_masked.h gemv_t_masked gemv_t_outmask_.*
layer_norm.metal layer_norm_single_row layer_normFLOAT
layer_norm.metal layer_norm_looped layer_norm_looped.*
layer_norm.metal vjp_layer_norm_single_row vjp_layer_normFLOAT
layer_norm.metal vjp_layer_norm_looped vjp_layer_norm_looped.*
logsumexp.h logsumexp block_logsumexp_.*
logsumexp.h logsumexp_looped looped_logsumexp_.*
quantized.h affine_quantize affine_quantize_.*
quantized.h affine_dequantize affine_dequantize_.*
quantized.h affine_qmv_quad affine_qmv_quad_.*
quantized.h affine_qmv_fast affine_qmv_fast_.*
quantized.h affine_qmv_wide affine_qmv_wide_.*
quantized.h affine_qmv affine_qmv_(float|bfloat16_t|float16_t)_.*
quantized.h affine_qvm affine_qvm_(float|bfloat16_t|float16_t)_.*
quantized.h affine_qvm_split_k affine_qvm_split_k_.*
quantized.h affine_qmm_t affine_qmm_t_(float|bfloat16_t|float16_t)_.*
quantized.h affine_qmm_t_splitk affine_qmm_t_splitk_.*
quantized.h affine_qmm_n affine_qmm_n_.*
quantized.h affine_gather_qmv_fast affine_gather_qmv_fast_.*
quantized.h affine_gather_qmv affine_gather_qmv_(float|bfloat16_t|float16_t)_.*
quantized.h affine_gather_qvm affine_gather_qvm_.*
quantized.h affine_gather_qmm_t affine_gather_qmm_t_.*
quantized.h affine_gather_qmm_n affine_gather_qmm_n_.*
quantized.h affine_gather_qmm_rhs affine_gather_qmm_rhs_.*
random.metal rbits rbits
random.metal rbitsc rbitsc
reduction/reduce_all.h all_reduce all_reduce_.*
reduction/reduce_col.h col_reduce_small col_reduce_small_.*
reduction/reduce_col.h col_reduce_longcolumn col_reduce_longcolumn_.*
reduction/reduce_col.h col_reduce_looped col_reduce_looped_.*
reduction/reduce_col.h col_reduce_2pass col_reduce_2pass_.*
reduction/reduce_init.h init_reduce init_reduce_.*
reduction/reduce_row.h row_reduce_small row_reduce_small_.*
reduction/reduce_row.h row_reduce_simple row_reduce_simple_.*
reduction/reduce_row.h row_reduce_looped row_reduce_looped_.*
rms_norm.metal rms_single_row rmsFLOAT
rms_norm.metal rms_looped rms_looped.*
rms_norm.metal vjp_rms_single_row vjp_rmsFLOAT
rms_norm.metal vjp_rms_looped vjp_rms_looped.*
rope.metal rope_single rope_single_FLOAT
rope.metal rope_single_freqs rope_single_freqs_.*
rope.metal rope rope_(large_)?FLOAT
rope.metal rope_freqs rope_freqs_.*
scan.h contiguous_scan contig_scan_.*
scan.h strided_scan strided_scan_.*
sdpa_blocked.h sdpa_blocked_causal_mask sdpa_blocked_causal_mask_.*
sdpa_blocked.h sdpa_blocked_scale_copy sdpa_blocked_scale_copy_.*
sdpa_vector.h sdpa_vector sdpa_vector_(float|bfloat16_t|float16_t)_.*
sdpa_vector.h sdpa_vector_2pass_1 sdpa_vector_2pass_1_(float|bfloat16_t|float16_t)_.*
sdpa_vector.h sdpa_vector_2pass_1_gqa sdpa_vector_2pass_1_gqa_.*
sdpa_vector.h sdpa_vector_2pass_2 sdpa_vector_2pass_2_.*
scaled_dot_product_attention.metal sdpa_vjp_ds sdpa_vjp_ds_.*
scaled_dot_product_attention.metal sdpa_vjp_odo sdpa_vjp_odo_.*
scaled_dot_product_attention.metal sdpa_vjp_reduce sdpa_vjp_reduce_.*
searchsorted.h searchsorted searchsorted_.*
softmax.h softmax_single_row block_softmax_.*
softmax.h softmax_looped looped_softmax_.*
sort.h block_sort c(arg)?_block_sort_.*
sort.h block_sort_nc nc(arg)?_block_sort_.*
sort.h mb_block_sort sort_mbsort_.*
sort.h mb_block_partition partition_mbsort_.*
sort.h mb_block_merge merge_mbsort_.*
steel/attn/steel_attention.h attention steel_attention_.*
steel/conv/steel_conv.h implicit_gemm_conv_2d implicit_gemm_conv_2d_FLOAT_.*
steel/conv/steel_conv_3d.h implicit_gemm_conv_3d implicit_gemm_conv_3d_.*
steel/conv/steel_conv_general.h implicit_gemm_conv_2d_general implicit_gemm_conv_2d_general_.*
steel/gemm/steel_gemm_fused.h gemm steel_gemm_fused_.*
steel/gemm/steel_gemm_gather.h gather_mm steel_gather_mm_(nn|nt|tn|tt)_.*
steel/gemm/steel_gemm_gather.h gather_mm_rhs steel_gather_mm_rhs_.*
steel/gemm/steel_gemm_gather.h gather_mm_offsets gather_mm_offsets
steel/gemm/steel_gemm_masked.h block_masked_gemm steel_gemm_block_.*
steel/gemm/steel_gemm_segmented.h segmented_mm steel_segmented_mm_.*
steel/gemm/steel_gemm_splitk.h gemm_splitk steel_gemm_splitk_(nn|nt|tn|tt)_.*
steel/gemm/steel_gemm_splitk.h gemm_splitk_accum steel_gemm_splitk_accum_FLOAT_[a-z0-9]+
steel/gemm/steel_gemm_splitk.h gemm_splitk_accum_axpby steel_gemm_splitk_accum_.*_axbpy
ternary.h ternary_v (v|vn|vs|vsn|sv|svn)_Select.*
ternary.h ternary_v2 (v2|vs2|sv2)_Select.*
ternary.h ternary_g_nd1 g1(large)?_Select.*
ternary.h ternary_g_nd2 g2(large)?_Select.*
ternary.h ternary_g_nd3 g3(large)?_Select.*
ternary.h ternary_g gn(2|4large)_Select.*
unary.h unary_v vn?_UNARY
unary.h unary_v2 v2_UNARY
unary.h unary_g gn(1|4large)_UNARY
`)

// abbreviations expands the words in capitals above.
var abbreviations = strings.NewReplacer(
	"BINARY", "("+strings.ReplaceAll("Add Subtract Multiply Divide Maximum Minimum Power Remainder FloorDivide LogAddExp ArcTan2 BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift Equal NotEqual Less LessEqual Greater GreaterEqual LogicalAnd LogicalOr NaNEqual", " ", "|")+`)TYPE`,
	"UNARY", "(Abs|ArcCosh?|ArcSinh?|ArcTanh?|BitwiseInvert|Ceil|Conjugate|Cosh?|Erf|ErfInv|Exp|Expm1|Floor|FromFP8|Imag|Log|Log10|Log1p|Log2|LogicalNot|Negative|Real|Round|Rsqrt|Sigmoid|Sign|Sinh?|Sqrt|Square|Tanh?|ToFP8)TYPETYPE",
	"FLOAT", "(float32|float16|bfloat16|complex64)", "FP", "(mxfp4|mxfp8|nvfp4)", "GROUP", "(float|bfloat16_t|float16_t)_gs_[0-9]+",
)

func families(table string) (out []Family) {
	const types = "(bool_|u?int(8|16|32|64)|float32|float16|bfloat16|complex64)"
	for _, l := range strings.Split(strings.TrimSpace(table), "\n") {
		f := strings.Fields(l)
		name := strings.ReplaceAll(abbreviations.Replace(f[2]), "TYPE", types)
		out = append(out, Family{f[0], f[1], regexp.MustCompile("^(" + name + ")$")})
	}
	return out
}

// FamilyOf returns the index in Families of a kernel's family.
func FamilyOf(kernel string) (int, error) {
	found := -1
	for i := range Families {
		if Families[i].name.MatchString(kernel) {
			if found >= 0 {
				return 0, fmt.Errorf("kernel %s is of two families, %s and %s", kernel, Families[found].Template, Families[i].Template)
			}
			found = i
		}
	}
	if found < 0 {
		return 0, fmt.Errorf("kernel %s is of no family", kernel)
	}
	return found, nil
}
