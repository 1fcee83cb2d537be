// Matrix-vector products of a norm: x is normalised by every simdgroup for itself, on its way into
// the product, so that no dispatch of its own has to do it. The matrices are affine codes, as in
// quantized.metal: element (n, k) is scales[n, k/g] · q + biases[n, k/g].
//
// Additions stay in the orders of the kernels that are replaced, rms of norm.metal and
// affine_qmv of quantized.metal, so that every bit stays too. No threadgroup memory and no barrier
// is needed: a simdgroup takes the places of all simdgroups of rms, one after another. What a
// simdgroup reads of codes, scales and weights does not depend on x, so the first of it is loaded
// before x is touched, which then need not wait for it.

#include "slots.h"
#include "rope.h"

constexpr constant int READS = 4; // consecutive elements of a row that a thread of rms takes

// Input is the vector of a product before it is normalised.
template <typename T>
struct Input {
  const device T* x;
  const device T* norm;
  int K;
  float eps;
};

// inverse_of is what the kernel rms multiplies a row by whose squares have this sum.
template <typename T>
inline float inverse_of(const thread Input<T>& in, float squares) { return precise::rsqrt(squares / float(in.K) + in.eps); }

// inverse_rms is what the kernel rms multiplies a row by: its thread t adds up the squares of
// elements READS·t and following, simdgroup s holds the threads from LANES·s on, and the
// sums of the simdgroups are added last, as those of one. K is a multiple of READS. So many
// simdgroups of rms are read `ahead`, and at once where x is `wide`.
template <int ahead, bool wide, typename T>
inline float inverse_rms(const thread Input<T>& in, uint lane) {
  float partial = 0;
  for (int s = 0; s * LANES * READS < in.K; s += ahead) {
    float v[ahead][READS] = {{0}};
#pragma unroll
    for (int d = 0; d < ahead; d++) {
      const int first = ((s + d) * LANES + int(lane)) * READS;
      if (first < in.K) {
        if (wide) {
          take<READS>(in.x + first, v[d]);
        } else {
          for (int i = 0; i < READS; i++) {
            v[d][i] = in.x[first + i];
          }
        }
      }
    }
    float acc[ahead] = {0};
#pragma unroll
    for (int d = 0; d < ahead; d++) {
#pragma unroll
      for (int i = 0; i < READS; i++) {
        acc[d] += v[d][i] * v[d][i];
      }
    }
    if (ahead == 1) {
      acc[0] = simd_sum(acc[0]);
    } else {
      sum_all<ahead>(acc);
    }
#pragma unroll
    for (int d = 0; d < ahead; d++) {
      partial = int(lane) == s + d ? acc[d] : partial;
    }
  }
  return inverse_of(in, simd_sum(partial));
}

// sum_of_squares adds up the squares of a row that lies in registers: element (LANES·d + l)·values + i of it
// is v[d][i] of lane l, and 0 past its end. The order is that of inverse_rms. A lane has what some neighbours
// among the threads of rms have; so most steps of simd_sum, whose order is known here (each lane adds
// what the one has whose number differs by 16, then 8, 4, 2 and 1), are shuffles between other lanes, and some
// are none.
template <int values, int parts>
inline float sum_of_squares(const thread float (*v)[values]) {
  constexpr int threads = values / READS; // of rms, whose elements a lane has
  constexpr int across = LANES / threads; // lanes that have those of one of its simdgroups
  float acc[parts][threads];
#pragma unroll
  for (int d = 0; d < parts; d++) {
#pragma unroll
    for (int t = 0; t < threads; t++) {
      acc[d][t] = 0;
#pragma unroll
      for (int i = READS * t; i < READS * (t + 1); i++) {
        acc[d][t] += v[d][i] * v[d][i];
      }
    }
  }
#pragma unroll
  for (int k = across / 2; k > 0; k /= 2) {
#pragma unroll
    for (int d = 0; d < parts; d++) {
#pragma unroll
      for (int t = 0; t < threads; t++) {
        acc[d][t] += simd_shuffle_xor(acc[d][t], ushort(k));
      }
    }
  }
#pragma unroll
  for (int k = threads / 2; k > 0; k /= 2) {
#pragma unroll
    for (int d = 0; d < parts; d++) {
#pragma unroll
      for (int t = 0; t < k; t++) {
        acc[d][t] += acc[d][t + k];
      }
    }
  }
  // acc[d][0] is now the sum of simdgroup threads·d + lane/across. The sums of those that are not here are 0,
  // and adding that changes no square.
#pragma unroll
  for (int k = LANES / threads / 2; k > 0; k /= 2) {
#pragma unroll
    for (int d = 0; d < k && d + k < parts; d++) {
      acc[d][0] += acc[d + k][0];
    }
  }
#pragma unroll
  for (int k = threads / 2; k > 0; k /= 2) {
    acc[0][0] += simd_shuffle_xor(acc[0][0], ushort(k * across));
  }
  return acc[0][0];
}

// Part is what a lane takes of a row at a time. Its codes lie in one group.
template <typename T, int words>
struct Part {
  uint codes[words];
  T scale;
  T bias;
};

// load_part reads a part, at element k of a row.
template <int g, int b, int words, bool wide, typename T>
inline void load_part(const thread AffineOf<T>& row, uint k, thread Part<T, words>& p) {
  const device uint* w = row.w + k / (32 / b);
  if (wide && words == 2) {
    const uint2 two = *(const device uint2*)w;
    p.codes[0] = two.x;
    p.codes[words - 1] = two.y;
  } else {
#pragma unroll
    for (int j = 0; j < words; j++) {
      p.codes[j] = w[j];
    }
  }
  p.scale = row.scales[k / g];
  p.bias = row.biases[k / g];
}

// part_of is what a part adds to its product with v, whose elements have this sum.
template <int b, typename T, int words>
inline float part_of(const thread Part<T, words>& p, const thread float* v, float sum) {
  return float(p.scale) * dot_codes<b, words * 32 / b>(p.codes, v) + float(p.bias) * sum;
}

// normed makes of elements of x the elements of its norm, rounded as rms rounds them, and returns their sum, as
// `scaled` does.
template <int b, int n, typename T>
inline float normed(const thread float* norm, float inv, thread float* v) {
#pragma unroll
  for (int i = 0; i < n; i++) {
    v[i] = T(norm[i] * float(T(v[i] * inv)));
  }
  return scaled<b, n>(v);
}

// A product takes one of three ways. x of few elements is held in registers (`hold`), where it is read once;
// a longer one is read twice (`dot_long`). What lies so that it cannot be read in words of 16 bytes goes row
// by row (`dot_any`), in little code. All add in the same order.

