// Kernels of MLX's templates, by the names that they have in its library.
#include <metal_stdlib>
using namespace metal;
#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"
#include "mlx/backend/metal/kernels/steel/gemm/kernels/steel_gemm_splitk.h"

instantiate_kernel("steel_gemm_splitk_nt_float16_float32_bm16_bn32_bk16_wm2_wn2_MN_naligned_K_naligned", gemm_splitk, half, float, 16, 32, 16, 2, 2, false, true, false, false)
instantiate_kernel("steel_gemm_splitk_accum_bfloat16_float32_axbpy", gemm_splitk_accum_axpby, float, bfloat16_t)
