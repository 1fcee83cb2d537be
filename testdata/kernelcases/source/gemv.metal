// Kernels of MLX's templates, by the names that they have in its library.
#include <metal_stdlib>
using namespace metal;
#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/gemv.h"

instantiate_kernel("gemv_float32_bm4_bn1_sm1_sn32_tm4_tn4_nc0_axpby0", gemv, float, 4, 1, 1, 32, 4, 4, 0, 0)
instantiate_kernel("gemv_float16_bm4_bn1_sm1_sn32_tm4_tn4_nc0_axpby1", gemv, half, 4, 1, 1, 32, 4, 4, 0, 1)
instantiate_kernel("gemv_t_complex64_bm1_bn2_sm8_sn4_tm4_tn4_nc0_axpby0", gemv_t, complex64_t, 1, 2, 8, 4, 4, 4, 0, 0)
instantiate_kernel("gemv_wide_float16_nv2_kl16", gemv_wide, half, 2, 16)