// held is how many parts of x are held: up to 1,024 elements, or 640 where codes have 8 bits and one word.
template <int b, int words>
constexpr int held() {
  return b == 8 && words == 1 ? 5 : 4 / words * (b / 4);
}

// is_short is whether all of a row of K elements is held.
template <int b, int words>
inline bool is_short(int K) {
  return K <= held<b, words>() * LANES * words * 32 / b;
}

// begin is where the first part of a lane begins, and further how much further part d is. What the row does not
// have is read as a part that it has. Places are counted from where the lane begins, so that they are known
// where K is.
template <int values>
inline uint begin(int K, uint lane) {
  return int(lane) * values < K ? lane * values : 0;
}
template <int values>
inline uint further(int K, int d, uint lane) {
  return has<values>(K, d, lane) ? LANES * d * values : 0;
}

// Held is x as a lane holds it: normalised, and as `scaled` leaves it.
template <int values, int parts>
struct Held {
  float v[parts][values];
  float sum[parts];
};

// load_held reads all parts of some rows, without a branch.
template <int g, int b, int words, int rows, int parts, typename T>
inline void load_held(const thread AffineOf<T>* row, int K, uint lane, thread Part<T, words> (*p)[rows]) {
  constexpr int values = words * 32 / b;
  const uint k = begin<values>(K, lane);
#pragma unroll
  for (int i = 0; i < rows; i++) {
    const AffineOf<T> at = {row[i].w + k / (32 / b), row[i].scales + k / g, row[i].biases + k / g};
#pragma unroll
    for (int d = 0; d < parts; d++) {
      load_part<g, b, words, true>(at, further<values>(K, d, lane), p[d][i]);
    }
  }
}

// hold reads the weights of a norm, waits until x is there, reads all of it, and normalises it.
template <int b, int words, int parts, typename T>
inline void hold(const thread Input<T>& in, uint lane, thread Held<words * 32 / b, parts>& x) {
  constexpr int values = words * 32 / b;
  const uint k = begin<values>(in.K, lane);
  float norm[parts][values];
#pragma unroll
  for (int d = 0; d < parts; d++) {
    take<values>(in.norm + k + further<values>(in.K, d, lane), norm[d]);
  }
  wait_for_dispatches();
#pragma unroll
  for (int d = 0; d < parts; d++) {
    take<values>(in.x + k + further<values>(in.K, d, lane), x.v[d]);
  }
#pragma unroll
  for (int d = 0; d < parts; d++) {
#pragma unroll
    for (int i = 0; i < values; i++) {
      x.v[d][i] = has<values>(in.K, d, lane) ? x.v[d][i] : 0.0f;
    }
  }
#ifdef __MLXC__
  const float inv = inverse_of(in, sum_of_squares<values, parts>(x.v));
#else
  const float inv = inverse_rms<4, true>(in, lane); // simd_sum may add in another order
#endif
#pragma unroll
  for (int d = 0; d < parts; d++) {
    x.sum[d] = normed<b, values, T>(norm[d], inv, x.v[d]);
  }
}

// dot_held leaves in result[i] what a lane has of the product of x with row i that was loaded.
template <int b, int words, int rows, int parts, typename T>
inline void dot_held(const thread Held<words * 32 / b, parts>& x, int K, uint lane, const thread Part<T, words> (*p)[rows], thread float* result) {
#pragma unroll
  for (int i = 0; i < rows; i++) {
    result[i] = 0;
  }
#pragma unroll
  for (int d = 0; d < parts; d++) {
#pragma unroll
    for (int i = 0; i < rows; i++) {
      const float more = result[i] + part_of<b>(p[d][i], x.v[d], x.sum[d]);
      result[i] = has<words * 32 / b>(K, d, lane) ? more : result[i];
    }
  }
}

// Idle has nothing to do meanwhile.
struct Idle {
  inline void run() thread {}
};

// dot_short leaves in result[i] the product of the norm of a short x with a row. What can be done meanwhile is
// done while the first of the rows come.
template <int g, int b, int words, int rows, typename T, typename Meanwhile>
inline void dot_short(const thread AffineOf<T>* row, const thread Input<T>& in, uint lane, thread float* result, thread Meanwhile& meanwhile) {
  constexpr int parts = held<b, words>();
  Part<T, words> p[parts][rows];
  load_held<g, b, words, rows, parts>(row, in.K, lane, p);
  meanwhile.run();
  Held<words * 32 / b, parts> x;
  hold<b, words, parts>(in, lane, x);
  dot_held<b, words, rows, parts>(x, in.K, lane, p, result);
  sum_all<rows>(result);
}

// load_parts reads some parts of some rows, from element k on, and the weights of the norm that meet them.
template <int g, int b, int words, int rows, int parts, typename T>
inline void load_parts(const thread AffineOf<T>* row, const thread Input<T>& in, int k, thread Part<T, words> (*p)[rows], thread float (*norm)[words * 32 / b]) {
  constexpr int values = words * 32 / b;
#pragma unroll
  for (int d = 0; d < parts; d++) {
    const int at = k + d * LANES * values;
    if (at < in.K) {
#pragma unroll
      for (int i = 0; i < rows; i++) {
        load_part<g, b, words, true>(row[i], at, p[d][i]);
      }
      take<values>(in.norm + at, norm[d]);
    }
  }
}

// ask has a cache ask the memory for all of some rows, of at most 4,096 elements: each lane for lines of 128
// bytes, where a row has no more of them for the last one again.
template <int g, int b, int rows, typename T>
inline void ask(const thread AffineOf<T>* row, int K, uint lane) {
  constexpr uint lines = 4096 / (8 / b) / 128; // of codes
  const int last = K / (8 / b) - 4;
  const int last_group = (K / g - 1) * int(sizeof(T));
#pragma unroll
  for (int i = 0; i < rows; i++) {
    const device char* w = (const device char*)row[i].w;
    const device char* scales = (const device char*)row[i].scales;
    const device char* biases = (const device char*)row[i].biases;
    if (lines == LANES) {
      will_read(w + min(int(lane) * 128, last));
    }
    const bool is_codes = lines < LANES && lane < lines;
    const device char* from = is_codes ? w : (lane & 8) == 0 ? scales : biases;
    will_read(from + min(int(is_codes ? lane : lane & 7) * 128, is_codes ? last : last_group));
  }
}

