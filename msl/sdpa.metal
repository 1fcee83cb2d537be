// Attention of few queries over many keys.

#include <metal_stdlib>
using namespace metal;
#pragma clang fp contract(off)

// What a store leaves of a result: of a NaN, the one NaN, whichever operation
// made it (docs/terms.md, "Stores"). Bits are compared, which fast-math leaves alone.
inline float stored(float v) {
  return (as_type<uint>(v) & 0x7fffffffu) > 0x7f800000u ? as_type<float>(0x7fc00000u) : v;
}

// Those of MLX's kernel; masks and sinks are not in this one, and its
// declarations say that their constants are false.
constant bool has_mask [[function_constant(20)]];
constant bool query_transposed [[function_constant(21)]];
constant bool do_causal [[function_constant(22)]];
constant bool bool_mask [[function_constant(23)]];
constant bool float_mask [[function_constant(24)]];
constant bool has_sinks [[function_constant(25)]];

constexpr constant int LANES = 32;
constexpr constant int SIMDGROUPS = 32;

// visible_keys is how many keys the threadgroup's query sees: with do_causal,
// query q of L sees the first N − L + q + 1.
inline int visible_keys(int N, uint3 groups, uint3 group) {
  return do_causal ? N - int(groups.y) + int(group.y) + 1 : N;
}

// follow takes some keys, each 32 behind the one before: their rows are read together, and their weights
// found together. What is added to what, and in which order, is as for one key after another.
template <typename T, int each, int some>
inline void follow(
    const device T* key, const device T* value, size_t k_step, size_t v_step, thread const float* q, thread float* o, thread float& top, thread float& sum) {
  float k[some * each];
  float v[some * each];
#pragma clang loop unroll(full)
  for (int n = 0; n < some; n++) {
#pragma clang loop unroll(full)
    for (int i = 0; i < each; i++) {
      k[n * each + i] = float(key[n * k_step + i]);
      v[n * each + i] = float(value[n * v_step + i]);
    }
  }
  float score[some];
#pragma clang loop unroll(full)
  for (int n = 0; n < some; n++) {
    score[n] = 0;
#pragma clang loop unroll(full)
    for (int i = 0; i < each; i++) {
      score[n] += q[i] * k[n * each + i];
    }
    score[n] = simd_sum(score[n]);
  }
  float factor[some];
  float weight[some];
#pragma clang loop unroll(full)
  for (int n = 0; n < some; n++) {
    const float new_top = max(top, score[n]);
    factor[n] = precise::exp(top - new_top);
    weight[n] = precise::exp(score[n] - new_top);
    top = new_top;
  }
#pragma clang loop unroll(full)
  for (int n = 0; n < some; n++) {
    sum = sum * factor[n] + weight[n];
#pragma clang loop unroll(full)
    for (int i = 0; i < each; i++) {
      o[i] = o[i] * factor[n] + weight[n] * v[n * each + i];
    }
  }
}

