// Products of a vector with large matrices of affine codes: the vector lies in threadgroup memory, where
// simdgroups that make many rows share it. Element (n, k) of a matrix is scales[n, k/g] · q + biases[n, k/g],
// as in quantized.metal, with q of four bits.
//
// A simdgroup that reads x itself, as those of quantized.metal do, scales and adds up every element for each
// four rows, and its lanes read places of x that lie far apart, which takes a cache longer than the codes do.
// Here a thread does that once for the threadgroup. Additions stay in the order of affine_qmv_fast, so that
// every bit stays too.
//
// Kernels "whole" hold all of x. Kernels "piped" hold a piece of 2,048 elements and the next one, which
// simdgroups of their own bring while the others multiply.

#include "slots.h"

constexpr constant int CODES = 16; // of a row, in two words, that a lane takes at a time
constexpr constant int STEP = LANES * CODES;
constexpr constant int MOST = 4096; // elements of x that "whole" holds
constexpr constant int PIECE = 2048; // and "piped", twice

// Part is what a lane takes of a row at a time.
struct Part {
  uint2 codes;
  float scale;
  float bias;
};

// Rows are those of a matrix from one on, at the first element that a lane takes. What lies behind that is far by
// numbers that do not depend on the lane.
template <int g>
struct Rows {
  const device uint* w;
  const device float* scales;
  const device float* biases;
  int words; // of a row
  int groups;

  // part is that of row i and step t. Rows have a multiple of 16 codes: all lie as the first one does.
  template <bool wide>
  Part part(int i, int t) const {
    const device uint* at = w + (i * words + t * (STEP / 8));
    const int group = i * groups + t * (STEP / g);
    return {wide ? wide_load<uint2>(at) : uint2(at[0], at[1]), scales[group], biases[group]};
  }
};
template <int g>
inline Rows<g> rows_of(const thread Affine& m, int K, int first, uint lane) {
  const int words = K / 8;
  const int groups = K / g;
  const size_t group = size_t(first) * groups + lane * CODES / g;
  return {m.w + size_t(first) * words + lane * (CODES / 8), m.scales + group, m.biases + group, words, groups};
}

// A code is multiplied where it stands in its word or in the word shifted to the right, so that it needs a mask only;
// an element of x is divided by what the code is too large by. `place` is where code i of 16 then stands. For
// numbers so small that the division is not exact it is what affine_qmv_fast does, unless they are not divided.
inline int shift() { return subnormals_known() ? 12 : 16; } // 12 spares the first one a shift of its own
inline int place(int i) { return 4 * (i % 4) + (i % 8 < 4 ? 0 : 16 - shift()); }

// number is n, below 2^23, or, where arithmetic keeps subnormal numbers, n · 2^-149, which has the bits of n.
inline float number(uint n) { return subnormals_known() ? as_type<float>(n) : small(n); }

// dot returns Σ v·q of 16 codes, v as `Piece` has it.
inline float dot(uint2 codes, const thread float* v) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < CODES; i++) {
    const uint w = i < 8 ? codes.x : codes.y;
    sum = fma(v[i], number((i % 8 < 4 ? w : w >> shift()) & (0xfu << place(i))), sum);
  }
  return sum;
}

// Piece is what of x lies in threadgroup memory. The four floats c of part u lie at 4u + (c ^ u/2 % 4), so that
// lanes that take a part each find theirs in different banks. Beside a part stands the sum of its elements, and what
// its products have to be multiplied by.
struct Piece {
  threadgroup float4* x;
  threadgroup float2* sums;