// dot_long does the same with an x of any length. The first parts are read before x is looked at. begin: nobody
// has looked at it, and inv, what it is multiplied by, is not known; nor has a cache been asked for the rows.
template <int g, int b, int words, int rows, bool begin, typename T>
inline void dot_long(const thread AffineOf<T>* row, const thread Input<T>& in, uint lane, thread float& inv, thread float* result) {
  constexpr int values = words * 32 / b;
  constexpr int parts = words == 1 ? 3 : 2;
#pragma unroll
  for (int i = 0; i < rows; i++) {
    result[i] = 0;
  }
  Part<T, words> p[parts][rows];
  float norm[parts][values];
  int k = int(lane) * values;
  load_parts<g, b, words, rows, parts>(row, in, k, p, norm);
  if (begin) {
    ask<g, b, rows>(row, in.K, lane);
    wait_for_dispatches();
    inv = inverse_rms<8, true>(in, lane);
  }
  while (k < in.K) {
#pragma unroll
    for (int d = 0; d < parts; d++) {
      const int at = k + d * LANES * values;
      if (at < in.K) {
        float v[values];
        take<values>(in.x + at, v);
        const float sum = normed<b, values, T>(norm[d], inv, v);
#pragma unroll
        for (int i = 0; i < rows; i++) {
          result[i] += part_of<b>(p[d][i], v, sum);
        }
      }
    }
    k += parts * LANES * values;
    load_parts<g, b, words, rows, parts>(row, in, k, p, norm);
  }
  sum_all<rows>(result);
}

// dot_any is the product of the norm of x with a row, wherever they lie. x is there.
template <int g, int b, int words, typename T>
inline float dot_any(const thread AffineOf<T>& row, const thread Input<T>& in, float inv, uint lane) {
  constexpr int values = words * 32 / b;
  float result = 0;
  for (int k = int(lane) * values; k < in.K; k += LANES * values) {
    Part<T, words> p;
    load_part<g, b, words, false>(row, k, p);
    float v[values];
    float norm[values];
#pragma unroll
    for (int i = 0; i < values; i++) {
      v[i] = in.x[k + i];
      norm[i] = in.norm[k + i];
    }
    const float sum = normed<b, values, T>(norm, inv, v);
    result += part_of<b>(p, v, sum);
  }
  return simd_sum(result);
}

// is_wide is whether everything lies so that four elements can be loaded at once, and codes in words of
// `words`: rows have a multiple of 32 codes, so that all of them lie as the first one does.
template <int words, typename T>
inline bool is_wide(const thread AffineOf<T>& m, const thread Input<T>& in) {
  return aligned(in.x, 4 * sizeof(T)) && aligned(in.norm, 4 * sizeof(T)) && aligned(m.w, 4 * words);
}

constexpr constant int WALKS = 4; // as often a simdgroup makes ROWS outputs, with a norm that it has at hand

// Greatest is the maximum of what a simdgroup makes, all lanes of which see every output: the first step of an
// argmax, as in arg_reduce.metal. Who makes outputs puts it where it belongs, behind a wait that is on its way.
template <typename T>
struct Greatest {
  device T* at;
  float best;
  inline void see(float v) thread { best = greater(best, v); }
  inline void put(uint lane) thread {
    if (lane == 0) {
      *at = T(best);
    }
  }
};

// Unasked is in its place where nobody wants a maximum.
struct Unasked {
  inline void see(float v) thread {}
  inline void put(uint lane) thread {}
};

// walk_held makes the outputs of a simdgroup from row `first` on, whose x is short. whole: it has all of them,
// so that how often it goes around is known, and a row lies behind the one before without a question.
template <int g, int b, int words, bool whole, typename T, typename Top>
inline void walk_held(const thread AffineOf<T>& m, const thread Input<T>& in, device T* y, thread Top& top, int first, int N, uint lane) {
  constexpr int parts = held<b, words>();
  constexpr int rows = 2; // whose parts lie in registers beside x
  const int count = whole ? WALKS * ROWS / rows : (min(N - first, WALKS * ROWS) + rows - 1) / rows;
  Part<T, words> p[parts][rows];
  AffineOf<T> row[rows] = {row_of<g, b>(m, in.K, first)};
  row[1] = row_of<g, b>(row[0], in.K, whole || first + 1 < N ? 1 : 0);
  load_held<g, b, words, rows, parts>(row, in.K, lane, p);
  Held<words * 32 / b, parts> x;
  hold<b, words, parts>(in, lane, x);
  y += first + int(lane);
  for (int t = 0; t < count; t++) {
    float result[rows];
    dot_held<b, words, rows, parts>(x, in.K, lane, p, result);
    if (t + 1 < count) { // asked for before the sums of these are waited for
      row[0] = row_of<g, b>(row[0], in.K, rows);
      row[1] = row_of<g, b>(row[0], in.K, whole || first + rows * (t + 1) + 1 < N ? 1 : 0);
      load_held<g, b, words, rows, parts>(row, in.K, lane, p);
    }
    sum_all<rows>(result);
#pragma unroll
    for (int i = 0; i < rows; i++) {
      top.see(float(T(result[i]))); // where no row follows, the last one again
    }
    if (int(lane) < rows && (whole || first + rows * t + int(lane) < N)) {
      y[rows * t] = stored(T(of_lane<rows>(result, lane)));
    }
  }
  top.put(lane);
}

// walk_short makes the outputs of a simdgroup of two whose x is short.
template <int g, int b, int words, typename T, typename Top>
inline void walk_short(const thread AffineOf<T>& m, const thread Input<T>& in, device T* y, thread Top& top, int block, int N, uint lane) {
  const int first = block * WALKS * ROWS;
  if (first + WALKS * ROWS <= N) {
    walk_held<g, b, words, true>(m, in, y, top, first, N, lane);
  } else if (first < N) {
    walk_held<g, b, words, false>(m, in, y, top, first, N, lane);
  }
}

// dot_rows is dot_long for ROWS rows that follow one another; those past the end are read as the last one. The
// rows that follow them are asked for.
template <int g, int b, int words, bool begin, typename T>
inline void dot_rows(const thread AffineOf<T>& m, const thread Input<T>& in, int first, int N, uint lane, thread float& inv, thread float* result) {
  AffineOf<T> row[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    row[i] = row_of<g, b>(m, in.K, min(first + ROWS + i, N - 1));
  }
  ask<g, b, ROWS>(row, in.K, lane);
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    row[i] = row_of<g, b>(m, in.K, min(first + i, N - 1));
  }
  dot_long<g, b, words, ROWS, begin>(row, in, lane, inv, result);
}

template <typename T, typename Top>
inline void put_rows(const thread float* result, device T* y, thread Top& top, int first, int end, uint lane) {
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    top.see(float(T(result[i]))); // where no row follows, the last one again
  }
  if (int(lane) < ROWS && first + int(lane) < end) {
    y[first + lane] = stored(T(of_lane<ROWS>(result, lane)));
  }
}

