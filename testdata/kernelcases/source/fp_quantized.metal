// Kernels of MLX's templates, by the names that they have in its library.
#include <metal_stdlib>
using namespace metal;
#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"
#include "mlx/backend/metal/kernels/quantized_utils.h"
#include "mlx/backend/metal/kernels/fp_quantized.h"

instantiate_kernel("mxfp8_quantize_float_gs_32_b_8_hgs_false", fp_quantize, float, 32, 8, false)
instantiate_kernel("nvfp4_qmv_float_gs_16_b_4_batch_0_pr_0_hgs_1_r_4", fp_qmv, float, 16, 4, 0, 0, 1, 4)
instantiate_kernel("mxfp4_gather_qmm_t_float_gs_32_b_4_alN_true", fp_gather_qmm_t, float, 32, 4, true)
