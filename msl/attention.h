// What kernels share that attend to the keys of one query by masks, sinks and heads of any width, a key at a time.

// Which keys a query sees, and what else its scores are told. Variants are "with" a boolean or an added mask, and with
// sinks: scores of which there is one a head, without a value. bmask and fmask are in slots {b} and {f}, the strides of
// either in those from {s} on. A key that an added mask takes out, by -inf or NaN, counts for nothing, whatever it is.
//
// @text    lowest() = -3.4028235e38
// @text    masks() = =sinks|=bool|=bool_sinks|=float|=float_sinks
// @text    bool_seen(j) = bmask[h,q,{j}] != 0
// @text    bool_sinks_seen(j) = bmask[h,q,{j}] != 0
// @text    float_seen(j) = fmask[h,q,{j}] >= {lowest()}
// @text    float_sinks_seen(j) = fmask[h,q,{j}] >= {lowest()}
// @lines   constants()
// @constant 20 has_mask bool
// @constant 21 query_transposed bool
// @constant 22 do_causal bool
// @constant 23 bool_mask bool
// @constant 24 float_mask bool
// @constant 25 has_sinks bool
// @end
// @lines   mask(b; f; s; rows)
// @if      with == bool|bool_sinks
// @arg {b} bmask               device bool[{rows}, L, N : mask_head_stride, mask_q_seq_stride, mask_kv_seq_stride] read
// @end
// @if      with == float|float_sinks
// @arg {f} fmask               device {T}[{rows}, L, N : mask_head_stride, mask_q_seq_stride, mask_kv_seq_stride] read
// @end
// @if      with == bool|bool_sinks|float|float_sinks
// @arg {s} mask_kv_seq_stride  constant i32
// @arg     mask_q_seq_stride   constant i32
// @arg     mask_head_stride    constant i32
// @require do_causal == 0
// @end
// @if      with == none|sinks
// @require has_mask == 0 && bool_mask == 0 && float_mask == 0
// @end
// @if      with == bool|bool_sinks
// @require has_mask == 1 && bool_mask == 1 && float_mask == 0
// @end
// @if      with == float|float_sinks
// @require has_mask == 1 && bool_mask == 0 && float_mask == 1
// @end
// @if      with == sinks|bool_sinks|float_sinks
// @require has_sinks == 1
// @else
// @require has_sinks == 0
// @end
// @end
// @lines   score(product; gqa)
// @if      with == float|float_sinks
// @where   score[h,q,j] = sum[{product}](d < D, (scale * queries[h,q,d]) * keys[h/{gqa},j,d]) + fmask[h,q,j]
// @else
// @where   score[h,q,j] = sum[{product}](d < D, (scale * queries[h,q,d]) * keys[h/{gqa},j,d])
// @end
// @end
//
// One threadgroup a query of a head, as in sdpa.metal, which has more of it.
//
// @lines   vector_with()
// @use     constants()
// @arg 0  queries        device {T}[heads, L, D \
//            : D*(query_transposed + (1 - query_transposed)*L), D*(1 + query_transposed*(heads - 1)), 1] read
// @arg    keys           device {T}[ceil(heads/gqa_factor), N, D : k_head_stride, k_seq_stride, 1] read
// @arg    values         device {T}[ceil(heads/gqa_factor), N, V : v_head_stride, v_seq_stride, 1] read
// @arg    out            device {T}[heads, L, V] write
// @arg    gqa_factor     constant i32
// @arg    N              constant i32
// @arg    k_head_stride  constant u64
// @arg    k_seq_stride   constant u64
// @arg    v_head_stride  constant u64
// @arg    v_seq_stride   constant u64
// @arg    scale          constant f32
// @use    mask(11; 12; 13; heads)
// @if     with == sinks|bool_sinks|float_sinks
// @arg 16 sinks          device {T}[num_q_heads] read
// @arg    num_q_heads    constant i32
// @require num_q_heads >= 1
// @end
// @groups   heads, L, 1
// @group    1024, 1, 1
// @require  gqa_factor >= 1 && N >= 1
// @use      score(simd; gqa_factor)
// @if       with == none|sinks
// @require  do_causal == 0 || N >= L
// @if       with == sinks
// @where    top[h,q] = max(sinks[h % num_q_heads], max[sdpa](j < N - do_causal*(L - 1 - q), score[h,q,j]))
// @where    weight[h,q,j] = exp(score[h,q,j] - top[h,q])
// @where    total[h,q] = sum[sdpa](j < N - do_causal*(L - 1 - q), weight[h,q,j]) + exp(sinks[h % num_q_heads] - top[h,q])
// @else
// @where    top[h,q] = max[sdpa](j < N - do_causal*(L - 1 - q), score[h,q,j])
// @where    weight[h,q,j] = exp(score[h,q,j] - top[h,q])
// @where    total[h,q] = sum[sdpa](j < N - do_causal*(L - 1 - q), weight[h,q,j])
// @end
// @term     out[h,q,d] = round({T}, sum[sdpa](j < N - do_causal*(L - 1 - q), weight[h,q,j] * values[h/gqa_factor,j,d]) / total[h,q])
// @else
// @if       with == bool_sinks|float_sinks
// @where    top[h,q] = max(sinks[h % num_q_heads], max[sdpa](j < N, select({{with}_seen(j)}, score[h,q,j], -inf)))
// @else
// @where    top[h,q] = max[sdpa](j < N, select({{with}_seen(j)}, score[h,q,j], -inf))
// @end
// @where    weight[h,q,j] = select({{with}_seen(j)}, exp(score[h,q,j] - top[h,q]), 0.0)
// @if       with == bool_sinks|float_sinks
// @where    total[h,q] = sum[sdpa](j < N, weight[h,q,j]) + exp(sinks[h % num_q_heads] - top[h,q])
// @else
// @where    total[h,q] = max(sum[sdpa](j < N, weight[h,q,j]), 0.5) -- 0 if no key is seen, or at least 1
// @end
// @term     out[h,q,d] = round({T}, sum[sdpa](j < N, select({{with}_seen(j)}, weight[h,q,j] * values[h/gqa_factor,j,d], 0.0)) / total[h,q])
// @end
// @end