// walk_long is walk_short for any x.
template <int g, int b, int words, typename T, typename Top>
inline void walk_long(const thread AffineOf<T>& m, const thread Input<T>& in, device T* y, thread Top& top, int block, int N, uint lane) {
  const int first = block * WALKS * ROWS;
  const int end = min(N, first + WALKS * ROWS);
  if (first >= end) {
    return;
  }
  float inv;
  float result[ROWS];
  dot_rows<g, b, words, true>(m, in, first, N, lane, inv, result);
  put_rows(result, y, top, first, end, lane);
  for (int n = first + ROWS; n < end; n += ROWS) {
    dot_rows<g, b, words, false>(m, in, n, N, lane, inv, result);
    put_rows(result, y, top, n, end, lane);
  }
  top.put(lane);
}

// walk_any is walk_long wherever everything lies.
template <int g, int b, int words, typename T, typename Top>
inline void walk_any(const thread AffineOf<T>& m, const thread Input<T>& in, device T* y, thread Top& top, int block, int N, uint lane) {
  wait_for_dispatches();
  const float inv = inverse_rms<1, false>(in, lane);
  const int first = block * WALKS * ROWS;
  const int end = min(N, first + WALKS * ROWS);
  for (int n = first; n < end; n++) {
    const T one = T(dot_any<g, b, words>(row_of<g, b>(m, in.K, n), in, inv, lane));
    top.see(float(one));
    if (lane == 0) {
      y[n] = stored(one);
    }
  }
  if (first < end) {
    top.put(lane);
  }
}

// rows_of_norm makes the outputs of a simdgroup.
template <int g, int b, int words, typename T, typename Top>
inline void rows_of_norm(const thread AffineOf<T>& m, const thread Input<T>& in, device T* y, thread Top& top, int block, int N, uint lane) {
  if (!is_wide<words>(m, in)) {
    walk_any<g, b, words>(m, in, y, top, block, N, lane);
  } else if (is_short<b, words>(in.K)) {
    walk_short<g, b, words>(m, in, y, top, block, N, lane);
  } else {
    walk_long<g, b, words>(m, in, y, top, block, N, lane);
  }
}

// The norm of a row of x, and its product; the products of a simdgroup that takes two words of a row at a time,
// qmv_fast, are of a K that is a multiple of 2048/b, of the others any that is a multiple of the group.
//
// @lines norm()
// @where inv[m] = rsqrt(sum[rms](k < in_vec_size, x[m,k] * x[m,k]) / f32(in_vec_size) + eps)
// @where v[m,k] = round({T}, norm[k] * round({T}, x[m,k] * inv[m]))
// @end
// @text  dot_norm(s) = {affine(in_vec_size; {C}; {s}; n; v[m,c*g + j])}
// @lines sizes(results)
// @if    C == qmv
// @require in_vec_size >= g && in_vec_size % g == 0 && in_vec_size <= 4096 {results}
// @else
// @require in_vec_size >= 256 && in_vec_size % (2048/b) == 0 && in_vec_size <= 4096 {results}
// @end
// @end

#define NORMED const device T *x, const device T *norm
#define SIZES constant float &eps, constant int &in_vec_size, constant int &out_vec_size

// One product, as that of a last norm with the head of a model.
//
// @kernel  affine_{C:qmv|qmv_fast}_rms_{T:{types()}}_gs_{g:{groups()}}_b_{b:4|8}
// @use     matrix(; {b}; out_vec_size; in_vec_size)
// @arg     x             device {T}[M, in_vec_size] read
// @arg     norm          device {T}[in_vec_size] read
// @arg     y             device {T}[M, out_vec_size] write
// @arg     eps           constant f32
// @arg     in_vec_size   constant i32
// @arg     out_vec_size  constant i32
// @groups  M, ceil(out_vec_size/32), 1
// @group   32, 2, 1
// @use     sizes(&& out_vec_size >= 1)
// @use     norm()
// @term    y[m,n] = round({T}, {dot_norm()})
template <typename T, int g, int b, int words>
[[kernel]] void qmv_rms(
    AFFINE(w, ), NORMED, device T* y, SIZES, PLACE) {
  const AffineOf<T> m = {w, scales, biases};
  const Input<T> in = {x + size_t(group.x) * in_vec_size, norm, in_vec_size, eps};
  const int block = 2 * int(group.y) + int(simdgroup);
  Unasked top;
  rows_of_norm<g, b, words>(m, in, y + size_t(group.x) * out_vec_size, top, block, out_vec_size, lane);
}

// The same product, and the greatest of each 16 results, which a simdgroup has made: the head of a model, and the
// first step of the argmax of what it makes (max_parts_float32 of arg_reduce.metal).
//
// N is a multiple of 16.
//
// @kernel  affine_{C:qmv|qmv_fast}_rms_max_{T:{types()}}_gs_{g:{groups()}}_b_{b:8}
// @use     matrix(; {b}; out_vec_size; in_vec_size)
// @arg     x             device {T}[M, in_vec_size] read
// @arg     norm          device {T}[in_vec_size] read
// @arg     y             device {T}[M, out_vec_size] write
// @arg     top           device {T}[M, out_vec_size/16] write
// @arg     eps           constant f32
// @arg     in_vec_size   constant i32
// @arg     out_vec_size  constant i32
// @groups  M, ceil(out_vec_size/32), 1
// @group   32, 2, 1
// @use     sizes(&& out_vec_size >= 16 && out_vec_size % 16 == 0)
// @use     norm()
// @where   dot[m,n] = round({T}, {dot_norm()})
// @term    y[m,n] = round({T}, dot[m,n])
// @term    top[m,p] = round({T}, max(i < 16, dot[m,16*p + i]))
template <typename T, int g, int b, int words>
[[kernel]] void qmv_rms_max(
    AFFINE(w, ), NORMED, device T* y, device T* top, SIZES, PLACE) {
  const AffineOf<T> m = {w, scales, biases};
  const Input<T> in = {x + size_t(group.x) * in_vec_size, norm, in_vec_size, eps};
  const int block = 2 * int(group.y) + int(simdgroup);
  Greatest<T> greatest = {top + size_t(group.x) * (out_vec_size / (WALKS * ROWS)) + block, -INFINITY};
  rows_of_norm<g, b, words>(m, in, y + size_t(group.x) * out_vec_size, greatest, block, out_vec_size, lane);
}

