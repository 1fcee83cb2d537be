// The greatest elements of rows, in order: the routing of a mixture of experts.

#include "common.h"

// One threadgroup a row. An element's place is the number of elements that stand
// before it, which its thread counts: no sorting, no order of threads to depend
// on. Greater elements stand first, of equal ones (−0 and +0 are equal) the one
// with the least index; NaN stands behind all numbers.
//
// @kernel   topk_{T:{floats()}}
// @arg 0 in         device {T}[rows, axis_size] read
// @arg 1 ids        device u32[rows, count] write
// @arg 2 values     device {T}[rows, count] write
// @arg 3 axis_size  constant u32
// @arg 4 count      constant u32
// @groups   rows, 1, 1
// @group    min(1024, 32*ceil(axis_size/32)), 1, 1
// @require  count >= 1 && count <= axis_size
// @where    at[r,s] = argmax(i < axis_size, in[r,i], s)
// @term     ids[r,s] = u32(at[r,s])
// @term     values[r,s] = in[r,at[r,s]]
template <typename T>
[[kernel]] void topk(
    const device T* in [[buffer(0)]],
    device uint* ids [[buffer(1)]],
    device T* values [[buffer(2)]],
    constant uint& axis_size [[buffer(3)]],
    constant uint& count [[buffer(4)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  in += size_t(row) * axis_size;
  const size_t out = size_t(row) * count;
  for (uint i = thread_id; i < axis_size; i += threads) {
    const T v = in[i];
    const bool nan = v != v;
    uint rank = 0;
    for (uint j = 0; j < axis_size; j++) {
      const T other = in[j];
      const bool before = other > v || (other == v && j < i) || (nan && (other == other || j < i));
      rank += before ? 1 : 0;
    }
    if (rank < count) {
      ids[out + rank] = i;
      values[out + rank] = v;
    }
  }
}

#define INSTANTIATE_TOPK(name, T) template [[host_name("topk_" #name)]] [[kernel]] decltype(topk<T>) topk<T>;

EACH_FLOAT(INSTANTIATE_TOPK)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// The greatest elements of rows: one threadgroup a row, a thread an element.
//
// @witness topk_* ; axis_size=128 count=8 ; groups 5 1 1 / 128 1 1 ; ok
// @witness topk_* ; axis_size=128 count=8 ; threads 640 1 1 / 128 1 1 ; ok
// @witness topk_* ; axis_size=8 count=2 ; groups 5 1 1 / 32 1 1 ; ok
// @witness topk_* ; axis_size=33 count=33 ; groups 5 1 1 / 64 1 1 ; ok
// @witness topk_* ; axis_size={1024|1025} count=8 ; groups 5 1 1 / 1024 1 1 ; ok
// @witness topk_* ; axis_size=1 count=1 ; groups 5 1 1 / 32 1 1 ; ok
// @witness topk_* ; axis_size=8 count={9|0} ; groups 5 1 1 / 32 1 1 ; refused
// @witness topk_* ; axis_size=8 count=2 ; groups 5 1 1 / 64 1 1 ; refused
// @witness topk_* ; axis_size=64 count=64 inplace=values,in ; groups 5 1 1 / 64 1 1 ; refused
