// Sums of rows with weights: what the experts of a mixture give, put together.

#include "common.h"

// One element a thread; its terms are rounded to T, as those of MLX's product of arrays, and added in their order in f32.
//
// @kernel   weighted_sum_{T:{floats()}}
// @arg 0 x        device {T}[rows, count, width] read
// @arg 1 weights  device {T}[rows, count] read
// @arg 2 out      device {T}[rows, width] write
// @arg 3 count    constant i32
// @threads  width, rows, 1
// @group    _, _, _
// @require  count >= 1
// @term     out[r,i] = round({T}, sum[weighted_sum](j < count, round({T}, weights[r,j] * x[r,j,i])))
template <typename T>
[[kernel]] void weighted_sum(
    const device T* x [[buffer(0)]],
    const device T* weights [[buffer(1)]],
    device T* out [[buffer(2)]],
    constant int& count [[buffer(3)]],
    uint2 at [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const size_t first = size_t(at.y) * count;
  float acc = 0;
  for (int j = 0; j < count; j++) {
    acc += float(T(float(weights[first + j]) * float(x[(first + j) * grid.x + at.x])));
  }
  out[size_t(at.y) * grid.x + at.x] = stored(T(acc));
}

#define INSTANTIATE_WEIGHTED_SUM(name, T) \
  template [[host_name("weighted_sum_" #name)]] [[kernel]] decltype(weighted_sum<T>) weighted_sum<T>;

EACH_FLOAT(INSTANTIATE_WEIGHTED_SUM)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Sums of rows with weights: one thread an element.
//
// @witness weighted_sum_* ; count={8|1} ; threads 576 7 1 / 256 1 1 ; ok
// @witness weighted_sum_* ; count=0 ; threads 576 7 1 / 256 1 1 ; refused
// @witness weighted_sum_* ; count=8 ; threads 576 7 2 / 256 1 1 ; refused