  // bring brings elements from `from` on, before `to`; n threads do it together.
  void bring(const device float* row, int from, int to, uint self, uint n) const {
    const bool wide = aligned(row, 16);
    for (int u = int(self); from + u * CODES < to; u += int(n)) {
      float v[CODES];
      const device float* at = row + from + u * CODES;
      if (wide) {
        take<CODES>(at, v);
      } else {
#pragma unroll
        for (int i = 0; i < CODES; i++) {
          v[i] = at[i];
        }
      }
      float sum = 0;
      uint most = 0;
      uint least = ~0u; // of those that are not zero, less one
#pragma unroll
      for (int i = 0; i < CODES; i++) {
        sum += v[i];
        const uint size = as_type<uint>(v[i]) & 0x7fffffffu;
        most = max(most, size);
        least = min(least, size - 1);
      }
      // Where codes are subnormal numbers, elements are 2^k times as large, so that no bit of a product or
      // a sum falls below 2^-149: the last bit of the smallest does not, and whatever is added up is a
      // multiple of that. All stay below 2^101, sums below 2^-39. Elements for which there is no such
      // k, or no 2^(149-k), have no number for their sum, and so has the result.
      uint k = 0;
      uint back = 0;
      bool usual = true;
      if (subnormals_known()) {
        const uint e = most >> 23;
        usual = e <= 205 && (least >> 23) + min(127u, 227 - e) >= 150;
        k = usual ? min(127u, 227 - e) : 0;
        back = usual ? 149 - k : 0;
      }
#pragma unroll
      for (int i = 0; i < CODES; i++) {
        v[i] *= as_type<float>((127 + k - place(i)) << 23);
      }
#pragma unroll
      for (int c = 0; c < 4; c++) {
        x[4 * u + (c ^ (u / 2 % 4))] = float4(v[4 * c], v[4 * c + 1], v[4 * c + 2], v[4 * c + 3]);
      }
      sums[u] = float2(usual ? sum : as_type<float>(0x7fc00000u), as_type<float>((127 + back) << 23));
    }
  }

  // part returns part u: its elements in v, its sum and its factor.
  float2 part(int u, thread float* v) const {
#pragma unroll
    for (int c = 0; c < 4; c++) {
      const float4 e = x[4 * u + (c ^ (u / 2 % 4))];
      v[4 * c] = e.x;
      v[4 * c + 1] = e.y;
      v[4 * c + 2] = e.z;
      v[4 * c + 3] = e.w;
    }
    return sums[u];
  }
};

// add adds to a result what a part of its row makes.
inline void add(const thread Part& p, const thread float* v, float2 sum, thread float& result) {
  result += p.scale * (dot(p.codes, v) * sum.y) + p.bias * sum.x;
}

// plainly adds up what a lane has of the product of row i with x, of any numbers, by the operations of
// affine_qmv_fast. It is for what does not lie as it should, and for elements that `Piece` has no way for.
template <int g>
inline float plainly(const thread Rows<g>& m, const device float* x, int K, int i, uint lane) {
  float result = 0;
  for (int t = 0; t < K / STEP; t++) {
    const Part p = m.template part<false>(i, t);
    const device float* at = x + t * STEP + int(lane) * CODES;
    float sum = 0;
    float products = 0;
#pragma unroll
    for (int j = 0; j < CODES; j++) {
      const uint w = j < 8 ? p.codes.x : p.codes.y;
      const int by = 4 * (j % 4);
      sum += at[j];
      products = fma(at[j] * (1.0f / float(1 << by)), small((j % 8 < 4 ? w : w >> 16) & (0xfu << by)), products);
    }
    result += p.scale * products + p.bias * sum;
  }
  return result;
}

// finish leaves in each result its sum over the simdgroup, after those that are no number were made anew, for they
// may come of x.
template <int g, int rows, int matrices>
inline void finish(const thread Rows<g>* m, const device float* x, int K, bool wide, uint lane, thread float* result) {
  bool again = !wide;
  if (subnormals_known()) {
#pragma unroll
    for (int i = 0; i < rows * matrices; i++) {
      again = again || is_nan(result[i]);
    }
  }
  if (simd_any(again)) {
#pragma unroll
    for (int i = 0; i < rows * matrices; i++) {
      result[i] = plainly<g>(m[i / rows], x, K, i % rows, lane);
    }
  }
#pragma unroll
  for (int i = 0; i < rows * matrices; i += 2) {
    sum_all<2>(result + i);
  }
}

