// Attention of few queries over many keys.

#include "common.h"
#include "attention.h"

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
  // As stream_all, but written out: with what a simdgroup has in one structure, the compiler makes other code of it.
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

  merge<T, D, false>(top, sum, o, out, outputs, tops, sums, simdgroup, lane);
}

// One threadgroup a query: MLX's kernel, whose threadgroups have 1,024 threads and 4,352 bytes.
//
// @text  heads() = 64_64=64|96_96=96|128_128=128|256_256=256
// @lines heads_apart()
// @arg gqa_factor     constant i32
// @arg N              constant i32
// @arg k_head_stride  constant u64
// @arg k_seq_stride   constant u64
// @arg v_head_stride  constant u64
// @arg v_seq_stride   constant u64
// @arg scale          constant f32
// @groups   heads, L, 1
// @end
// @lines keys_and_values(S)
// @arg keys           device {S}[ceil(heads/gqa_factor), N, D : k_head_stride, k_seq_stride, 1] read
// @arg values         device {S}[ceil(heads/gqa_factor), N, D : v_head_stride, v_seq_stride, 1] read
// @end
// @lines attention(products; C; at; row)
// @require  gqa_factor >= 1 && N >= 1 && (do_causal == 0 || N >= L)
// @where    score[h,q,j] = sum[{products}](d < D, (scale * queries[{row},d]) * keys[h/gqa_factor,j,d])
// @where    top[h,q] = max[{C}](j < N - do_causal*(L - 1 - q), score[h,q,j])
// @where    weight[h,q,j] = exp(score[h,q,j] - top[h,q])
// @term     out[{at},d] = round({T}, sum[{C}](j < N - do_causal*(L - 1 - q), weight[h,q,j] * values[h/gqa_factor,j,d]) \
//             / sum[{C}](j < N - do_causal*(L - 1 - q), weight[h,q,j]))
// @end
//
// @kernel   sdpa_vector_{T:{types()}}_{D:64_64=64|96_96=96|128_128=128}{transposed:=1|=0}
// @mlx
// @use      constants()
// @if       transposed == 1
// @arg queries        device {T}[L, heads, D] read
// @else
// @arg queries        device {T}[heads, L, D] read
// @end
// @use      keys_and_values({T})
// @arg out            device {T}[heads, L, D] write
// @use      heads_apart()
// @group    1024, 1, 1
// @require  has_mask == 0 && bool_mask == 0 && float_mask == 0 && has_sinks == 0
// @require  query_transposed == transposed
// @if       transposed == 1
// @use      attention(simd; sdpa; h,q; q,h)
// @else
// @use      attention(simd; sdpa; h,q; h,q)
// @end
//
// With masks or sinks.
//
// @kernel   sdpa_vector_{T:{types()}}_{D:64_64=64|96_96=96|128_128=128}{with:{masks()}}
// @mlx
// @let      V = D
// @use      vector_with()
//
// Wide heads: keys of 192 elements have values of 128.
//
// @kernel   sdpa_vector_{T:{types()}}_{D:192_128=192|256_256=256}{with:=none|{masks()}}
// @mlx
// @let      V = 2*D - 256
// @use      vector_with()
template <typename T, int D, int V>
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
    const device bool* bmask [[buffer(11), function_constant(bool_mask)]],
    const device T* fmask [[buffer(12), function_constant(float_mask)]],
    constant int& mask_kv_seq_stride [[buffer(13), function_constant(has_mask)]],
    constant int& mask_q_seq_stride [[buffer(14), function_constant(has_mask)]],
    constant int& mask_head_stride [[buffer(15), function_constant(has_mask)]],
    const device T* sinks [[buffer(16), function_constant(has_sinks)]],
    constant int& num_q_heads [[buffer(17), function_constant(has_sinks)]],
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
  out += by_head * V;
  const int visible = visible_keys(N, groups.y, group.y);
  if (D == V && D <= 128 && !has_mask && !has_sinks) {
    attend<T, D>(queries, keys, values, out, visible, k_seq_stride, v_seq_stride, scale, outputs, tops, sums, simdgroup, lane);
    return;
  }
  Mask<T> mask;
  if (has_mask) {
    mask = mask_of(bmask, fmask, long(head) * mask_head_stride + long(query) * mask_q_seq_stride, mask_kv_seq_stride);
  }
  const float sink = has_sinks ? float(sinks[head % size_t(num_q_heads)]) : 0;
  attend_with<T, D, V>(
      queries, keys, values, out, visible, k_seq_stride, v_seq_stride, scale, mask, sink, outputs, tops, sums, simdgroup, lane);
}

