// Kernels of MLX's templates, by the names that they have in its library.
#include <metal_stdlib>
using namespace metal;
#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/unary_ops.h"
#include "mlx/backend/metal/kernels/unary.h"

instantiate_kernel("v_Expfloat32float32", unary_v, float, float, Exp, 1)
instantiate_kernel("v_Expm1float32float32", unary_v, float, float, Expm1, 1)
instantiate_kernel("v_ErfInvfloat32float32", unary_v, float, float, ErfInv, 1)
instantiate_kernel("vn_ArcSinhfloat16float16", unary_v, half, half, ArcSinh)
instantiate_kernel("v2_Tanhcomplex64complex64", unary_v2, complex64_t, complex64_t, Tanh)
instantiate_kernel("gn1_Sigmoidfloat16float16", unary_g, half, half, Sigmoid, 1, int)
instantiate_kernel("gn4large_Logbfloat16bfloat16", unary_g, bfloat16_t, bfloat16_t, Log, 4)