// dot_whole leaves in result[rows·j + i] the product of x with row first + i of matrix j. A part of a row is asked for
// when the one before has been used, in the same registers; the first ones are asked for before x is there.
template <int g, int rows, int matrices>
inline void dot_whole(
    const thread Affine* m, const device float* x, int K, int first, uint self, uint threads, threadgroup float4* xs, threadgroup float2* sums, uint lane,
    thread float* result) {
  const Piece piece = {xs, sums};
  Rows<g> at[matrices];
  bool wide = true;
#pragma unroll
  for (int j = 0; j < matrices; j++) {
    at[j] = rows_of<g>(m[j], K, first, lane);
    wide = wide && aligned(m[j].w, 8);
  }
  Part p[matrices * rows];
#pragma unroll
  for (int i = 0; i < rows * matrices; i++) {
    result[i] = 0;
    if (wide) {
      p[i] = at[i / rows].template part<true>(i % rows, 0);
    }
  }
  wait_for_dispatches();
  piece.bring(x, 0, K, self, threads);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (wide) {
#pragma unroll
    for (int t = 0; t < MOST / STEP; t++) {
      if (t * STEP < K) {
        float v[CODES];
        const float2 sum = piece.part(t * LANES + int(lane), v);
#pragma unroll
        for (int i = 0; i < rows * matrices; i++) {
          add(p[i], v, sum, result[i]);
          if ((t + 1) * STEP < K) {
            p[i] = at[i / rows].template part<true>(i % rows, t + 1);
          }
        }
      }
    }
  }
  finish<g, rows, matrices>(at, x, K, wide, lane, result);
}

// use adds to each result what the parts of a piece make, of which the first `ahead` have been asked for, and asks for
// as many behind, also in the next piece. Steps of the matrix begin with the piece.
template <int g, int rows, int ahead, bool next>
inline void use(const thread Rows<g>& m, const thread Piece& piece, uint lane, thread Part (*p)[rows], thread float* result) {
  constexpr int steps = PIECE / STEP;
#pragma unroll
  for (int t = 0; t < steps; t++) {
    float v[CODES];
    const float2 sum = piece.part(t * LANES + int(lane), v);
#pragma unroll
    for (int i = 0; i < rows; i++) {
      add(p[t % ahead][i], v, sum, result[i]);
      if (next || t + ahead < steps) {
        p[t % ahead][i] = m.template part<true>(i, t + ahead);
      }
    }
  }
}

// dot_piped leaves in result[i] the product of x with row first + i of a matrix. Simdgroups from `workers` on make none:
// they bring the pieces of x, and nothing else.
template <int g, int rows, int workers, int helpers, int ahead>
inline void dot_piped(
    const thread Affine& m, const device float* x, int K, int first, uint simdgroup, threadgroup float4* xs, threadgroup float2* sums, uint lane,
    thread float* result) {
  const bool works = simdgroup < workers;
  const bool wide = aligned(m.w, 8);
  const uint self = (simdgroup - workers) * LANES + lane;
  const Rows<g> begin = rows_of<g>(m, K, first, lane);
  Part p[ahead][rows];
#pragma unroll
  for (int i = 0; i < rows; i++) {
    result[i] = 0;
  }
  if (works && wide) {
#pragma unroll
    for (int d = 0; d < ahead; d++) {
#pragma unroll
      for (int i = 0; i < rows; i++) {
        p[d][i] = begin.template part<true>(i, d);
      }
    }
  }
  wait_for_dispatches();
  if (!works) {
    const Piece piece = {xs, sums};
    piece.bring(x, 0, PIECE, self, helpers * LANES);
  }
  int at = 0; // the half of the memory that has the piece
  Rows<g> rest = begin;
  for (int from = 0; from + PIECE < K; from += PIECE) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (!works) {
      const Piece next = {xs + (PIECE / 4 - at * (PIECE / 4)), sums + (PIECE / CODES - at * (PIECE / CODES))};
      next.bring(x, from + PIECE, from + 2 * PIECE, self, helpers * LANES);
    } else if (wide) {
      const Piece piece = {xs + at * (PIECE / 4), sums + at * (PIECE / CODES)};
      use<g, rows, ahead, true>(rest, piece, lane, p, result);
      rest.w += PIECE / 8;
      rest.scales += PIECE / g;
      rest.biases += PIECE / g;
    }
    at = 1 - at;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (works) {
    if (wide) {
      const Piece piece = {xs + at * (PIECE / 4), sums + at * (PIECE / CODES)};
      use<g, rows, ahead, false>(rest, piece, lane, p, result);
    }
    finish<g, rows, 1>(&begin, x, K, wide, lane, result);
  }
}

