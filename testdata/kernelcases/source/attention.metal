// Kernels of MLX's templates, by the names that they have in its library.
#include <metal_stdlib>
using namespace metal;
#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/attn/attn.h"
#include "mlx/backend/metal/kernels/steel/attn/kernels/steel_attention.h"

instantiate_kernel("steel_attention_float16_bq32_bk32_bd64_bv64_wm4_wn1_maskbool_", attention, half, 32, 32, 64, 64, 4, 1, bool, float)
