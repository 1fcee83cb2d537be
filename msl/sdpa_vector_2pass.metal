// Attention of few queries over so many keys that threadgroups share them, by MLX's names and arguments: the first kernel leaves
// what a block of keys gives, the second joins the blocks.

#include "common.h"
#include "attention.h"

constant int blocks [[function_constant(26)]];

// A threadgroup of the first kernel takes one block of the keys of one head: a simdgroup each query head that shares them, and
// each query. queries are heads of all batches, out, sums and maxs those of its query heads. A block without a key that its
// query sees leaves zeros, and the least number as its maximum. The sink of a head counts in its first block.
//
// @lines   blocks_in()
// @arg 1 keys           device {T}[kv_heads*batch, N, D : k_head_stride, k_seq_stride, 1] read
// @arg   values         device {T}[kv_heads*batch, N, V : v_head_stride, v_seq_stride, 1] read
// @arg   out            device {T}[heads, L, blocks, V] write
// @arg   sums           device f32[heads, L, blocks] write
// @arg   maxs           device f32[heads, L, blocks] write
// @arg 7 N              constant i32
// @arg   k_head_stride  constant u64
// @arg   k_seq_stride   constant u64
// @arg   v_head_stride  constant u64
// @arg   v_seq_stride   constant u64
// @arg   scale          constant f32
// @groups  kv_heads, batch, blocks
// @require N >= 1
// @end
// @lines   blocks_of()
// @arg 0 queries        device {T}[heads, L, D \
//            : D*(query_transposed + (1 - query_transposed)*L), D*(1 + query_transposed*(heads - 1)), 1] read
// @use     blocks_in()
// @end
//
// A block's keys are {n} many; key j of them is {key}.
//
// @lines   parts(n; key; gqa)
// @use     score(simd; {gqa})
// @if      with == sinks|bool_sinks|float_sinks
// @where   sink[h] = sinks[h % (kv_heads*gqa_factor)]
// @end
// @where   least[h] = {lowest()}
// @if      with == none
// @where   top[h,q,b] = max(least[h], max[sdpa_full](j < {n}, score[h,q,{key}]))
// @end
// @if      with == sinks
// @where   top[h,q,b] = max(least[h], max(select(b == 0, sink[h], -inf), max[sdpa_full](j < {n}, score[h,q,{key}])))
// @end
// @if      with == bool|float
// @where   top[h,q,b] = max(least[h], max[sdpa_full](j < {n}, select({{with}_seen({key})}, score[h,q,{key}], -inf)))
// @end
// @if      with == bool_sinks|float_sinks
// @where   top[h,q,b] = max(least[h], max(select(b == 0, sink[h], -inf), \
//            max[sdpa_full](j < {n}, select({{with}_seen({key})}, score[h,q,{key}], -inf))))
// @end
// @if      with == none|sinks
// @where   weight[h,q,b,j] = exp(score[h,q,{key}] - top[h,q,b])
// @term    out[h,q,b,d] = round({T}, sum[sdpa_full](j < {n}, weight[h,q,b,j] * values[h/{gqa},{key},d]))
// @else
// @where   weight[h,q,b,j] = select({{with}_seen({key})}, exp(score[h,q,{key}] - top[h,q,b]), 0.0)
// @term    out[h,q,b,d] = round({T}, sum[sdpa_full](j < {n}, select({{with}_seen({key})}, weight[h,q,b,j] * values[h/{gqa},{key},d], 0.0)))
// @end
// @if      with == sinks|bool_sinks|float_sinks
// @term    sums[h,q,b] = round(f32, sum[sdpa_full](j < {n}, weight[h,q,b,j]) + select(b == 0, exp(sink[h] - top[h,q,b]), 0.0))
// @else
// @term    sums[h,q,b] = round(f32, sum[sdpa_full](j < {n}, weight[h,q,b,j]))
// @end
// @term    maxs[h,q,b] = round(f32, top[h,q,b])
// @end
//
// Block b has keys b, b + blocks, … of those that a query sees.
//
// @lines   in_turn()
// @use     constants()
// @constant 26 blocks i32
// @use     blocks_of()
// @use     mask(13; 14; 15; heads)
// @if      with == sinks|bool_sinks|float_sinks
// @arg 18 sinks         device {T}[kv_heads*gqa_factor] read
// @end
// @group   32, gqa_factor, L
// @let     heads = kv_heads*gqa_factor*batch
// @if      with == none|sinks
// @require do_causal == 0 || N >= L
// @use     parts(ceil((N - do_causal*(L - 1 - q) - b)/blocks); b + j*blocks; gqa_factor)
// @else
// @use     parts(ceil((N - b)/blocks); b + j*blocks; gqa_factor)
// @end
// @end
//
// Keys of 192 elements have values of 128.
//
// @kernel  sdpa_vector_2pass_1_{T:{types()}}_{D:64_64=64|96_96=96|128_128=128|256_256=256|192_128=192}{with:=none|{masks()}}
// @mlx
// @let     V = D - 64*(D/64 % 4 / 3)
// @use     in_turn()
template <typename T, int D, int V>
[[kernel]] void sdpa_vector_2pass_1(
    const device T* queries [[buffer(0)]],
    const device T* keys [[buffer(1)]],
    const device T* values [[buffer(2)]],
    device T* out [[buffer(3)]],
    device float* sums [[buffer(4)]],
    device float* maxs [[buffer(5)]],
    constant int& N [[buffer(7)]],
    constant ulong& k_head_stride [[buffer(8)]],
    constant ulong& k_seq_stride [[buffer(9)]],
    constant ulong& v_head_stride [[buffer(10)]],
    constant ulong& v_seq_stride [[buffer(11)]],
    constant float& scale [[buffer(12)]],
    const device bool* bmask [[buffer(13), function_constant(bool_mask)]],
    const device T* fmask [[buffer(14), function_constant(float_mask)]],
    constant int& mask_kv_seq_stride [[buffer(15), function_constant(has_mask)]],
    constant int& mask_q_seq_stride [[buffer(16), function_constant(has_mask)]],
    constant int& mask_head_stride [[buffer(17), function_constant(has_mask)]],
    const device T* sinks [[buffer(18), function_constant(has_sinks)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint3 thread_of [[thread_position_in_threadgroup]],
    uint3 threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const size_t kv_head = size_t(group.y) * groups.x + group.x;
  const size_t heads = size_t(groups.y) * groups.x * threads.y;
  const size_t head = kv_head * threads.y + thread_of.y;
  const size_t query = thread_of.z;
  const size_t by_head = head * threads.z + query;
  const size_t part = by_head * size_t(blocks) + group.z;
  queries += (query_transposed ? query * heads + head : by_head) * D;
  keys += kv_head * k_head_stride;
  values += kv_head * v_head_stride;
  const int block = int(group.z);
  const int visible = visible_keys(N, threads.z, thread_of.z);

  const bool sunk = has_sinks && block == 0;
  float sink = -MAXFLOAT;
  if (sunk) {
    sink = float(sinks[head % (size_t(groups.x) * threads.y)]);
  }
  Streamed<V / LANES> s;
  s.top = is_nan(sink) ? -MAXFLOAT : max(sink, -MAXFLOAT);
  s.sum = 0;
  if (D == V && D <= 128 && !has_mask) {
    stream_all<T, V>(queries, keys, values, block, visible, blocks, k_seq_stride, v_seq_stride, scale, lane, s);
  } else {
    Mask<T> mask;
    if (has_mask) {
      mask = mask_of(bmask, fmask, long(head) * mask_head_stride + long(query) * mask_q_seq_stride, mask_kv_seq_stride);
    }
    stream<T, D, V>(queries, keys, values, block, visible, blocks, k_seq_stride, v_seq_stride, scale, mask, lane, s);
  }
  if (sunk) { // last, so that small weights are added up before it
    s.sum += precise::exp(sink - s.top);
  }
  leave<T, V>(s, out, sums, maxs, part, lane);
}

// Where many query heads share keys, block b has {chunk} keys that lie together, or what is left of them.
//
// @text    chunk() = ceil(N/blocks)
// @lines   together()
// @arg 0 queries        device {T}[heads, 1, D] read
// @use     blocks_in()
// @group   32, gqa_factor, 1
// @let     V = D
// @let     L = 1
// @let     heads = kv_heads*gqa_factor*batch
// @use     parts(min({chunk()}, N - b*{chunk()}); b*{chunk()} + j; gqa_factor)
// @end
//
// @kernel  sdpa_vector_2pass_1_gqa_{gqa_factor:8}_{T:{types()}}_{D:64_64=64|128_128=128}{with:=none}
// @mlx
// @use     together()
//
// @kernel  sdpa_vector_2pass_1_gqa_{gqa_factor:12|16}_{T:{types()}}_{D:128_128=128}{with:=none}
// @mlx
// @use     together()
template <typename T, int D, int gqa_factor>
[[kernel]] void sdpa_vector_2pass_1_gqa(
    const device T* queries [[buffer(0)]],
    const device T* keys [[buffer(1)]],
    const device T* values [[buffer(2)]],
    device T* out [[buffer(3)]],
    device float* sums [[buffer(4)]],
    device float* maxs [[buffer(5)]],
    constant int& N [[buffer(7)]],
    constant ulong& k_head_stride [[buffer(8)]],
    constant ulong& k_seq_stride [[buffer(9)]],
    constant ulong& v_head_stride [[buffer(10)]],
    constant ulong& v_seq_stride [[buffer(11)]],
    constant float& scale [[buffer(12)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint3 thread_of [[thread_position_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const size_t kv_head = size_t(group.y) * groups.x + group.x;
  const size_t head = kv_head * gqa_factor + thread_of.y;
  const int chunk = (N + int(groups.z) - 1) / int(groups.z);
  const int first = min(int(group.z) * chunk, N);

  Streamed<D / LANES> s;
  s.top = -MAXFLOAT;
  s.sum = 0;
  stream_all<T, D>(
      queries + head * D, keys + kv_head * k_head_stride, values + kv_head * v_head_stride, first, min(first + chunk, N), 1, k_seq_stride, v_seq_stride,
      scale, lane, s);
  leave<T, D>(s, out, sums, maxs, head * groups.z + group.z, lane);
}

// Simdgroup s of the second kernel takes blocks s, s + 32, …; where no block has a key, the row is zeros.
//
// @kernel  sdpa_vector_2pass_2_{T:{types()}}_{V:64|96|128|256}
// @mlx
// @arg 0 partials  device {T}[heads, L, blocks, V] read
// @arg   sums      device f32[heads, L, blocks] read
// @arg   maxs      device f32[heads, L, blocks] read
// @arg   out       device {T}[heads, L, V] write
// @arg   blocks    constant i32
// @groups  heads, L, 1
// @group   1024, 1, 1
// @require blocks >= 1
// @where   top[h,q] = max[sdpa_blocks](b < blocks, maxs[h,q,b])
// @where   factor[h,q,b] = exp(maxs[h,q,b] - top[h,q])
// @where   whole[h,q,d] = sum[sdpa_blocks](b < blocks, factor[h,q,b] * partials[h,q,b,d])
// @where   total[h,q] = sum[sdpa_blocks](b < blocks, factor[h,q,b] * sums[h,q,b])
// @term    out[h,q,d] = round({T}, whole[h,q,d] / select(total[h,q] < 0.5, 0.5, total[h,q])) -- 0 if no block has a key, or at least 1
template <typename T, int V>
[[kernel]] void sdpa_vector_2pass_2(
    const device T* partials [[buffer(0)]],
    const device float* sums [[buffer(1)]],
    const device float* maxs [[buffer(2)]],
    device T* out [[buffer(3)]],
    constant int& blocks [[buffer(4)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  constexpr int each = V / LANES;
  threadgroup float outputs[LANES * SIMDGROUPS];

  const size_t row = size_t(group.x) * groups.y + group.y;
  partials += row * size_t(blocks) * V + lane * each;
  sums += row * size_t(blocks);
  maxs += row * size_t(blocks);
  out += row * V;

  float top = -INFINITY;
  for (int b = int(lane); b < blocks; b += LANES) {
    top = max(top, maxs[b]);
  }
  top = simd_max(top);
  float total = 0;
  for (int b = int(lane); b < blocks; b += LANES) {
    total += precise::exp(maxs[b] - top) * sums[b];
  }
  total = simd_sum(total);
  total = total < 0.5f ? 0.5f : total;
  float o[each];
#pragma unroll
  for (int i = 0; i < each; i++) {
    o[i] = 0;
  }
  for (int b = int(simdgroup); b < blocks; b += SIMDGROUPS) {
    const float factor = precise::exp(maxs[b] - top);
#pragma unroll
    for (int i = 0; i < each; i++) {
      o[i] += factor * float(partials[size_t(b) * V + i]);
    }
  }
  divide<T, V, false>(1, total, o, out, outputs, simdgroup, lane);
}

#define EACH_WIDTH(instantiate, name, T)                                                                                     \
  instantiate(name, T, 64, 64) instantiate(name, T, 96, 96) instantiate(name, T, 128, 128) instantiate(name, T, 256, 256)    \
  instantiate(name, T, 192, 128)
#define INSTANTIATE_TURNS(name, T, D, V)                                                                                     \
  template [[host_name("sdpa_vector_2pass_1_" #name "_" #D "_" #V)]] [[kernel]]                                              \
  decltype(sdpa_vector_2pass_1<T, D, V>) sdpa_vector_2pass_1<T, D, V>;
#define INSTANTIATE_SHARED(name, T, D, shared)                                                                               \
  template [[host_name("sdpa_vector_2pass_1_gqa_" #shared "_" #name "_" #D "_" #D)]] [[kernel]]                              \
  decltype(sdpa_vector_2pass_1_gqa<T, D, shared>) sdpa_vector_2pass_1_gqa<T, D, shared>;
#define INSTANTIATE_JOIN(name, T, V)                                                                                         \
  template [[host_name("sdpa_vector_2pass_2_" #name "_" #V)]] [[kernel]] decltype(sdpa_vector_2pass_2<T, V>) sdpa_vector_2pass_2<T, V>;
#define INSTANTIATE_ALL(name, T)                                                                                             \
  EACH_WIDTH(INSTANTIATE_TURNS, name, T)                                                                                     \
  INSTANTIATE_SHARED(name, T, 64, 8)                                                                                         \
  INSTANTIATE_SHARED(name, T, 128, 8)                                                                                        \
  INSTANTIATE_SHARED(name, T, 128, 12)                                                                                       \
  INSTANTIATE_SHARED(name, T, 128, 16)                                                                                       \
  INSTANTIATE_JOIN(name, T, 64) INSTANTIATE_JOIN(name, T, 96) INSTANTIATE_JOIN(name, T, 128) INSTANTIATE_JOIN(name, T, 256)

INSTANTIATE_ALL(float, float)
INSTANTIATE_ALL(float16_t, half)
INSTANTIATE_ALL(bfloat16_t, bfloat)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// @witness sdpa_vector_2pass_1_{float|float16_t|bfloat16_t}_* ; blocks@26=32 query_transposed@21={0|1} do_causal@22={0|1} has_sinks@25={0|1} N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 32 / 32 3 8 ; ok
// @witness sdpa_vector_2pass_1_{float|float16_t|bfloat16_t}_* ; blocks@26=32 do_causal@22={0|1} has_sinks@25={0|1} N=1 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 1 1 32 / 32 1 1 ; ok
// @witness sdpa_vector_2pass_1_{float|float16_t|bfloat16_t}_* ; blocks@26=1 has_sinks@25={0|1} N=1 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 1 1 1 / 32 1 2 ; ok
// @witness sdpa_vector_2pass_1_{float|float16_t|bfloat16_t}_* ; blocks@26=32 do_causal@22=1 has_sinks@25={0|1} N=1 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 1 1 32 / 32 1 2 ; refused
// @witness sdpa_vector_2pass_1_{float|float16_t|bfloat16_t}_* ; blocks@26=32 has_sinks@25={0|1} N=0 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 1 1 32 / 32 1 1 ; refused
// @witness sdpa_vector_2pass_1_{float|float16_t|bfloat16_t}_* ; blocks@26=32 has_sinks@25={0|1} N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 64 / 32 3 1 ; refused
// @witness sdpa_vector_2pass_1_{float|float16_t|bfloat16_t}_* ; blocks@26=32 has_sinks@25={0|1} N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 32 / 64 3 1 ; refused
// @witness sdpa_vector_2pass_1_{float|float16_t|bfloat16_t}_* ; blocks@26=32 {has_mask@20|bool_mask@23|float_mask@24}=1 has_sinks@25={0|1} N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 32 / 32 3 1 ; refused
// @witness sdpa_vector_2pass_1_{float|float16_t|bfloat16_t}_* ; blocks@26=32 has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25={0|1} query_transposed@21={0|1} mask_kv_seq_stride=1 mask_q_seq_stride=100 mask_head_stride=800 N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 32 / 32 3 8 ; ok
// @witness sdpa_vector_2pass_1_{float|float16_t|bfloat16_t}_* ; blocks@26=32 has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25={0|1} mask_kv_seq_stride=1 mask_q_seq_stride=100 mask_head_stride=800 N=1 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 1 1 32 / 32 1 2 ; ok
// @witness sdpa_vector_2pass_1_{float|float16_t|bfloat16_t}_* ; blocks@26=1 has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25={0|1} mask_kv_seq_stride=1 mask_q_seq_stride=100 mask_head_stride=800 N=1 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 1 1 1 / 32 1 1 ; ok
// @witness sdpa_vector_2pass_1_{float|float16_t|bfloat16_t}_* ; blocks@26=32 has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25={0|1} do_causal@22=1 mask_kv_seq_stride=1 mask_q_seq_stride=100 mask_head_stride=800 N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 32 / 32 3 8 ; refused
// @witness sdpa_vector_2pass_1_{float|float16_t|bfloat16_t}_* ; blocks@26=32 has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25={0|1} mask_kv_seq_stride=1 mask_q_seq_stride=100 mask_head_stride=800 N=0 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 32 / 32 3 1 ; refused
// @witness sdpa_vector_2pass_1_{float|float16_t|bfloat16_t}_* ; blocks@26=32 has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25={0|1} mask_kv_seq_stride=1 mask_q_seq_stride=100 mask_head_stride=800 N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 64 / 32 3 1 ; refused
// @witness sdpa_vector_2pass_1_{float|float16_t|bfloat16_t}_* ; blocks@26=32 has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25={0|1} mask_kv_seq_stride=1 mask_q_seq_stride=100 mask_head_stride=800 N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 32 / 64 3 1 ; refused
// @witness sdpa_vector_2pass_1_{float|float16_t|bfloat16_t}_* ; blocks@26=32 has_mask@20=1 bool_mask@23=1 float_mask@24=1 has_sinks@25={0|1} mask_kv_seq_stride=1 mask_q_seq_stride=100 mask_head_stride=800 N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 32 / 32 3 8 ; refused
// @witness sdpa_vector_2pass_1_{float|float16_t|bfloat16_t}_* ; blocks@26=32 has_mask@20=0 {bool_mask@23|float_mask@24}=1 has_sinks@25={0|1} mask_kv_seq_stride=1 mask_q_seq_stride=100 mask_head_stride=800 N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 32 / 32 3 8 ; refused
// @witness sdpa_vector_2pass_1_gqa_8_* ; N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 64 / 32 8 1 ; ok
// @witness sdpa_vector_2pass_1_gqa_8_* ; N=9 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 1 1 4 / 32 8 1 ; ok
// @witness sdpa_vector_2pass_1_gqa_8_* ; N=1 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 1 1 1 / 32 8 1 ; ok
// @witness sdpa_vector_2pass_1_gqa_8_* ; N=0 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 1 1 64 / 32 8 1 ; refused
// @witness sdpa_vector_2pass_1_gqa_8_* ; N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 64 / 32 8 2 ; refused
// @witness sdpa_vector_2pass_1_gqa_8_* ; N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 64 / 32 7 1 ; refused
// @witness sdpa_vector_2pass_1_gqa_8_* ; N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 64 / 32 9 1 ; refused
// @witness sdpa_vector_2pass_1_gqa_8_* ; N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 64 / 64 8 1 ; refused
// @witness sdpa_vector_2pass_1_gqa_12_* ; N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 64 / 32 12 1 ; ok
// @witness sdpa_vector_2pass_1_gqa_12_* ; N=9 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 1 1 4 / 32 12 1 ; ok
// @witness sdpa_vector_2pass_1_gqa_12_* ; N=1 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 1 1 1 / 32 12 1 ; ok
// @witness sdpa_vector_2pass_1_gqa_12_* ; N=0 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 1 1 64 / 32 12 1 ; refused
// @witness sdpa_vector_2pass_1_gqa_12_* ; N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 64 / 32 12 2 ; refused
// @witness sdpa_vector_2pass_1_gqa_12_* ; N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 64 / 32 11 1 ; refused
// @witness sdpa_vector_2pass_1_gqa_12_* ; N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 64 / 32 13 1 ; refused
// @witness sdpa_vector_2pass_1_gqa_12_* ; N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 64 / 64 12 1 ; refused
// @witness sdpa_vector_2pass_1_gqa_16_* ; N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 64 / 32 16 1 ; ok
// @witness sdpa_vector_2pass_1_gqa_16_* ; N=9 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 1 1 4 / 32 16 1 ; ok
// @witness sdpa_vector_2pass_1_gqa_16_* ; N=1 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 1 1 1 / 32 16 1 ; ok
// @witness sdpa_vector_2pass_1_gqa_16_* ; N=0 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 1 1 64 / 32 16 1 ; refused
// @witness sdpa_vector_2pass_1_gqa_16_* ; N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 64 / 32 16 2 ; refused
// @witness sdpa_vector_2pass_1_gqa_16_* ; N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 64 / 32 15 1 ; refused
// @witness sdpa_vector_2pass_1_gqa_16_* ; N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 64 / 32 17 1 ; refused
// @witness sdpa_vector_2pass_1_gqa_16_* ; N=100 k_head_stride=12800 k_seq_stride=128 v_head_stride=12800 v_seq_stride=128 ; groups 2 2 64 / 64 16 1 ; refused
// @witness sdpa_vector_2pass_2_* ; blocks={32|64|1024} ; groups 12 8 1 / 1024 1 1 ; ok
// @witness sdpa_vector_2pass_2_* ; blocks=1 ; groups 1 1 1 / 1024 1 1 ; ok
// @witness sdpa_vector_2pass_2_* ; blocks=0 ; groups 12 8 1 / 1024 1 1 ; refused
// @witness sdpa_vector_2pass_2_* ; blocks=32 ; groups 12 8 2 / 1024 1 1 ; refused
// @witness sdpa_vector_2pass_2_* ; blocks=32 ; groups 12 8 1 / 512 1 1 ; refused
// @witness sdpa_vector_2pass_2_* ; blocks=32 ; groups 12 8 1 / 512 2 1 ; refused
// @witness sdpa_vector_2pass_1_float_64_64 ; blocks@26=64 has_sinks@25={0|1} N=2 k_head_stride=128 k_seq_stride=64 v_head_stride=128 v_seq_stride=64 inplace={sums|maxs},{queries|keys|values} ; groups 2 1 64 / 32 1 2 ; refused
// @witness sdpa_vector_2pass_1_float_64_64 ; blocks@26=64 has_mask@20=1 {bool_mask@23|float_mask@24}=1 mask_kv_seq_stride=1 mask_q_seq_stride=2 mask_head_stride=4 has_sinks@25={0|1} N=2 k_head_stride=128 k_seq_stride=64 v_head_stride=128 v_seq_stride=64 inplace={sums|maxs},{queries|keys|values} ; groups 2 1 64 / 32 1 2 ; refused
// @witness sdpa_vector_2pass_1_float_96_96 ; blocks@26=96 has_sinks@25={0|1} N=2 k_head_stride=192 k_seq_stride=96 v_head_stride=192 v_seq_stride=96 inplace={sums|maxs},{queries|keys|values} ; groups 2 1 96 / 32 1 2 ; refused
// @witness sdpa_vector_2pass_1_float_96_96 ; blocks@26=96 has_mask@20=1 {bool_mask@23|float_mask@24}=1 mask_kv_seq_stride=1 mask_q_seq_stride=2 mask_head_stride=4 has_sinks@25={0|1} N=2 k_head_stride=192 k_seq_stride=96 v_head_stride=192 v_seq_stride=96 inplace={sums|maxs},{queries|keys|values} ; groups 2 1 96 / 32 1 2 ; refused
// @witness sdpa_vector_2pass_1_float_128_128 ; blocks@26=128 has_sinks@25={0|1} N=2 k_head_stride=256 k_seq_stride=128 v_head_stride=256 v_seq_stride=128 inplace={sums|maxs},{queries|keys|values} ; groups 2 1 128 / 32 1 2 ; refused
// @witness sdpa_vector_2pass_1_float_128_128 ; blocks@26=128 has_mask@20=1 {bool_mask@23|float_mask@24}=1 mask_kv_seq_stride=1 mask_q_seq_stride=2 mask_head_stride=4 has_sinks@25={0|1} N=2 k_head_stride=256 k_seq_stride=128 v_head_stride=256 v_seq_stride=128 inplace={sums|maxs},{queries|keys|values} ; groups 2 1 128 / 32 1 2 ; refused
// @witness sdpa_vector_2pass_1_float_256_256 ; blocks@26=256 has_sinks@25={0|1} N=2 k_head_stride=512 k_seq_stride=256 v_head_stride=512 v_seq_stride=256 inplace={sums|maxs},{queries|keys|values} ; groups 2 1 256 / 32 1 2 ; refused
// @witness sdpa_vector_2pass_1_float_256_256 ; blocks@26=256 has_mask@20=1 {bool_mask@23|float_mask@24}=1 mask_kv_seq_stride=1 mask_q_seq_stride=2 mask_head_stride=4 has_sinks@25={0|1} N=2 k_head_stride=512 k_seq_stride=256 v_head_stride=512 v_seq_stride=256 inplace={sums|maxs},{queries|keys|values} ; groups 2 1 256 / 32 1 2 ; refused
// @witness sdpa_vector_2pass_1_float_192_128 ; blocks@26=192 has_sinks@25={0|1} N=2 k_head_stride=384 k_seq_stride=192 v_head_stride=256 v_seq_stride=128 inplace={sums|maxs},{queries|keys} ; groups 2 1 192 / 32 1 2 ; refused
// @witness sdpa_vector_2pass_1_float_192_128 ; blocks@26=128 has_sinks@25={0|1} N=2 k_head_stride=384 k_seq_stride=192 v_head_stride=256 v_seq_stride=128 inplace={sums|maxs},values ; groups 2 1 128 / 32 1 2 ; refused
// @witness sdpa_vector_2pass_1_float_192_128 ; blocks@26=192 has_mask@20=1 {bool_mask@23|float_mask@24}=1 mask_kv_seq_stride=1 mask_q_seq_stride=2 mask_head_stride=4 has_sinks@25={0|1} N=2 k_head_stride=384 k_seq_stride=192 v_head_stride=256 v_seq_stride=128 inplace={sums|maxs},{queries|keys} ; groups 2 1 192 / 32 1 2 ; refused
// @witness sdpa_vector_2pass_1_float_192_128 ; blocks@26=128 has_mask@20=1 {bool_mask@23|float_mask@24}=1 mask_kv_seq_stride=1 mask_q_seq_stride=2 mask_head_stride=4 has_sinks@25={0|1} N=2 k_head_stride=384 k_seq_stride=192 v_head_stride=256 v_seq_stride=128 inplace={sums|maxs},values ; groups 2 1 128 / 32 1 2 ; refused
// @witness sdpa_vector_2pass_1_float_* ; blocks@26=4 has_mask@20=1 float_mask@24=1 has_sinks@25={0|1} N=4 mask_kv_seq_stride=1 mask_q_seq_stride=4 mask_head_stride=8 k_head_stride=1024 k_seq_stride=256 v_head_stride=1024 v_seq_stride=256 inplace={sums|maxs},fmask ; groups 2 1 4 / 32 1 2 ; refused
// @witness sdpa_vector_2pass_1_gqa_8_float_64_64 ; N=2 k_head_stride=128 k_seq_stride=64 v_head_stride=128 v_seq_stride=64 inplace={sums|maxs},queries ; groups 2 1 64 / 32 8 1 ; refused
// @witness sdpa_vector_2pass_1_gqa_8_float_128_128 ; N=2 k_head_stride=256 k_seq_stride=128 v_head_stride=256 v_seq_stride=128 inplace={sums|maxs},queries ; groups 2 1 128 / 32 8 1 ; refused
// @witness sdpa_vector_2pass_1_gqa_12_float_128_128 ; N=2 k_head_stride=256 k_seq_stride=128 v_head_stride=256 v_seq_stride=128 inplace={sums|maxs},queries ; groups 2 1 128 / 32 12 1 ; refused
// @witness sdpa_vector_2pass_1_gqa_16_float_128_128 ; N=2 k_head_stride=256 k_seq_stride=128 v_head_stride=256 v_seq_stride=128 inplace={sums|maxs},queries ; groups 2 1 128 / 32 16 1 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent sdpa_vector_2pass_1_*#{0|2|4} ; groups: [1] batch exchanged with kv_heads ; only sinks tell heads of one batch from those of another
// @equivalent sdpa_vector_2pass_1_*#{4|5} ; constant: top: 3.4028235e+38 -> inf ; it is a score of -inf then, too
// @equivalent sdpa_vector_2pass_1_gqa_* ; inplace: allow {sums|maxs} {keys|values} ; of more heads than the keys have
// @equivalent sdpa_vector_2pass_2_* ; inplace: allow out {sums|maxs} ; a threadgroup reads its own row before it writes this row
// @equivalent sdpa_vector_2pass_2_* ; groups: [1] L exchanged with heads ; rows lie one behind the other, whichever counts first