constexpr constant int MANY = 14; // simdgroups of a threadgroup of "whole"

// Of which sizes these are: as those of affine_qmv_fast, in wholes of what a threadgroup holds of x.
//
// @lines whole()
// @require in_vec_size >= 512 && in_vec_size % 512 == 0 && in_vec_size <= 4096
// @require out_vec_size >= 8 && out_vec_size % 8 == 0
// @end
// @lines piped(results)
// @require in_vec_size >= 2048 && in_vec_size % 2048 == 0
// @each    n = {results}
// @require {n} >= 8 && {n} % 8 == 0
// @end
// @end

// A product of a matrix of many rows. Simdgroups past the last row make it once more, and keep it to themselves.
//
// @kernel  affine_qmv_whole_{T:float=f32}_gs_{g:32}_b_4
// @use     matrix(; 4; out_vec_size; in_vec_size)
// @use     one_behind(f32; M, ; in_vec_size; out_vec_size)
// @groups  M, ceil(out_vec_size/56), 1
// @group   32, 14, 1
// @use     whole()
// @term    y[m,n] = round(f32, {dot(qmv_fast; )})
template <int g, typename T, typename E>
inline void whole(
    const thread Affine* m, const device T* x, const E e, int K, int N, int block, threadgroup float4* xs,
    threadgroup float2* sums, uint thread_id,
    uint simdgroup, uint lane) {
  constexpr int rows = ROWS / E::matrices;
  const int first = (block * MANY + int(simdgroup)) * rows;
  float result[ROWS];
  dot_whole<g, rows, E::matrices>(m, x, K, min(first, N - rows), thread_id, MANY * LANES, xs, sums, lane, result);
  if (first < N && int(lane) < rows) {
    e.put(first + lane, of_lane<rows>(result, lane), of_lane<rows>(result + (E::matrices - 1) * rows, lane));
  }
}

#define WHOLE_PLACE                                    \
  uint3 group [[threadgroup_position_in_grid]],        \
  uint thread_id [[thread_index_in_threadgroup]],      \
  uint simdgroup [[simdgroup_index_in_threadgroup]],   \
  uint lane [[thread_index_in_simdgroup]]
#define WHOLE(name, OPERANDS, E)                                                                                       \
  template <typename T, int g>                                                                                         \
  [[kernel]] void name(                                                                                                \
      OPERANDS(AFFINE, w), const device T* x, device T* y, constant int& in_vec_size, constant int& out_vec_size,      \
      WHOLE_PLACE) {                                                                                                   \
    threadgroup float4 xs[MOST / 4];                                                                                   \
    threadgroup float2 sums[MOST / CODES];                                                                             \
    const Affine m[] = {OPERANDS(AFFINE_MADE, w)};                                                                     \
    const int N = out_vec_size;                                                                                        \
    whole<g>(                                                                                                          \
        m, x + size_t(group.x) * in_vec_size, E<T>{y + size_t(group.x) * N}, in_vec_size, N, int(group.y), xs, sums,   \
        thread_id,                                                                                                     \
        simdgroup, lane);                                                                                              \
  }
WHOLE(qmv_whole, ARMS_1, Store)

// The gate and up products of a feed-forward layer, and silu(gate)·up of them.
//
// @kernel  affine_qmv_whole_silu_mul_{T:float=f32}_gs_{g:32}_b_4
// @each    i = gate up
// @use     matrix(_{i}; 4; out_vec_size; in_vec_size)
// @where   {i}[m,n] = {dot(qmv_fast; _{i})}
// @end
// @use     one_behind(f32; M, ; in_vec_size; out_vec_size)
// @groups  M, ceil(out_vec_size/28), 1
// @group   32, 14, 1
// @use     whole()
// @use     silu_mul(m,n; {T})
WHOLE(qmv_whole_silu_mul, BOTH, SiluMul)

