// What products are put together from (docs/kernels.md, "Families"): weights W, so many arms, and what is done with a
// result, E. Bodies stand here, once for vectors and once for matrices; a kernel is a line that names its slots.

#include "products.h"
#include "tiles.h"

// What is done with a product: a result is made of so many matrices, and lies at a place of y.
template <typename T>
struct Store {
  static constexpr constant int matrices = 1;
  device T* y;
  void put(size_t at, float v, float) const { y[at] = stored(T(v)); }
};

template <typename T>
struct Add {
  static constexpr constant int matrices = 1;
  device T* y;
  const device T* r;
  void put(size_t at, float v, float) const { y[at] = stored(T(float(r[at]) + float(T(v)))); }
};

template <typename T>
struct SiluMul {
  static constexpr constant int matrices = 2;
  device T* y;
  void put(size_t at, float gate, float up) const { y[at] = stored(silu_mul(T(gate), T(up))); }
};

// Weights are a type W of functions:
//
//   W::matrix  where a matrix lies
//   W::whole   all have a multiple of 2·ROWS rows, or of TILE for products of matrices
//   W::ragged  a row may have any number of elements, and not a multiple of TILE only
//   W::dot     leaves in result[ROWS·j + i] the product of x with row first + i of matrix j; rows past the end are read as
//              the last one
//   W::row     the row of x that a threadgroup takes, and W::block its block of results
//   W::of      a matrix of a stack of them
//   W::bring   brings a tile of it to threadgroup memory, and W::bring_x one of x; InRows has both, and asks
//   W::decode  for elements k to k + 7 of row n, or for zeros, if there is no such row

// What declarations of products have behind their matrices: results of several matrices, a residual, the gate and up
// products of a feed-forward layer, and matrices of a stack that ids pick for each slot of a row. T is the type of
// vectors, dims are those before the last of x and of results.
//
// @lines   arms_behind(arms; T; dims; K)
// @arg     x     device {T}[{dims}{K}] read
// @each    i = {arms}
// @arg     y{i}  device {T}[{dims}n{i}] write
// @end
// @arg     {K}   constant i32
// @each    i = {arms}
// @arg     n{i}  constant i32
// @end
// @end
// @lines   sum_behind(T; dims; K; N)
// @arg     x    device {T}[{dims}{K}] read
// @arg     r    device {T}[{dims}{N}] read
// @arg     y    device {T}[{dims}{N}] write
// @arg     {K}  constant i32
// @arg     {N}  constant i32
// @inplace y r
// @end
// @lines   one_behind(T; dims; K; N)
// @arg     x    device {T}[{dims}{K}] read
// @arg     y    device {T}[{dims}{N}] write
// @arg     {K}  constant i32
// @arg     {N}  constant i32
// @end
// @lines   picked_behind(T)
// @arg     x          device {T}[rows, slots, K : x_strides[0], x_strides[1], 1] read
// @arg     ids        device u32[rows, slots] read
// @arg     y          device {T}[rows, slots, N] write
// @arg     K          constant i32
// @arg     N          constant i32
// @arg     E          constant i32
// @arg     x_strides  constant i64[2]
// @groups  ceil(N/8), slots, rows
// @group   32, 2, 1
// @end

// block_of_rows makes a threadgroup's block of 2·ROWS results of a vector.
template <typename W, typename T, typename E>
inline void block_of_rows(
    const thread typename W::matrix* m, const device T* x, const E e, int K, int N, int block, uint simdgroup,
    uint lane) {
  const int first = block * 2 * ROWS + int(simdgroup) * ROWS;
  if (!W::whole && first >= N) {
    return;
  }
  float result[E::matrices * ROWS];
  W::template dot<E::matrices>(m, x, K, N, first, lane, result);
  if (int(lane) < ROWS && (W::whole || first + int(lane) < N)) {
    e.put(first + lane, of_lane<ROWS>(result, lane), of_lane<ROWS>(result + (E::matrices - 1) * ROWS, lane));
  }
}

// products_of_vector makes a threadgroup's block of the products of a row with several matrices, up to three, whose
// blocks follow one another in the grid. Each has code of its own, and no loop chooses a matrix: then it is known which
// buffers are read before the kernel waits for other dispatches.
template <typename W, typename T, int arms>
inline void products_of_vector(
    const thread typename W::matrix (&m)[arms], const device T* x, device T* const thread (&y)[arms], int K,
    const thread int (&n)[arms],
    uint3 group, uint simdgroup, uint lane) {
  constexpr int second = arms > 1 ? 1 : 0;
  const size_t row = W::row(group);
  int block = W::block(group);
  int blocks = (n[0] + 2 * ROWS - 1) / (2 * ROWS);
  if (arms == 1 || block < blocks) {
    block_of_rows<W>(m, x + row * K, Store<T>{y[0] + row * n[0]}, K, n[0], block, simdgroup, lane);
    return;
  }
  block -= blocks;
  blocks = (n[second] + 2 * ROWS - 1) / (2 * ROWS);
  if (arms == 2 || block < blocks) {
    block_of_rows<W>(m + second, x + row * K, Store<T>{y[second] + row * n[second]}, K, n[second], block, simdgroup, lane);
    return;
  }
  block -= blocks;
  block_of_rows<W>(m + arms - 1, x + row * K, Store<T>{y[arms - 1] + row * n[arms - 1]}, K, n[arms - 1], block, simdgroup, lane);
}

