// Products with a matrix of affine codes: element (n, k) of the matrix is
// scales[n, k/g] · q + biases[n, k/g], with q an unsigned code of b bits. Codes
// lie bit after bit in 32-bit words, the first in the lowest bits.

#include "slots.h"
#include "rope.h"

// Row is the vector of a product, as it lies in memory. Another type with these
// functions may compute its elements from something else.
template <typename T>
struct Row {
  const device T* x;
  bool is_wide() const { return aligned(x, 4 * sizeof(T)); }

  // load reads n elements from the k-th on, at once where x and k allow it.
  template <int n, bool wide>
  void load(int k, thread float* v) const {
    if (wide) {
#pragma unroll
      for (int i = 0; i < n; i += 4) {
        const vec<T, 4> e = wide_load<vec<T, 4>>(x + k + i);
        v[i] = e.x;
        v[i + 1] = e.y;
        v[i + 2] = e.z;
        v[i + 3] = e.w;
      }
    } else {
#pragma unroll
      for (int i = 0; i < n; i++) {
        v[i] = x[k + i];
      }
    }
  }

  // begin is called when x is there, with the rows that the simdgroup makes.
  void begin(int first, int end, uint lane) const {}
};

// RowBeside is a row with results that the products are added to: lane i has that of row first + i, which
// it asks for together with x.
template <typename T>
struct RowBeside {
  Row<T> row;
  const device T* r;
  thread float* before;
  bool is_wide() const { return row.is_wide(); }

  template <int n, bool wide>
  void load(int k, thread float* v) const {
    row.template load<n, wide>(k, v);
  }

  void begin(int first, int end, uint lane) const {
    if (first + int(lane) < end) {
      *before = r[first + lane];
    }
  }
};

// Part is what a lane takes of some rows at a time.
template <typename T, int words, int rows>
struct Part {
  uint codes[rows][words];
  T scales[rows];
  T biases[rows];
};

// load_part reads a part, at element k of the rows from `first` on. Rows past the
// end are read as the last one. wide: w lies at a multiple of 4·words bytes.
template <int g, int b, int words, int rows, bool whole, bool wide, typename T>
inline void load_part(const thread AffineOf<T>& m, int K, int N, int first, int k, thread Part<T, words, rows>& p) {
#pragma unroll
  for (int i = 0; i < rows; i++) {
    const size_t row = whole ? first + i : min(first + i, N - 1);
    const device uint* w = m.w + row * words_of<b>(K) + (in_words<b>() ? uint(k) / (32 / b) : 0);
    if (!in_words<b>()) {
      const device ushort* halves = (const device ushort*)w + uint(k) / 16 * b;
#pragma unroll
      for (int j = 0; j < b; j++) {
        p.codes[i][j / 2] = (j % 2 == 0 ? 0 : p.codes[i][j / 2]) | uint(halves[j]) << (16 * (j % 2));
      }
    } else if (wide && words == 2) {
      const uint2 two = wide_load<uint2>(w);
      p.codes[i][0] = two.x;
      p.codes[i][words - 1] = two.y;
    } else {
#pragma unroll
      for (int j = 0; j < words; j++) {
        p.codes[i][j] = w[j];
      }
    }
    const size_t in_group = row * (K / g) + uint(k) / g;
    p.scales[i] = m.scales[in_group];
    p.biases[i] = m.biases[in_group];
  }
}

// add_parts adds to result[rows·j + i] what part p of the rows of matrix j makes with v, elements of x, which
// it scales.
template <int b, int words, int rows, int matrices, typename T>
inline void add_parts(const thread Part<T, words, rows>* p, thread float* v, thread float* result) {
  constexpr int values = values_of<b, words>();
  const float sum = scaled<b, values>(v);
#pragma unroll
  for (int j = 0; j < matrices; j++) {
#pragma unroll
    for (int i = 0; i < rows; i++) {
      result[rows * j + i] += float(p[j].scales[i]) * dot_codes<b, values>(p[j].codes[i], v) + float(p[j].biases[i]) * sum;
    }
  }
}

// load_parts is load_part of all matrices.
template <int g, int b, int words, int rows, bool whole, bool wide, int matrices, typename T>
inline void load_parts(const thread AffineOf<T>* m, int K, int N, int first, int k, thread Part<T, words, rows>* p) {
#pragma unroll
  for (int j = 0; j < matrices; j++) {
    load_part<g, b, words, rows, whole, wide>(m[j], K, N, first, k, p[j]);
  }
}

// add_rows adds to result[rows·j + i] what a lane has of the product of x with row
// first + i of matrix j. A lane takes the codes of `words` words of each row at a
// time; they lie in one group, so scale and bias are applied once. Memory answers
// late and then with much: so many `parts` are asked for ahead, the first ones before
// x is there, and of x the next one.
template <int g, int b, int words, int rows, bool whole, bool wide, int parts, int matrices, typename T, typename X>
inline void add_rows(const thread AffineOf<T>* m, const thread X& x, int K, int N, int first, uint lane, thread float* result) {
  constexpr int values = values_of<b, words>();
  constexpr int step = LANES * values;
  const int begin = int(lane) * values;
  Part<T, words, rows> p[parts][matrices];
#pragma unroll
  for (int d = 0; d < parts; d++) {
    if (begin + d * step < K) {
      load_parts<g, b, words, rows, whole, wide, matrices>(m, K, N, first, begin + d * step, p[d]);
    }
  }
  wait_for_dispatches();
  x.begin(first, min(first + rows, N), lane);
  for (int k = begin; k < K; k += parts * step) {
    float v[parts][values];
    x.template load<values, wide>(k, v[0]);
#pragma unroll
    for (int d = 0; d < parts; d++) {
      if (d + 1 < parts && k + (d + 1) * step < K) {
        x.template load<values, wide>(k + (d + 1) * step, v[(d + 1) % parts]);
      }
      if (d == 0 || k + d * step < K) {
        add_parts<b, words, rows, matrices>(p[d], v[d], result);
        if (k + (parts + d) * step < K) {
          load_parts<g, b, words, rows, whole, wide, matrices>(m, K, N, first, k + (parts + d) * step, p[d]);
        }
      }
    }
  }
}

// Lines are the lines of a cache, of 128 bytes, of which a lane asks for the next one in some rows of a matrix.
struct Lines {
  const device char* row;
  int at;
  int step;
  int last; // where the row has something yet
};

// lines_of are those of parts that have so many lines of codes `per` row, from the second such parts on.
template <int g, int b, int per, int rows, bool whole, typename T>
inline Lines lines_of(const thread AffineOf<T>& m, int K, int N, int first, uint lane) {
  const uint i = min(lane, uint(rows * (per + 2) - 1));
  const bool is_codes = i < rows * per;
  const uint r = is_codes ? i / per : (i - rows * per) % rows;
  const int bytes = is_codes ? K / (8 / b) : K / g * int(sizeof(T));
  const int step = is_codes ? per * 128 : per * 128 * (8 / b) / g * int(sizeof(T));
  const device char* codes = (const device char*)m.w;
  const device char* scales = (const device char*)m.scales;
  const device char* biases = (const device char*)m.biases;
  const device char* from = is_codes ? codes : i < rows * (per + 1) ? scales : biases;
  const size_t row = whole ? first + int(r) : min(first + int(r), N - 1);
  return {from + row * bytes, (is_codes ? int(i % per) * 128 : 0) + step, step, bytes - 4};
}

// ask has the cache ask for the next line, of rows that have none left for the last one again.
inline void ask(thread Lines& l) {
  will_read(l.row + min(l.at, l.last));
  l.at += l.step;
}

// is_long is whether all lanes have so many parts of a row.
template <int b, int words, int parts>
inline bool is_long(int K) {
  return K >= parts * LANES * values_of<b, words>();
}

// add_long is add_rows of rows of 2·ahead parts or more, which lie wide. It asks for so many parts `ahead` before it takes as many
// that it asked for before those, in two sets of registers that take turns, and there is no branch between:
// behind one, NVIDIA's assembler no longer knows which loads have come and which were asked for just now, and
// waits for all of them. What a turn begins with has been asked for a turn ago, so that waiting for all of
// that costs little. The barriers are for that assembler too, which otherwise asks later, to save registers.
//
// Registers do not hold as much as has to be under way so that the memory is never idle: least of all before x
// is there, when nothing is computed. What comes after them a cache asks the memory for, which needs none.
template <int g, int b, int words, int rows, bool whole, int ahead, int matrices, typename T, typename X>
inline void add_long(const thread AffineOf<T>* m, const thread X& x, int K, int N, int first, uint lane, thread float* result) {
  constexpr int values = values_of<b, words>();
  constexpr int step = LANES * values;
  const int begin = int(lane) * values;
  constexpr int further = matrices == 1 ? 3 : 2; // sets that a cache asks for
  Part<T, words, rows> p[2][ahead][matrices];
#pragma unroll
  for (int d = 0; d < ahead; d++) {
    load_parts<g, b, words, rows, whole, true, matrices>(m, K, N, first, begin + d * step, p[0][d]);
  }
  Lines lines[matrices];
#pragma unroll
  for (int j = 0; j < matrices; j++) {
    lines[j] = lines_of<g, b, ahead * words, rows, whole>(m[j], K, N, first, lane);
#pragma unroll
    for (int d = 0; d < further; d++) {
      ask(lines[j]);
    }
  }
  wait_for_dispatches();
  x.begin(first, min(first + rows, N), lane);
  float v[2][values];
  x.template load<values, true>(begin, v[0]);
  int from = 0; // of all lanes
  for (; from + 3 * ahead * step <= K; from += 2 * ahead * step) {
#pragma unroll
    for (int turn = 0; turn < 2; turn++) {
      const int k = from + begin + turn * ahead * step;
#pragma unroll
      for (int d = 0; d < ahead; d++) {
        load_parts<g, b, words, rows, whole, true, matrices>(m, K, N, first, k + (ahead + d) * step, p[1 - turn][d]);
      }
#pragma unroll
      for (int j = 0; j < matrices; j++) {
        ask(lines[j]);
      }
      simdgroup_barrier(mem_flags::mem_none);
#pragma unroll
      for (int d = 0; d < ahead; d++) {
        const int at = (turn * ahead + d) % 2;
        x.template load<values, true>(k + (d + 1) * step, v[1 - at]);
        add_parts<b, words, rows, matrices>(p[turn][d], v[at], result);
      }
    }
  }
  // What is left is one set and less than another, or no more than two.
  if (from + 2 * ahead * step <= K) {
    const int k = from + begin;
#pragma unroll
    for (int d = 0; d < ahead; d++) {
      load_parts<g, b, words, rows, whole, true, matrices>(m, K, N, first, k + (ahead + d) * step, p[1][d]);
    }
    simdgroup_barrier(mem_flags::mem_none);
#pragma unroll
    for (int d = 0; d < 2 * ahead; d++) {
      if (d + 1 < 2 * ahead) {
        x.template load<values, true>(k + (d + 1) * step, v[(d + 1) % 2]);
      }
      add_parts<b, words, rows, matrices>(p[d / ahead][d % ahead], v[d % 2], result);
    }
    from += 2 * ahead * step;
  } else {
#pragma unroll
    for (int d = 0; d < ahead; d++) {
      x.template load<values, true>(from + begin + d * step, v[0]);
      add_parts<b, words, rows, matrices>(p[0][d], v[0], result);
    }
    from += ahead * step;
  }
  for (int k = from + begin; k < K; k += step) {
    load_parts<g, b, words, rows, whole, true, matrices>(m, K, N, first, k, p[0][0]);
    x.template load<values, true>(k, v[0]);
    add_parts<b, words, rows, matrices>(p[0][0], v[0], result);
  }
}

// dot_rows_of leaves in result[ROWS·j + i] the product of x with row first + i of
// matrix j. All are [N, K].
template <int g, int b, int words, bool whole, int matrices, typename T, typename X>
inline void dot_rows_of(const thread AffineOf<T>* m, const thread X& x, int K, int N, int first, uint lane, thread float* result) {
#pragma unroll
  for (int i = 0; i < matrices * ROWS; i++) {
    result[i] = 0;
  }
  // A row has a multiple of 32 codes, so that all rows lie as the first one does.
  bool wide = x.is_wide();
#pragma unroll
  for (int j = 0; j < matrices; j++) {
    wide = wide && aligned(m[j].w, in_words<b>() ? 4 * words : 4);
  }
  // Codes of 4 bits take more instructions than memory: with fewer registers, more simdgroups are at work.
  constexpr int ahead = matrices == 1 && b != 4 ? 2 : 1;
  if (in_words<b>() && wide && is_long<b, words, matrices == 1 ? 6 : 3>(K)) {
    add_long<g, b, words, ROWS, whole, ahead, matrices>(m, x, K, N, first, lane, result);
  } else if (wide) {
    constexpr int parts = words == 1 || matrices == 1 ? 3 : 2;
    add_rows<g, b, words, ROWS, whole, true, parts, matrices>(m, x, K, N, first, lane, result);
  } else {
    add_rows<g, b, words, ROWS, whole, false, 1, matrices>(m, x, K, N, first, lane, result);
  }
  sum_all<matrices * ROWS>(result);
}

// place is where part d of a lane begins in a row, or 0 where the row has no such part.
template <int values>
inline int place(int K, int d, uint lane) {
  const int at = (LANES * d + int(lane)) * values;
  return at < K ? at : 0;
}

