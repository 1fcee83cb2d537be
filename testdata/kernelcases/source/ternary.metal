// Kernels of MLX's templates, by the names that they have in its library.
#include <metal_stdlib>
using namespace metal;
#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/ternary_ops.h"
#include "mlx/backend/metal/kernels/ternary.h"

instantiate_kernel("v_Selectfloat32", ternary_v, float, Select, false, false, 1)
instantiate_kernel("gn2_Selectuint64", ternary_g, uint64_t, Select, 2, int)