// put_nan makes results of a block that no matrix stands for.
template <typename T>
inline void put_nan(device T* y, int N, int block, uint simdgroup, uint lane) {
  const int n = (block * 2 + int(simdgroup)) * ROWS + int(lane);
  if (int(lane) < ROWS && n < N) {
    y[n] = T(NAN);
  }
}

// product_of_picked makes a threadgroup's block of the product of a vector with the matrix that an id picks from a stack
// of E. An id outside the stack makes NaN, and nothing outside is read.
template <typename W, typename T>
inline void product_of_picked(
    const thread typename W::matrix& m, const device T* x, const device uint* ids, device T* y, int K, int N, int E,
    constant long* x_strides,
    uint3 group, uint3 groups, uint simdgroup, uint lane) {
  const size_t at = size_t(group.z) * groups.y + group.y;
  const uint id = ids[at];
  y += at * N;
  if (id >= uint(E)) {
    put_nan(y, N, int(group.x), simdgroup, lane);
    return;
  }
  const typename W::matrix picked = W::of(m, id, K, N);
  x += long(group.z) * x_strides[0] + long(group.y) * x_strides[1];
  block_of_rows<W>(&picked, x, Store<T>{y}, K, N, int(group.x), simdgroup, lane);
}

// put_blocks writes a simdgroup's quarter of a tile at (m0, n0) of y, where blocks are what is stored.
inline bool put_blocks(const thread simdgroup_float8x8* acc, const Store<float> e, int N, int m0, int n0,
uint simdgroup) {
  const int sm = int(simdgroup) / 2 * 16;
  const int sn = int(simdgroup) % 2 * 16;
#pragma unroll
  for (int i = 0; i < 2; i++) {
#pragma unroll
    for (int j = 0; j < 2; j++) {
      simdgroup_store(acc[2 * i + j], e.y + size_t(m0 + sm + 8 * i) * N + n0 + sn + 8 * j, N);
    }
  }
  return true;
}
template <typename E>
inline bool put_blocks(const thread simdgroup_float8x8* acc, const E e, int N, int m0, int n0, uint simdgroup) {
  return false;
}

