// Kernels of MLX's templates, by the names that they have in its library.
#include <metal_stdlib>
using namespace metal;
#include "mlx/backend/metal/kernels/defines.h"
#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/atomic.h"
#include "mlx/backend/metal/kernels/reduction/ops.h"
#include "mlx/backend/metal/kernels/reduce.h"

instantiate_kernel("all_reduce_sumfloat32", all_reduce, float, float, Sum<float>)
instantiate_kernel("row_reduce_small_1_reduce_sumint16", row_reduce_small, int16_t, int32_t, Sum<int32_t>, int, 1)
instantiate_kernel("row_reduce_looped_large_2_reduce_maxbfloat16", row_reduce_looped, bfloat16_t, bfloat16_t, Max<bfloat16_t>, int64_t, 2)
instantiate_kernel("row_reduce_simple_prodfloat32", row_reduce_simple, float, float, Prod<float>)
instantiate_kernel("col_reduce_small_5_reduce_minfloat32", col_reduce_small, float, float, Min<float>, int, 5)
instantiate_kernel("col_reduce_looped_1_32_32_reduce_orint64", col_reduce_looped, int64_t, bool, Or<bool>, int, 1, 32, 32)
instantiate_kernel("col_reduce_2pass_1_32_32_reduce_sumfloat32", col_reduce_2pass, float, float, Sum<float>, int, 1, 32, 32)
instantiate_kernel("col_reduce_longcolumn_1_reduce_sumfloat32", col_reduce_longcolumn, float, float, Sum<float>, int, 1)
instantiate_kernel("init_reduce_maxint16", init_reduce, int16_t, Max<int16_t>)
