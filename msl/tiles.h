// What products of many rows share: a threadgroup of four simdgroups makes a TILE × TILE tile of a result, each
// simdgroup a quarter of it.

#include "common.h"

constexpr constant int TILE = 32;  // rows, columns and depth of a tile
constexpr constant int PITCH = 36; // floats from row to row of a tile, so that 8 rows lie in different banks

// TILE_PLACE declares where a thread is.
#define TILE_PLACE                                   \
  uint3 group [[threadgroup_position_in_grid]],      \
  uint thread_id [[thread_index_in_threadgroup]],    \
  uint simdgroup [[simdgroup_index_in_threadgroup]]

// add_product adds the product of the tiles xs and wsᵀ to a simdgroup's quarter: acc[2·i + j] is the 8 × 8 block at
// (8·i, 8·j) of it.
inline void add_product(const threadgroup float* xs, const threadgroup float* ws, int sm, int sn, thread simdgroup_float8x8* acc) {
#pragma unroll
  for (int kk = 0; kk < TILE; kk += 8) {
    simdgroup_float8x8 xm[2];
    simdgroup_float8x8 wm[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      simdgroup_load(xm[i], xs + (sm + 8 * i) * PITCH + kk, PITCH);
      simdgroup_load(wm[i], ws + (sn + 8 * i) * PITCH + kk, PITCH, ulong2(0, 0), true);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
      for (int j = 0; j < 2; j++) {
        simdgroup_multiply_accumulate(acc[2 * i + j], xm[i], wm[j], acc[2 * i + j]);
      }
    }
  }
}

// spread writes a threadgroup's tile to threadgroup memory, where each thread
// finds 8 elements of a row; a barrier has to follow.
inline void spread(const thread simdgroup_float8x8* acc, threadgroup float* tile, uint simdgroup) {
  const int sm = int(simdgroup) / 2 * 16;
  const int sn = int(simdgroup) % 2 * 16;
#pragma unroll
  for (int i = 0; i < 2; i++) {
#pragma unroll
    for (int j = 0; j < 2; j++) {
      simdgroup_store(acc[2 * i + j], tile + (sm + 8 * i) * PITCH + sn + 8 * j, PITCH);
    }
  }
}
