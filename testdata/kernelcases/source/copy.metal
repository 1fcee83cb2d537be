// Kernels of MLX's templates, by the names that they have in its library.
#include <metal_stdlib>
using namespace metal;
#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/copy.h"
#include "mlx/backend/metal/kernels/arange.h"

instantiate_kernel("v_copyfloat32float32", copy_v, float, float, 1)
instantiate_kernel("g3_copyint64int8", copy_g_nd3, int64_t, int8_t, int)
instantiate_kernel("gn4large_copyfloat32bool_", copy_g, float, bool, 4)
instantiate_kernel("ggn2_dynamic_copyint64int64", copy_gg_dynamic, int64_t, int64_t, 2, int)
instantiate_kernel("arangebfloat16", arange, bfloat16_t)