constexpr constant int WORKERS = 8; // simdgroups of a threadgroup of "piped" that make results
constexpr constant int HELPERS = 2; // and that bring x
constexpr constant int PAIR = 2; // results of a simdgroup

// A product of a matrix of long rows.
//
// @kernel  affine_qmv_piped{form:=store|_add=add}_{T:float=f32}_gs_{g:32}_b_4
// @use     matrix(; 4; out_vec_size; in_vec_size)
// @if      form == add
// @use     sum_behind(f32; M, ; in_vec_size; out_vec_size)
// @else
// @use     one_behind(f32; M, ; in_vec_size; out_vec_size)
// @end
// @groups  M, ceil(out_vec_size/16), 1
// @group   32, 10, 1
// @use     piped(out_vec_size)
// @if      form == add
// @term    y[m,n] = round(f32, r[m,n] + {dot(qmv_fast; )})
// @else
// @term    y[m,n] = round(f32, {dot(qmv_fast; )})
// @end
template <int g, int workers, int helpers, int ahead, typename T, typename E>
inline void piped(
    const thread Affine& m, const device T* x, const E e, int K, int row, int before, int end,
    threadgroup float4* xs, threadgroup float2* sums,
    uint simdgroup, uint lane) {
  const int first = min(row, end - PAIR) - before;
  float result[PAIR];
  dot_piped<g, PAIR, workers, helpers, ahead>(m, x, K, first, simdgroup, xs, sums, lane, result);
  if (simdgroup < workers && row < end && int(lane) < PAIR) {
    e.put(first + lane, of_lane<PAIR>(result, lane), 0);
  }
}

#define PIPED(name, E, OPERANDS, RESULTS)                                                                              \
  template <typename T, int g>                                                                                         \
  [[kernel]] void name(                                                                                                \
      AFFINE(w, ), const device T* x, OPERANDS, constant int& in_vec_size, constant int& out_vec_size, PLACE) {        \
    threadgroup float4 xs[PIECE / 4 * 2];                                                                              \
    threadgroup float2 sums[PIECE / CODES * 2];                                                                        \
    const Affine m = AFFINE_MADE(w, );                                                                                 \
    const size_t at = size_t(group.x) * out_vec_size;                                                                  \
    const int row = (int(group.y) * WORKERS + int(simdgroup)) * PAIR;                                                  \
    piped<g, WORKERS, HELPERS, 4>(                                                                                     \
        m, x + size_t(group.x) * in_vec_size, E<T>{RESULTS}, in_vec_size, row, 0, out_vec_size, xs, sums, simdgroup,   \
        lane);                                                                                                         \
  }
#define STORED device T* y
#define ADDED const device T *r, device T *y
#define STORED_AT y + at
#define ADDED_AT y + at, r + at
PIPED(qmv_piped, Store, STORED, STORED_AT)
PIPED(qmv_piped_add, Add, ADDED, ADDED_AT)

constexpr constant int WORKERS_X3 = 12;
constexpr constant int HELPERS_X3 = 4;

// Three products of one input: queries, keys and values of attention.
//
// @kernel  affine_qmv_piped_x3_{T:float=f32}_gs_{g:32}_b_4
// @each    i = 0 1 2
// @use     matrix({i}; 4; n{i}; in_vec_size)
// @end
// @use     arms_behind(0 1 2; f32; M, ; in_vec_size)
// @each    i = 0 1 2
// @term    y{i}[m,n] = round(f32, {dot(qmv_fast; {i})})
// @end
// @groups  M, ceil((n0 + n1 + n2)/24), 1
// @group   32, 16, 1
// @use     piped(n0 n1 n2)
template <typename T, int g>
[[kernel]] void qmv_piped_x3(
    ARMS_3(AFFINE, w), const device T* x, ARMS_3(RESULT, y), constant int& in_vec_size, ARMS_3(COUNT, n), PLACE) {
  threadgroup float4 xs[PIECE / 4 * 2];
  threadgroup float2 sums[PIECE / CODES * 2];
  // Pairs of rows follow one another through the matrices: none of them has an odd number.
  const int row = (int(group.y) * WORKERS_X3 + int(simdgroup)) * PAIR;
  const int which = row < n0 ? 0 : row < n0 + n1 ? 1 : 2;
  const int before = which == 0 ? 0 : which == 1 ? n0 : n0 + n1;
  const Affine m = {which == 0 ? w0 : which == 1 ? w1 : w2, which == 0 ? scales0 : which == 1 ? scales1 : scales2, which == 0 ? biases0 : which == 1 ? biases1 : biases2};
  device T* y = which == 0 ? y0 + size_t(group.x) * n0 : which == 1 ? y1 + size_t(group.x) * n1 : y2 + size_t(group.x) * n2;
  piped<g, WORKERS_X3, HELPERS_X3, 2>(
      m, x + size_t(group.x) * in_vec_size, Store<T>{y}, in_vec_size, row, before, n0 + n1 + n2, xs, sums,
      simdgroup, lane);
}