// dot_few leaves in result[i] the product of x with row first + i of a matrix [N, K]. A simdgroup that makes
// only a few results is soon done, and so what one instruction waits for counts more than how many there are: of
// rows of so few parts that they fit in registers, all are asked for before x is there, and then all of x,
// without a branch. What a row does not have is read as its first part, and not added. With one row for each
// simdgroup, reading x would take longer than all else.
template <int g, int b, int words, int rows, typename T, typename X>
inline void dot_few(const thread AffineOf<T>& m, const thread X& x, int K, int N, int first, uint lane, thread float* result) {
  constexpr int values = values_of<b, words>();
  constexpr int parts = 4;
#pragma unroll
  for (int i = 0; i < rows; i++) {
    result[i] = 0;
  }
  if (!x.is_wide() || !aligned(m.w, in_words<b>() ? 4 * words : 4)) {
    add_rows<g, b, words, rows, false, false, 1, 1>(&m, x, K, N, first, lane, result);
  } else if (in_words<b>() && is_long<b, words, 2 * parts>(K)) {
    add_long<g, b, words, rows, false, parts, 1>(&m, x, K, N, first, lane, result);
  } else if (K > parts * LANES * values) {
    add_rows<g, b, words, rows, false, true, parts, 1>(&m, x, K, N, first, lane, result);
  } else {
    Part<T, words, rows> p[parts];
#pragma unroll
    for (int d = 0; d < parts; d++) {
      load_part<g, b, words, rows, false, true>(m, K, N, first, place<values>(K, d, lane), p[d]);
    }
    wait_for_dispatches();
    float v[parts][values];
#pragma unroll
    for (int d = 0; d < parts; d++) {
      x.template load<values, true>(place<values>(K, d, lane), v[d]);
    }
    x.begin(first, min(first + rows, N), lane);
#pragma unroll
    for (int d = 0; d < parts; d++) {
      const float sum = scaled<b, values>(v[d]);
#pragma unroll
      for (int i = 0; i < rows; i++) {
        const float more = result[i] + (float(p[d].scales[i]) * dot_codes<b, values>(p[d].codes[i], v[d]) + float(p[d].biases[i]) * sum);
        result[i] = has<values>(K, d, lane) ? more : result[i];
      }
    }
  }
  sum_all<rows>(result);
}

// load_eight leaves in words eight codes from number i on, a multiple of 8.
template <int b>
inline void load_eight(const device uint* w, size_t i, thread uint* words) {
  if (b == 4 || b == 8) {
#pragma unroll
    for (int j = 0; j < b / 4; j++) {
      words[j] = w[i / (32 / b) + j];
    }
  } else {
    bytes_of<b>((const device uchar*)w + i / 8 * b, words);
  }
}

// Codes are the weights of qmv, of qmv_fast and of tiles. A lane of qmv_fast, whose matrices are whole, takes more of a
// row at a time: 16 codes, or eight of 8 bits.
template <typename T, int g, int b, bool fast>
struct Codes : InRows<Codes<T, g, b, fast>> {
  typedef AffineOf<T> matrix;
  static constexpr constant int group = g;
  static constexpr constant int bits = b;
  static constexpr constant int words = !in_words<b>() ? (b + 1) / 2 : fast && b > 2 ? 2 : 1;
  static constexpr constant bool whole = fast;
  static constexpr constant bool ragged = false;
  static uint row(uint3 group) { return group.x; }
  static int block(uint3 group) { return int(group.y); }
  static matrix of(const thread matrix& m, uint id, int K, int N) { return row_of<g, b>(m, K, size_t(id) * N); }

  template <int matrices>
  static void dot(const thread matrix* m, const device T* x, int K, int N, int first, uint lane, thread float* result) {
    const Row<T> row = {x};
    dot_rows_of<g, b, words, whole, matrices>(m, row, K, N, first, lane, result);
  }

  // Weights are rounded to the type of the vectors, as MLX's kernel has them in threadgroup memory.
  static void decode(const thread matrix& m, int K, bool is_there, int n, int k, threadgroup float* to) {
    const size_t at = size_t(n) * K + k;
    if (is_there) {
      const float scale = m.scales[at / g];
      const float bias = m.biases[at / g];
      uint codes[2];
      load_eight<b>(m.w, at, codes);
#pragma unroll
      for (int i = 0; i < 8; i++) {
        to[i] = float(T(scale * float(code_in<b>(codes, i)) + bias));
      }
    } else {
#pragma unroll
      for (int i = 0; i < 8; i++) {
        to[i] = 0;
      }
    }
  }
};

// What MLX's kernels have for batches, which these have none of; and of which sizes the others are: qmv_fast takes
// whole blocks only, K a multiple of 512, or with codes of 6 or 8 bits of 256, and N of 8, qmv any N, and any K that is a multiple of the group.
//
// @lines batches()
// @arg   x_batch_ndims  constant i32 unused
// @arg   x_shape        constant i32 unused
// @arg   x_strides      constant i64 unused
// @arg   w_batch_ndims  constant i32 unused
// @arg   w_shape        constant i32 unused
// @arg   w_strides      constant i64 unused
// @arg   s_strides      constant i64 unused
// @arg   b_strides      constant i64 unused
// @end
// @lines sizes()
// @if    C == qmv
// @require in_vec_size >= g && in_vec_size % g == 0 && out_vec_size >= 1
// @else
// @require in_vec_size >= 1 && in_vec_size % (512 - b/6*256) == 0
// @require out_vec_size >= 1 && out_vec_size % 8 == 0
// @end
// @end

// Matrix times vector: a simdgroup computes ROWS outputs.
//
// @kernel  affine_{C:qmv|qmv_fast}_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_batch_0_pr_0_hgs_0_r_4
// @use     matrix(; {b}; out_vec_size; in_vec_size)
// @use     one_behind({T}; M, ; in_vec_size; out_vec_size)
// @use     batches()
// @groups  M, ceil(out_vec_size/8), 1
// @group   32, 2, 1
// @mlx     unlisted
// @use     sizes()
// @term    y[m,n] = round({T}, {dot({C}; )})
#define BATCHES                                                                                             \
  , constant int &x_batch_ndims, constant int *x_shape, constant long *x_strides, constant int &w_batch_ndims, \
      constant int *w_shape, constant long *w_strides, constant long *s_strides, constant long *b_strides
VECTOR(qmv, 1, AFFINE, w, in_vec_size, out_vec_size, BATCHES)

// Two products of one input, as gate and up of a feed-forward layer: the blocks
// of the second follow those of the first in the grid.
//
// @kernel  affine_{C:qmv|qmv_fast}_{arms:x2=0 1|x3=0 1 2}_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}
// @each    i = {arms}
// @use     matrix({i}; {b}; n{i}; in_vec_size)
// @end
// @use     arms_behind({arms}; {T}; M, ; in_vec_size)
// @groups  M, {each i = {arms}; ceil(n{i}/8); +}, 1
// @group   32, 2, 1
// @if      C == qmv
// @require in_vec_size >= g && in_vec_size % g == 0 && {each i = {arms}; n{i} >= 1; &&}
// @else
// @require in_vec_size >= 1 && in_vec_size % (512 - b/6*256) == 0
// @each    i = {arms}
// @require n{i} >= 1 && n{i} % 8 == 0
// @end
// @end
// @each    i = {arms}
// @term    y{i}[m,n] = round({T}, {dot({C}; {i})})
// @end
VECTOR(qmv_x2, 2, AFFINE, w, in_vec_size, n, )
VECTOR(qmv_x3, 3, AFFINE, w, in_vec_size, n, )

// A product and the residual that it is added to. Simdgroups make two results each, so that there are many of
// them, or of matrices of many rows ROWS, so that x is not read too often.
//
// @kernel  affine_{C:qmv|qmv_fast}_add_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}
// @use     matrix(; {b}; out_vec_size; in_vec_size)
// @use     sum_behind({T}; M, ; in_vec_size; out_vec_size)
// @let     rows = 2 + 2*min(1, out_vec_size/4096)
// @groups  M, ceil(out_vec_size/(4*rows)), 1
// @group   32, 4, 1
// @use     sizes()
// @term    y[m,n] = round({T}, r[m,n] + round({T}, {dot({C}; )}))
template <typename T, typename D, typename W>
[[kernel]] void qmv_add(
    AFFINE(w, ), const device T* x, const device T* r, device T* y, constant int& in_vec_size,
    constant int& out_vec_size, PLACE) {
  const int K = in_vec_size;
  const int N = out_vec_size;
  const bool is_few = N < 4096;
  const int first = (4 * int(group.y) + int(simdgroup)) * (is_few ? 2 : ROWS);
  if (first >= N) {
    return;
  }
  float before = 0;
  const AffineOf<T> m[1] = {{w, scales, biases}};
  const RowBeside<T> row = {{x + size_t(group.x) * K}, r + size_t(group.x) * N, &before};
  y += size_t(group.x) * N + first;
  if (is_few) {
    float result[2];
    dot_few<W::group, W::bits, W::words, 2>(m[0], row, K, N, first, lane, result);
    if (lane < 2 && first + int(lane) < N) {
      y[lane] = stored(T(before + float(T(of_lane<2>(result, lane)))));
    }
    return;
  }
  float result[ROWS];
  dot_rows_of<W::group, W::bits, W::words, W::whole, 1>(m, row, K, N, first, lane, result);
  if (int(lane) < ROWS && (W::whole || first + int(lane) < N)) {
    y[lane] = stored(T(before + float(T(of_lane<ROWS>(result, lane)))));
  }
}

// The gate and up products of a feed-forward layer, and silu(gate)·up of them.
//
// @kernel  affine_{C:qmv|qmv_fast}_silu_mul_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}
// @each    i = gate up
// @use     matrix(_{i}; {b}; out_vec_size; in_vec_size)
// @where   {i}[m,n] = round({T}, {dot({C}; _{i})})
// @end
// @use     one_behind({T}; M, ; in_vec_size; out_vec_size)
// @groups  M, ceil(out_vec_size/8), 1
// @group   32, 2, 1
// @use     sizes()
// @use     silu_mul(m,n; {T})
VECTOR_SILU_MUL(qmv_silu_mul, AFFINE, in_vec_size, out_vec_size)

