// Kernels of MLX's templates, by the names that they have in its library.
#include <metal_stdlib>
using namespace metal;
#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"
#include "mlx/backend/metal/kernels/steel/gemm/kernels/steel_gemm_fused.h"

instantiate_kernel("steel_gemm_fused_nn_float32_float32_bm32_bn32_bk16_wm2_wn2", gemm, float, 32, 32, 16, 2, 2, false, false, float)
instantiate_kernel("steel_gemm_fused_tn_complex64_complex64_bm32_bn32_bk16_wm2_wn2", gemm, complex64_t, 32, 32, 16, 2, 2, true, false, float)
