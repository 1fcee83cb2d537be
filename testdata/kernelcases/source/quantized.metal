// Kernels of MLX's templates, by the names that they have in its library.
#include <metal_stdlib>
using namespace metal;
#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"
#include "mlx/backend/metal/kernels/quantized_utils.h"
#include "mlx/backend/metal/kernels/quantized.h"

instantiate_kernel("affine_quantize_float_gs_64_b_4", affine_quantize, float, 64, 4)
instantiate_kernel("affine_dequantize_float16_t_gs_32_b_5", affine_dequantize, float16_t, 32, 5)
instantiate_kernel("affine_qmv_fast_float_gs_64_b_4_batch_0_pr_0_hgs_0_r_4", affine_qmv_fast, float, 64, 4, 0, 0, 0, 4)
instantiate_kernel("affine_qmv_float16_t_gs_32_b_3_batch_0_pr_0_hgs_0_r_4", affine_qmv, float16_t, 32, 3, 0, 0, 0, 4)
instantiate_kernel("affine_qvm_bfloat16_t_gs_32_b_2_batch_1", affine_qvm, bfloat16_t, 32, 2, 1)
instantiate_kernel("affine_qmm_t_float16_t_gs_32_b_4_alN_false_batch_0", affine_qmm_t, float16_t, 32, 4, false, 0)
instantiate_kernel("affine_qmv_wide_float_gs_64_b_4_nv_3_kl_8_batch_0", affine_qmv_wide, float, 64, 4, 3, 8, 0)
