// Kernels of MLX's templates, by the names that they have in its library.
#include <metal_stdlib>
using namespace metal;
#include "mlx/backend/metal/kernels/defines.h"
#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/softmax.h"
#include "mlx/backend/metal/kernels/logsumexp.h"
#include "mlx/backend/metal/kernels/scan.h"
#include "mlx/backend/metal/kernels/sort.h"
#include "mlx/backend/metal/kernels/searchsorted.h"
#include "mlx/backend/metal/kernels/dot.h"

instantiate_kernel("block_softmax_float32", softmax_single_row, float)
instantiate_kernel("looped_softmax_precise_float16", softmax_looped, half, float)
instantiate_kernel("block_logsumexp_bfloat16", logsumexp, bfloat16_t)
instantiate_kernel("contig_scan_inclusive_sum_float32_float32", contiguous_scan, float, float, CumSum<float>, 4, true, false)
instantiate_kernel("strided_scan_reverse_exclusive_max_uint64_uint64", strided_scan, uint64_t, uint64_t, CumMax<uint64_t>, 2, false, true)
instantiate_kernel("carg_block_sort_int64_uint32_bn128_tn4", block_sort, int64_t, uint32_t, true, 128, 4)
instantiate_kernel("nc_block_sort_int32_int32_bn64_tn4", block_sort_nc, int32_t, int32_t, false, 64, 4)
instantiate_kernel("merge_mbsort_uint16_uint32_bn512_tn4", mb_block_merge, uint16_t, uint32_t, true, 512, 4)
instantiate_kernel("searchsorted_float32_left", searchsorted, float, false)
instantiate_kernel("dot_product_float16_it32_tg512_sg16", dot_product, half, 32, 512, 16)
