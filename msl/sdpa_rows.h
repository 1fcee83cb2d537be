// Attention of rows of queries, one or many, to keys and values in a cache: what its kernels share, whatever the cache is of.

#include "attention.h"

// Heads, their places, and what attention is. Element d of key j of the key head of h, and of its value, are what texts say whose names
// begin with `of`; those of a cache that has its scales apart have arguments more.
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
// @text  plain_key(j) = keys[h/gqa_factor,{j},d]
// @text  plain_value(j) = values[h/gqa_factor,{j},d]
// @lines plain_scales()
// @end
// @text  coded_key(j) = (f32(keys[h/gqa_factor,{j},d]) * key_scales[h/gqa_factor,{j},d/32])
// @text  coded_value(j) = (f32(values[h/gqa_factor,{j},d]) * value_scales[h/gqa_factor,{j},d/32])
// @lines coded_scales()
// @arg key_scales     device f16[ceil(heads/gqa_factor), N, D/32 : k_head_stride/32, k_seq_stride/32, 1] read
// @arg value_scales   device f16[ceil(heads/gqa_factor), N, D/32 : v_head_stride/32, v_seq_stride/32, 1] read
// @require  k_head_stride % 32 == 0 && k_seq_stride % 32 == 0 && v_head_stride % 32 == 0 && v_seq_stride % 32 == 0
// @end
// @lines attention(products; C; at; row; of)
// @require  gqa_factor >= 1 && N >= 1 && (do_causal == 0 || N >= L)
// @where    score[h,q,j] = sum[{products}](d < D, (scale * queries[{row},d]) * {{of}_key(j)})
// @where    top[h,q] = max[{C}](j < N - do_causal*(L - 1 - q), score[h,q,j])
// @where    weight[h,q,j] = exp(score[h,q,j] - top[h,q])
// @term     out[{at},d] = round({T}, sum[{C}](j < N - do_causal*(L - 1 - q), weight[h,q,j] * {{of}_value(j)}) \
//             / sum[{C}](j < N - do_causal*(L - 1 - q), weight[h,q,j]))
// @end

// Causal attention of queries that see `window` keys, their own and those before it, and no others; with scores that are
// kept within ±cap, or with sinks. A window may be longer than all that there is.
//
// @text     seen() = min(N - L + 1 + q, window)
// @text     first() = max(0, N - L + 1 + q - window)
//
// @lines    rows_within(S; of)
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
// @use      {of}_scales()
// @group    256, 1, 1
// @require  gqa_factor >= 1 && N >= L && window >= 1
// @if       with == capped
// @where    score[q,h,j] = cap * tanh(sum[sdpa_team](d < D, (scale * queries[q,h,d]) * {{of}_key(j)}) / cap)
// @else
// @where    score[q,h,j] = sum[sdpa_team](d < D, (scale * queries[q,h,d]) * {{of}_key(j)})
// @end
// @if       with == sinks
// @where    top[q,h] = max(sinks[h], max[sdpa_window](k < {seen()}, score[q,h,{first()}+k]))
// @else
// @where    top[q,h] = max[sdpa_window](k < {seen()}, score[q,h,{first()}+k])
// @end
// @where    weight[q,h,j] = exp(score[q,h,j] - top[q,h])
// @where    whole[q,h,d] = sum[sdpa_window](k < {seen()}, weight[q,h,{first()}+k] * {{of}_value({first()}+k)})
// @if       with == sinks
// @term     out[q,h,d] = round({T}, whole[q,h,d] / (sum[sdpa_window](k < {seen()}, weight[q,h,{first()}+k]) + exp(sinks[h] - top[q,h])))
// @else
// @term     out[q,h,d] = round({T}, whole[q,h,d] / sum[sdpa_window](k < {seen()}, weight[q,h,{first()}+k]))
// @end
// @end

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

