// Kernels of MLX's templates, by the names that they have in its library.
#include <metal_stdlib>
using namespace metal;
#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/gemv_masked.h"

instantiate_kernel("gemv_outmask_bool__opmask_bool__float32_bm2_bn1_sm4_sn8_tm4_tn4_nc0", gemv_masked, float, bool, bool, 2, 1, 4, 8, 4, 4, 0)