// The gate and up products of a feed-forward layer, and silu(gate)·up of them. A simdgroup makes two outputs, so
// that its norm is not computed too often, and a threadgroup few, so that all cores have about as many.
//
// @kernel  affine_{C:qmv|qmv_fast}_rms_silu_mul_{T:{types()}}_gs_{g:{groups()}}_b_{b:4}
// @use     norm()
// @each    i = gate up
// @use     matrix(_{i}; {b}; out_vec_size; in_vec_size)
// @where   {i}[m,n] = round({T}, {dot_norm(_{i})})
// @end
// @arg     x             device {T}[M, in_vec_size] read
// @arg     norm          device {T}[in_vec_size] read
// @arg     y             device {T}[M, out_vec_size] write
// @arg     eps           constant f32
// @arg     in_vec_size   constant i32
// @arg     out_vec_size  constant i32
// @groups  M, ceil(out_vec_size/4), 1
// @group   32, 2, 1
// @use     sizes(&& out_vec_size >= 1)
// @use     silu_mul(m,n; {T})
template <typename T, int g, int b, int words>
[[kernel]] void qmv_rms_silu_mul(
    BOTH(AFFINE, w), NORMED, device T* y, SIZES, PLACE) {
  const int N = out_vec_size;
  const int first = (int(group.y) * 2 + int(simdgroup)) * 2;
  if (first >= N) {
    return;
  }
  const int last = min(first + 1, N - 1);
  const AffineOf<T> gate = {w_gate, scales_gate, biases_gate};
  const AffineOf<T> up = {w_up, scales_up, biases_up};
  const int K = in_vec_size;
  const AffineOf<T> row[4] = {row_of<g, b>(gate, K, first), row_of<g, b>(up, K, first), row_of<g, b>(gate, K, last), row_of<g, b>(up, K, last)};
  const Input<T> in = {x + size_t(group.x) * K, norm, K, eps};
  y += size_t(group.x) * N;
  if (!is_wide<words>(gate, in) || !is_wide<words>(up, in)) {
    wait_for_dispatches();
    const float inv = inverse_rms<1, false>(in, lane);
    for (int n = first; n <= last; n++) {
      const float one = dot_any<g, b, words>(row_of<g, b>(gate, K, n), in, inv, lane);
      const float two = dot_any<g, b, words>(row_of<g, b>(up, K, n), in, inv, lane);
      if (lane == 0) {
        y[n] = stored(silu_mul(T(one), T(two)));
      }
    }
    return;
  }
  float result[4];
  if (is_short<b, words>(K)) {
    Idle idle;
    dot_short<g, b, words, 4>(row, in, lane, result, idle);
  } else {
    float inv;
    dot_long<g, b, words, 4, true>(row, in, lane, inv, result);
  }
  if (first + int(lane) <= last) {
    y[first + lane] = stored(silu_mul(T(lane != 0 ? result[2] : result[0]), T(lane != 0 ? result[3] : result[1])));
  }
}

constant bool traditional [[function_constant(2)]];

constexpr constant int PAIRS = 4; // simdgroups of a threadgroup, each with two rows

// Turn is by how much a pair is turned. All lanes find it, before x is waited for, and not the lane that needs it.
struct Turn {
  bool turned;
  float position;
  int pair;
  int pairs;
  float base;
  float cosine;
  float sine;

  inline void run() thread {
    const float theta = turned ? position * precise::exp2(-(float(pair) / float(pairs)) * base) : 0.0f;
    cosine = simd_broadcast_first(precise::cos(theta)); // broadcast, so that it is found here
    sine = simd_broadcast_first(precise::sin(theta));
  }
};

// put_two stores two rows of a matrix, turned or as they are.
template <typename T, typename S>
inline void put_two(T one, T two, device S* out, bool turned, const thread Turn& turn, int head, long stride, int place, int first, int apart, int last) {
  if (turned) {
    out += head * stride + place;
    out[0] = stored(S(float(one) * turn.cosine - float(two) * turn.sine));
    out[apart] = stored(S(float(one) * turn.sine + float(two) * turn.cosine));
    return;
  }
  out[first] = stored(S(one));
  if (first < last) {
    out[first + 1] = stored(S(two));
  }
}

