// Kernels of MLX's templates, by the names that they have in its library.
#include <metal_stdlib>
using namespace metal;
#include "mlx/backend/metal/kernels/defines.h"
#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/binary_ops.h"
#include "mlx/backend/metal/kernels/binary.h"

instantiate_kernel("vv_Addfloat32", binary_vv, float, float, Add, 1)
instantiate_kernel("vvn_Powerfloat32", binary_vv, float, float, Power)
instantiate_kernel("vsn_Powerint32", binary_vs, int32_t, int32_t, Power)
instantiate_kernel("sv2_Remainderint32", binary_sv2, int32_t, int32_t, Remainder)
instantiate_kernel("g2large_Maximumfloat32", binary_g_nd2, float, float, Maximum)
instantiate_kernel("g3_FloorDivideuint32", binary_g_nd3, uint32_t, uint32_t, FloorDivide, int)
instantiate_kernel("gn4large_LogAddExpbfloat16", binary_g, bfloat16_t, bfloat16_t, LogAddExp, 4)