#define INSTANTIATE_STAGED(form, g)                                    \
  template [[host_name("affine_qmv_" #form "_float_gs_" #g "_b_4")]] \
  [[kernel]] decltype(qmv_##form<float, g>) qmv_##form<float, g>;
#define INSTANTIATE_STAGED_ALL(g)       \
  INSTANTIATE_STAGED(whole, g)          \
  INSTANTIATE_STAGED(whole_silu_mul, g) \
  INSTANTIATE_STAGED(piped, g)          \
  INSTANTIATE_STAGED(piped_add, g)      \
  INSTANTIATE_STAGED(piped_x3, g)

INSTANTIATE_STAGED_ALL(32)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// A threadgroup makes as many rows as its simdgroups do that make any: 56, or 28 of each of two matrices, or
// 16, or 24 of three matrices that follow one another. Those with more than one piece of x, and with
// simdgroups that have no row, are among them. Each result has views of its own, but that a sum may take its
// residual's.
//
// @witness affine_qmv_whole_float_gs_*_b_4 ; in_vec_size=1536 out_vec_size=200 ; groups 2 4 1 / 32 14 1 ; ok
// @witness affine_qmv_whole_float_gs_*_b_4 ; in_vec_size=1536 out_vec_size=200 ; threads 64 56 1 / 32 14 1 ; ok
// @witness affine_qmv_whole_float_gs_*_b_4 ; in_vec_size=1536 out_vec_size=200 ; groups 2 5 1 / 32 14 1 ; refused
// @witness affine_qmv_whole_{|silu_mul_}float_gs_*_b_4 ; in_vec_size=512 out_vec_size=8 ; groups 1 1 1 / 32 14 1 ; ok
// @witness affine_qmv_whole_float_gs_*_b_4 ; in_vec_size=512 out_vec_size=456 ; groups 1 9 1 / 32 14 1 ; ok
// @witness affine_qmv_whole_{|silu_mul_}float_gs_*_b_4 ; in_vec_size=4096 out_vec_size=24 ; groups 1 1 1 / 32 14 1 ; ok
// @witness affine_qmv_whole_{|silu_mul_}float_gs_*_b_4 ; in_vec_size={0|256|768|4608} out_vec_size=8 ; groups 1 1 1 / 32 14 1 ; refused
// @witness affine_qmv_whole_{|silu_mul_}float_gs_*_b_4 ; in_vec_size=512 out_vec_size={12|9} ; groups 1 1 1 / 32 14 1 ; refused
// @witness affine_qmv_whole_{|silu_mul_}float_gs_*_b_4 ; in_vec_size=512 out_vec_size=0 ; groups 1 0 1 / 32 14 1 ; refused
// @witness affine_qmv_whole_float_gs_*_b_4 ; in_vec_size=512 out_vec_size=512 inplace=y,x ; groups 1 10 1 / 32 14 1 ; refused
// @witness affine_qmv_whole_float_gs_32_b_4 ; in_vec_size=512 out_vec_size=16 inplace=y,{scales|biases} ; groups 16 1 1 / 32 14 1 ; refused
// @witness affine_qmv_whole_silu_mul_float_gs_*_b_4 ; in_vec_size=1536 out_vec_size=152 ; groups 2 6 1 / 32 14 1 ; ok
// @witness affine_qmv_whole_silu_mul_float_gs_*_b_4 ; in_vec_size=1536 out_vec_size=152 ; threads 64 84 1 / 32 14 1 ; ok
// @witness affine_qmv_whole_silu_mul_float_gs_*_b_4 ; in_vec_size=1536 out_vec_size=152 ; groups 2 7 1 / 32 14 1 ; refused
// @witness affine_qmv_whole_silu_mul_float_gs_*_b_4 ; in_vec_size=512 out_vec_size=144 ; groups 1 6 1 / 32 14 1 ; ok
// @witness affine_qmv_whole_silu_mul_float_gs_*_b_4 ; in_vec_size=512 out_vec_size=512 inplace=y,x ; groups 1 19 1 / 32 14 1 ; refused
// @witness affine_qmv_whole_silu_mul_float_gs_32_b_4 ; in_vec_size=512 out_vec_size=16 inplace=y,{scales|biases}_{gate|up} ; groups 16 1 1 / 32 14 1 ; refused
// @witness affine_qmv_piped_{|add_}float_gs_*_b_4 ; in_vec_size=4096 out_vec_size=40 ; groups 2 3 1 / 32 10 1 ; ok
// @witness affine_qmv_piped_{|add_}float_gs_*_b_4 ; in_vec_size=4096 out_vec_size=40 ; threads 64 30 1 / 32 10 1 ; ok
// @witness affine_qmv_piped_{|add_}float_gs_*_b_4 ; in_vec_size=4096 out_vec_size=40 ; groups 2 4 1 / 32 10 1 ; refused
// @witness affine_qmv_piped_{|add_}float_gs_*_b_4 ; in_vec_size=2048 out_vec_size=8 ; groups 1 1 1 / 32 10 1 ; ok
// @witness affine_qmv_piped_{|add_}float_gs_*_b_4 ; in_vec_size=2048 out_vec_size=136 ; groups 1 9 1 / 32 10 1 ; ok
// @witness affine_qmv_piped_{|add_}float_gs_*_b_4 ; in_vec_size=6144 out_vec_size=24 ; groups 1 2 1 / 32 10 1 ; ok
// @witness affine_qmv_piped_{|add_}float_gs_*_b_4 ; in_vec_size={0|1024|3072} out_vec_size=8 ; groups 1 1 1 / 32 10 1 ; refused
// @witness affine_qmv_piped_{|add_}float_gs_*_b_4 ; in_vec_size=2048 out_vec_size={12|9} ; groups 1 1 1 / 32 10 1 ; refused
// @witness affine_qmv_piped_{|add_}float_gs_*_b_4 ; in_vec_size=2048 out_vec_size=0 ; groups 1 0 1 / 32 10 1 ; refused
// @witness affine_qmv_piped_{|add_}float_gs_*_b_4 ; in_vec_size=2048 out_vec_size=2048 inplace=y,x ; groups 1 128 1 / 32 10 1 ; refused
// @witness affine_qmv_piped_{|add_}float_gs_32_b_4 ; in_vec_size=2048 out_vec_size=64 inplace=y,{scales|biases} ; groups 64 4 1 / 32 10 1 ; refused
// @witness affine_qmv_piped_add_float_gs_*_b_4 ; in_vec_size=2048 out_vec_size=8 inplace=y,r ; groups 2 1 1 / 32 10 1 ; ok
// @witness affine_qmv_piped_x3_float_gs_*_b_4 ; in_vec_size=4096 n0=40 n1=16 n2=24 ; groups 2 4 1 / 32 16 1 ; ok
// @witness affine_qmv_piped_x3_float_gs_*_b_4 ; in_vec_size=4096 n0=40 n1=16 n2=24 ; threads 64 64 1 / 32 16 1 ; ok
// @witness affine_qmv_piped_x3_float_gs_*_b_4 ; in_vec_size=4096 n0=40 n1=16 n2=24 ; groups 2 5 1 / 32 16 1 ; refused
// @witness affine_qmv_piped_x3_float_gs_*_b_4 ; in_vec_size=2048 n0=8 n1=8 n2=8 ; groups 1 1 1 / 32 16 1 ; ok
// @witness affine_qmv_piped_x3_float_gs_*_b_4 ; in_vec_size=2048 n0=104 n1=56 n2=40 ; groups 1 9 1 / 32 16 1 ; ok
// @witness affine_qmv_piped_x3_float_gs_*_b_4 ; in_vec_size=6144 n0=8 n1=16 n2=24 ; groups 1 2 1 / 32 16 1 ; ok
// @witness affine_qmv_piped_x3_float_gs_*_b_4 ; in_vec_size={0|1024|3072} n0=8 n1=8 n2=8 ; groups 1 1 1 / 32 16 1 ; refused
// @witness affine_qmv_piped_x3_float_gs_*_b_4 ; in_vec_size=2048 n0={12|9} n1=8 n2=8 ; groups 1 2 1 / 32 16 1 ; refused
// @witness affine_qmv_piped_x3_float_gs_*_b_4 ; in_vec_size=2048 n0=0 n1=8 n2=8 ; groups 1 1 1 / 32 16 1 ; refused
// @witness affine_qmv_piped_x3_float_gs_*_b_4 ; in_vec_size=2048 n0=8 n1={12|9} n2=8 ; groups 1 2 1 / 32 16 1 ; refused
// @witness affine_qmv_piped_x3_float_gs_*_b_4 ; in_vec_size=2048 n0=8 n1=0 n2=8 ; groups 1 1 1 / 32 16 1 ; refused
// @witness affine_qmv_piped_x3_float_gs_*_b_4 ; in_vec_size=2048 n0=8 n1=8 n2={12|9} ; groups 1 2 1 / 32 16 1 ; refused
// @witness affine_qmv_piped_x3_float_gs_*_b_4 ; in_vec_size=2048 n0=8 n1=8 n2=0 ; groups 1 1 1 / 32 16 1 ; refused
// @witness affine_qmv_piped_x3_float_gs_*_b_4 ; in_vec_size=2048 n0=2048 n1=8 n2=8 inplace=y0,x ; groups 1 86 1 / 32 16 1 ; refused
// @witness affine_qmv_piped_x3_float_gs_32_b_4 ; in_vec_size=2048 n0=64 n1=8 n2=8 inplace=y0,{scales|biases}0 ; groups 64 4 1 / 32 16 1 ; refused
// @witness affine_qmv_piped_x3_float_gs_32_b_4 ; in_vec_size=2048 n0=64 n1=8 n2=8 inplace=y0,{scales|biases}{1|2} ; groups 8 4 1 / 32 16 1 ; refused
// @witness affine_qmv_piped_x3_float_gs_*_b_4 ; in_vec_size=2048 n0=8 n1=2048 n2=8 inplace=y1,x ; groups 1 86 1 / 32 16 1 ; refused
// @witness affine_qmv_piped_x3_float_gs_32_b_4 ; in_vec_size=2048 n0=8 n1=64 n2=8 inplace=y1,{scales|biases}{0|2} ; groups 8 4 1 / 32 16 1 ; refused
// @witness affine_qmv_piped_x3_float_gs_32_b_4 ; in_vec_size=2048 n0=8 n1=64 n2=8 inplace=y1,{scales|biases}1 ; groups 64 4 1 / 32 16 1 ; refused
// @witness affine_qmv_piped_x3_float_gs_*_b_4 ; in_vec_size=2048 n0=8 n1=8 n2=2048 inplace=y2,x ; groups 1 86 1 / 32 16 1 ; refused
// @witness affine_qmv_piped_x3_float_gs_32_b_4 ; in_vec_size=2048 n0=8 n1=8 n2=64 inplace=y2,{scales|biases}{0|1} ; groups 8 4 1 / 32 16 1 ; refused
// @witness affine_qmv_piped_x3_float_gs_32_b_4 ; in_vec_size=2048 n0=8 n1=8 n2=64 inplace=y2,{scales|biases}2 ; groups 64 4 1 / 32 16 1 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent affine_qmv_whole_* ; require: 4096 -> 4097 ; in_vec_size is a multiple of 512