// Queries, keys and values of one position: queries and keys are turned (rope.metal), and all may go where
// attention wants them. A simdgroup makes the two rows that a rotation turns together, or two rows of
// values; blocks of queries, keys and values follow one another in the grid.
//
// Keys and values may go to a cache whose type has fewer bits.
//
// @text    q_type(S) = {T}
// @text    k_type(S) = {S}
// @lines   x3_rope(S)
// @constant 2 traditional bool
// @use     matrix(_q; {b}; q_heads*dims; in_vec_size)
// @use     matrix(_k; {b}; k_heads*dims; in_vec_size)
// @use     matrix(_v; {b}; n_v; in_vec_size)
// @arg     x            device {T}[in_vec_size] read
// @arg     norm         device {T}[in_vec_size] read
// @arg     q            device {T}[q_heads, dims : q_stride, 1] write
// @arg     k            device {S}[k_heads, dims : k_stride, 1] write
// @arg     v            device {S}[n_v] write
// @arg     eps          constant f32
// @arg     in_vec_size  constant i32
// @arg     q_heads      constant i32
// @arg     k_heads      constant i32
// @arg     dims         constant i32
// @arg     n_v          constant i32
// @arg     q_stride     constant i64
// @arg     k_stride     constant i64
// @arg     offset       constant i32
// @arg     scale        constant f32
// @arg     base         constant f32
// @let     pairs = dims/2
// @groups  1, ceil(q_heads*pairs/4) + ceil(k_heads*pairs/4) + ceil(n_v/8), 1
// @group   32, 4, 1
// @use     sizes()
// @if      order == pairs
// @require traditional == 1 && dims >= 2 && dims % 2 == 0 && q_heads >= 1 && k_heads >= 1 && n_v >= 1
// @else
// @require traditional == 0 && dims >= 2 && dims % 2 == 0 && q_heads >= 1 && k_heads >= 1 && n_v >= 1
// @end
// @require q_heads == 1 || q_stride >= dims
// @require k_heads == 1 || k_stride >= dims
// @where   inv[m] = rsqrt(sum[rms](i < in_vec_size, x[i] * x[i]) / f32(in_vec_size) + eps)
// @where   e[i] = round({T}, norm[i] * round({T}, x[i] * inv[0]))
// @each    s = q k
// @where   dot_{s}[n] = round({T}, {affine(in_vec_size; {C}; _{s}; n; e[c*g + j])})
// @end
// @where   theta[i] = (scale * f32(offset)) * exp2(-(f32(i) / f32(pairs)) * base)
// @each    s = q k
// @if      order == pairs
// @where   first_{s}[h,i] = {first(dot_{s}; h*dims + 2*i; h*dims + 2*i + 1; i)}
// @where   second_{s}[h,i] = {second(dot_{s}; h*dims + 2*i; h*dims + 2*i + 1; i)}
// @term    {s}[h,j] = round({{s}_type({S})}, select(j % 2 == 0, first_{s}[h,j/2], second_{s}[h,j/2]))
// @else
// @where   first_{s}[h,i] = {first(dot_{s}; h*dims + i; h*dims + i + pairs; i)}
// @where   second_{s}[h,i] = {second(dot_{s}; h*dims + i; h*dims + i + pairs; i)}
// @term    {s}[h,j] = round({{s}_type({S})}, select(j < pairs, first_{s}[h,j % pairs], second_{s}[h,j % pairs]))
// @end
// @end
// @term    v[n] = round({S}, {affine(in_vec_size; {C}; _v; n; e[c*g + j])})
// @end
//
// @kernel  affine_{C:qmv|qmv_fast}_rms_x3_rope_{T:{types()}}_gs_{g:{groups()}}_b_{b:4}{order:=pairs|=halves}
// @use     x3_rope({T})
//
// @kernel  affine_{C:qmv|qmv_fast}_rms_x3_rope_{T:float=f32}_{S:float16_t=f16}_gs_{g:{groups()}}_b_{b:4}{order:=pairs|=halves}
// @use     x3_rope({S})
template <typename T, typename S, int g, int b, int words>
[[kernel]] void qmv_rms_x3_rope(
    AFFINE(w, _q), AFFINE(w, _k), AFFINE(w, _v), NORMED, device T* q, device S* k, device S* v,
    constant float& eps, constant int& in_vec_size, constant int& q_heads, constant int& k_heads,
    constant int& dims, constant int& n_v,
    constant long& q_stride, constant long& k_stride, constant int& offset, constant float& scale,
    constant float& base, PLACE) {
  const int pairs = dims / 2;

  // Which matrix, and which two rows of it.
  const device uint* w = w_q;
  const device T* scales = scales_q;
  const device T* biases = biases_q;
  device T* out = q;
  long stride = q_stride;
  int heads = q_heads;
  int block = int(group.y);
  const int blocks_q = (q_heads * pairs + PAIRS - 1) / PAIRS;
  const int blocks_k = (k_heads * pairs + PAIRS - 1) / PAIRS;
  const bool turned = block < blocks_q + blocks_k;
  if (block >= blocks_q) {
    block -= blocks_q;
    w = w_k;
    scales = scales_k;
    biases = biases_k;
    out = (device T*)k;
    stride = k_stride;
    heads = k_heads;
  }
  if (!turned) {
    block -= blocks_k;
    w = w_v;
    scales = scales_v;
    biases = biases_v;
    out = (device T*)v;
  }
  const int at = block * PAIRS + int(simdgroup);
  const int head = at / pairs;
  const int pair = at % pairs;
  if (turned ? head >= heads : 2 * at >= n_v) {
    return;
  }
  const int place = traditional ? 2 * pair : pair; // of the first of the pair in its head
  const int first = turned ? head * dims + place : 2 * at;
  const int apart = turned && !traditional ? pairs : 1;
  const int last = turned ? heads * dims - 1 : n_v - 1;
  Turn turn = {turned, scale * float(offset), pair, pairs, base, 1.0f, 0.0f};

  const AffineOf<T> m = {w, scales, biases};
  const AffineOf<T> row[2] = {row_of<g, b>(m, in_vec_size, first), row_of<g, b>(m, in_vec_size, min(first + apart, last))};
  const Input<T> in = {x, norm, in_vec_size, eps};
  float inv;
  float result[2];
  if (!is_wide<words>(m, in)) {
    turn.run();
    wait_for_dispatches();
    inv = inverse_rms<1, false>(in, lane);
    result[0] = dot_any<g, b, words>(row[0], in, inv, lane);
    result[1] = dot_any<g, b, words>(row[1], in, inv, lane);
  } else if (is_short<b, words>(in_vec_size)) {
    dot_short<g, b, words, 2>(row, in, lane, result, turn);
  } else {
    turn.run();
    dot_long<g, b, words, 2, true>(row, in, lane, inv, result);
  }
  const T one = T(result[0]);
  const T two = T(result[1]);
  if (lane != 0) {
    return;
  }
  if (sizeof(S) < sizeof(T) && int(group.y) >= blocks_q) {
    put_two(one, two, (device S*)out, turned, turn, head, stride, place, first, apart, last);
  } else {
    put_two(one, two, out, turned, turn, head, stride, place, first, apart, last);
  }
}