// Coded are rows of codes of 8 bits, with a scale for each 32 of them, which the lanes of a team have in pieces of four:
// rows as elements of one type are, which `take` reads alike. Rows begin at multiples of 32.
struct Coded {
  const device char* codes;
  const device half* scales;
};
inline Coded operator+(Coded rows, size_t n) { return Coded{rows.codes + n, rows.scales + n / 32}; }
inline Coded operator-(Coded rows, size_t n) { return Coded{rows.codes - n, rows.scales - n / 32}; }
inline void will_read(Coded rows) { will_read(rows.codes); }
inline ulong address(Coded rows) { return ulong(rows.codes); }
template <typename S>
inline ulong address(const device S* rows) {
  return ulong(rows);
}

template <int each, bool wide>
inline void take(Coded row, thread float* v) {
  take<each, wide>(row.codes, v);
#pragma unroll
  for (int i = 0; i < each; i++) {
    v[i] *= float(row.scales[i / 4]);
  }
}

// ask reads some of a team's keys and their values, the first of them being key j. What is behind the last key
// that the query sees is that one, and weighs nothing.
template <int each, int some, bool wide, typename Rows>
inline void ask(Rows keys, Rows values, size_t k_stride, size_t v_stride, int j, int visible, thread float* k, thread float* v) {
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
template <typename T, int D, bool wide, typename Rows, typename Bend>
inline void walk(
    const device T* query, Rows keys, Rows values, size_t k_stride, size_t v_stride, int simdgroup, int team, int visible,
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
  ask<each, some, wide>(keys, values, k_stride, v_stride, j + team, visible, k, v);
#pragma unroll
  for (int i = 0; i < each; i++) {
    q[i] *= scale;
  }
  add<each, some, true>(q, k, v, j + team, visible, bend, top, sum, o);
  for (j += some * STEP; j < visible; j += some * STEP) {
    ask<each, some, wide>(keys, values, k_stride, v_stride, j + team, visible, k, v);
    add<each, some, false>(q, k, v, j + team, visible, bend, top, sum, o);
  }
}

// attend_row is what a threadgroup does for its query: queries, keys, values and out begin at its own rows and heads, and it
// sees the first `visible` keys, of which there is one. A lane has the elements from `own` on of each 32, and is one of a
// team. The three arrays are threadgroup memory of PARTS·D, PARTS and PARTS
// elements. With sinks, sink is one more score, without a value. It stands in its kernels, so that these are compiled as wholes.
template <typename T, typename S, int D, bool sinks, typename Rows, typename Bend>
__attribute__((always_inline)) inline void attend_row(
    const device T* queries, Rows keys, Rows values, device T* out, int visible, constant ulong& k_seq_stride,
    constant ulong& v_seq_stride, constant float& scale, Bend bend, float sink, uint own, int team, threadgroup float* outputs,
    threadgroup float* tops, threadgroup float* sums, uint simdgroup, uint lane) {
  constexpr int each = D / TEAM;
  // Whether all rows begin where a vector of T may lie, which is no shorter than one of S; a lane's pieces are whole vectors apart.
  const bool wide = ((ulong(queries) | address(keys) | address(values) | (k_seq_stride | v_seq_stride) * sizeof(S)) & (4 * sizeof(T) - 1)) == 0;
  queries += own;
  keys = keys + own;
  values = values + own;

  float top = LEAST;
  float sum = 0;
  float o[each];
#pragma unroll
  for (int i = 0; i < each; i++) {
    o[i] = 0;
  }
  // Most keys are there since long, in memory: a cache gets those of the first turn while the last one is made.
  constexpr int row_lines = D * int(sizeof(S)) < 128 ? 1 : D * int(sizeof(S)) / 128;
  const int line = int(simdgroup) * LANES + int(lane);
  if (line < visible * row_lines) {
    will_read(keys - own + size_t(line / row_lines) * k_seq_stride + line % row_lines * (128 / sizeof(S)));
    will_read(values - own + size_t(line / row_lines) * v_seq_stride + line % row_lines * (128 / sizeof(S)));
  }
  wait_for_dispatches();
  if (wide) {
    walk<T, D, true>(queries, keys, values, k_seq_stride, v_seq_stride, int(simdgroup), team, visible, scale, bend, top, sum, o);
  } else {
    walk<T, D, false>(queries, keys, values, k_seq_stride, v_seq_stride, int(simdgroup), team, visible, scale, bend, top, sum, o);
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