// attend is what a threadgroup does for its query: simdgroup s takes keys s,
// s+32, … with a running maximum and sum (a "streaming" softmax), a lane D/32
// elements of each; then the simdgroups' results are brought to one maximum and
// added. query, keys, values and out begin at the query's own rows and heads;
// the three arrays are threadgroup memory of LANES·SIMDGROUPS, SIMDGROUPS and
// SIMDGROUPS elements.
template <typename T, int D>
inline void attend(
    const device T* query, const device T* keys, const device T* values, device T* out, int visible, size_t k_stride, size_t v_stride,
    float scale, threadgroup float* outputs, threadgroup float* tops, threadgroup float* sums, uint simdgroup, uint lane) {
  constexpr int each = D / LANES; // elements of a row that a lane holds
  constexpr int some = 4;         // keys that are taken together
  const uint own = lane * each;

  float q[each];
  float o[each];
#pragma unroll
  for (int i = 0; i < each; i++) {
    q[i] = scale * float(query[own + i]);
    o[i] = 0;
  }
  // Finite, so that a simdgroup without keys gets the factor exp(−big) = 0.
  float top = -MAXFLOAT;
  float sum = 0;
  const size_t k_step = SIMDGROUPS * k_stride;
  const size_t v_step = SIMDGROUPS * v_stride;
  const device T* key = keys + size_t(simdgroup) * k_stride + own;
  const device T* value = values + size_t(simdgroup) * v_stride + own;
  int j = int(simdgroup);
  for (; j + (some - 1) * SIMDGROUPS < visible; j += some * SIMDGROUPS) {
    follow<T, each, some>(key, value, k_step, v_step, q, o, top, sum);
    key += some * k_step;
    value += some * v_step;
  }
  for (; j < visible; j += SIMDGROUPS) {
    follow<T, each, 1>(key, value, k_step, v_step, q, o, top, sum);
    key += k_step;
    value += v_step;
  }

  if (lane == 0) {
    tops[simdgroup] = top;
    sums[simdgroup] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // From here on lane s stands for simdgroup s.
  const float factor = precise::exp(tops[lane] - simd_max(tops[lane]));
  const float total = simd_sum(sums[lane] * factor);
#pragma unroll
  for (int i = 0; i < each; i++) {
    // A transpose: simdgroup s adds what the simdgroups' lanes s hold. Rows are turned, each by
    // one more than that before, so that a column does not lie in one bank.
    outputs[lane * SIMDGROUPS + (simdgroup + lane) % SIMDGROUPS] = o[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    o[i] = simd_sum(outputs[simdgroup * SIMDGROUPS + (lane + simdgroup) % SIMDGROUPS] * factor) / total;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (lane == 0) {
#pragma unroll
    for (int i = 0; i < each; i++) {
      out[simdgroup * each + i] = stored(T(o[i]));
    }
  }
}

// One threadgroup a query.
//
// @kernel   sdpa_vector_float_{D:64_64=64|96_96=96|128_128=128}
// @mlx
// @constant 20 has_mask bool
// @constant 21 query_transposed bool
// @constant 22 do_causal bool
// @constant 23 bool_mask bool
// @constant 24 float_mask bool
// @constant 25 has_sinks bool
// @arg 0 queries        device f32[L, heads, D] read
// @arg 1 keys           device f32[ceil(heads/gqa_factor), N, D : k_head_stride, k_seq_stride, 1] read
// @arg 2 values         device f32[ceil(heads/gqa_factor), N, D : v_head_stride, v_seq_stride, 1] read
// @arg 3 out            device f32[heads, L, D] write
// @arg 4 gqa_factor     constant i32
// @arg 5 N              constant i32
// @arg 6 k_head_stride  constant u64
// @arg 7 k_seq_stride   constant u64
// @arg 8 v_head_stride  constant u64
// @arg 9 v_seq_stride   constant u64
// @arg 10 scale         constant f32
// @groups   heads, L, 1
// @group    1024, 1, 1
// @require  has_mask == 0 && bool_mask == 0 && float_mask == 0 && has_sinks == 0
// @require  query_transposed == 1
// @require  gqa_factor >= 1 && N >= 1 && (do_causal == 0 || N >= L)
// @where    score[h,q,j] = sum[simd](d < D, (scale * queries[q,h,d]) * keys[h/gqa_factor,j,d])
// @where    top[h,q] = max[sdpa](j < N - do_causal*(L - 1 - q), score[h,q,j])
// @where    weight[h,q,j] = exp(score[h,q,j] - top[h,q])
// @term     out[h,q,d] = round(f32, sum[sdpa](j < N - do_causal*(L - 1 - q), weight[h,q,j] * values[h/gqa_factor,j,d]) \
//             / sum[sdpa](j < N - do_causal*(L - 1 - q), weight[h,q,j]))
//
// @kernel   sdpa_vector_float_{D:64_64=64|96_96=96|128_128=128}
// @mlx
// @constant 20 has_mask bool
// @constant 21 query_transposed bool
// @constant 22 do_causal bool
// @constant 23 bool_mask bool
// @constant 24 float_mask bool
// @constant 25 has_sinks bool
// @arg 0 queries        device f32[heads, L, D] read
// @arg 1 keys           device f32[ceil(heads/gqa_factor), N, D : k_head_stride, k_seq_stride, 1] read
// @arg 2 values         device f32[ceil(heads/gqa_factor), N, D : v_head_stride, v_seq_stride, 1] read
// @arg 3 out            device f32[heads, L, D] write
// @arg 4 gqa_factor     constant i32
// @arg 5 N              constant i32
// @arg 6 k_head_stride  constant u64
// @arg 7 k_seq_stride   constant u64
// @arg 8 v_head_stride  constant u64
// @arg 9 v_seq_stride   constant u64
// @arg 10 scale         constant f32
// @groups   heads, L, 1
// @group    1024, 1, 1
// @require  has_mask == 0 && bool_mask == 0 && float_mask == 0 && has_sinks == 0
// @require  query_transposed == 0
// @require  gqa_factor >= 1 && N >= 1 && (do_causal == 0 || N >= L)
// @where    score[h,q,j] = sum[simd](d < D, (scale * queries[h,q,d]) * keys[h/gqa_factor,j,d])
// @where    top[h,q] = max[sdpa](j < N - do_causal*(L - 1 - q), score[h,q,j])
// @where    weight[h,q,j] = exp(score[h,q,j] - top[h,q])
// @term     out[h,q,d] = round(f32, sum[sdpa](j < N - do_causal*(L - 1 - q), weight[h,q,j] * values[h/gqa_factor,j,d]) \
//             / sum[sdpa](j < N - do_causal*(L - 1 - q), weight[h,q,j]))
template <typename T, int D>
[[kernel]] void sdpa_vector(
    const device T* queries [[buffer(0)]],
    const device T* keys [[buffer(1)]],
    const device T* values [[buffer(2)]],
    device T* out [[buffer(3)]],
    constant int& gqa_factor [[buffer(4)]],
    constant int& N [[buffer(5)]],
    constant ulong& k_head_stride [[buffer(6)]],
    constant ulong& k_seq_stride [[buffer(7)]],
    constant ulong& v_head_stride [[buffer(8)]],
    constant ulong& v_seq_stride [[buffer(9)]],
    constant float& scale [[buffer(10)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float outputs[LANES * SIMDGROUPS];
  threadgroup float tops[SIMDGROUPS];
  threadgroup float sums[SIMDGROUPS];

  const size_t head = group.x;
  const size_t query = group.y;
  const size_t by_head = head * groups.y + query;
  const size_t kv_head = head / size_t(gqa_factor);
  queries += (query_transposed ? query * groups.x + head : by_head) * D;
  keys += kv_head * k_head_stride;
  values += kv_head * v_head_stride;
  out += by_head * D;
  attend<T, D>(
      queries, keys, values, out, visible_keys(N, groups, group), k_seq_stride, v_seq_stride, scale, outputs, tops, sums, simdgroup, lane);
}

template [[host_name("sdpa_vector_float_64_64")]] [[kernel]] decltype(sdpa_vector<float, 64>) sdpa_vector<float, 64>;
template [[host_name("sdpa_vector_float_96_96")]] [[kernel]] decltype(sdpa_vector<float, 96>) sdpa_vector<float, 96>;
template [[host_name("sdpa_vector_float_128_128")]] [[kernel]] decltype(sdpa_vector<float, 128>) sdpa_vector<float, 128>;

// The same for rows: queries and out are [L, heads, D], so that L, the
// outermost dimension, may be a param of the graph (MLX's layout of out has
// strides that depend on it). For prefill.
//
// @kernel   sdpa_rows_float_{D:64_64=64|96_96=96|128_128=128}
// @constant 22 do_causal bool
// @arg 0 queries        device f32[L, heads, D] read
// @arg 1 keys           device f32[ceil(heads/gqa_factor), N, D : k_head_stride, k_seq_stride, 1] read
// @arg 2 values         device f32[ceil(heads/gqa_factor), N, D : v_head_stride, v_seq_stride, 1] read
// @arg 3 out            device f32[L, heads, D] write
// @arg 4 gqa_factor     constant i32
// @arg 5 N              constant i32
// @arg 6 k_head_stride  constant u64
// @arg 7 k_seq_stride   constant u64
// @arg 8 v_head_stride  constant u64
// @arg 9 v_seq_stride   constant u64
// @arg 10 scale         constant f32
// @groups   heads, L, 1
// @group    1024, 1, 1
// @require  gqa_factor >= 1 && N >= 1 && (do_causal == 0 || N >= L)
// @where    score[h,q,j] = sum[simd](d < D, (scale * queries[q,h,d]) * keys[h/gqa_factor,j,d])
// @where    top[h,q] = max[sdpa](j < N - do_causal*(L - 1 - q), score[h,q,j])
// @where    weight[h,q,j] = exp(score[h,q,j] - top[h,q])
// @term     out[q,h,d] = round(f32, sum[sdpa](j < N - do_causal*(L - 1 - q), weight[h,q,j] * values[h/gqa_factor,j,d]) \
//             / sum[sdpa](j < N - do_causal*(L - 1 - q), weight[h,q,j]))
template <typename T, int D>
[[kernel]] void sdpa_rows(
    const device T* queries [[buffer(0)]],
    const device T* keys [[buffer(1)]],
    const device T* values [[buffer(2)]],
    device T* out [[buffer(3)]],
    constant int& gqa_factor [[buffer(4)]],
    constant int& N [[buffer(5)]],
    constant ulong& k_head_stride [[buffer(6)]],
    constant ulong& k_seq_stride [[buffer(7)]],
    constant ulong& v_head_stride [[buffer(8)]],
    constant ulong& v_seq_stride [[buffer(9)]],
    constant float& scale [[buffer(10)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float outputs[LANES * SIMDGROUPS];
  threadgroup float tops[SIMDGROUPS];
  threadgroup float sums[SIMDGROUPS];

  const size_t head = group.x;
  const size_t query = group.y;
  const size_t row = query * groups.x + head;
  const size_t kv_head = head / size_t(gqa_factor);
  queries += row * D;
  keys += kv_head * k_head_stride;
  values += kv_head * v_head_stride;
  out += row * D;
  attend<T, D>(
      queries, keys, values, out, visible_keys(N, groups, group), k_seq_stride, v_seq_stride, scale, outputs, tops, sums, simdgroup, lane);
}

template [[host_name("sdpa_rows_float_64_64")]] [[kernel]] decltype(sdpa_rows<float, 64>) sdpa_rows<float, 64>;
template [[host_name("sdpa_rows_float_96_96")]] [[kernel]] decltype(sdpa_rows<float, 96>) sdpa_rows<float, 96>;
template [[host_name("sdpa_rows_float_128_128")]] [[kernel]] decltype(sdpa_rows<float, 128>) sdpa_rows<float, 128>;

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Attention: one threadgroup a head and query.
//
// @witness sdpa_vector_float_* ; query_transposed@21=0 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 1 1 / 1024 1 1 ; ok
// @witness sdpa_vector_float_* ; has_mask@20=0 query_transposed@21=0 do_causal@22=1 bool_mask@23=0 float_mask@24=0 has_sinks@25=0 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; ok
// @witness sdpa_vector_float_* ; has_mask@20=0 query_transposed@21=1 do_causal@22=1 bool_mask@23=0 float_mask@24=0 has_sinks@25=0 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; ok
// @witness sdpa_vector_float_* ; query_transposed@21=0 do_causal@22=1 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; ok
// @witness sdpa_vector_float_* ; query_transposed@21=1 do_causal@22=1 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; ok
// @witness sdpa_vector_float_* ; query_transposed@21=0 do_causal@22=0 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; ok
// @witness sdpa_vector_float_* ; query_transposed@21=1 do_causal@22=0 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; ok
// @witness sdpa_vector_float_* ; query_transposed@21=0 do_causal@22=1 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; refused
// @witness sdpa_vector_float_* ; query_transposed@21=1 do_causal@22=1 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; refused
// @witness sdpa_vector_float_* ; query_transposed@21=0 gqa_factor=0 N=50 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_float_* ; query_transposed@21=0 gqa_factor=1 N=0 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_float_* ; query_transposed@21=1 gqa_factor=1 N=0 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_float_* ; query_transposed@21=0 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 512 1 1 ; refused
// @witness sdpa_vector_float_* ; query_transposed@21=0 has_mask@20=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_float_* ; query_transposed@21=0 bool_mask@23=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_float_* ; query_transposed@21=0 float_mask@24=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_float_* ; query_transposed@21=0 has_sinks@25=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_float_* ; query_transposed@21=1 has_mask@20=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_float_* ; query_transposed@21=1 bool_mask@23=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_float_* ; query_transposed@21=1 float_mask@24=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_float_* ; query_transposed@21=1 has_sinks@25=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_rows_float_* ; do_causal@22=1 gqa_factor=3 N=243 k_head_stride=32768 k_seq_stride=128 v_head_stride=32768 v_seq_stride=128 ; groups 3 8 1 / 1024 1 1 ; ok
// @witness sdpa_rows_float_* ; do_causal@22=1 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 20 1 / 1024 1 1 ; ok
// @witness sdpa_rows_float_* ; do_causal@22=1 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; ok
// @witness sdpa_rows_float_* ; do_causal@22=0 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; ok
// @witness sdpa_rows_float_* ; do_causal@22=1 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; refused
// @witness sdpa_rows_float_* ; do_causal@22=0 gqa_factor=1 N=0 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_rows_float_* ; do_causal@22=0 gqa_factor=0 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent sdpa_rows_* ; inplace: allow out queries ; a threadgroup reads its own row of the queries before it writes this row
// @equivalent sdpa_vector_*#1 ; inplace: allow out queries ; as in sdpa_rows: both are [heads, L, D]
// @equivalent sdpa_* ; require: gqa_factor >= 1 && N >= 1 -> N >= 1 ; gqa_factor = 0 divides by zero in the shape of the keys