#define INSTANTIATE_RMS(kernel, name, T, g, b)                                      \
  template [[host_name("affine_qmv_" #kernel "_" #name "_gs_" #g "_b_" #b)]]        \
  [[kernel]] decltype(qmv_##kernel<T, g, b, 1>) qmv_##kernel<T, g, b, 1>;           \
  template [[host_name("affine_qmv_fast_" #kernel "_" #name "_gs_" #g "_b_" #b)]]   \
  [[kernel]] decltype(qmv_##kernel<T, g, b, 2>) qmv_##kernel<T, g, b, 2>;
#define INSTANTIATE_RMS_BITS(kernel, b, name, T)                              \
  INSTANTIATE_RMS(kernel, name, T, 32, b) INSTANTIATE_RMS(kernel, name, T, 64, b) \
  INSTANTIATE_RMS(kernel, name, T, 128, b)
#define INSTANTIATE_RMS_ALL(name, T)             \
  INSTANTIATE_RMS_BITS(rms, 4, name, T)          \
  INSTANTIATE_RMS_BITS(rms, 8, name, T)          \
  INSTANTIATE_RMS_BITS(rms_max, 8, name, T)      \
  INSTANTIATE_RMS_BITS(rms_silu_mul, 4, name, T)
#define INSTANTIATE_TURNED(name, T, S, g)                                           \
  template [[host_name("affine_qmv_rms_x3_rope_" #name "_gs_" #g "_b_4")]]          \
  [[kernel]] decltype(qmv_rms_x3_rope<T, S, g, 4, 1>) qmv_rms_x3_rope<T, S, g, 4, 1>; \
  template [[host_name("affine_qmv_fast_rms_x3_rope_" #name "_gs_" #g "_b_4")]]     \
  [[kernel]] decltype(qmv_rms_x3_rope<T, S, g, 4, 2>) qmv_rms_x3_rope<T, S, g, 4, 2>;
#define INSTANTIATE_TURNED_ALL(name, T, S)                                    \
  INSTANTIATE_TURNED(name, T, S, 32) INSTANTIATE_TURNED(name, T, S, 64)       \
  INSTANTIATE_TURNED(name, T, S, 128)

INSTANTIATE_RMS_ALL(float, float)
INSTANTIATE_RMS_ALL(float16_t, half)
INSTANTIATE_RMS_ALL(bfloat16_t, bfloat)
INSTANTIATE_TURNED_ALL(float, float, float)
INSTANTIATE_TURNED_ALL(float16_t, half, half)
INSTANTIATE_TURNED_ALL(bfloat16_t, bfloat, bfloat)
INSTANTIATE_TURNED_ALL(float_float16_t, float, half)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// The head of a model and the products of its feed-forward layer, of one position or more.
//
// @witness affine_qmv_rms_{|max_}{|b}float* ; in_vec_size=640 out_vec_size=49152 ; groups 1 1536 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_rms_{|max_}{|b}float* ; in_vec_size=1024 out_vec_size=49152 ; groups 1 1536 1 / 32 2 1 ; ok
// @witness affine_qmv_rms_silu_mul_{|b}float* ; in_vec_size=640 out_vec_size=1536 ; groups 1 384 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_rms_silu_mul_{|b}float* ; in_vec_size=1024 out_vec_size=1536 ; groups 1 384 1 / 32 2 1 ; ok
// @witness affine_qmv_rms_{|b}float* ; in_vec_size=384 out_vec_size=33 ; groups 3 2 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_rms_{|b}float* ; in_vec_size=512 out_vec_size=33 ; groups 3 2 1 / 32 2 1 ; ok
// @witness affine_qmv_rms_{|b}float* ; in_vec_size=384 out_vec_size=33 ; groups 3 1 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_rms_{|b}float* ; in_vec_size=512 out_vec_size=33 ; groups 3 1 1 / 32 2 1 ; refused
// @witness affine_qmv_rms_silu_mul_{|b}float* ; in_vec_size=384 out_vec_size=9 ; groups 3 3 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_rms_silu_mul_{|b}float* ; in_vec_size=512 out_vec_size=9 ; groups 3 3 1 / 32 2 1 ; ok
// @witness affine_qmv_rms_silu_mul_{|b}float* ; in_vec_size=384 out_vec_size=9 ; groups 3 2 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_rms_silu_mul_{|b}float* ; in_vec_size=512 out_vec_size=9 ; groups 3 2 1 / 32 2 1 ; refused
//
// Rows of the kernel rms have at most 4096 elements, and at least one group.
//
// @witness affine_qmv_{|fast_}rms_{|b}float* ; in_vec_size=4096 out_vec_size=64 ; groups 1 2 1 / 32 2 1 ; ok
// @witness affine_qmv_{|fast_}rms_silu_mul_{|b}float* ; in_vec_size=4096 out_vec_size=64 ; groups 1 16 1 / 32 2 1 ; ok
// @witness affine_qmv_rms_silu_mul_{|b}float*_gs_32_* ; in_vec_size=1056 out_vec_size=65 ; groups 1 17 1 / 32 2 1 ; ok
// @witness affine_qmv_rms_silu_mul_{|b}float* ; in_vec_size=1024 out_vec_size=65 ; groups 1 17 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_rms_silu_mul_{|b}float* ; in_vec_size=1536 out_vec_size=65 ; groups 1 17 1 / 32 2 1 ; ok
// @witness affine_qmv_*rms_{|max_}{|b}float* ; in_vec_size={4608|0} out_vec_size=64 ; groups 1 2 1 / 32 2 1 ; refused
// @witness affine_qmv_*rms_silu_mul_{|b}float* ; in_vec_size={4608|0} out_vec_size=64 ; groups 1 16 1 / 32 2 1 ; refused
// @witness affine_qmv_*rms_{|silu_mul_}{|b}float* ; in_vec_size=512 out_vec_size=0 ; groups 1 0 1 / 32 2 1 ; refused
// @witness affine_qmv_*rms_{|silu_mul_}{|b}float* ; in_vec_size=512 out_vec_size=1 ; groups 1 1 1 / 32 2 1 ; ok
// @witness affine_qmv_rms_{|max_}{|b}float*_gs_32_* ; in_vec_size=32 out_vec_size=64 ; groups 1 2 1 / 32 2 1 ; ok
// @witness affine_qmv_rms_silu_mul_{|b}float*_gs_32_* ; in_vec_size=32 out_vec_size=64 ; groups 1 16 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_rms_{|max_}{|b}float*_b_8 ; in_vec_size=256 out_vec_size=64 ; groups 1 2 1 / 32 2 1 ; ok
//
// With the greatest of every 16 results.
//
// @witness affine_qmv_rms_max_{|b}float* ; in_vec_size=384 out_vec_size=48 ; groups 3 2 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_rms_max_{|b}float* ; in_vec_size=512 out_vec_size=48 ; groups 3 2 1 / 32 2 1 ; ok
// @witness affine_qmv_*rms_max_{|b}float* ; in_vec_size=512 out_vec_size=48 ; groups 3 1 1 / 32 2 1 ; refused
// @witness affine_qmv_*rms_max_{|b}float* ; in_vec_size=512 out_vec_size=40 ; groups 1 2 1 / 32 2 1 ; refused
// @witness affine_qmv_*rms_max_{|b}float* ; in_vec_size=512 out_vec_size=16 ; groups 1 1 1 / 32 2 1 ; ok
// @witness affine_qmv_*rms_max_{|b}float* ; in_vec_size=512 out_vec_size=0 ; groups 1 0 1 / 32 2 1 ; refused
// @witness affine_qmv_*rms_max_{|b}float* ; in_vec_size=4096 out_vec_size=64 ; groups 1 2 1 / 32 2 1 ; ok
// @witness affine_qmv_*rms_{max_|}{|b}float* ; in_vec_size=512 out_vec_size=512 inplace=y,x ; groups 1 16 1 / 32 2 1 ; refused
// @witness affine_qmv_*rms_max_{|b}float* ; in_vec_size=512 out_vec_size=8192 inplace=top,x ; groups 1 256 1 / 32 2 1 ; refused
// @witness affine_qmv_rms_max_{|b}float*_gs_32_* ; in_vec_size=32 out_vec_size=48 inplace=y,{scales|biases} ; groups 1 2 1 / 32 2 1 ; refused
//
// Every simdgroup reads x, so no result may lie on it.
//
// @witness affine_qmv_*rms_silu_mul_{|b}float* ; in_vec_size=512 out_vec_size=512 inplace=y,x ; groups 1 128 1 / 32 2 1 ; refused
//
// Queries, keys and values of one position.
//
// @witness affine_qmv_rms_x3_rope_{|b}float* ; traditional@2={1|0} in_vec_size=640 q_heads=9 k_heads=3 dims=64 n_v=192 q_stride=64 k_stride=64 ; groups 1 120 1 / 32 4 1 ; ok
// @witness affine_qmv_fast_rms_x3_rope_{|b}float* ; traditional@2={1|0} in_vec_size=1024 q_heads=16 k_heads=4 dims=64 n_v=256 q_stride=64 k_stride=64 ; groups 1 192 1 / 32 4 1 ; ok
// @witness affine_qmv_*rms_x3_rope_{|b}float* ; traditional@2={1|0} in_vec_size=512 q_heads=1 k_heads=1 dims=2 n_v=1 q_stride=1 k_stride=1 ; groups 1 3 1 / 32 4 1 ; ok
// @witness affine_qmv_*rms_x3_rope_{|b}float* ; traditional@2={1|0} in_vec_size=4096 q_heads=3 k_heads=2 dims=6 n_v=9 q_stride=6 k_stride=6 ; groups 1 7 1 / 32 4 1 ; ok
// @witness affine_qmv_rms_x3_rope_{|b}float*_gs_32_* ; traditional@2={1|0} in_vec_size=32 q_heads=3 k_heads=2 dims=6 n_v=9 q_stride=6 k_stride=6 ; groups 1 7 1 / 32 4 1 ; ok
// @witness affine_qmv_*rms_x3_rope_{|b}float* ; traditional@2={1|0} in_vec_size=512 q_heads=3 k_heads=2 dims=6 n_v=9 q_stride=6 k_stride=6 ; groups 1 6 1 / 32 4 1 ; refused
// @witness affine_qmv_*rms_x3_rope_{|b}float* ; traditional@2={1|0} in_vec_size=512 q_heads=4 k_heads=4 dims=6 n_v=8 q_stride=6 k_stride=6 ; groups 1 7 1 / 32 3 1 ; refused
// @witness affine_qmv_*rms_x3_rope_{|b}float* ; traditional@2={1|0} in_vec_size={4608|0} q_heads=3 k_heads=2 dims=6 n_v=9 q_stride=6 k_stride=6 ; groups 1 7 1 / 32 4 1 ; refused
// @witness affine_qmv_*rms_x3_rope_{|b}float* ; traditional@2={1|0} in_vec_size=512 q_heads=3 k_heads=2 dims=0 n_v=9 q_stride=6 k_stride=6 ; groups 1 2 1 / 32 4 1 ; refused
// @witness affine_qmv_*rms_x3_rope_{|b}float* ; traditional@2={1|0} in_vec_size=512 q_heads=2 k_heads=2 dims=5 n_v=9 q_stride=6 k_stride=6 ; groups 1 4 1 / 32 4 1 ; refused
// @witness affine_qmv_*rms_x3_rope_{|b}float* ; traditional@2={1|0} in_vec_size=512 q_heads=0 k_heads=2 dims=6 n_v=9 q_stride=6 k_stride=6 ; groups 1 4 1 / 32 4 1 ; refused
// @witness affine_qmv_*rms_x3_rope_{|b}float* ; traditional@2={1|0} in_vec_size=512 q_heads=3 k_heads=0 dims=6 n_v=9 q_stride=6 k_stride=6 ; groups 1 5 1 / 32 4 1 ; refused
// @witness affine_qmv_*rms_x3_rope_{|b}float* ; traditional@2={1|0} in_vec_size=512 q_heads=3 k_heads=2 dims=6 n_v=0 q_stride=6 k_stride=6 ; groups 1 5 1 / 32 4 1 ; refused
// @witness affine_qmv_*rms_x3_rope_{|b}float* ; traditional@2={1|0} in_vec_size=512 q_heads=2 k_heads=2 dims=6 n_v=9 q_stride=5 k_stride=6 ; groups 1 6 1 / 32 4 1 ; refused
// @witness affine_qmv_*rms_x3_rope_{|b}float* ; traditional@2={1|0} in_vec_size=512 q_heads=2 k_heads=2 dims=6 n_v=9 q_stride=6 k_stride=5 ; groups 1 6 1 / 32 4 1 ; refused
//
// No result may lie on an operand of the same shape.
//
// @witness affine_qmv_*rms_x3_rope_{|b}float* ; traditional@2={1|0} in_vec_size=512 q_heads=8 k_heads=8 dims=64 n_v=512 q_stride=64 k_stride=64 inplace=v,{x|norm} ; groups 1 192 1 / 32 4 1 ; refused
// @witness affine_qmv_rms_x3_rope_{|b}float*_gs_32_* ; traditional@2={1|0} in_vec_size=32 q_heads=1 k_heads=1 dims=8 n_v=8 q_stride=8 k_stride=8 inplace=q,{scales|biases}_q ; groups 1 3 1 / 32 4 1 ; refused
// @witness affine_qmv_rms_x3_rope_{|b}float*_gs_32_* ; traditional@2={1|0} in_vec_size=32 q_heads=1 k_heads=1 dims=8 n_v=8 q_stride=8 k_stride=8 inplace=k,{scales|biases}_{q|k} ; groups 1 3 1 / 32 4 1 ; refused
// @witness affine_qmv_fast_rms_x3_rope_{|b}float*_gs_32_* ; traditional@2={1|0} in_vec_size=512 q_heads=1 k_heads=16 dims=16 n_v=8 q_stride=16 k_stride=16 inplace=k,{scales|biases}_q ; groups 1 35 1 / 32 4 1 ; refused
// @witness affine_qmv_fast_rms_silu_mul_{|b}float*_gs_32_* ; in_vec_size=512 out_vec_size=16 inplace=y,{scales|biases}_{gate|up} ; groups 16 4 1 / 32 2 1 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent affine_qmv_*rms_* ; require: 4096 -> 4097 ; in_vec_size is a multiple of 32
// @equivalent affine_qmv_fast_rms_* ; require: 2048 -> 2049 ; 2049/4 = 2048/4 and 2049/8 = 2048/8
// @equivalent affine_qmv_fast_rms_silu_mul_* ; require: 256 -> 257 ; in_vec_size is a multiple of 512
// @equivalent affine_qmv_fast_rms_silu_mul_* ; require: in_vec_size >= 256 -> in_vec_size > 256 ; in_vec_size is a multiple of 512
// @equivalent affine_qmv_fast_rms_x3_rope_* ; require: 256 -> 257 ; in_vec_size is a multiple of 512
// @equivalent affine_qmv_fast_rms_x3_rope_* ; require: in_vec_size >= 256 -> in_vec_size > 256 ; in_vec_size is a multiple of 512
// @equivalent affine_qmv_*rms_max_* ; round: dot: * ; y is rounded, and so is the greatest: that of roundings is that of numbers, rounded
// @equivalent affine_qmv_*rms_max_* ; round: {y|top}: * ; dot is rounded already
// @equivalent affine_qmv_*rms_x3_rope_* ; constant: e: 0 -> 1 ; there is one row, whatever its number
// @equivalent affine_qmv_fast_rms_x3_rope_* ; inplace: allow q *s_q ; a row of scales has several groups, and a head several elements
// @equivalent affine_qmv_fast_rms_x3_rope_* ; inplace: allow k *s_k ; a row of scales has several groups, and a head several elements