#define EACH_HEAD(instantiate, name, T) instantiate(name, T, 64) instantiate(name, T, 96) instantiate(name, T, 128)
#define INSTANTIATE_WIDTHS(name, T, D, V) \
  template [[host_name("sdpa_vector_" #name "_" #D "_" #V)]] [[kernel]] decltype(sdpa_vector<T, D, V>) sdpa_vector<T, D, V>;
#define INSTANTIATE_VECTOR(name, T, D) INSTANTIATE_WIDTHS(name, T, D, D)
#define INSTANTIATE_WIDE(name, T) INSTANTIATE_WIDTHS(name, T, 192, 128) INSTANTIATE_WIDTHS(name, T, 256, 256)

EACH_HEAD(INSTANTIATE_VECTOR, float, float)
EACH_HEAD(INSTANTIATE_VECTOR, float16_t, half)
EACH_HEAD(INSTANTIATE_VECTOR, bfloat16_t, bfloat)
INSTANTIATE_WIDE(float, float)
INSTANTIATE_WIDE(float16_t, half)
INSTANTIATE_WIDE(bfloat16_t, bfloat)

// rows, of queries and results that are [L, heads, D]: L, the outermost dimension, may be a param of the
// graph (MLX's layout of out has strides that depend on it). It is ours, and what record.Session records for
// one query and for many. The keys of a query are shared among 32 teams of eight lanes, four teams to a
// simdgroup; team t takes keys t, t+32, …, some of them at once, and its lanes take four neighbouring
// elements of each 32. So a hundred keys are one turn, in which all that is read is asked for first.
constexpr constant int TEAM = 8;             // lanes
constexpr constant int TEAMS = LANES / TEAM; // of a simdgroup
constexpr constant int PARTS = 8;            // simdgroups
constexpr constant int STEP = PARTS * TEAMS; // teams
constexpr constant float LEAST = -MAXFLOAT;  // finite: exp of a difference to it is 0, and no NaN

// take reads a lane's elements of a row: pieces of four, 32 apart.
template <int each, bool wide, typename T>
inline void take(const device T* row, thread float* v) {
  typedef vec<T, 4> Four;
#pragma unroll
  for (int i = 0; i < each; i += 4) {
    const device T* p = row + i * TEAM;
    if (wide) {
      const Four four = *(const device Four*)p;
      v[i] = float(four.x);
      v[i + 1] = float(four.y);
      v[i + 2] = float(four.z);
      v[i + 3] = float(four.w);
    } else {
      v[i] = float(p[0]);
      v[i + 1] = float(p[1]);
      v[i + 2] = float(p[2]);
      v[i + 3] = float(p[3]);
    }
  }
}

inline float larger(float a, float b) { return b > a ? b : a; }

// greatest and total of n numbers, a power of two, take them in pairs: what is at the end waits for log n.
template <int n>
inline float greatest(thread float* x) {
#pragma unroll
  for (int half_of = n / 2; half_of > 0; half_of /= 2) {
#pragma unroll
    for (int i = 0; i < half_of; i++) {
      x[i] = larger(x[i], x[i + half_of]);
    }
  }
  return x[0];
}
template <int n>
inline float total(thread float* x) {
#pragma unroll
  for (int half_of = n / 2; half_of > 0; half_of /= 2) {
#pragma unroll
    for (int i = 0; i < half_of; i++) {
      x[i] += x[i + half_of];
    }
  }
  return x[0];
}

// ask reads some of a team's keys and their values, the first of them being key j. What is behind the last key
// that the query sees is that one, and weighs nothing.
template <typename S, int each, int some, bool wide>
inline void ask(const device S* keys, const device S* values, size_t k_stride, size_t v_stride, int j, int visible, thread float* k, thread float* v) {
#pragma unroll
  for (int n = 0; n < some; n++) {
    take<each, wide>(keys + size_t(min(j + n * STEP, visible - 1)) * k_stride, k + n * each);
  }
#pragma unroll
  for (int n = 0; n < some; n++) {
    take<each, wide>(values + size_t(min(j + n * STEP, visible - 1)) * v_stride, v + n * each);
  }
}

// What becomes of a score: nothing, or it is kept within ±cap.
struct Plain {
  template <typename V>
  inline V operator()(V score) const {
    return score;
  }
};
struct Capped {
  float cap;
  template <typename V>
  inline V operator()(V score) const {
    return cap * precise::tanh(score / cap);
  }
};

// add adds them to what the team has: a maximum, a sum, and a lane's elements of the weighted values. The
// first ones are all that it has.
template <int each, int some, bool first, typename Bend>
inline void add(
    const thread float* q, const thread float* k, const thread float* v, int j, int visible, Bend bend, thread float& top, thread float& sum,
    thread float* o) {
  vec<float, some> score = 0;
#pragma unroll
  for (int n = 0; n < some; n++) {
#pragma unroll
    for (int i = 0; i < each; i++) {
      score[n] = fma(q[i], k[n * each + i], score[n]);
    }
  }
#pragma unroll
  for (int d = 1; d < TEAM; d *= 2) {
    score += simd_shuffle_xor(score, ushort(d));
  }
  score = bend(score);
  float of[some];
#pragma unroll
  for (int n = 0; n < some; n++) {
    of[n] = j + n * STEP < visible ? score[n] : LEAST;
  }
  const float new_top = larger(first ? LEAST : top, greatest<some>(of));
  if (!first) {
    const float factor = precise::exp(top - new_top);
    sum *= factor;
#pragma unroll
    for (int i = 0; i < each; i++) {
      o[i] *= factor;
    }
  }
  top = new_top;
#pragma unroll
  for (int n = 0; n < some; n++) {
    // All ones, or zero where the key is not seen: by these bits, and not by a choice, of which compilers
    // make branches, behind which they load.
    const int seen = (j + n * STEP - visible) >> 31;
    const float weight = as_type<float>(as_type<int>(precise::exp(score[n] - top)) & seen);
    sum = first && n == 0 ? weight : sum + weight;
#pragma unroll
    for (int i = 0; i < each; i++) {
      const float x = as_type<float>(as_type<int>(v[n * each + i]) & seen);
      o[i] = first && n == 0 ? weight * x : fma(weight, x, o[i]);
    }
  }
}

// walk is what a team has of all its keys. The teams of a simdgroup take as many turns, for they exchange side
// by side. The query is used only after the first keys have been asked for.
template <typename T, typename S, int D, bool wide, typename Bend>
inline void walk(
    const device T* query, const device S* keys, const device S* values, size_t k_stride, size_t v_stride, int simdgroup, int team, int visible,
    float scale, Bend bend, thread float& top, thread float& sum, thread float* o) {
  constexpr int each = D / TEAM;
  constexpr int some = D <= 64 ? 4 : 2; // as many as the registers hold
  int j = simdgroup * TEAMS;
  if (j >= visible) {
    return;
  }
  float q[each];
  float k[some * each];
  float v[some * each];
  take<each, wide>(query, q);
  ask<S, each, some, wide>(keys, values, k_stride, v_stride, j + team, visible, k, v);
#pragma unroll
  for (int i = 0; i < each; i++) {
    q[i] *= scale;
  }
  add<each, some, true>(q, k, v, j + team, visible, bend, top, sum, o);
  for (j += some * STEP; j < visible; j += some * STEP) {
    ask<S, each, some, wide>(keys, values, k_stride, v_stride, j + team, visible, k, v);
    add<each, some, false>(q, k, v, j + team, visible, bend, top, sum, o);
  }
}

// attend_row is what a threadgroup does for its query: queries, keys, values and out begin at its own rows and heads, and it
// sees the first `visible` keys, of which there is one. A lane has the elements from `own` on of each 32, and is one of a
// team. The three arrays are threadgroup memory of PARTS·D, PARTS and PARTS
// elements. With sinks, sink is one more score, without a value. It stands in its kernels, so that these are compiled as wholes.
template <typename T, typename S, int D, bool sinks, typename Bend>
__attribute__((always_inline)) inline void attend_row(
    const device T* queries, const device S* keys, const device S* values, device T* out, int visible, constant ulong& k_seq_stride,
    constant ulong& v_seq_stride, constant float& scale, Bend bend, float sink, uint own, int team, threadgroup float* outputs,
    threadgroup float* tops, threadgroup float* sums, uint simdgroup, uint lane) {
  constexpr int each = D / TEAM;
  // Whether all rows begin where a vector of T may lie, which is no shorter than one of S; a lane's pieces are whole vectors apart.
  const bool wide = ((ulong(queries) | ulong(keys) | ulong(values) | (k_seq_stride | v_seq_stride) * sizeof(S)) & (4 * sizeof(T) - 1)) == 0;
  queries += own;
  keys += own;
  values += own;

  float top = LEAST;
  float sum = 0;
  float o[each];
#pragma unroll
  for (int i = 0; i < each; i++) {
    o[i] = 0;
  }
  // Most keys are there since long, in memory: a cache gets those of the first turn while the last one is made.
  constexpr int row_lines = D * int(sizeof(S)) / 128;
  const int line = int(simdgroup) * LANES + int(lane);
  if (line < visible * row_lines) {
    will_read(keys - own + size_t(line / row_lines) * k_seq_stride + line % row_lines * (128 / sizeof(S)));
    will_read(values - own + size_t(line / row_lines) * v_seq_stride + line % row_lines * (128 / sizeof(S)));
  }
  wait_for_dispatches();
  if (wide) {
    walk<T, S, D, true>(queries, keys, values, k_seq_stride, v_seq_stride, int(simdgroup), team, visible, scale, bend, top, sum, o);
  } else {
    walk<T, S, D, false>(queries, keys, values, k_seq_stride, v_seq_stride, int(simdgroup), team, visible, scale, bend, top, sum, o);
  }

  // The teams are brought to one maximum before anything of theirs is added.
  float of_all = top;
#pragma unroll
  for (int d = TEAM; d < LANES; d *= 2) {
    of_all = larger(of_all, simd_shuffle_xor(of_all, ushort(d)));
  }
  if (lane == 0) {
    tops[simdgroup] = of_all;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float parts[PARTS];
#pragma unroll
  for (int s = 0; s < PARTS; s++) {
    parts[s] = tops[s];
  }
  const float most = sinks ? larger(greatest<PARTS>(parts), sink) : 0;
  const float factor = precise::exp(top - (sinks ? most : greatest<PARTS>(parts)));
  sum *= factor;
  sum += simd_shuffle_xor(sum, ushort(TEAM));
  sum += simd_shuffle_xor(sum, ushort(2 * TEAM));
  // A simdgroup's teams are added by halves: a lane gives away the half of its elements that the lane 16
  // beside keeps, and then the half of what is left to the one 8 beside.
  const bool upper = (lane & 2 * TEAM) != 0;
  const bool odd = (lane & TEAM) != 0;
  float half_of[each / 2];
#pragma unroll
  for (int i = 0; i < each / 2; i++) {
    const float low = o[i] * factor;
    const float high = o[each / 2 + i] * factor;
    half_of[i] = (upper ? high : low) + simd_shuffle_xor(upper ? low : high, ushort(2 * TEAM));
  }
  const int first = (upper ? each / 2 : 0) + (odd ? each / 4 : 0);
#pragma unroll
  for (int i = 0; i < each / 4; i++) {
    const float low = half_of[i];
    const float high = half_of[each / 4 + i];
    const float v = (odd ? high : low) + simd_shuffle_xor(odd ? low : high, ushort(TEAM));
    const int at = first + i;
    outputs[int(simdgroup) * D + at / 4 * LANES + int(own) + at % 4] = v;
  }
  if (lane == 0) {
    sums[simdgroup] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int e = int(simdgroup) * LANES + int(lane);
  if (e < D) {
    float of[PARTS];
#pragma unroll
    for (int s = 0; s < PARTS; s++) {
      parts[s] = outputs[s * D + e];
      of[s] = sums[s];
    }
    out[e] = stored(T(total<PARTS>(parts) / (sinks ? total<PARTS>(of) + precise::exp(sink - most) : total<PARTS>(of))));
  }
}

// Keys and values may have fewer bits than queries and results: a cache of f16 in a model whose activations are f32.
//
// @lines    rows(S)
// @constant 22 do_causal bool
// @arg queries        device {T}[L, heads, D] read
// @use      keys_and_values({S})
// @arg out            device {T}[L, heads, D] write
// @use      heads_apart()
// @group    256, 1, 1
// @use      attention(sdpa_team; sdpa_rows; q,h; q,h)
// @end
//
// @kernel   sdpa_rows_{T:{types()}}_{D:{heads()}}
// @use      rows({T})
//
// @kernel   sdpa_rows_{T:float=f32}_{S:float16_t=f16}_{D:{heads()}}
// @use      rows({S})
template <typename T, typename S, int D>
[[kernel]] void sdpa_rows(
    const device T* queries [[buffer(0)]],
    const device S* keys [[buffer(1)]],
    const device S* values [[buffer(2)]],
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
  threadgroup float outputs[PARTS * D];
  threadgroup float tops[PARTS];
  threadgroup float sums[PARTS];

  const uint row = group.y * groups.x + group.x;
  const uint kv_head = group.x / uint(gqa_factor);
  const uint own = lane % TEAM * 4;
  const int team = int(lane) / TEAM;
  const int visible = visible_keys(N, groups.y, group.y);
  queries += size_t(row) * D;
  keys += size_t(kv_head) * k_head_stride;
  values += size_t(kv_head) * v_head_stride;
  out += size_t(row) * D;
  attend_row<T, S, D, false>(
      queries, keys, values, out, visible, k_seq_stride, v_seq_stride, scale, Plain(), 0, own, team, outputs, tops, sums, simdgroup, lane);
}

// Causal attention of queries that see `window` keys, their own and those before it, and no others; with scores that are
// kept within ±cap, or with sinks. A window may be longer than all that there is.
//
// @text     seen() = min(N - L + 1 + q, window)
// @text     first() = max(0, N - L + 1 + q - window)
//
// @lines    rows_within(S)
// @arg queries        device {T}[L, heads, D] read
// @use      keys_and_values({S})
// @arg out            device {T}[L, heads, D] write
// @use      heads_apart()
// @arg window         constant i32
// @if       with == capped
// @arg cap            constant f32
// @end
// @if       with == sinks
// @arg sinks          device {T}[heads] read
// @end
// @group    256, 1, 1
// @require  gqa_factor >= 1 && N >= L && window >= 1
// @if       with == capped
// @where    score[q,h,j] = cap * tanh(sum[sdpa_team](d < D, (scale * queries[q,h,d]) * keys[h/gqa_factor,j,d]) / cap)
// @else
// @where    score[q,h,j] = sum[sdpa_team](d < D, (scale * queries[q,h,d]) * keys[h/gqa_factor,j,d])
// @end
// @if       with == sinks
// @where    top[q,h] = max(sinks[h], max[sdpa_window](k < {seen()}, score[q,h,{first()}+k]))
// @else
// @where    top[q,h] = max[sdpa_window](k < {seen()}, score[q,h,{first()}+k])
// @end
// @where    weight[q,h,j] = exp(score[q,h,j] - top[q,h])
// @where    whole[q,h,d] = sum[sdpa_window](k < {seen()}, weight[q,h,{first()}+k] * values[h/gqa_factor,{first()}+k,d])
// @if       with == sinks
// @term     out[q,h,d] = round({T}, whole[q,h,d] / (sum[sdpa_window](k < {seen()}, weight[q,h,{first()}+k]) + exp(sinks[h] - top[q,h])))
// @else
// @term     out[q,h,d] = round({T}, whole[q,h,d] / sum[sdpa_window](k < {seen()}, weight[q,h,{first()}+k]))
// @end
// @end
#define NOTHING_MORE
#define CAP constant float& cap,
#define SINKS const device T* sinks,
#define WINDOWED(form, bend, extra, score, MORE)                                                                       \
  template <typename T, typename S, int D>                                                                             \
  [[kernel]] void sdpa_rows_##form(                                                                                    \
      const device T* queries, const device S* keys, const device S* values, device T* out, constant int& gqa_factor,  \
      constant int& N, constant ulong& k_head_stride, constant ulong& k_seq_stride, constant ulong& v_head_stride,     \
      constant ulong& v_seq_stride, constant float& scale, constant int& window, MORE                                  \
      uint3 group [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]],                            \
      uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {                    \
    threadgroup float outputs[PARTS * D];                                                                              \
    threadgroup float tops[PARTS];                                                                                     \
    threadgroup float sums[PARTS];                                                                                     \
    const size_t row = group.y * groups.x + group.x;                                                                   \
    const size_t kv_head = group.x / uint(gqa_factor);                                                                 \
    const int end = N - int(groups.y) + int(group.y) + 1;                                                              \
    const int from = max(0, end - window);                                                                             \
    keys += kv_head * k_head_stride + size_t(from) * k_seq_stride;                                                     \
    values += kv_head * v_head_stride + size_t(from) * v_seq_stride;                                                   \
    attend_row<T, S, D, extra>(                                                                                        \
        queries + row * D, keys, values, out + row * D, end - from, k_seq_stride, v_seq_stride, scale, bend, score,    \
        lane % TEAM * 4, int(lane) / TEAM, outputs, tops, sums, simdgroup, lane);                                      \
  }

// @kernel   sdpa_rows_{with:window}_{T:{types()}}_{D:{heads()}}
// @use      rows_within({T})
//
// @kernel   sdpa_rows_{with:window}_{T:float=f32}_{S:float16_t=f16}_{D:{heads()}}
// @use      rows_within({S})
WINDOWED(window, Plain(), false, 0.0f, NOTHING_MORE)

// @kernel   sdpa_rows_{with:capped}_{T:{types()}}_{D:{heads()}}
// @use      rows_within({T})
//
// @kernel   sdpa_rows_{with:capped}_{T:float=f32}_{S:float16_t=f16}_{D:{heads()}}
// @use      rows_within({S})
WINDOWED(capped, Capped{cap}, false, 0.0f, CAP)

// @kernel   sdpa_rows_{with:sinks}_{T:{types()}}_{D:{heads()}}
// @use      rows_within({T})
//
// @kernel   sdpa_rows_{with:sinks}_{T:float=f32}_{S:float16_t=f16}_{D:{heads()}}
// @use      rows_within({S})
WINDOWED(sinks, Plain(), true, float(sinks[group.x]), SINKS)

#define INSTANTIATE_FORM(form, name, T, S, D) \
  template [[host_name(#form "_" #name "_" #D "_" #D)]] [[kernel]] decltype(form<T, S, D>) form<T, S, D>;
#define INSTANTIATE_ROWS(name, T, S, D)               \
  INSTANTIATE_FORM(sdpa_rows, name, T, S, D)          \
  INSTANTIATE_FORM(sdpa_rows_window, name, T, S, D)   \
  INSTANTIATE_FORM(sdpa_rows_capped, name, T, S, D)   \
  INSTANTIATE_FORM(sdpa_rows_sinks, name, T, S, D)
#define INSTANTIATE_ROWS_OF(name, T, S)                                       \
  INSTANTIATE_ROWS(name, T, S, 64) INSTANTIATE_ROWS(name, T, S, 96)           \
  INSTANTIATE_ROWS(name, T, S, 128) INSTANTIATE_ROWS(name, T, S, 256)

INSTANTIATE_ROWS_OF(float, float, float)
INSTANTIATE_ROWS_OF(float16_t, half, half)
INSTANTIATE_ROWS_OF(bfloat16_t, bfloat, bfloat)
INSTANTIATE_ROWS_OF(float_float16_t, float, half)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Attention: one threadgroup a head and query.
//
// @witness sdpa_vector_* ; query_transposed@21=0 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 1 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_mask@20=0 query_transposed@21={0|1} do_causal@22=1 bool_mask@23=0 float_mask@24=0 has_sinks@25=0 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; query_transposed@21={0|1} do_causal@22=1 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; query_transposed@21={0|1} do_causal@22=0 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; query_transposed@21={0|1} do_causal@22=1 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; query_transposed@21=0 gqa_factor=0 N=50 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; query_transposed@21={0|1} gqa_factor=1 N=0 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; query_transposed@21=0 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 512 1 1 ; refused
// @witness sdpa_vector_* ; query_transposed@21={0|1} has_mask@20=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; query_transposed@21={0|1} bool_mask@23=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; query_transposed@21={0|1} float_mask@24=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; query_transposed@21={0|1} has_sinks@25=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=0 query_transposed@21={0|1} mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=0 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=1 N=1 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=0 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=1 N=1 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=0 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 do_causal@22=1 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 bool_mask@23=1 float_mask@24=1 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=0 {bool_mask@23|float_mask@24}=1 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 bool_mask@23=0 float_mask@24=0 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 2 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 512 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 query_transposed@21={0|1} has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=1 N=1 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=1 N=1 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=0 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 do_causal@22=1 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 bool_mask@23=1 float_mask@24=1 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=0 {bool_mask@23|float_mask@24}=1 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 bool_mask@23=0 float_mask@24=0 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 2 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 512 1 1 ; refused
// @witness sdpa_vector_* ; has_sinks@25=1 query_transposed@21={0|1} do_causal@22={0|1} num_q_heads=9 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 18 8 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=1 num_q_heads=1 mask_kv_seq_stride=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_sinks@25=1 num_q_heads=1 gqa_factor=1 N=1 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_sinks@25=1 do_causal@22=1 num_q_heads=1 gqa_factor=1 N=1 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_sinks@25=1 do_causal@22=1 num_q_heads=1 gqa_factor=1 N=1 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_sinks@25=1 num_q_heads=9 gqa_factor=3 N=0 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_sinks@25=1 num_q_heads=9 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 2 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_sinks@25=1 num_q_heads=9 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 512 1 1 ; refused
// @witness sdpa_rows_{float|float16_t|bfloat16_t}_* ; do_causal@22=1 gqa_factor=3 N=243 k_head_stride=32768 k_seq_stride=128 v_head_stride=32768 v_seq_stride=128 ; groups 3 8 1 / 256 1 1 ; ok
// @witness sdpa_rows_{float|float16_t|bfloat16_t}_* ; do_causal@22=1 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 20 1 / 256 1 1 ; ok
// @witness sdpa_rows_{float|float16_t|bfloat16_t}_* ; do_causal@22=1 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 256 1 1 ; ok
// @witness sdpa_rows_{float|float16_t|bfloat16_t}_* ; do_causal@22=0 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 2 1 / 256 1 1 ; ok
// @witness sdpa_rows_{float|float16_t|bfloat16_t}_* ; do_causal@22=1 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 2 1 / 256 1 1 ; refused
// @witness sdpa_rows_{float|float16_t|bfloat16_t}_* ; do_causal@22=0 gqa_factor=1 N=0 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 256 1 1 ; refused
// @witness sdpa_rows_{float|float16_t|bfloat16_t}_* ; do_causal@22=0 gqa_factor=0 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 256 1 1 ; refused
// @witness sdpa_rows_{window|sinks}_* ; gqa_factor=3 N=243 k_head_stride=32768 k_seq_stride=128 v_head_stride=32768 v_seq_stride=128 window=40 ; groups 3 8 1 / 256 1 1 ; ok
// @witness sdpa_rows_capped_* ; gqa_factor=3 N=243 k_head_stride=32768 k_seq_stride=128 v_head_stride=32768 v_seq_stride=128 window=40 cap=50 ; groups 3 8 1 / 256 1 1 ; ok
// @witness sdpa_rows_{window|sinks}_* ; gqa_factor=1 N=270 k_seq_stride=256 v_seq_stride=256 window=20 ; groups 1 270 1 / 256 1 1 ; ok
// @witness sdpa_rows_{window|sinks}_* ; gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 window=1 ; groups 1 1 1 / 256 1 1 ; ok
// @witness sdpa_rows_capped_* ; gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 window=1 cap=50 ; groups 1 1 1 / 256 1 1 ; ok
// @witness sdpa_rows_{window|sinks}_* ; gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 window=1 ; groups 1 2 1 / 256 1 1 ; refused
// @witness sdpa_rows_capped_* ; gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 window=1 cap=50 ; groups 1 2 1 / 256 1 1 ; refused
// @witness sdpa_rows_{window|sinks}_* ; gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 window=0 ; groups 1 1 1 / 256 1 1 ; refused
// @witness sdpa_rows_capped_* ; gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 window=0 cap=50 ; groups 1 1 1 / 256 1 1 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent sdpa_rows_* ; inplace: allow out queries ; a threadgroup reads its own row of the queries before it writes this row
// @equivalent sdpa_vector_*#{1|2|3|4|5|6} ; inplace: allow out queries ; as in sdpa_rows: both are [heads, L, D]
// @equivalent sdpa_vector_*#? ; inplace: allow out fmask ; a threadgroup reads its own row of the mask before it writes this row
// @equivalent sdpa_vector_*#? ; constant: top: 3.4028235e+38 -> inf ; it is a score of -inf then, too
// @equivalent sdpa_vector_*_128_128#{4|6} ; constant: top: inf -> 1.0 ; a greater maximum is another factor of all weights
// @equivalent sdpa_vector_*_128_128#{4|6} ; operation: top: -inf -> abs(inf) ; nothing is said of results whose maximum is infinite
// @equivalent sdpa_vector_*_128_128#5 ; operation: top: select(* -> select(*, -inf, score* ; likewise: with no score it is -inf
// @equivalent sdpa_vector_*_128_128#5 ; operation: top: fmask* -> fmask* < * ; likewise
// @equivalent sdpa_vector_*_128_128#5 ; operation: top: -3.4028235e+38 -> abs* ; likewise
// @equivalent sdpa_vector_*_128_128#6 ; constant: weight: 3.4028235e+38 -> inf ; the weight of a score of -inf is 0
// @equivalent sdpa_vector_*_192_128#{3|5} ; constant: top: inf -> 1.0 ; a greater maximum is another factor of all weights
// @equivalent sdpa_vector_*_192_128#{3|5} ; operation: top: -inf -> abs(inf) ; nothing is said of results whose maximum is infinite
// @equivalent sdpa_vector_*_192_128#4 ; operation: top: select(* -> select(*, -inf, score* ; likewise: with no score it is -inf
// @equivalent sdpa_vector_*_192_128#4 ; operation: top: fmask* -> fmask* < * ; likewise
// @equivalent sdpa_vector_*_192_128#4 ; operation: top: -3.4028235e+38 -> abs* ; likewise
// @equivalent sdpa_vector_*_192_128#5 ; constant: weight: 3.4028235e+38 -> inf ; the weight of a score of -inf is 0
// @equivalent sdpa_vector_*_192_128#? ; inplace: allow out queries ; of 128 elements and of 192
// @equivalent sdpa_rows_{window|capped|sinks}_* ; require: gqa_factor >= 1 && N >= L -> N >= L ; gqa_factor = 0 divides by zero in the shape of the keys
// @equivalent sdpa_rows_capped_* ; operation: top: N - L + 1 + q -> N - L + 1 - q ; scores are within the cap: any number near them is a factor of all weights
// @equivalent sdpa_rows_capped_* ; operation: top: N - L + 1 -> N - L - 1 ; likewise
// @equivalent sdpa_rows_capped_* ; bound: top: * - 1, * ; likewise
// @equivalent sdpa_rows_capped_* ; operation: weight: score* - top* -> score* + top* ; likewise
// @equivalent sdpa_* ; require: gqa_factor >= 1 && N >= 1 -> N >= 1 ; gqa_factor = 0 divides by zero in the shape of the keys