// put_tile makes results at (m0, n0) of a threadgroup's tiles, one of each matrix; memory is that of tiles that nobody
// needs any more. whole: N is a multiple of TILE.
template <bool whole, typename E>
inline void put_tile(
    const thread simdgroup_float8x8 (&acc)[E::matrices][4], const E e, int N, int M, int m0, int n0,
    threadgroup float* memory, uint thread_id,
    uint simdgroup) {
  if (m0 + TILE <= M && (whole || n0 + TILE <= N) && put_blocks(acc[0], e, N, m0, n0, simdgroup)) {
    return;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (int j = 0; j < E::matrices; j++) {
    spread(acc[j], memory + j * TILE * PITCH, simdgroup);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int row = int(thread_id) / 4;
  const int col = int(thread_id) % 4 * 8;
  const threadgroup float* from = memory + row * PITCH + col;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    if (m0 + row < M && n0 + col + i < N) {
      e.put(size_t(m0 + row) * N + n0 + col + i, from[i], from[(E::matrices - 1) * TILE * PITCH + i]);
    }
  }
}

// InRows is what weights W whose elements, and those of x, lie row by row bring to a tile: a thread 8 elements of a row.
template <typename W>
struct InRows {
  template <typename T>
  static void bring_x(const device T* x, int K, int M, int m0, int k, uint thread_id, threadgroup float* tile) {
    const int row = int(thread_id) / 4;
    const int col = int(thread_id) % 4 * 8;
    const bool in_x = m0 + row < M;
    const device T* from = x + size_t(m0 + row) * K + k + col;
#pragma unroll
    for (int i = 0; i < 8; i++) {
      tile[row * PITCH + col + i] = in_x && (!W::ragged || k + col + i < K) ? float(from[i]) : 0.0f;
    }
  }

  template <typename Matrix>
  static void bring(const thread Matrix& m, int K, int N, int n0, int k, uint thread_id, threadgroup float* tile) {
    const int row = int(thread_id) / 4;
    const int col = int(thread_id) % 4 * 8;
    W::decode(m, K, W::whole || n0 + row < N, n0 + row, k + col, tile + row * PITCH + col);
  }
};

// multiply_tile adds up the tile of x·wᵀ at (m0, n0) in a threadgroup's four simdgroups, a quarter each: acc[2·i + j] is
// the 8 × 8 block at (8·i, 8·j) of the quarter. Per step it brings TILE columns of x and, decoded, of w to threadgroup
// memory. All threads count alike, which shows that they leave together.
template <typename W, typename T>
inline void multiply_tile(
    const thread typename W::matrix& w, const device T* x, int K, int N, int M, int m0, int n0,
    threadgroup float* memory, uint thread_id,
    uint simdgroup, thread simdgroup_float8x8* acc) {
  threadgroup float* xs = memory;
  threadgroup float* ws = memory + TILE * PITCH;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    acc[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
  for (int k = 0; k < K; k += TILE) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    W::bring_x(x, K, M, m0, k, thread_id, xs);
    W::bring(w, K, N, n0, k, thread_id, ws);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    add_product(xs, ws, int(simdgroup) / 2 * 16, int(simdgroup) % 2 * 16, acc);
  }
}

// Tile is how a threadgroup makes a tile of TILE × TILE results; tiles lie along x, rows of them along y.
struct Tile {
  static constexpr constant int memory = 2 * TILE * PITCH / 4; // vectors of four floats
  static int m0(uint3 group) { return int(group.y) * TILE; }
  static int number(uint3 group) { return int(group.x); }
  static constexpr int columns(int matrices) { return TILE; }

  template <typename W, typename T, typename E>
  static void make(
      const thread typename W::matrix* w, const device T* x, const E e, int K, int N, int M, int m0, int n0,
      threadgroup float4* memory, uint thread_id,
      uint simdgroup) {
    threadgroup float* floats = (threadgroup float*)memory;
    simdgroup_float8x8 acc[E::matrices][4];
#pragma unroll
    for (int j = 0; j < E::matrices; j++) {
      multiply_tile<W>(w[j], x, K, N, M, m0, n0, floats, thread_id, simdgroup, acc[j]);
    }
    put_tile<W::whole>(acc, e, N, M, m0, n0, floats, thread_id, simdgroup);
  }
};

// products_of_rows makes a threadgroup's tile of the products of many rows with several matrices, whose tiles follow one
// another in the grid. S is how a tile is made: Tile, or Square of quantized.metal.
template <typename S, typename W, typename T, int arms>
inline void products_of_rows(
    const thread typename W::matrix (&m)[arms], const device T* x, device T* const thread (&y)[arms], int K,
    const thread int (&n)[arms], int M,
    uint3 group, threadgroup float4* memory, uint thread_id, uint simdgroup) {
  constexpr int columns = S::columns(1);
  typename W::matrix w = m[0];
  device T* results = y[0];
  int N = n[0];
  int number = S::number(group);
  bool further = true;
#pragma unroll
  for (int i = 1; i < arms; i++) {
    const int tiles = (n[i - 1] + columns - 1) / columns;
    further = further && number >= tiles;
    if (further) {
      number -= tiles;
      w = m[i];
      results = y[i];
      N = n[i];
    }
  }
  S::template make<W>(&w, x, Store<T>{results}, K, N, M, S::m0(group), number * columns, memory, thread_id, simdgroup);
}

// Kernels take their arguments in the order in which declarations name them, which gives them their slots. AFFINE and
// PLAIN declare those of one matrix, whose names end in s; ARMS_n has something for each of n matrices.
#define AFFINE(w, s) const device uint *w##s, const device T *scales##s, const device T *biases##s
#define AFFINE_MADE(w, s) {w##s, scales##s, biases##s}
#define PLAIN(w, s) const device D* w##s
#define PLAIN_MADE(w, s) {w##s}
#define RESULT(y, s) device T* y##s
#define COUNT(n, s) constant int& n##s
#define NAMED(n, s) n##s
#define ARMS_1(of, a) of(a, )
#define ARMS_2(of, a) of(a, 0), of(a, 1)
#define ARMS_3(of, a) of(a, 0), of(a, 1), of(a, 2)
#define BOTH(of, a) of(a, _gate), of(a, _up)

#define X_FIRST(arms, OF) const device T *x, ARMS_##arms(OF, w)
#define X_LAST(arms, OF) ARMS_##arms(OF, w), const device T *x
#define OF_ARMS(arms, OF, w, N)                                \
  const typename W::matrix m[] = {ARMS_##arms(OF##_MADE, w)};  \
  device T* const results[] = {ARMS_##arms(NAMED, y)};         \
  const int counts[] = {ARMS_##arms(NAMED, N)};

// VECTOR defines a kernel of the products of vectors with some matrices, VECTOR_ADD that of a product and a residual,
// VECTOR_SILU_MUL that of the gate and up products of a feed-forward layer, VECTOR_PICKED that of matrices of a stack;
// MATRIX, MATRIX_ADD and MATRIX_SILU_MUL those of many rows. MORE are arguments behind the others, or none.
#define VECTOR(name, arms, OF, w, K, N, MORE)                                                                          \
  template <typename T, typename D, typename W>                                                                        \
  [[kernel]] void name(                                                                                                \
      ARMS_##arms(OF, w), const device T* x, ARMS_##arms(RESULT, y), constant int& K, ARMS_##arms(COUNT, N) MORE,      \
      PLACE) {                                                                                                         \
    OF_ARMS(arms, OF, w, N)                                                                                            \
    products_of_vector<W>(m, x, results, K, counts, group, simdgroup, lane);                                           \
  }
#define VECTOR_ADD(name, OF, K, N)                                                                                     \
  template <typename T, typename D, typename W>                                                                        \
  [[kernel]] void name(                                                                                                \
      OF(w, ), const device T* x, const device T* r, device T* y, constant int& K, constant int& N, PLACE) {           \
    const typename W::matrix m = OF##_MADE(w, );                                                                       \
    const size_t row = W::row(group);                                                                                  \
    block_of_rows<W>(&m, x + row * K, Add<T>{y + row * N, r + row * N}, K, N, W::block(group), simdgroup, lane);       \
  }
#define VECTOR_SILU_MUL(name, OF, K, N)                                                                                \
  template <typename T, typename D, typename W>                                                                        \
  [[kernel]] void name(BOTH(OF, w), const device T* x, device T* y, constant int& K, constant int& N, PLACE) {         \
    const typename W::matrix m[] = {BOTH(OF##_MADE, w)};                                                               \
    const size_t row = W::row(group);                                                                                  \
    block_of_rows<W>(m, x + row * K, SiluMul<T>{y + row * N}, K, N, W::block(group), simdgroup, lane);                 \
  }
#define VECTOR_PICKED(name, OF, w)                                                                                     \
  template <typename T, typename D, typename W>                                                                        \
  [[kernel]] void name(                                                                                                \
      OF(w, ), const device T* x, const device uint* ids, device T* y, constant int& K, constant int& N,               \
      constant int& E,                                                                                                 \
      constant long x_strides[2], uint3 groups [[threadgroups_per_grid]], PLACE) {                                     \
    const typename W::matrix m = OF##_MADE(w, );                                                                       \
    product_of_picked<W>(m, x, ids, y, K, N, E, x_strides, group, groups, simdgroup, lane);                            \
  }
#define MATRIX(name, arms, S, OPERANDS, OF, N, MORE)                                                                   \
  template <typename T, typename D, typename W>                                                                        \
  [[kernel]] void name(                                                                                                \
      OPERANDS(arms, OF), ARMS_##arms(RESULT, y), constant int& K, ARMS_##arms(COUNT, N), constant int& M MORE,        \
      TILE_PLACE) {                                                                                                    \
    threadgroup float4 memory[S::memory];                                                                              \
    OF_ARMS(arms, OF, w, N)                                                                                            \
    products_of_rows<S, W>(m, x, results, K, counts, M, group, memory, thread_id, simdgroup);                          \
  }
#define MATRIX_ADD(name, S, OF)                                                                                        \
  template <typename T, typename D, typename W>                                                                        \
  [[kernel]] void name(                                                                                                \
      OF(w, ), const device T* x, const device T* r, device T* y, constant int& K, constant int& N, constant int& M,   \
      TILE_PLACE) {                                                                                                    \
    threadgroup float4 memory[S::memory];                                                                              \
    const typename W::matrix m = OF##_MADE(w, );                                                                       \
    const int n0 = S::number(group) * S::columns(1);                                                                   \
    S::template make<W>(&m, x, Add<T>{y, r}, K, N, M, S::m0(group), n0, memory, thread_id, simdgroup);                 \
  }
#define MATRIX_SILU_MUL(name, S, OF)                                                                                   \
  template <typename T, typename D, typename W>                                                                        \
  [[kernel]] void name(                                                                                                \
      BOTH(OF, w), const device T* x, device T* y, constant int& K, constant int& N, constant int& M, TILE_PLACE) {    \
    threadgroup float4 memory[S::memory];                                                                              \
    const typename W::matrix m[] = {BOTH(OF##_MADE, w)};                                                               \
    const int n0 = S::number(group) * S::columns(2);                                                                   \
    S::template make<W>(m, x, SiluMul<T>{y}, K, N, M, S::m0(group), n0, memory, thread_id, simdgroup);                 \
  }