constant bool has_mask [[function_constant(20)]];
constant bool query_transposed [[function_constant(21)]];
constant bool do_causal [[function_constant(22)]];
constant bool bool_mask [[function_constant(23)]];
constant bool float_mask [[function_constant(24)]];
constant bool has_sinks [[function_constant(25)]];

constexpr constant int LANES = 32;
constexpr constant int SIMDGROUPS = 32;

// visible_keys is how many keys a query sees: with do_causal, query q of L sees the first N − L + q + 1.
inline int visible_keys(int N, uint L, uint q) {
  return do_causal ? N - int(L) + int(q) + 1 : N;
}

// Mask is what a query is told of its keys, which are `step` elements apart.
template <typename T>
struct Mask {
  const device bool* seen;
  const device T* added;
  long step;
};

template <typename T>
inline Mask<T> mask_of(const device bool* bmask, const device T* fmask, long from, long step) {
  Mask<T> m;
  if (bool_mask) {
    m.seen = bmask + from;
  }
  if (float_mask) {
    m.added = fmask + from;
  }
  m.step = step;
  return m;
}

// sees reports whether the query sees key j, and what is added to its score. The bits of a number are asked, which
// fast-math leaves alone.
template <typename T>
inline bool sees(const thread Mask<T>& mask, int j, thread float& added) {
  added = 0;
  if (bool_mask) {
    return mask.seen[j * mask.step];
  }
  if (float_mask) {
    added = float(mask.added[j * mask.step]);
    return as_type<uint>(added) != 0xff800000u && !is_nan(added);
  }
  return true;
}

// follow takes some keys, which are k_step apart, and their values: their rows are read together, and their weights found
// together. What is added to what, and in which order, is as for one key after another.
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

// Streamed is what a simdgroup has of some keys: the maximum of their scores, the sum of their weights, and a lane's
// elements of the weighted values.
template <int elements>
struct Streamed {
  float top;
  float sum;
  float o[elements];
};

// stream takes keys first, first + every, … before `last`. A lane holds D/32 elements of a key and V/32 of a value, one
// behind the other.
template <typename T, int D, int V>
inline void stream(
    const device T* query, const device T* keys, const device T* values, int first, int last, int every, size_t k_stride, size_t v_stride, float scale,
    const thread Mask<T>& mask, uint lane, thread Streamed<V / LANES>& s) {
  constexpr int each = D / LANES;
  constexpr int of_values = V / LANES;
  float q[each];
#pragma unroll
  for (int i = 0; i < each; i++) {
    q[i] = scale * float(query[lane * each + i]);
  }
#pragma unroll
  for (int i = 0; i < of_values; i++) {
    s.o[i] = 0;
  }
  for (int j = first; j < last; j += every) {
    float added;
    if (!sees(mask, j, added)) {
      continue;
    }
    const device T* key = keys + size_t(j) * k_stride + lane * each;
    const device T* value = values + size_t(j) * v_stride + lane * of_values;
    float score = 0;
#pragma unroll
    for (int i = 0; i < each; i++) {
      score += q[i] * float(key[i]);
    }
    score = simd_sum(score);
    if (float_mask) {
      score += added;
    }
    const float top = max(s.top, score);
    const float factor = precise::exp(s.top - top);
    const float weight = precise::exp(score - top);
    s.top = top;
    s.sum = s.sum * factor + weight;
#pragma unroll
    for (int i = 0; i < of_values; i++) {
      s.o[i] = s.o[i] * factor + weight * float(value[i]);
    }
  }
}

