// Kernels of MLX's templates, by the names that they have in its library.
#include <metal_stdlib>
using namespace metal;
#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"
#include "mlx/backend/metal/kernels/steel/gemm/kernels/steel_gemm_gather.h"

instantiate_kernel("steel_gather_mm_nn_float32_float32_bm32_bn32_bk16_wm2_wn2", gather_mm, float, 32, 32, 16, 2, 2, false, false, float)
instantiate_kernel("steel_gather_mm_rhs_nt_float16_float16_bm16_bn64_bk16_wm1_wn2", gather_mm_rhs, half, 16, 64, 16, 1, 2, false, true, float)
