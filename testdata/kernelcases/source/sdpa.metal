// Kernels of MLX's templates, by the names that they have in its library.
#include <metal_stdlib>
using namespace metal;
#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/sdpa_vector.h"

instantiate_kernel("sdpa_vector_float_64_64", sdpa_vector, float, 64, 64)
instantiate_kernel("sdpa_vector_2pass_1_bfloat16_t_96_64", sdpa_vector_2pass_1, bfloat16_t, 96, 64)
instantiate_kernel("sdpa_vector_2pass_2_float16_t_128", sdpa_vector_2pass_2, float16_t, 128)