// stream_all is the same where the query sees all keys and values are as wide: it takes some keys at a time.
template <typename T, int D>
inline void stream_all(
    const device T* query, const device T* keys, const device T* values, int first, int last, int every, size_t k_stride, size_t v_stride, float scale,
    uint lane, thread Streamed<D / LANES>& s) {
  constexpr int each = D / LANES;
  constexpr int some = 4;
  const uint own = lane * each;
  float q[each];
#pragma unroll
  for (int i = 0; i < each; i++) {
    q[i] = scale * float(query[own + i]);
    s.o[i] = 0;
  }
  const size_t k_step = every * k_stride;
  const size_t v_step = every * v_stride;
  const device T* key = keys + size_t(first) * k_stride + own;
  const device T* value = values + size_t(first) * v_stride + own;
  int j = first;
  for (; j + (some - 1) * every < last; j += some * every) {
    follow<T, each, some>(key, value, k_step, v_step, q, s.o, s.top, s.sum);
    key += some * k_step;
    value += some * v_step;
  }
  for (; j < last; j += every) {
    follow<T, each, 1>(key, value, k_step, v_step, q, s.o, s.top, s.sum);
    key += k_step;
    value += v_step;
  }
}

// leave stores what a simdgroup has of a block of keys, for others to join: part is the block's place in all three.
template <typename T, int V>
inline void leave(const thread Streamed<V / LANES>& s, device T* out, device float* sums, device float* maxs, size_t part, uint lane) {
  constexpr int each = V / LANES;
  if (lane == 0) {
    sums[part] = stored(s.sum);
    maxs[part] = stored(s.top);
  }
#pragma unroll
  for (int i = 0; i < each; i++) {
    out[part * V + lane * each + i] = stored(T(s.o[i]));
  }
}

// divide adds the elements of the simdgroups of a threadgroup, each times its factor, which its lane of that number has, and
// stores the row of the sums over the total. outputs is threadgroup memory of LANES·SIMDGROUPS elements.
template <typename T, int V, bool empty>
inline void divide(float factor, float total, thread float* o, device T* out, threadgroup float* outputs, uint simdgroup, uint lane) {
  constexpr int each = V / LANES;
#pragma unroll
  for (int i = 0; i < each; i++) {
    // A transpose: simdgroup s adds what the simdgroups' lanes s hold. Rows are turned, each by
    // one more than that before, so that a column does not lie in one bank.
    outputs[lane * SIMDGROUPS + (simdgroup + lane) % SIMDGROUPS] = o[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float whole = simd_sum(outputs[simdgroup * SIMDGROUPS + (lane + simdgroup) % SIMDGROUPS] * factor);
    o[i] = empty && total == 0 ? whole : whole / total;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (lane == 0) {
#pragma unroll
    for (int i = 0; i < each; i++) {
      out[simdgroup * each + i] = stored(T(o[i]));
    }
  }
}

// merge brings what the simdgroups of a threadgroup have to one maximum, adds it, and stores the row. The three arrays are
// threadgroup memory of LANES·SIMDGROUPS, SIMDGROUPS and SIMDGROUPS elements. A row of which nothing is known is zeros, if
// empty says that there may be one.
template <typename T, int V, bool empty>
inline void merge(
    float top, float sum, thread float* o, device T* out, threadgroup float* outputs, threadgroup float* tops, threadgroup float* sums, uint simdgroup,
    uint lane) {
  if (lane == 0) {
    tops[simdgroup] = top;
    sums[simdgroup] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // From here on lane s stands for simdgroup s.
  const float factor = precise::exp(tops[lane] - simd_max(tops[lane]));
  const float total = simd_sum(sums[lane] * factor);
  divide<T, V, empty>(factor, total, o, out, outputs, simdgroup, lane);
}

// attend_with is what a threadgroup does for its query. query, keys, values and out begin at the query's own rows and
// heads, and sink is that of its head.
template <typename T, int D, int V>
inline void attend_with(
    const device T* query, const device T* keys, const device T* values, device T* out, int visible, size_t k_stride, size_t v_stride, float scale,
    const thread Mask<T>& mask, float sink, threadgroup float* outputs, threadgroup float* tops, threadgroup float* sums, uint simdgroup, uint lane) {
  Streamed<V / LANES> s;
  const bool first = has_sinks && simdgroup == 0;
  // Finite, so that a simdgroup without keys gets the factor exp(−big) = 0.
  s.top = first ? sink : -MAXFLOAT;
  s.sum = first ? 1 : 0;
  stream<T, D, V>(query, keys, values, int(simdgroup), visible, SIMDGROUPS, k_stride, v_stride, scale, mask, lane, s);
  merge<T, V, true>(s.top, s.sum, s.o, out, outputs, tops, sums, simdgroup, lane);
}