#define INSTANTIATE_QMV(name, T, g, b)                                                          \
  template [[host_name("affine_qmv_" #name "_gs_" #g "_b_" #b "_batch_0_pr_0_hgs_0_r_4")]]      \
  [[kernel]] decltype(qmv<T, uint, Codes<T, g, b, false>>) qmv<T, uint, Codes<T, g, b, false>>; \
  template [[host_name("affine_qmv_fast_" #name "_gs_" #g "_b_" #b "_batch_0_pr_0_hgs_0_r_4")]] \
  [[kernel]] decltype(qmv<T, uint, Codes<T, g, b, true>>) qmv<T, uint, Codes<T, g, b, true>>;
#define INSTANTIATE_QMV_FUSED(form, name, T, g, b)                                            \
  template [[host_name("affine_qmv_" #form "_" #name "_gs_" #g "_b_" #b)]]                    \
  [[kernel]] decltype(qmv_##form<T, uint, Codes<T, g, b, false>>) qmv_##form<T, uint, Codes<T, g, b, false>>; \
  template [[host_name("affine_qmv_fast_" #form "_" #name "_gs_" #g "_b_" #b)]]               \
  [[kernel]] decltype(qmv_##form<T, uint, Codes<T, g, b, true>>) qmv_##form<T, uint, Codes<T, g, b, true>>;
#define INSTANTIATE_QMV_ALL(name, T, g, b)        \
  INSTANTIATE_QMV(name, T, g, b)                  \
  INSTANTIATE_QMV_FUSED(x2, name, T, g, b)        \
  INSTANTIATE_QMV_FUSED(x3, name, T, g, b)        \
  INSTANTIATE_QMV_FUSED(add, name, T, g, b)       \
  INSTANTIATE_QMV_FUSED(silu_mul, name, T, g, b)

EACH_TYPE(INSTANTIATE_QMV_ALL)

// Matrix times matrix, y = x·wᵀ: a threadgroup computes a TILE × TILE tile of y.
//
// Weights are rounded to the type of the vectors, as MLX's kernel has them in threadgroup memory.
//
// @text    tiled(s) = sum[qmm](k < K, x[m,k] * round({T}, scales{s}[n,k/g] * f32(w{s}[n,k]) + biases{s}[n,k/g]))
//
// @kernel  affine_qmm_t_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_alN_{aligned:true|false}_batch_0
// @mlx     unlisted
// @use     matrix(; {b}; N; K)
// @use     one_behind({T}; M, ; K; N)
// @arg     M  constant i32
// @use     batches()
// @groups  ceil(N/32), ceil(M/32), 1
// @group   32, 2, 2
// @require K >= g && K % g == 0 && N >= 1 && M >= 1
// @require aligned == 0 || N % 32 == 0
// @term    y[m,n] = round({T}, {tiled()})
MATRIX(qmm_t, 1, Tile, X_LAST, AFFINE, N, BATCHES)

constexpr constant int SIDE = 64; // rows and columns of a tile of the fused products below
constexpr constant int DEPTH = 32; // of the inner index that lie in threadgroup memory at a time
constexpr constant int DEEP = 40; // floats from row to row there: four rows of 8 floats fill the 32 banks
constexpr constant int BROAD = 72; // and of a tile of results, likewise
constexpr constant int MEMORY = 2 * SIDE * DEPTH * 3 / 8; // elements of 16 bytes of what a tile needs: both factors in parts

// Following is which rows of the matrices meet in a tile: row(h, c) is that of column c of half h. Here they follow one
// another; behind the last one it is the last one, whose results nobody stores.
struct Following {
  int first[2];
  int N;
  int row(int h, int c) const { return min(first[h] + c, N - 1); }
};

// Ahead is what a thread brings to threadgroup memory for a tile of `tall` rows: 4 elements of every
// 16th row of x, so that eight threads read 128 bytes, and 8 codes of a row of each of
// two matrices. It asks for the next DEPTH columns before those that are there are
// multiplied. Rows of x behind the last are read as the last one; which rows of w it takes says a type such as Following.
template <int tall, int g, int b, typename T>
struct Ahead {
  const device T* x[tall / 16];
  const device uint* codes[2];
  int eighth; // of the codes of a step, which a thread takes
  const device T* scales[2];
  const device T* biases[2];
  bool wide; // x lies at a multiple of four elements, and so does each row, of a multiple of 32 elements
  float4 elements[tall / 16];
  uint words[2][2];
  float scale[2];
  float bias[2];

  template <typename R>
  void begin(const thread AffineOf<T>* w, const thread R& rows, const device T* from, int K, int M, int m0, int thread_id) {
    wide = aligned(from, 4 * sizeof(T));
    eighth = thread_id % 4 * 8;
#pragma unroll
    for (int i = 0; i < tall / 16; i++) {
      x[i] = from + size_t(min(m0 + thread_id / 8 + 16 * i, M - 1)) * K + thread_id % 8 * 4;
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const size_t row = rows.row(h, thread_id / 4);
      codes[h] = w[h].w + row * words_of<b>(K);
      scales[h] = w[h].scales + row * (K / g);
      biases[h] = w[h].biases + row * (K / g);
    }
  }

  void load(int k) {
    if (wide) {
#pragma unroll
      for (int i = 0; i < tall / 16; i++) {
        elements[i] = float4(wide_load<vec<T, 4>>(x[i] + k));
      }
    } else {
#pragma unroll
      for (int i = 0; i < tall / 16; i++) {
        elements[i] = float4(x[i][k], x[i][k + 1], x[i][k + 2], x[i][k + 3]);
      }
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
      load_eight<b>(codes[h], k + eighth, words[h]);
      scale[h] = scales[h][k / g];
      bias[h] = biases[h][k / g];
    }
  }

  float decoded(int h, int i) const {
    return float(T(scale[h] * float(code_in<b>(words[h], i)) + bias[h]));
  }

  void store(threadgroup float4* xs, threadgroup float4* ws, int thread_id) const {
#pragma unroll
    for (int i = 0; i < tall / 16; i++) {
      xs[(thread_id / 8 + i * 16) * (DEEP / 4) + thread_id % 8] = elements[i];
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
#pragma unroll
      for (int i = 0; i < 8; i += 4) {
        ws[(thread_id / 4 + h * (SIDE / 2)) * (DEEP / 4) + thread_id % 4 * 2 + i / 4] =
            float4(decoded(h, i), decoded(h, i + 1), decoded(h, i + 2), decoded(h, i + 3));
      }
    }
  }
};

// column_of is the first column of a simdgroup's j-th blocks: its quarter of a tile has
// two from either half of the columns, which may be of two matrices.
inline int column_of(uint simdgroup, int j) { return int(simdgroup) % 2 * 16 + j % 2 * 8 + j / 2 * (SIDE / 2); }

// multiply_in_parts is multiply_square where factors in parts are known: a factor is taken apart once for its tile,
// not once by each simdgroup that multiplies it. Of a row, one of four threads has the elements 2q and 2q + 1 of
// every eight, and of x two rows, 8 apart. In threadgroup memory stands what lanes of a simdgroup take at once: of
// 16 rows of x and 16 columns a part, of 8 rows of w two.
template <int tall, int g, int b, typename T>
struct Parted {
  const device T* x[2];
  const device uint* codes[2];
  int pair; // of every four
  const device T* scales[2];
  const device T* biases[2];
  bool wide; // x lies at a multiple of four elements and the codes at one of 16 bytes, and so does each row of them
  float2 elements[2][4];
  uint4 words[2];
  float scale[2];
  float bias[2];

  // has_x is whether the thread brings a part of x: of a tile that is not so tall, not all do.
  static bool has_x(int thread_id) { return tall == SIDE || thread_id / LANES < tall / 16; }

  template <typename R>
  void begin(const thread AffineOf<T>* w, const thread R& rows, const device T* from, int K, int M, int m0, int thread_id) {
    const int q = thread_id % 4;
    pair = q;
    wide = aligned(from, 4 * sizeof(T)) && aligned(w[0].w, 16) && aligned(w[1].w, 16);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      x[h] = from + size_t(min(m0 + thread_id / LANES * 16 + thread_id % LANES / 4 + 8 * h, M - 1)) * K + q * 2;
      const size_t row = rows.row(h, thread_id / 4);
      codes[h] = w[h].w + row * words_of<b>(K) + (b == 8 ? q / 2 : 0);
      scales[h] = w[h].scales + row * (K / g);
      biases[h] = w[h].biases + row * (K / g);
    }
  }

  void load(int k) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const device uint* from = codes[h] + words_of<b>(k);
      if (b != 4 && b != 8) { // two codes lie in two bytes, or in one
        const device uchar* bytes = (const device uchar*)from;
        const int bit = pair * 2 * b;
        const int second = min(bit / 8 + 1, b - 1);
#pragma unroll
        for (int u = 0; u < 4; u++) {
          words[h][u] = (uint(bytes[u * b + bit / 8]) | uint(bytes[u * b + second]) << 8) >> (bit % 8);
        }
      } else if (wide && b == 4) {
        words[h] = wide_load<uint4>(from);
      } else {
        words[h] = uint4(from[0], from[b / 4], from[2 * (b / 4)], from[3 * (b / 4)]);
      }
      scale[h] = scales[h][k / g];
      bias[h] = biases[h][k / g];
#pragma unroll
      for (int u = 0; u < 4; u++) {
        if (wide) {
          elements[h][u] = float2(wide_load<vec<T, 2>>(x[h] + k + 8 * u));
        } else {
          elements[h][u] = float2(x[h][k + 8 * u], x[h][k + 8 * u + 1]);
        }
      }
    }
  }

  void store(threadgroup uint4* memory, int thread_id) const {
    const int lane = thread_id % LANES;
    threadgroup uint4* left = memory + thread_id / LANES * 6 * LANES + lane;
#pragma unroll
    for (int s = 0; s < 2 && has_x(thread_id); s++) {
      uint3 parts[2][2];
#pragma unroll
      for (int u = 0; u < 2; u++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
          parts[u][h] = parts_of(elements[h][2 * s + u].x, elements[h][2 * s + u].y);
        }
      }
      left[(3 * s) * LANES] = uint4(parts[0][0].x, parts[0][1].x, parts[1][0].x, parts[1][1].x);
      left[(3 * s + 1) * LANES] = uint4(parts[0][0].y, parts[0][1].y, parts[1][0].y, parts[1][1].y);
      left[(3 * s + 2) * LANES] = uint4(parts[0][0].z, parts[0][1].z, parts[1][0].z, parts[1][1].z);
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
      threadgroup uint4* right = memory + (tall / 16 * 6 + (h * 4 + thread_id / LANES) * 3) * LANES + lane;
      uint3 parts[4];
#pragma unroll
      for (int u = 0; u < 4; u++) {
        const uint two = words[h][u] >> (b == 4 ? lane % 4 * 8 : b == 8 ? lane % 2 * 16 : 0);
        const float low = float(T(scale[h] * float(two & ((1u << b) - 1)) + bias[h]));
        const float high = float(T(scale[h] * float((two >> b) & ((1u << b) - 1)) + bias[h]));
        parts[u] = parts_of(low, high);
      }
      right[0] = uint4(parts[0].x, parts[1].x, parts[0].y, parts[1].y);
      right[LANES] = uint4(parts[0].z, parts[1].z, parts[2].x, parts[3].x);
      right[2 * LANES] = uint4(parts[2].y, parts[3].y, parts[2].z, parts[3].z);
    }
  }
};

constexpr constant float OF_PARTS = 2.3283064365386962890625e-10f; // 2^-32: factors in parts are 2^16 times as large

inline bool is_finite(float v) { return (as_type<uint>(v) & 0x7f800000u) != 0x7f800000u; }

// in_order adds 16 products to c, one after another, as a sum of products that is no finite number is made.
template <int g, int b, typename T>
inline float in_order(const AffineOf<T> w, const device T* x, size_t m, size_t n, int K, int k, float c) {
  for (const int end = min(k + 16, K); k < end; k++) {
    const uint code = code_at<b>(w.w + n * words_of<b>(K), k, k);
    const float weight = float(T(float(w.scales[n * (K / g) + k / g]) * float(code) + float(w.biases[n * (K / g) + k / g])));
    c = fma(float(x[m * K + k]), weight, c);
  }
  return c;
}

// add_parts makes a simdgroup's quarter of a tile: of its rows r and r + 8, acc[4 * i + j] are two columns each.
template <int tall, int g, int b, bool careful, typename T, typename R>
inline void add_parts(
    const thread AffineOf<T>* w, const thread R& rows, const device T* x, int K, int M, int m0,
    threadgroup uint4* memory, uint thread_id, uint simdgroup, thread float4* acc) {
  const int lane = int(thread_id) % LANES;
  const int row = int(simdgroup) / 2 * (tall / 2) + lane / 4;
#pragma unroll
  for (int i = 0; i < tall / 8; i++) {
    acc[i] = float4(0);
  }
  Parted<tall, g, b, T> ahead;
  ahead.begin(w, rows, x, K, M, m0, int(thread_id));
  ahead.load(0);
  for (int k = 0; k < K; k += DEPTH) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ahead.store(memory, int(thread_id));
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ahead.load(min(k + DEPTH, K - DEPTH)); // in the last round once more what is there
    uint2 right[4][6];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const threadgroup uint4* from = memory + (tall / 16 * 6 + column_of(simdgroup, j) / 8 * 3) * LANES + lane;
#pragma unroll
      for (int p = 0; p < 3; p++) {
        const uint4 two = from[p * LANES];
        right[j][2 * p] = two.xy;
        right[j][2 * p + 1] = two.zw;
      }
    }
#pragma unroll
    for (int i = 0; i < tall / 32; i++) {
      const threadgroup uint4* from = memory + (int(simdgroup) / 2 * (tall / 32) + i) * 6 * LANES + lane;
#pragma unroll
      for (int s = 0; s < 2; s++) {
        const uint4 left[3] = {from[3 * s * LANES], from[(3 * s + 1) * LANES], from[(3 * s + 2) * LANES]};
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const float4 sum = multiply_parts(left, right[j] + 3 * s);
          float4 c = acc[4 * i + j];
          if (careful) {
            uint rest = 0; // those that are still to be added in order
#pragma unroll
            for (int e = 0; e < 4; e++) {
              rest |= is_finite(sum[e]) ? 0 : 1u << e;
              c[e] = is_finite(sum[e]) ? fma(sum[e], OF_PARTS, c[e]) : c[e];
            }
            while (rest != 0) {
              const int e = int(ctz(rest));
              rest &= rest - 1;
              const size_t m = min(m0 + row + 16 * i + e / 2 * 8, M - 1);
              const size_t n = rows.row(j / 2, column_of(simdgroup, j) % (SIDE / 2) + lane % 4 * 2 + e % 2);
              const float before = e == 0 ? c.x : e == 1 ? c.y : e == 2 ? c.z : c.w;
              const float after = in_order<g, b>(w[j / 2], x, m, n, K, k + 16 * s, before);
              c.x = e == 0 ? after : c.x;
              c.y = e == 1 ? after : c.y;
              c.z = e == 2 ? after : c.z;
              c.w = e == 3 ? after : c.w;
            }
          } else {
#pragma unroll
            for (int e = 0; e < 4; e++) {
              c[e] = fma(sum[e], OF_PARTS, c[e]);
            }
          }
          acc[4 * i + j] = c;
        }
      }
    }
  }
}

template <int tall, int g, int b, typename T, typename R>
inline void multiply_in_parts(
    const thread AffineOf<T>* w, const thread R& rows, const device T* x, int K, int M, int m0,
    threadgroup uint4* memory, uint thread_id, uint simdgroup) {
  const int lane = int(thread_id) % LANES;
  float4 acc[tall / 8];
  add_parts<tall, g, b, false>(w, rows, x, K, M, m0, memory, thread_id, simdgroup, acc);
  // An element to which something was added that is no finite number is none for good: it is enough to ask now.
  bool finite = true;
#pragma unroll
  for (int i = 0; i < tall / 8; i++) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
      finite = finite && is_finite(acc[i][e]);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const bool all_finite = simd_all(finite);
  if (lane == 0) {
    ((threadgroup uint*)memory)[simdgroup] = all_finite ? 0 : 1;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const bool any_other = simd_any(((const threadgroup uint*)memory)[lane % 4] != 0);
  if (any_other) {
    add_parts<tall, g, b, true>(w, rows, x, K, M, m0, memory, thread_id, simdgroup, acc);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup float2* tile = (threadgroup float2*)memory;
#pragma unroll
  for (int i = 0; i < tall / 32; i++) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int at = (int(simdgroup) / 2 * (tall / 2) + 16 * i + lane / 4) * BROAD + column_of(simdgroup, j) + lane % 4 * 2;
      tile[at / 2] = acc[4 * i + j].xy;
      tile[at / 2 + 4 * BROAD] = acc[4 * i + j].zw;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// multiply_square makes a tile of `tall` × SIDE, SIDE × SIDE or half as tall, and leaves it in threadgroup memory, in
// rows of BROAD floats: so many rows of x from m0 on, by SIDE/2 rows of w[0] and as many of w[1], which R says. Each weight
// is decoded once for them. The four simdgroups make a quarter each, 4 × 4 blocks of 8 × 8, so that each block that is
// taken from threadgroup memory stands in four products, or 2 × 4.
template <int tall, int g, int b, typename T, typename R>
inline void multiply_square(
    const thread AffineOf<T>* w, const thread R& rows, const device T* x, int K, int M, int m0,
    threadgroup float4* memory, uint thread_id, uint simdgroup) {
  if (parts_known()) {
    multiply_in_parts<tall, g, b>(w, rows, x, K, M, m0, (threadgroup uint4*)memory, thread_id, simdgroup);
    return;
  }
  const threadgroup float* xs = (const threadgroup float*)memory;
  const threadgroup float* ws = xs + tall * DEEP;
  const int row = int(simdgroup) / 2 * (tall / 2);
  simdgroup_float8x8 acc[tall / 4];
#pragma unroll
  for (int i = 0; i < tall / 4; i++) {
    acc[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
  Ahead<tall, g, b, T> ahead;
  ahead.begin(w, rows, x, K, M, m0, int(thread_id));
  ahead.load(0);
  for (int k = 0; k < K; k += DEPTH) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ahead.store(memory, memory + tall * DEEP / 4, int(thread_id));
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ahead.load(min(k + DEPTH, K - DEPTH)); // in the last round once more what is there
#pragma unroll
    for (int kk = 0; kk < DEPTH; kk += 8) {
      simdgroup_float8x8 xm[tall / 16];
      simdgroup_float8x8 wm[4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        if (i < tall / 16) {
          simdgroup_load(xm[i], xs + (row + 8 * i) * DEEP + kk, DEEP);
        }
        simdgroup_load(wm[i], ws + column_of(simdgroup, i) * DEEP + kk, DEEP, ulong2(0, 0), true);
      }
#pragma unroll
      for (int j = 0; j < 4; j++) {
#pragma unroll
        for (int i = 0; i < tall / 16; i++) {
          simdgroup_multiply_accumulate(acc[4 * i + j], xm[i], wm[j], acc[4 * i + j]);
        }
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup float* tile = (threadgroup float*)memory;
#pragma unroll
  for (int i = 0; i < tall / 16; i++) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
      simdgroup_store(acc[4 * i + j], tile + (row + 8 * i) * BROAD + column_of(simdgroup, j), BROAD);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// Square is how a threadgroup makes a tile of SIDE × SIDE results: tiles of the same weights lie side by side along x, so
// that these are read from memory once. Of two matrices a tile has SIDE/2 results each.
struct Square {
  static constexpr constant int memory = MEMORY;
  static int m0(uint3 group) { return int(group.x) * SIDE; }
  static int number(uint3 group) { return int(group.y); }
  static constexpr int columns(int matrices) { return SIDE / matrices; }

  template <typename W, typename T, typename E>
  static void make(
      const thread AffineOf<T>* m, const device T* x, const E e, int K, int N, int M, int m0, int n0,
      threadgroup float4* memory, uint thread_id,
      uint simdgroup) {
    constexpr int width = columns(E::matrices);
    const AffineOf<T> w[2] = {m[0], m[E::matrices - 1]};
    const Following rows = {{n0, E::matrices == 1 ? n0 + SIDE / 2 : n0}, N};
    multiply_square<SIDE, W::group, W::bits>(w, rows, x, K, M, m0, memory, thread_id, simdgroup);
    const int col = int(thread_id) % width;
    if (n0 + col >= N) {
      return;
    }
    for (int row = int(thread_id) / width; row < min(SIDE, M - m0); row += 4 * LANES / width) {
      const threadgroup float* from = (const threadgroup float*)memory + row * BROAD + col;
      e.put(size_t(m0 + row) * N + n0 + col, from[0], from[(E::matrices - 1) * (SIDE / 2)]);
    }
  }
};

// Two products of one input; the tiles of the second follow those of the first
// along y. Tiles of the same weights lie side by side along x, so that these are
// read from memory once.
//
// @kernel  affine_qmm_t_{arms:x2=0 1|x3=0 1 2}_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_alN_{aligned:true|false}
// @each    i = {arms}
// @use     matrix({i}; {b}; n{i}; K)
// @end
// @use     arms_behind({arms}; {T}; M, ; K)
// @arg     M     constant i32
// @groups  ceil(M/64), {each i = {arms}; ceil(n{i}/64); +}, 1
// @group   32, 2, 2
// @require K >= g && K % g == 0 && M >= 1 && {each i = {arms}; n{i} >= 1; &&}
// @each    i = {arms}
// @require aligned == 0 || n{i} % 32 == 0
// @term    y{i}[m,n] = round({T}, {tiled({i})})
// @end
MATRIX(qmm_t_x2, 2, Square, X_LAST, AFFINE, n, )
MATRIX(qmm_t_x3, 3, Square, X_LAST, AFFINE, n, )

// A product and the residual that it is added to.
//
// @kernel  affine_qmm_t_add_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_alN_{aligned:true|false}
// @use     matrix(; {b}; N; K)
// @use     sum_behind({T}; M, ; K; N)
// @arg     M  constant i32
// @groups  ceil(M/64), ceil(N/64), 1
// @group   32, 2, 2
// @require K >= g && K % g == 0 && M >= 1 && N >= 1
// @require aligned == 0 || N % 32 == 0
// @term    y[m,n] = round({T}, r[m,n] + round({T}, {tiled()}))
MATRIX_ADD(qmm_t_add, Square, AFFINE)

// The gate and up products of a feed-forward layer, and silu(gate)·up of them.
//
// @kernel  affine_qmm_t_silu_mul_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_alN_{aligned:true|false}
// @each    i = gate up
// @use     matrix(_{i}; {b}; N; K)
// @where   {i}[m,n] = round({T}, {tiled(_{i})})
// @end
// @use     one_behind({T}; M, ; K; N)
// @arg     M  constant i32
// @groups  ceil(M/64), ceil(N/32), 1
// @group   32, 2, 2
// @require K >= g && K % g == 0 && M >= 1 && N >= 1
// @require aligned == 0 || N % 32 == 0
// @use     silu_mul(m,n; {T})
MATRIX_SILU_MUL(qmm_t_silu_mul, Square, AFFINE)

constant bool traditional [[function_constant(2)]];

// Paired is which rows meet in a tile of queries or keys: column c of both halves is pair first + c of those of all heads,
// which a rotation turns together. Of values they follow one another.
struct Paired {
  bool turned;
  int first;
  int pairs; // of a head
  int N;
  int row(int h, int c) const {
    const int at = first + c;
    const int one = traditional ? 2 * at + h : at + (at / pairs + h) * pairs;
    return min(turned ? one : at + h * (SIDE / 2), N - 1);
  }
};

// Turn is by how much rows are turned.
struct Turn {
  int offset; // position of the first row
  float scale;
  float base;
};

// put_turned stores a tile of queries or keys, each of whose threads has one pair of all rows.
template <int tall, typename T, typename S>
inline void put_turned(
    const threadgroup float* tile, device S* y, constant long* strides, const thread Paired& rows, int M, int m0,
    const thread Turn& turn, uint thread_id) {
  const int c = int(thread_id) % (SIDE / 2);
  const int at = rows.first + c;
  if (2 * at >= rows.N) {
    return;
  }
  const int pair = at % rows.pairs;
  const int apart = traditional ? 1 : rows.pairs;
  y += long(at / rows.pairs) * strides[0] + (traditional ? 2 * pair : pair);
  const float power = precise::exp2(-(float(pair) / float(rows.pairs)) * turn.base);
  for (int row = int(thread_id) / (SIDE / 2); row < min(tall, M - m0); row += 4 * LANES / (SIDE / 2)) {
    const float theta = turn.scale * float(m0 + row + turn.offset) * power;
    const float cosine = precise::cos(theta);
    const float sine = precise::sin(theta);
    const float one = float(T(tile[row * BROAD + c]));
    const float two = float(T(tile[row * BROAD + SIDE / 2 + c]));
    device S* to = y + long(m0 + row) * strides[1];
    to[0] = stored(S(one * cosine - two * sine));
    to[apart] = stored(S(one * sine + two * cosine));
  }
}

// put_values stores a tile of values.
template <int tall, typename T, typename S>
inline void put_values(const threadgroup float* tile, device S* y, int N, int M, int m0, int n0, uint thread_id) {
  const int n = n0 + int(thread_id) % SIDE;
  if (n >= N) {
    return;
  }
  for (int row = int(thread_id) / SIDE; row < min(tall, M - m0); row += 4 * LANES / SIDE) {
    y[size_t(m0 + row) * N + n] = stored(S(T(tile[row * BROAD + n - n0])));
  }
}

// Turned is where queries, keys and values go; a tile has one of these.
template <typename T, typename S>
struct Turned {
  device T* q;
  device S* k;
  device S* v;
  constant long* q_strides;
  constant long* k_strides;
  bool is_query;
};

// turned_rows makes a tile of so many rows of them.
template <int tall, int g, int b, typename T, typename S>
inline void turned_rows(
    const thread AffineOf<T>& w, const device T* x, const thread Paired& rows, const thread Turned<T, S>& results,
    const thread Turn& turn, int K, int M, int m0, threadgroup float4* memory, uint thread_id, uint simdgroup) {
  const AffineOf<T> both[2] = {w, w};
  multiply_square<tall, g, b>(both, rows, x, K, M, m0, memory, thread_id, simdgroup);
  const threadgroup float* tile = (const threadgroup float*)memory;
  if (!rows.turned) {
    put_values<tall, T>(tile, results.v, rows.N, M, m0, rows.first, thread_id);
  } else if (results.is_query) {
    put_turned<tall, T>(tile, results.q, results.q_strides, rows, M, m0, turn, thread_id);
  } else {
    put_turned<tall, T>(tile, results.k, results.k_strides, rows, M, m0, turn, thread_id);
  }
}

// Queries, keys and values of many rows: queries and keys are turned (rope.metal) by the position of their row, and go where
// attention wants them, as values do. A tile has SIDE/2 pairs of queries or keys, or SIDE columns of values; tiles of
// queries, keys and values follow one another along y. Small matrices have few of them, so that those are half as tall.
//
// Keys and values may go to a cache whose type has fewer bits.
//
// @text    q_type(S) = {T}
// @text    k_type(S) = {S}
// @lines   rows_apart(s)
// @require M == 1 || {s}_strides[1] >= dims
// @require {s}_heads == 1 || {s}_strides[0] >= dims
// @require {s}_heads == 1 || M == 1 || {s}_strides[0] >= M*{s}_strides[1] || {s}_strides[1] >= {s}_heads*{s}_strides[0]
// @end
// @lines   rows_turned(S)
// @constant 2 traditional bool
// @use     matrix(_q; {b}; q_heads*dims; K)
// @use     matrix(_k; {b}; k_heads*dims; K)
// @use     matrix(_v; {b}; n_v; K)
// @arg     x          device {T}[M, K] read
// @arg     q          device {T}[q_heads, M, dims : q_strides[0], q_strides[1], 1] write
// @arg     k          device {S}[k_heads, M, dims : k_strides[0], k_strides[1], 1] write
// @arg     v          device {S}[M, n_v] write
// @arg     offset     device i32[1] read
// @arg     K          constant i32
// @arg     q_heads    constant i32
// @arg     k_heads    constant i32
// @arg     dims       constant i32
// @arg     n_v        constant i32
// @arg     M          constant i32
// @arg     q_strides  constant i64[2]
// @arg     k_strides  constant i64[2]
// @arg     scale      constant f32
// @arg     base       constant f32
// @let     pairs = dims/2
// @let     tall = 32 + 32*min(1, q_heads*dims/4096)
// @groups  ceil(M/tall), ceil(q_heads*pairs/32) + ceil(k_heads*pairs/32) + ceil(n_v/64), 1
// @group   32, 2, 2
// @require K >= g && K % g == 0 && M >= 1 && q_heads >= 1 && k_heads >= 1 && n_v >= 1
// @if      order == pairs
// @require traditional == 1 && dims >= 2 && dims % 2 == 0
// @else
// @require traditional == 0 && dims >= 2 && dims % 2 == 0
// @end
// @where   theta[t,i] = (scale * f32(t + offset[0])) * exp2(-(f32(i) / f32(pairs)) * base)
// @each    s = q k
// @use     rows_apart({s})
// @where   dot_{s}[m,n] = round({T}, {tiled(_{s})})
// @if      order == pairs
// @where   first_{s}[h,t,i] = {first(dot_{s}; t,h*dims + 2*i; t,h*dims + 2*i + 1; t,i)}
// @where   second_{s}[h,t,i] = {second(dot_{s}; t,h*dims + 2*i; t,h*dims + 2*i + 1; t,i)}
// @term    {s}[h,t,j] = round({{s}_type({S})}, select(j % 2 == 0, first_{s}[h,t,j/2], second_{s}[h,t,j/2]))
// @else
// @where   first_{s}[h,t,i] = {first(dot_{s}; t,h*dims + i; t,h*dims + i + pairs; t,i)}
// @where   second_{s}[h,t,i] = {second(dot_{s}; t,h*dims + i; t,h*dims + i + pairs; t,i)}
// @term    {s}[h,t,j] = round({{s}_type({S})}, select(j < pairs, first_{s}[h,t,j % pairs], second_{s}[h,t,j % pairs]))
// @end
// @end
// @where   dot_v[m,n] = {tiled(_v)}
// @term    v[m,n] = round({S}, dot_v[m,n])
// @end
//
// @kernel  affine_qmm_t_x3_rope_{T:{types()}}_gs_{g:{groups()}}_b_{b:4|8}{order:=pairs|=halves}
// @use     rows_turned({T})
//
// @kernel  affine_qmm_t_x3_rope_{T:float=f32}_{S:float16_t=f16}_gs_{g:{groups()}}_b_{b:4|8}{order:=pairs|=halves}
// @use     rows_turned({S})
template <typename T, typename S, int g, int b>
[[kernel]] void qmm_t_x3_rope(
    AFFINE(w, _q), AFFINE(w, _k), AFFINE(w, _v), const device T* x, device T* q, device S* k, device S* v, const device int* offset,
    constant int& K, constant int& q_heads, constant int& k_heads, constant int& dims, constant int& n_v, constant int& M,
    constant long* q_strides, constant long* k_strides, constant float& scale, constant float& base, TILE_PLACE) {
  threadgroup float4 memory[MEMORY];
  const int pairs = dims / 2;
  const int tiles_q = (q_heads * pairs + SIDE / 2 - 1) / (SIDE / 2);
  const int tiles_k = (k_heads * pairs + SIDE / 2 - 1) / (SIDE / 2);
  const int number = int(group.y);
  const bool is_query = number < tiles_q;
  const bool is_value = number >= tiles_q + tiles_k;
  AffineOf<T> w = {w_q, scales_q, biases_q};
  Paired rows = {true, number * (SIDE / 2), pairs, q_heads * dims};
  if (is_value) {
    w = {w_v, scales_v, biases_v};
    rows = {false, (number - tiles_q - tiles_k) * SIDE, pairs, n_v};
  } else if (!is_query) {
    w = {w_k, scales_k, biases_k};
    rows = {true, (number - tiles_q) * (SIDE / 2), pairs, k_heads * dims};
  }
  const Turn turn = {offset[0], scale, base};
  const Turned<T, S> results = {q, k, v, q_strides, k_strides, is_query};
  if (q_heads * dims >= 4096) {
    turned_rows<SIDE, g, b>(w, x, rows, results, turn, K, M, int(group.x) * SIDE, memory, thread_id, simdgroup);
  } else {
    turned_rows<SIDE / 2, g, b>(w, x, rows, results, turn, K, M, int(group.x) * (SIDE / 2), memory, thread_id, simdgroup);
  }
}

#define INSTANTIATE_QMM_T_TURNED(name, T, S, g, b)                            \
  template [[host_name("affine_qmm_t_x3_rope_" #name "_gs_" #g "_b_" #b)]]    \
  [[kernel]] decltype(qmm_t_x3_rope<T, S, g, b>) qmm_t_x3_rope<T, S, g, b>;
#define INSTANTIATE_QMM_T_TURNED_ALL(name, T, S)                                              \
  INSTANTIATE_QMM_T_TURNED(name, T, S, 32, 4) INSTANTIATE_QMM_T_TURNED(name, T, S, 64, 4)     \
  INSTANTIATE_QMM_T_TURNED(name, T, S, 128, 4) INSTANTIATE_QMM_T_TURNED(name, T, S, 32, 8)    \
  INSTANTIATE_QMM_T_TURNED(name, T, S, 64, 8) INSTANTIATE_QMM_T_TURNED(name, T, S, 128, 8)

INSTANTIATE_QMM_T_TURNED_ALL(float, float, float)
INSTANTIATE_QMM_T_TURNED_ALL(float16_t, half, half)
INSTANTIATE_QMM_T_TURNED_ALL(bfloat16_t, bfloat, bfloat)
INSTANTIATE_QMM_T_TURNED_ALL(float_float16_t, float, half)

#define INSTANTIATE_QMM_T(name, T, g, b, aligned)                                                \
  template [[host_name("affine_qmm_t_" #name "_gs_" #g "_b_" #b "_alN_" #aligned "_batch_0")]]   \
  [[kernel]] decltype(qmm_t<T, uint, Codes<T, g, b, aligned>>) qmm_t<T, uint, Codes<T, g, b, aligned>>;
#define INSTANTIATE_QMM_T_FUSED(form, name, T, g, b, aligned)                                  \
  template [[host_name("affine_qmm_t_" #form "_" #name "_gs_" #g "_b_" #b "_alN_" #aligned)]]  \
  [[kernel]] decltype(qmm_t_##form<T, uint, Codes<T, g, b, aligned>>) qmm_t_##form<T, uint, Codes<T, g, b, aligned>>;
#define INSTANTIATE_QMM_T_ALIGNED(name, T, g, b, aligned)        \
  INSTANTIATE_QMM_T(name, T, g, b, aligned)                      \
  INSTANTIATE_QMM_T_FUSED(x2, name, T, g, b, aligned)            \
  INSTANTIATE_QMM_T_FUSED(x3, name, T, g, b, aligned)            \
  INSTANTIATE_QMM_T_FUSED(add, name, T, g, b, aligned)           \
  INSTANTIATE_QMM_T_FUSED(silu_mul, name, T, g, b, aligned)
#define INSTANTIATE_QMM_T_ALL(name, T, g, b)         \
  INSTANTIATE_QMM_T_ALIGNED(name, T, g, b, true)     \
  INSTANTIATE_QMM_T_ALIGNED(name, T, g, b, false)

EACH_TYPE(INSTANTIATE_QMM_T_ALL)

// place returns the offset, in elements, of number i of a batch.
inline long place(uint i, constant int* shape, constant long* strides, int ndims) {
  long at = 0;
  for (int d = ndims - 1; d >= 0; d--) {
    at += long(i % uint(shape[d])) * strides[d];
    i /= uint(shape[d]);
  }
  return at;
}

// count returns how many a batch has.
inline uint count(constant int* shape, int ndims) {
  uint n = 1;
  for (int d = 0; d < ndims; d++) {
    n *= uint(shape[d]);
  }
  return n;
}

// Matrix times vector with matrices picked from a stack, the experts of a
// mixture: product i of the batch is of matrix rhs_indices[i] and the vectors
// lhs_indices[i] of x. An index outside its stack makes NaN, and nothing outside
// is read; MLX's kernel does not look.
//
// The kernel takes batches of any dimensions. These declarations are of stacks
// of one dimension, whose shapes and strides have two more for the matrix, and of
// indices of one and of two dimensions (tokens by experts of a token); the last
// three arrays have room for two in either case. Those of qmv_fast take whole blocks only, as above.
//
// @text    batch(and) = {each d = {dims}; batch_shape[{d}]; {and}}
// @text    picked(at) = round({T}, select(lhs_indices[{at}] < x_shape[0] && rhs_indices[{at}] < w_shape[0], \
//              dot[rhs_indices[{at}],lhs_indices[{at}],m,n], inf - inf))
//
// @kernel  affine_gather_{C:qmv|qmv_fast}_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}{dims:=0|=0 1}
// @arg     w              device u32 as u{b}[w_shape[0], out_vec_size, in_vec_size : w_strides[0]*32/b, in_vec_size, 1] read
// @arg     scales         device {T}[w_shape[0], out_vec_size, in_vec_size/g : s_strides[0], in_vec_size/g, 1] read
// @arg     biases         device {T}[w_shape[0], out_vec_size, in_vec_size/g : b_strides[0], in_vec_size/g, 1] read
// @arg     x              device {T}[x_shape[0], x_shape[1], in_vec_size : x_strides[0], in_vec_size, 1] read
// @each    side = lhs rhs
// @arg     {side}_indices device u32[{batch(,)} : {each d = {dims}; {side}_strides[{d}]; ,}] read
// @end
// @arg     y              device {T}[{batch(,)}, x_shape[1], out_vec_size] write
// @arg     in_vec_size    constant i32
// @arg     out_vec_size   constant i32
// @arg     x_batch_ndims  constant i32
// @arg     x_shape        constant i32[3]
// @arg     x_strides      constant i64[3]
// @arg     w_batch_ndims  constant i32
// @arg     w_shape        constant i32[3]
// @arg     w_strides      constant i64[3]
// @arg     s_strides      constant i64[3]
// @arg     b_strides      constant i64[3]
// @arg     batch_ndims    constant i32
// @arg     batch_shape    constant i32[2]
// @arg     lhs_strides    constant i64[2]
// @arg     rhs_strides    constant i64[2]
// @groups  x_shape[1], ceil(out_vec_size/8), {batch(*)}
// @group   32, 2, 1
// @mlx     unlisted
// @if      C == qmv
// @require in_vec_size >= g && in_vec_size % g == 0 && out_vec_size >= 1
// @else
// @require in_vec_size >= 256 && in_vec_size % (512 - b/6*256) == 0 && out_vec_size >= 8 && out_vec_size % 8 == 0
// @end
// @if      dims == 0
// @require x_batch_ndims == 1 && w_batch_ndims == 1 && batch_ndims == 1
// @term    y[i,m,n] = {picked(i)}
// @else
// @require x_batch_ndims == 1 && w_batch_ndims == 1 && batch_ndims == 2
// @term    y[i,s,m,n] = {picked(i,s)}
// @end
// @require w_strides[0]*32 % b == 0
// @where   dot[e,r,m,n] = {affine(in_vec_size; {C}; ; e,n; x[r,m,c*g + j])}
template <typename T, typename D, typename W>
[[kernel]] void gather_qmv(
    AFFINE(w, ),
    const device T* x,
    const device uint* lhs_indices,
    const device uint* rhs_indices,
    device T* y,
    constant int& in_vec_size,
    constant int& out_vec_size,
    constant int& x_batch_ndims,
    constant int* x_shape,
    constant long* x_strides,
    constant int& w_batch_ndims,
    constant int* w_shape,
    constant long* w_strides,
    constant long* s_strides,
    constant long* b_strides,
    constant int& batch_ndims,
    constant int* batch_shape,
    constant long* lhs_strides,
    constant long* rhs_strides,
    PLACE) {
  const uint from = lhs_indices[place(group.z, batch_shape, lhs_strides, batch_ndims)];
  const uint which = rhs_indices[place(group.z, batch_shape, rhs_strides, batch_ndims)];
  const int M = x_shape[x_batch_ndims];
  y += (size_t(group.z) * M + group.x) * out_vec_size;
  if (from >= count(x_shape, x_batch_ndims) || which >= count(w_shape, w_batch_ndims)) {
    put_nan(y, out_vec_size, int(group.y), simdgroup, lane);
    return;
  }
  x += place(from, x_shape, x_strides, x_batch_ndims) + long(group.x) * in_vec_size;
  const AffineOf<T> m = {
      w + place(which, w_shape, w_strides, w_batch_ndims), scales + place(which, w_shape, s_strides, w_batch_ndims),
      biases + place(which, w_shape, b_strides, w_batch_ndims)};
  block_of_rows<W>(&m, x, Store<T>{y}, in_vec_size, out_vec_size, int(group.y), simdgroup, lane);
}

// The same with one stack of rows and without indices of its own for them, as
// gather_gemv of gemv.metal: rows may be as many as a param says.
//
// @kernel  gather_qmv_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}
// @arg     w          device u32 as u{b}[E, N, K] read
// @arg     scales     device {T}[E, N, K/g] read
// @arg     biases     device {T}[E, N, K/g] read
// @use     picked_behind({T})
// @require K >= g && K % g == 0 && N >= 1
// @where   dot[e,r,s,n] = {affine(K; qmv; ; e,n; x[r,s,c*g + j])}
// @term    y[r,s,n] = round({T}, select(ids[r,s] < E, dot[ids[r,s],r,s,n], inf - inf))
VECTOR_PICKED(gather_qmv_rows, AFFINE, w)

#define INSTANTIATE_GATHER_QMV(name, T, g, b)                                   \
  template [[host_name("affine_gather_qmv_" #name "_gs_" #g "_b_" #b)]]         \
  [[kernel]] decltype(gather_qmv<T, uint, Codes<T, g, b, false>>) gather_qmv<T, uint, Codes<T, g, b, false>>; \
  template [[host_name("affine_gather_qmv_fast_" #name "_gs_" #g "_b_" #b)]]    \
  [[kernel]] decltype(gather_qmv<T, uint, Codes<T, g, b, true>>) gather_qmv<T, uint, Codes<T, g, b, true>>; \
  template [[host_name("gather_qmv_" #name "_gs_" #g "_b_" #b)]]                \
  [[kernel]] decltype(gather_qmv_rows<T, uint, Codes<T, g, b, false>>) gather_qmv_rows<T, uint, Codes<T, g, b, false>>;

EACH_TYPE(INSTANTIATE_GATHER_QMV)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Quantized products: 8 rows a threadgroup, or tiles of 32 × 32.
//
// @witness affine_qmv_{|b}float* ; in_vec_size=640 out_vec_size=1530 ; groups 2 192 1 / 32 2 1 ; ok
// @witness affine_qmv_{|b}float* ; in_vec_size=640 out_vec_size=1530 ; threads 64 384 1 / 32 2 1 ; ok
// @witness affine_qmv_{|b}float*_gs_32_* ; in_vec_size=32 out_vec_size=1 ; groups 1 1 1 / 32 2 1 ; ok
// @witness affine_qmv_{|b}float*_gs_64_* ; in_vec_size=64 out_vec_size=1 ; groups 1 1 1 / 32 2 1 ; ok
// @witness affine_qmv_{|b}float*_gs_128_* ; in_vec_size=128 out_vec_size=1 ; groups 1 1 1 / 32 2 1 ; ok
// @witness affine_qmv_{|b}float*_gs_64_* ; in_vec_size=96 out_vec_size=1 ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_{|b}float*_gs_128_* ; in_vec_size=192 out_vec_size=1 ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_{|b}float* ; in_vec_size=0 out_vec_size=1 ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_{|b}float* ; in_vec_size=128 out_vec_size=0 ; groups 1 0 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_{|b}float* ; in_vec_size=1024 out_vec_size=1536 ; groups 2 192 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_{|b}float*_gs_*_b_{2|3|4|5|6}_* ; in_vec_size=512 out_vec_size=8 ; groups 1 1 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_{|b}float*_gs_*_b_{2|3|4|5}_* ; in_vec_size=256 out_vec_size=8 ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_{|b}float*_gs_*_b_{6|8}_* ; in_vec_size=256 out_vec_size=8 ; groups 1 1 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_{|b}float*_gs_*_b_{6|8}_* ; in_vec_size=128 out_vec_size=8 ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size={12|9} ; groups 1 2 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_{|b}float* ; in_vec_size=0 out_vec_size=8 ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=0 ; groups 1 0 1 / 32 2 1 ; refused
// @witness affine_qmm_t_*_alN_false_* ; K=640 N=97 M=65 ; groups 4 3 1 / 32 2 2 ; ok
// @witness affine_qmm_t_*_alN_true_* ; K=640 N=128 M=70 ; groups 4 3 1 / 32 2 2 ; ok
// @witness affine_qmm_t_*_alN_true_* ; K=640 N=100 M=70 ; groups 4 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_*_alN_true_* ; K=640 N=33 M=70 ; groups 2 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_{*_gs_32_*_alN_false_*|add_*_gs_32_b_*_alN_false} ; K=32 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; ok
// @witness affine_qmm_t_{*_gs_64_*_alN_false_*|add_*_gs_64_b_*_alN_false} ; K=64 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; ok
// @witness affine_qmm_t_{*_gs_128_*_alN_false_*|add_*_gs_128_b_*_alN_false} ; K=128 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; ok
// @witness affine_qmm_t_{*_alN_false_*|add_*_gs_*_b_*_alN_false} ; K=0 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; refused
// @witness affine_qmm_t_*_alN_false_* ; K=128 N=0 M=1 ; groups 0 1 1 / 32 2 2 ; refused
// @witness affine_qmm_t_*_alN_false_* ; K=128 N=1 M=0 ; groups 1 0 1 / 32 2 2 ; refused
//
// Fused quantized products: the blocks of several matrices follow each other in the
// grid. Each result has views of its own, but that a sum may take its residual's.
//
// @witness affine_qmv_x2_{|b}float*_gs_*_b_* ; in_vec_size=384 n0=153 n1=117 ; groups 2 35 1 / 32 2 1 ; ok
// @witness affine_qmv_x2_{|b}float*_gs_*_b_* ; in_vec_size=384 n0=153 n1=117 ; threads 64 70 1 / 32 2 1 ; ok
// @witness affine_qmv_x2_{|b}float*_gs_*_b_* ; in_vec_size=384 n0=153 n1=117 ; groups 2 36 1 / 32 2 1 ; refused
// @witness affine_qmv_x2_{|b}float*_gs_32_b_* ; in_vec_size=32 n0=1 n1=1 ; groups 1 2 1 / 32 2 1 ; ok
// @witness affine_qmv_x2_{|b}float*_gs_64_b_* ; in_vec_size=64 n0=1 n1=1 ; groups 1 2 1 / 32 2 1 ; ok
// @witness affine_qmv_x2_{|b}float*_gs_128_b_* ; in_vec_size=128 n0=1 n1=1 ; groups 1 2 1 / 32 2 1 ; ok
// @witness affine_qmv_x2_{|b}float*_gs_64_b_* ; in_vec_size=96 n0=1 n1=1 ; groups 1 2 1 / 32 2 1 ; refused
// @witness affine_qmv_x2_{|b}float*_gs_128_b_* ; in_vec_size=192 n0=1 n1=1 ; groups 1 2 1 / 32 2 1 ; refused
// @witness affine_qmv_x2_{|b}float*_gs_*_b_* ; in_vec_size=0 n0=1 n1=1 ; groups 1 2 1 / 32 2 1 ; refused
// @witness affine_qmv_x2_{|b}float*_gs_*_b_* ; in_vec_size=128 n0=0 n1=1 ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_x2_{|b}float*_gs_*_b_* ; in_vec_size=128 n0=1 n1=0 ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x2_{|b}float*_gs_*_b_* ; in_vec_size=512 n0=200 n1=120 ; groups 2 40 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_x2_{|b}float*_gs_*_b_{2|3|4|5|6} ; in_vec_size=512 n0=8 n1=8 ; groups 1 2 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_x2_{|b}float*_gs_*_b_{2|3|4|5} ; in_vec_size=256 n0=8 n1=8 ; groups 1 2 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x2_{|b}float*_gs_*_b_{6|8} ; in_vec_size=256 n0=8 n1=8 ; groups 1 2 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_x2_{|b}float*_gs_*_b_{6|8} ; in_vec_size=128 n0=8 n1=8 ; groups 1 2 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x2_{|b}float*_gs_*_b_* ; in_vec_size=0 n0=8 n1=8 ; groups 1 2 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x2_{|b}float*_gs_*_b_* ; in_vec_size=512 n0={12|9} n1=8 ; groups 1 3 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x2_{|b}float*_gs_*_b_* ; in_vec_size=512 n0=0 n1=8 ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x2_{|b}float*_gs_*_b_* ; in_vec_size=512 n0=8 n1={12|9} ; groups 1 3 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x2_{|b}float*_gs_*_b_* ; in_vec_size=512 n0=8 n1=0 ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_x2_{|b}float*_gs_32_b_* ; in_vec_size=32 n0=32 n1=1 inplace=y0,x ; groups 1 5 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x2_{|b}float*_gs_*_b_* ; in_vec_size=512 n0=512 n1=8 inplace=y0,x ; groups 1 65 1 / 32 2 1 ; refused
// @witness affine_qmv_x2_{|b}float*_gs_32_b_* ; in_vec_size=32 n0=1 n1=1 inplace=y{0|1},{scales|biases}{0|1} ; groups 1 2 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x2_{|b}float*_gs_32_b_* ; in_vec_size=512 n0=16 n1=8 inplace=y0,{scales|biases}0 ; groups 16 3 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x2_{|b}float*_gs_32_b_* ; in_vec_size=512 n0=16 n1=8 inplace=y0,{scales|biases}1 ; groups 8 3 1 / 32 2 1 ; refused
// @witness affine_qmv_x2_{|b}float*_gs_32_b_* ; in_vec_size=32 n0=1 n1=32 inplace=y1,x ; groups 1 5 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x2_{|b}float*_gs_*_b_* ; in_vec_size=512 n0=8 n1=512 inplace=y1,x ; groups 1 65 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x2_{|b}float*_gs_32_b_* ; in_vec_size=512 n0=8 n1=16 inplace=y1,{scales|biases}0 ; groups 8 3 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x2_{|b}float*_gs_32_b_* ; in_vec_size=512 n0=8 n1=16 inplace=y1,{scales|biases}1 ; groups 16 3 1 / 32 2 1 ; refused
// @witness affine_qmm_t_x2_*_gs_*_b_*_alN_false ; K=384 n0=129 n1=65 M=65 ; groups 2 5 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x2_*_gs_*_b_*_alN_false ; K=384 n0=129 n1=65 M=65 ; groups 2 6 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x2_*_gs_*_b_*_alN_true ; K=384 n0=128 n1=64 M=70 ; groups 2 3 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x2_*_gs_*_b_*_alN_true ; K=384 n0=100 n1=128 M=70 ; groups 2 4 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x2_*_gs_*_b_*_alN_true ; K=384 n0=33 n1=128 M=70 ; groups 2 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x2_*_gs_*_b_*_alN_true ; K=384 n0=128 n1=100 M=70 ; groups 2 4 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x2_*_gs_*_b_*_alN_true ; K=384 n0=128 n1=33 M=70 ; groups 2 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x2_*_gs_32_b_*_alN_false ; K=32 n0=1 n1=1 M=1 ; groups 1 2 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x2_*_gs_64_b_*_alN_false ; K=64 n0=1 n1=1 M=1 ; groups 1 2 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x2_*_gs_128_b_*_alN_false ; K=128 n0=1 n1=1 M=1 ; groups 1 2 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x2_*_gs_64_b_*_alN_false ; K=96 n0=1 n1=1 M=1 ; groups 1 2 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x2_*_gs_128_b_*_alN_false ; K=192 n0=1 n1=1 M=1 ; groups 1 2 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x2_*_gs_*_b_*_alN_false ; K=0 n0=1 n1=1 M=1 ; groups 1 2 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x2_*_gs_*_b_*_alN_false ; K=128 n0=0 n1=1 M=1 ; groups 1 1 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x2_*_gs_*_b_*_alN_false ; K=128 n0=1 n1=0 M=1 ; groups 1 1 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x2_*_gs_*_b_*_alN_false ; K=128 n0=1 n1=1 M=0 ; groups 0 2 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x2_*_gs_32_b_*_alN_false ; K=32 n0=32 n1=1 M=1 inplace=y0,x ; groups 1 2 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x2_*_gs_32_b_*_alN_false ; K=32 n0=1 n1=1 M=1 inplace=y{0|1},{scales|biases}{0|1} ; groups 1 2 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x2_*_gs_32_b_*_alN_false ; K=32 n0=1 n1=32 M=1 inplace=y1,x ; groups 1 2 1 / 32 2 2 ; refused
// @witness affine_qmv_x3_{|b}float*_gs_*_b_* ; in_vec_size=384 n0=153 n1=117 n2=69 ; groups 2 44 1 / 32 2 1 ; ok
// @witness affine_qmv_x3_{|b}float*_gs_*_b_* ; in_vec_size=384 n0=153 n1=117 n2=69 ; threads 64 88 1 / 32 2 1 ; ok
// @witness affine_qmv_x3_{|b}float*_gs_*_b_* ; in_vec_size=384 n0=153 n1=117 n2=69 ; groups 2 45 1 / 32 2 1 ; refused
// @witness affine_qmv_x3_{|b}float*_gs_32_b_* ; in_vec_size=32 n0=1 n1=1 n2=1 ; groups 1 3 1 / 32 2 1 ; ok
// @witness affine_qmv_x3_{|b}float*_gs_64_b_* ; in_vec_size=64 n0=1 n1=1 n2=1 ; groups 1 3 1 / 32 2 1 ; ok
// @witness affine_qmv_x3_{|b}float*_gs_128_b_* ; in_vec_size=128 n0=1 n1=1 n2=1 ; groups 1 3 1 / 32 2 1 ; ok
// @witness affine_qmv_x3_{|b}float*_gs_64_b_* ; in_vec_size=96 n0=1 n1=1 n2=1 ; groups 1 3 1 / 32 2 1 ; refused
// @witness affine_qmv_x3_{|b}float*_gs_128_b_* ; in_vec_size=192 n0=1 n1=1 n2=1 ; groups 1 3 1 / 32 2 1 ; refused
// @witness affine_qmv_x3_{|b}float*_gs_*_b_* ; in_vec_size=0 n0=1 n1=1 n2=1 ; groups 1 3 1 / 32 2 1 ; refused
// @witness affine_qmv_x3_{|b}float*_gs_*_b_* ; in_vec_size=128 n0=0 n1=1 n2=1 ; groups 1 2 1 / 32 2 1 ; refused
// @witness affine_qmv_x3_{|b}float*_gs_*_b_* ; in_vec_size=128 n0=1 n1=0 n2=1 ; groups 1 2 1 / 32 2 1 ; refused
// @witness affine_qmv_x3_{|b}float*_gs_*_b_* ; in_vec_size=128 n0=1 n1=1 n2=0 ; groups 1 2 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_*_b_* ; in_vec_size=512 n0=200 n1=120 n2=72 ; groups 2 49 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_x3_{|b}float*_gs_*_b_{2|3|4|5|6} ; in_vec_size=512 n0=8 n1=8 n2=8 ; groups 1 3 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_x3_{|b}float*_gs_*_b_{2|3|4|5} ; in_vec_size=256 n0=8 n1=8 n2=8 ; groups 1 3 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_*_b_{6|8} ; in_vec_size=256 n0=8 n1=8 n2=8 ; groups 1 3 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_x3_{|b}float*_gs_*_b_{6|8} ; in_vec_size=128 n0=8 n1=8 n2=8 ; groups 1 3 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_*_b_* ; in_vec_size=0 n0=8 n1=8 n2=8 ; groups 1 3 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_*_b_* ; in_vec_size=512 n0={12|9} n1=8 n2=8 ; groups 1 4 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_*_b_* ; in_vec_size=512 n0=0 n1=8 n2=8 ; groups 1 2 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_*_b_* ; in_vec_size=512 n0=8 n1={12|9} n2=8 ; groups 1 4 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_*_b_* ; in_vec_size=512 n0=8 n1=0 n2=8 ; groups 1 2 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_*_b_* ; in_vec_size=512 n0=8 n1=8 n2={12|9} ; groups 1 4 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_*_b_* ; in_vec_size=512 n0=8 n1=8 n2=0 ; groups 1 2 1 / 32 2 1 ; refused
// @witness affine_qmv_x3_{|b}float*_gs_32_b_* ; in_vec_size=32 n0=32 n1=1 n2=1 inplace=y0,x ; groups 1 6 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_*_b_* ; in_vec_size=512 n0=512 n1=8 n2=8 inplace=y0,x ; groups 1 66 1 / 32 2 1 ; refused
// @witness affine_qmv_x3_{|b}float*_gs_32_b_* ; in_vec_size=32 n0=1 n1=1 n2=1 inplace=y{0|1|2},{scales|biases}{0|1|2} ; groups 1 3 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_32_b_* ; in_vec_size=512 n0=16 n1=8 n2=8 inplace=y0,{scales|biases}0 ; groups 16 4 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_32_b_* ; in_vec_size=512 n0=16 n1=8 n2=8 inplace=y0,{scales|biases}{1|2} ; groups 8 4 1 / 32 2 1 ; refused
// @witness affine_qmv_x3_{|b}float*_gs_32_b_* ; in_vec_size=32 n0=1 n1=32 n2=1 inplace=y1,x ; groups 1 6 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_*_b_* ; in_vec_size=512 n0=8 n1=512 n2=8 inplace=y1,x ; groups 1 66 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_32_b_* ; in_vec_size=512 n0=8 n1=16 n2=8 inplace=y1,{scales|biases}{0|2} ; groups 8 4 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_32_b_* ; in_vec_size=512 n0=8 n1=16 n2=8 inplace=y1,{scales|biases}1 ; groups 16 4 1 / 32 2 1 ; refused
// @witness affine_qmv_x3_{|b}float*_gs_32_b_* ; in_vec_size=32 n0=1 n1=1 n2=32 inplace=y2,x ; groups 1 6 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_*_b_* ; in_vec_size=512 n0=8 n1=8 n2=512 inplace=y2,x ; groups 1 66 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_32_b_* ; in_vec_size=512 n0=8 n1=8 n2=16 inplace=y2,{scales|biases}{0|1} ; groups 8 4 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_x3_{|b}float*_gs_32_b_* ; in_vec_size=512 n0=8 n1=8 n2=16 inplace=y2,{scales|biases}2 ; groups 16 4 1 / 32 2 1 ; refused
// @witness affine_qmm_t_x3_*_gs_*_b_*_alN_false ; K=384 n0=129 n1=65 n2=65 M=65 ; groups 2 7 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x3_*_gs_*_b_*_alN_false ; K=384 n0=129 n1=65 n2=65 M=65 ; groups 2 8 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_*_gs_*_b_*_alN_true ; K=384 n0=128 n1=64 n2=96 M=70 ; groups 2 5 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x3_*_gs_*_b_*_alN_true ; K=384 n0=100 n1=128 n2=128 M=70 ; groups 2 6 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_*_gs_*_b_*_alN_true ; K=384 n0=33 n1=128 n2=128 M=70 ; groups 2 5 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_*_gs_*_b_*_alN_true ; K=384 n0=128 n1=100 n2=128 M=70 ; groups 2 6 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_*_gs_*_b_*_alN_true ; K=384 n0=128 n1=33 n2=128 M=70 ; groups 2 5 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_*_gs_*_b_*_alN_true ; K=384 n0=128 n1=128 n2=100 M=70 ; groups 2 6 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_*_gs_*_b_*_alN_true ; K=384 n0=128 n1=128 n2=33 M=70 ; groups 2 5 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_*_gs_32_b_*_alN_false ; K=32 n0=1 n1=1 n2=1 M=1 ; groups 1 3 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x3_*_gs_64_b_*_alN_false ; K=64 n0=1 n1=1 n2=1 M=1 ; groups 1 3 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x3_*_gs_128_b_*_alN_false ; K=128 n0=1 n1=1 n2=1 M=1 ; groups 1 3 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x3_*_gs_64_b_*_alN_false ; K=96 n0=1 n1=1 n2=1 M=1 ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_*_gs_128_b_*_alN_false ; K=192 n0=1 n1=1 n2=1 M=1 ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_*_gs_*_b_*_alN_false ; K=0 n0=1 n1=1 n2=1 M=1 ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_*_gs_*_b_*_alN_false ; K=128 n0=0 n1=1 n2=1 M=1 ; groups 1 2 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_*_gs_*_b_*_alN_false ; K=128 n0=1 n1=0 n2=1 M=1 ; groups 1 2 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_*_gs_*_b_*_alN_false ; K=128 n0=1 n1=1 n2=0 M=1 ; groups 1 2 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_*_gs_*_b_*_alN_false ; K=128 n0=1 n1=1 n2=1 M=0 ; groups 0 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_*_gs_32_b_*_alN_false ; K=32 n0=32 n1=1 n2=1 M=1 inplace=y0,x ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_*_gs_32_b_*_alN_false ; K=32 n0=1 n1=1 n2=1 M=1 inplace=y{0|1|2},{scales|biases}{0|1|2} ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_*_gs_32_b_*_alN_false ; K=32 n0=1 n1=32 n2=1 M=1 inplace=y1,x ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_*_gs_32_b_*_alN_false ; K=32 n0=1 n1=1 n2=32 M=1 inplace=y2,x ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmv_add_{|b}float*_gs_*_b_* ; in_vec_size=384 out_vec_size=153 ; groups 2 20 1 / 32 4 1 ; ok
// @witness affine_qmv_add_{|b}float*_gs_*_b_* ; in_vec_size=384 out_vec_size=153 ; threads 64 80 1 / 32 4 1 ; ok
// @witness affine_qmv_add_{|b}float*_gs_*_b_* ; in_vec_size=384 out_vec_size=153 ; groups 2 21 1 / 32 4 1 ; refused
// @witness affine_qmv_add_{|b}float*_gs_32_b_* ; in_vec_size=32 out_vec_size=1 ; groups 1 1 1 / 32 4 1 ; ok
// @witness affine_qmv_add_{|b}float*_gs_64_b_* ; in_vec_size=64 out_vec_size=1 ; groups 1 1 1 / 32 4 1 ; ok
// @witness affine_qmv_add_{|b}float*_gs_128_b_* ; in_vec_size=128 out_vec_size=1 ; groups 1 1 1 / 32 4 1 ; ok
// @witness affine_qmv_add_{|b}float*_gs_64_b_* ; in_vec_size=96 out_vec_size=1 ; groups 1 1 1 / 32 4 1 ; refused
// @witness affine_qmv_add_{|b}float*_gs_128_b_* ; in_vec_size=192 out_vec_size=1 ; groups 1 1 1 / 32 4 1 ; refused
// @witness affine_qmv_add_{|b}float*_gs_*_b_* ; in_vec_size=0 out_vec_size=1 ; groups 1 1 1 / 32 4 1 ; refused
// @witness affine_qmv_add_{|b}float*_gs_*_b_* ; in_vec_size=128 out_vec_size=0 ; groups 1 0 1 / 32 4 1 ; refused
// @witness affine_qmv_add_{|b}float*_gs_*_b_* ; in_vec_size=384 out_vec_size=153 inplace=y,r ; groups 2 20 1 / 32 4 1 ; ok
// @witness affine_qmv_fast_add_{|b}float*_gs_*_b_* ; in_vec_size=512 out_vec_size=200 ; groups 2 25 1 / 32 4 1 ; ok
// @witness affine_qmv_fast_add_{|b}float*_gs_*_b_{2|3|4|5|6} ; in_vec_size=512 out_vec_size=8 ; groups 1 1 1 / 32 4 1 ; ok
// @witness affine_qmv_fast_add_{|b}float*_gs_*_b_{2|3|4|5} ; in_vec_size=256 out_vec_size=8 ; groups 1 1 1 / 32 4 1 ; refused
// @witness affine_qmv_fast_add_{|b}float*_gs_*_b_{6|8} ; in_vec_size=256 out_vec_size=8 ; groups 1 1 1 / 32 4 1 ; ok
// @witness affine_qmv_fast_add_{|b}float*_gs_*_b_{6|8} ; in_vec_size=128 out_vec_size=8 ; groups 1 1 1 / 32 4 1 ; refused
// @witness affine_qmv_fast_add_{|b}float*_gs_*_b_* ; in_vec_size=0 out_vec_size=8 ; groups 1 1 1 / 32 4 1 ; refused
// @witness affine_qmv_fast_add_{|b}float*_gs_*_b_* ; in_vec_size=512 out_vec_size={12|9} ; groups 1 2 1 / 32 4 1 ; refused
// @witness affine_qmv_fast_add_{|b}float*_gs_*_b_* ; in_vec_size=512 out_vec_size=0 ; groups 1 0 1 / 32 4 1 ; refused
// @witness affine_qmv_add_{|b}float*_gs_32_b_* ; in_vec_size=32 out_vec_size=4095 ; groups 1 512 1 / 32 4 1 ; ok
// @witness affine_qmv_add_{|b}float*_gs_32_b_* ; in_vec_size=32 out_vec_size=4096 ; groups 1 256 1 / 32 4 1 ; ok
// @witness affine_qmv_add_{|b}float*_gs_32_b_* ; in_vec_size=32 out_vec_size=8193 ; groups 1 513 1 / 32 4 1 ; ok
// @witness affine_qmv_fast_add_{|b}float*_gs_*_b_{6|8} ; in_vec_size=256 out_vec_size=4088 ; groups 1 511 1 / 32 4 1 ; ok
// @witness affine_qmv_fast_add_{|b}float*_gs_*_b_{6|8} ; in_vec_size=256 out_vec_size=4096 ; groups 1 256 1 / 32 4 1 ; ok
// @witness affine_qmv_fast_add_{|b}float*_gs_*_b_{6|8} ; in_vec_size=256 out_vec_size=8200 ; groups 1 513 1 / 32 4 1 ; ok
// @witness affine_qmv_fast_add_{|b}float*_gs_*_b_{2|3|4|5|6} ; in_vec_size=512 out_vec_size=4088 ; groups 1 511 1 / 32 4 1 ; ok
// @witness affine_qmv_fast_add_{|b}float*_gs_*_b_{2|3|4|5|6} ; in_vec_size=512 out_vec_size=8200 ; groups 1 513 1 / 32 4 1 ; ok
// @witness affine_qmv_fast_add_{|b}float*_gs_*_b_* ; in_vec_size=512 out_vec_size=8 inplace=y,r ; groups 2 1 1 / 32 4 1 ; ok
// @witness affine_qmv_add_{|b}float*_gs_32_b_* ; in_vec_size=32 out_vec_size=32 inplace=y,x ; groups 1 4 1 / 32 4 1 ; refused
// @witness affine_qmv_fast_add_{|b}float*_gs_*_b_* ; in_vec_size=512 out_vec_size=512 inplace=y,x ; groups 1 64 1 / 32 4 1 ; refused
// @witness affine_qmv_add_{|b}float*_gs_32_b_* ; in_vec_size=32 out_vec_size=1 inplace=y,{scales|biases} ; groups 1 1 1 / 32 4 1 ; refused
// @witness affine_qmv_fast_add_{|b}float*_gs_32_b_* ; in_vec_size=512 out_vec_size=16 inplace=y,{scales|biases} ; groups 16 2 1 / 32 4 1 ; refused
// @witness affine_qmm_t_add_*_gs_*_b_*_alN_false ; K=384 N=129 M=65 ; groups 2 3 1 / 32 2 2 ; ok
// @witness affine_qmm_t_add_*_gs_*_b_*_alN_false ; K=384 N=129 M=65 ; groups 2 4 1 / 32 2 2 ; refused
// @witness affine_qmm_t_add_*_gs_*_b_*_alN_true ; K=384 N=128 M=70 ; groups 2 2 1 / 32 2 2 ; ok
// @witness affine_qmm_t_add_*_gs_*_b_*_alN_true ; K=384 N=100 M=70 ; groups 2 2 1 / 32 2 2 ; refused
// @witness affine_qmm_t_add_*_gs_*_b_*_alN_true ; K=384 N=33 M=70 ; groups 2 1 1 / 32 2 2 ; refused
// @witness affine_qmm_t_{add|silu_mul}_*_gs_64_b_*_alN_false ; K=96 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; refused
// @witness affine_qmm_t_{add|silu_mul}_*_gs_128_b_*_alN_false ; K=192 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; refused
// @witness affine_qmm_t_{add|silu_mul}_*_gs_*_b_*_alN_false ; K=128 N=0 M=1 ; groups 1 0 1 / 32 2 2 ; refused
// @witness affine_qmm_t_{add|silu_mul}_*_gs_*_b_*_alN_false ; K=128 N=1 M=0 ; groups 0 1 1 / 32 2 2 ; refused
// @witness affine_qmm_t_add_*_gs_*_b_*_alN_false ; K=384 N=129 M=65 inplace=y,r ; groups 2 3 1 / 32 2 2 ; ok
// @witness affine_qmm_t_{add|silu_mul}_*_gs_32_b_*_alN_false ; K=32 N=32 M=1 inplace=y,x ; groups 1 1 1 / 32 2 2 ; refused
// @witness affine_qmm_t_add_*_gs_32_b_*_alN_false ; K=32 N=1 M=1 inplace=y,{scales|biases} ; groups 1 1 1 / 32 2 2 ; refused
// @witness affine_qmv_silu_mul_{|b}float*_gs_*_b_* ; in_vec_size=384 out_vec_size=153 ; groups 2 20 1 / 32 2 1 ; ok
// @witness affine_qmv_silu_mul_{|b}float*_gs_*_b_* ; in_vec_size=384 out_vec_size=153 ; threads 64 40 1 / 32 2 1 ; ok
// @witness affine_qmv_silu_mul_{|b}float*_gs_*_b_* ; in_vec_size=384 out_vec_size=153 ; groups 2 21 1 / 32 2 1 ; refused
// @witness affine_qmv_silu_mul_{|b}float*_gs_32_b_* ; in_vec_size=32 out_vec_size=1 ; groups 1 1 1 / 32 2 1 ; ok
// @witness affine_qmv_silu_mul_{|b}float*_gs_64_b_* ; in_vec_size=64 out_vec_size=1 ; groups 1 1 1 / 32 2 1 ; ok
// @witness affine_qmv_silu_mul_{|b}float*_gs_128_b_* ; in_vec_size=128 out_vec_size=1 ; groups 1 1 1 / 32 2 1 ; ok
// @witness affine_qmv_silu_mul_{|b}float*_gs_64_b_* ; in_vec_size=96 out_vec_size=1 ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_silu_mul_{|b}float*_gs_128_b_* ; in_vec_size=192 out_vec_size=1 ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_silu_mul_{|b}float*_gs_*_b_* ; in_vec_size=0 out_vec_size=1 ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_silu_mul_{|b}float*_gs_*_b_* ; in_vec_size=128 out_vec_size=0 ; groups 1 0 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_silu_mul_{|b}float*_gs_*_b_* ; in_vec_size=512 out_vec_size=200 ; groups 2 25 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_silu_mul_{|b}float*_gs_*_b_{2|3|4|5|6} ; in_vec_size=512 out_vec_size=8 ; groups 1 1 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_silu_mul_{|b}float*_gs_*_b_{2|3|4|5} ; in_vec_size=256 out_vec_size=8 ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_silu_mul_{|b}float*_gs_*_b_{6|8} ; in_vec_size=256 out_vec_size=8 ; groups 1 1 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_silu_mul_{|b}float*_gs_*_b_{6|8} ; in_vec_size=128 out_vec_size=8 ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_silu_mul_{|b}float*_gs_*_b_* ; in_vec_size=0 out_vec_size=8 ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_silu_mul_{|b}float*_gs_*_b_* ; in_vec_size=512 out_vec_size={12|9} ; groups 1 2 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_silu_mul_{|b}float*_gs_*_b_* ; in_vec_size=512 out_vec_size=0 ; groups 1 0 1 / 32 2 1 ; refused
// @witness affine_qmv_silu_mul_{|b}float*_gs_32_b_* ; in_vec_size=32 out_vec_size=32 inplace=y,x ; groups 1 4 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_silu_mul_{|b}float*_gs_*_b_* ; in_vec_size=512 out_vec_size=512 inplace=y,x ; groups 1 64 1 / 32 2 1 ; refused
// @witness affine_qmv_silu_mul_{|b}float*_gs_32_b_* ; in_vec_size=32 out_vec_size=1 inplace=y,{scales|biases}_{gate|up} ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_silu_mul_{|b}float*_gs_32_b_* ; in_vec_size=512 out_vec_size=16 inplace=y,{scales|biases}_{gate|up} ; groups 16 2 1 / 32 2 1 ; refused
// @witness affine_qmm_t_silu_mul_*_gs_*_b_*_alN_false ; K=384 N=97 M=65 ; groups 2 4 1 / 32 2 2 ; ok
// @witness affine_qmm_t_silu_mul_*_gs_*_b_*_alN_false ; K=384 N=97 M=65 ; groups 2 5 1 / 32 2 2 ; refused
// @witness affine_qmm_t_silu_mul_*_gs_*_b_*_alN_true ; K=384 N=128 M=70 ; groups 2 4 1 / 32 2 2 ; ok
// @witness affine_qmm_t_silu_mul_*_gs_*_b_*_alN_true ; K=384 N=100 M=70 ; groups 2 4 1 / 32 2 2 ; refused
// @witness affine_qmm_t_silu_mul_*_gs_*_b_*_alN_true ; K=384 N=33 M=70 ; groups 2 2 1 / 32 2 2 ; refused
// @witness affine_qmm_t_silu_mul_*_gs_32_b_*_alN_false ; K=32 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; ok
// @witness affine_qmm_t_silu_mul_*_gs_64_b_*_alN_false ; K=64 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; ok
// @witness affine_qmm_t_silu_mul_*_gs_128_b_*_alN_false ; K=128 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; ok
// @witness affine_qmm_t_silu_mul_*_gs_*_b_*_alN_false ; K=0 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; refused
// @witness affine_qmm_t_silu_mul_*_gs_32_b_*_alN_false ; K=32 N=1 M=1 inplace=y,{scales|biases}_{gate|up} ; groups 1 1 1 / 32 2 2 ; refused
//
// Products with matrices picked from a stack: one threadgroup 8 outputs of a product.
//
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,2 x_strides=256 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 2 8 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=72 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=288 b_strides=288 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 9 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_{|b}float*_gs_32_* ; in_vec_size=32 out_vec_size=1 x_batch_ndims=1 x_shape=3,1 x_strides=32 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=1 b_strides=1 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 1 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_{|b}float*_gs_64_* ; in_vec_size=64 out_vec_size=1 x_batch_ndims=1 x_shape=3,1 x_strides=64 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=2 b_strides=2 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 1 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_{|b}float*_b_{3|5|6} ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15361 s_strides=240 b_strides=240 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,2 x_strides=256 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 7 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 7 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 1 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=2 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=2 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=48 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=48 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=90 b_strides=90 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float*_gs_64_* ; in_vec_size=96 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=96 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=180 b_strides=180 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float*_gs_128_* ; in_vec_size=192 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=192 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=360 b_strides=360 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=0 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=0 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=60 b_strides=60 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=0 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=1 b_strides=1 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 0 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=1024 out_vec_size=64 x_batch_ndims=1 x_shape=3,1 x_strides=1024 w_batch_ndims=1 w_shape=8 w_strides=30720 s_strides=2048 b_strides=2048 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=64 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=1024 b_strides=1024 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_fast_{|b}float*_b_{6|8} ; in_vec_size=256 out_vec_size=8 x_batch_ndims=1 x_shape=3,1 x_strides=256 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=64 b_strides=64 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 1 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_fast_{|b}float*_b_{2|3|4|5} ; in_vec_size=256 out_vec_size=8 x_batch_ndims=1 x_shape=3,1 x_strides=256 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=64 b_strides=64 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 1 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float*_b_{6|8} ; in_vec_size=128 out_vec_size=8 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=32 b_strides=32 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 1 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=128 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=8 w_strides=30720 s_strides=2048 b_strides=2048 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 16 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=960 b_strides=960 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=544 out_vec_size=64 x_batch_ndims=1 x_shape=3,1 x_strides=544 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=1088 b_strides=1088 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=0 out_vec_size=64 x_batch_ndims=1 x_shape=3,1 x_strides=0 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=64 b_strides=64 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=0 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=1 b_strides=1 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 0 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=12 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=192 b_strides=192 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 2 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=64 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=1024 b_strides=1024 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 9 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=64 x_batch_ndims=2 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=1024 b_strides=1024 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=64 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=2 w_shape=8 w_strides=15360 s_strides=1024 b_strides=1024 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float*_b_{3|5|6} ; in_vec_size=512 out_vec_size=64 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=8 w_strides=16381 s_strides=1024 b_strides=1024 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,2 x_strides=256 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 2 8 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=72 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=288 b_strides=288 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 9 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_{|b}float*_gs_32_* ; in_vec_size=32 out_vec_size=1 x_batch_ndims=1 x_shape=3,1 x_strides=32 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=1 b_strides=1 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 1 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_{|b}float*_gs_64_* ; in_vec_size=64 out_vec_size=1 x_batch_ndims=1 x_shape=3,1 x_strides=64 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=2 b_strides=2 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 1 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_{|b}float*_b_{3|5|6} ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15361 s_strides=240 b_strides=240 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,2 x_strides=256 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 7 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 7 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 1 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=2 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=2 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=48 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=48 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=90 b_strides=90 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float*_gs_64_* ; in_vec_size=96 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=96 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=180 b_strides=180 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float*_gs_128_* ; in_vec_size=192 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=192 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=360 b_strides=360 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=0 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=0 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=60 b_strides=60 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=0 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=1 b_strides=1 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 0 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=1024 out_vec_size=64 x_batch_ndims=1 x_shape=3,1 x_strides=1024 w_batch_ndims=1 w_shape=8 w_strides=30720 s_strides=2048 b_strides=2048 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=64 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=1024 b_strides=1024 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_fast_{|b}float*_b_{6|8} ; in_vec_size=256 out_vec_size=8 x_batch_ndims=1 x_shape=3,1 x_strides=256 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=64 b_strides=64 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 1 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_fast_{|b}float*_b_{2|3|4|5} ; in_vec_size=256 out_vec_size=8 x_batch_ndims=1 x_shape=3,1 x_strides=256 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=64 b_strides=64 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 1 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float*_b_{6|8} ; in_vec_size=128 out_vec_size=8 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=32 b_strides=32 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 1 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=128 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=8 w_strides=30720 s_strides=2048 b_strides=2048 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 16 6 / 32 2 1 ; ok
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=960 b_strides=960 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=544 out_vec_size=64 x_batch_ndims=1 x_shape=3,1 x_strides=544 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=1088 b_strides=1088 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=0 out_vec_size=64 x_batch_ndims=1 x_shape=3,1 x_strides=0 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=64 b_strides=64 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=0 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=1 b_strides=1 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 0 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=9 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=144 b_strides=144 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 2 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=64 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=1024 b_strides=1024 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 9 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=64 x_batch_ndims=2 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=1024 b_strides=1024 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=64 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=2 w_shape=8 w_strides=15360 s_strides=1024 b_strides=1024 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float*_b_{3|5|6} ; in_vec_size=512 out_vec_size=64 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=8 w_strides=16381 s_strides=1024 b_strides=1024 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_{|b}float* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=3 batch_shape=3,2,1 lhs_strides=1,0,0 rhs_strides=2,1,1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=64 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=1024 b_strides=1024 batch_ndims=3 batch_shape=3,2,1 lhs_strides=1,0,0 rhs_strides=2,1,1 ; groups 1 8 6 / 32 2 1 ; refused
// @witness affine_gather_qmv_fast_{|b}float* ; in_vec_size=512 out_vec_size=512 x_batch_ndims=1 x_shape=6,1 x_strides=512 w_batch_ndims=1 w_shape=2 w_strides=76800 s_strides=8192 b_strides=8192 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 inplace=y,x ; groups 1 64 6 / 32 2 1 ; refused
// @witness gather_qmv_* ; K=384 N=60 E=8 x_strides=384,0 ; groups 8 2 3 / 32 2 1 ; ok
// @witness gather_qmv_* ; K=384 N=60 E=8 x_strides=768,384 ; groups 8 2 3 / 32 2 1 ; ok
// @witness gather_qmv_* ; K=128 N=1 E=8 x_strides=128,0 ; groups 1 1 1 / 32 2 1 ; ok
// @witness gather_qmv_* ; K=384 N=60 E=8 x_strides=384,0 ; groups 7 2 3 / 32 2 1 ; refused
// @witness gather_qmv_* ; K=384 N=60 E=8 x_strides=384,0 ; groups 8 2 3 / 32 1 1 ; refused
// @witness gather_qmv_* ; K=0 N=60 E=8 x_strides=96,0 ; groups 8 2 3 / 32 2 1 ; refused
// @witness gather_qmv_* ; K=384 N=0 E=8 x_strides=384,0 ; groups 0 2 3 / 32 2 1 ; refused
// @witness gather_qmv_* ; K=80 N=60 E=8 x_strides=80,0 ; groups 8 2 3 / 32 2 1 ; refused
// @witness gather_qmv_*_gs_64_* ; K=96 N=60 E=8 x_strides=96,0 ; groups 8 2 3 / 32 2 1 ; refused
// @witness gather_qmv_*_gs_128_* ; K=192 N=60 E=8 x_strides=192,0 ; groups 8 2 3 / 32 2 1 ; refused
// @witness gather_qmv_*_gs_32_* ; K=32 N=1 E=8 x_strides=32,0 ; groups 1 1 1 / 32 2 1 ; ok
// @witness gather_qmv_*_gs_64_* ; K=64 N=1 E=8 x_strides=64,0 ; groups 1 1 1 / 32 2 1 ; ok
//
// Queries, keys and values of many rows: matrices of 4,096 rows and more have tiles of 64 rows, others of 32.
//
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=640 q_heads=9 k_heads=3 dims=64 n_v=192 M=66 q_strides=64,576 k_strides=64,192 ; groups 3 15 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=640 q_heads=9 k_heads=3 dims=64 n_v=192 M=66 q_strides=64,576 k_strides=64,192 ; groups 2 15 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=640 q_heads=9 k_heads=3 dims=64 n_v=192 M=66 q_strides=64,576 k_strides=64,192 ; groups 3 16 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=128 q_heads=32 k_heads=8 dims=128 n_v=1024 M=65 q_strides=128,4096 k_strides=128,1024 ; groups 2 96 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=128 q_heads=32 k_heads=8 dims=128 n_v=1024 M=65 q_strides=128,4096 k_strides=128,1024 ; groups 3 96 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=128 q_heads=64 k_heads=1 dims=128 n_v=64 M=65 q_strides=128,8192 k_strides=128,128 ; groups 2 131 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=128 q_heads=31 k_heads=8 dims=132 n_v=1024 M=70 q_strides=132,4096 k_strides=132,1056 ; groups 3 97 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=640 q_heads=3 k_heads=2 dims=6 n_v=65 M=1 q_strides=6,0 k_strides=6,0 ; groups 1 4 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=640 q_heads=3 k_heads=2 dims=6 n_v=9 M=33 q_strides=198,6 k_strides=198,6 ; groups 2 3 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=640 q_heads=3 k_heads=2 dims=6 n_v=9 M=33 q_strides=197,6 k_strides=198,6 ; groups 2 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=640 q_heads=3 k_heads=2 dims=6 n_v=9 M=33 q_strides=198,6 k_strides=197,6 ; groups 2 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_32_* ; traditional@2={1|0} K=32 q_heads=1 k_heads=1 dims=2 n_v=1 M=1 q_strides=0,0 k_strides=0,0 ; groups 1 3 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x3_rope_*_gs_64_* ; traditional@2={1|0} K=64 q_heads=1 k_heads=1 dims=2 n_v=1 M=1 q_strides=0,0 k_strides=0,0 ; groups 1 3 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x3_rope_*_gs_128_* ; traditional@2={1|0} K=128 q_heads=1 k_heads=1 dims=2 n_v=1 M=1 q_strides=0,0 k_strides=0,0 ; groups 1 3 1 / 32 2 2 ; ok
// @witness affine_qmm_t_x3_rope_*_gs_64_* ; traditional@2={1|0} K=96 q_heads=1 k_heads=1 dims=2 n_v=1 M=1 ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_128_* ; traditional@2={1|0} K=192 q_heads=1 k_heads=1 dims=2 n_v=1 M=1 ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=0 q_heads=1 k_heads=1 dims=2 n_v=1 M=1 q_strides=8,8 k_strides=8,8 ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=128 q_heads=0 k_heads=1 dims=2 n_v=1 M=1 q_strides=8,8 k_strides=8,8 ; groups 1 2 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=128 q_heads=1 k_heads=0 dims=2 n_v=1 M=1 q_strides=8,8 k_strides=8,8 ; groups 1 2 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=128 q_heads=1 k_heads=1 dims=0 n_v=1 M=1 q_strides=8,8 k_strides=8,8 ; groups 1 1 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=128 q_heads=1 k_heads=1 dims=3 n_v=1 M=1 q_strides=8,8 k_strides=8,8 ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=128 q_heads=1 k_heads=1 dims=2 n_v=0 M=1 q_strides=8,8 k_strides=8,8 ; groups 1 2 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=128 q_heads=1 k_heads=1 dims=2 n_v=1 M=0 q_strides=8,8 k_strides=8,8 ; groups 0 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=128 q_heads=2 k_heads=1 dims=6 n_v=1 M=1 q_strides=5,0 k_strides=0,0 ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=128 q_heads=1 k_heads=2 dims=6 n_v=1 M=1 q_strides=0,0 k_strides=5,0 ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=128 q_heads=1 k_heads=1 dims=6 n_v=1 M=2 q_strides=0,5 k_strides=0,6 ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=128 q_heads=1 k_heads=1 dims=6 n_v=1 M=2 q_strides=0,6 k_strides=0,5 ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=128 q_heads=1 k_heads=1 dims=6 n_v=1 M=2 q_strides=0,6 k_strides=0,6 ; groups 1 3 1 / 32 2 2 ; ok
//
// No result may lie on an operand of the same shape.
//
// @witness affine_qmm_t_x3_rope_*_gs_* ; traditional@2={1|0} K=128 q_heads=1 k_heads=1 dims=2 n_v=128 M=2 q_strides=8,2 k_strides=8,2 inplace=v,x ; groups 1 4 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_32_* ; traditional@2={1|0} K=32 q_heads=1 k_heads=1 dims=2 n_v=1 M=2 q_strides=8,2 k_strides=8,2 inplace=v,{scales|biases}_{q|k} ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_32_* ; traditional@2={1|0} K=32 q_heads=1 k_heads=1 dims=2 n_v=7 M=1 q_strides=8,2 k_strides=8,2 inplace=v,{scales|biases}_v ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_64_* ; traditional@2={1|0} K=64 q_heads=1 k_heads=1 dims=2 n_v=1 M=2 q_strides=8,2 k_strides=8,2 inplace=v,{scales|biases}_{q|k} ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_64_* ; traditional@2={1|0} K=64 q_heads=1 k_heads=1 dims=2 n_v=7 M=1 q_strides=8,2 k_strides=8,2 inplace=v,{scales|biases}_v ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_128_* ; traditional@2={1|0} K=128 q_heads=1 k_heads=1 dims=2 n_v=1 M=2 q_strides=8,2 k_strides=8,2 inplace=v,{scales|biases}_{q|k} ; groups 1 3 1 / 32 2 2 ; refused
// @witness affine_qmm_t_x3_rope_*_gs_128_* ; traditional@2={1|0} K=128 q_heads=1 k_heads=1 dims=2 n_v=7 M=1 q_strides=8,2 k_strides=8,2 inplace=v,{scales|biases}_v ; groups 1 3 1 / 32 2 2 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent affine_qmv_fast_* ; groups: * ceil(out_vec_size / 8) -> rounded down ; out_vec_size is a multiple of 8
// @equivalent affine_qmv_fast_* ; require: in_vec_size >= 1 -> in_vec_size > 1 ; in_vec_size is a multiple of 256
// @equivalent affine_qmv_fast_* ; require: out_vec_size >= 1 -> out_vec_size > 1 ; out_vec_size is a multiple of 8
// @equivalent affine_qmv_fast_* ; require: n? >= 1 -> n? > 1 ; each is a multiple of 8
// @equivalent affine_qmv_fast_* ; require: 1 -> 2 ; both sizes are multiples of more
// @equivalent affine_gather_qmv_* ; slot: x_batch_ndims exchanged with w_batch_ndims ; both are 1
// @equivalent affine_gather_qmv_*#0 ; slot: ?_batch_ndims exchanged with batch_ndims ; all three are 1
// @equivalent affine_gather_qmv_fast_* ; groups: * ceil(out_vec_size / 8) -> rounded down ; out_vec_size is a multiple of 8
// @equivalent affine_gather_qmv_* ; require: {drop w_strides*|32 -> 33} ; other strides are no whole bytes
