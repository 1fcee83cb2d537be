// Rows of a table, picked by ids. A row whose id is outside the table becomes
// NaN, and nothing outside the table is read.

#include "products.h"

// @kernel   embed_{T:float32=f32|float16=f16}
// @arg 0 ids    device i32[n] read
// @arg 1 table  device {T}[V, K] read
// @arg 2 out    device f32[n, K] write
// @arg 3 K      constant i32
// @arg 4 V      constant i32
// @threads  K, n, 1
// @group    _, _, _
// @term     out[t,k] = round(f32, select(ids[t] >= 0 && ids[t] < V, table[ids[t],k], inf - inf))
//
// Rows of a 16-bit type as they are, for activations of that type.
//
// @kernel   embed_{T:float16_float16=f16|bfloat16_bfloat16=bf16}
// @arg 0 ids    device i32[n] read
// @arg 1 table  device {T}[V, K] read
// @arg 2 out    device {T}[n, K] write
// @arg 3 K      constant i32
// @arg 4 V      constant i32
// @threads  K, n, 1
// @group    _, _, _
// @term     out[t,k] = round({T}, select(ids[t] >= 0 && ids[t] < V, table[ids[t],k], inf - inf))
template <typename T, typename O>
[[kernel]] void embed(
    const device int* ids [[buffer(0)]],
    const device T* table [[buffer(1)]],
    device O* out [[buffer(2)]],
    constant int& K [[buffer(3)]],
    constant int& V [[buffer(4)]],
    uint2 at [[thread_position_in_grid]]) {
  const int id = ids[at.y];
  const size_t to = size_t(at.y) * K + at.x;
  out[to] = stored(O(id >= 0 && id < V ? float(table[size_t(id) * K + at.x]) : NAN));
}

// The table holds affine codes, laid out as those of quantized matrices.
//
// @kernel   affine_embed_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}
// @arg 0 ids     device i32[n] read
// @arg 1 w       device u32 as u{b}[V, K] read
// @arg 2 scales  device {T}[V, K/g] read
// @arg 3 biases  device {T}[V, K/g] read
// @arg 4 out     device {T}[n, K] write
// @arg 5 K       constant i32
// @arg 6 V       constant i32
// @threads  K, n, 1
// @group    _, _, _
// @require  K % g == 0
// @term     out[t,k] = round({T}, select(ids[t] >= 0 && ids[t] < V, \
//             scales[ids[t],k/g] * f32(w[ids[t],k]) + biases[ids[t],k/g], inf - inf))
template <typename T, int g, int b>
[[kernel]] void affine_embed(
    const device int* ids [[buffer(0)]],
    const device uint* w [[buffer(1)]],
    const device T* scales [[buffer(2)]],
    const device T* biases [[buffer(3)]],
    device T* out [[buffer(4)]],
    constant int& K [[buffer(5)]],
    constant int& V [[buffer(6)]],
    uint2 at [[thread_position_in_grid]]) {
  const int id = ids[at.y];
  const size_t to = size_t(at.y) * K + at.x;
  if (id < 0 || id >= V) {
    out[to] = stored(T(NAN));
    return;
  }
  const size_t from = size_t(id) * K + at.x;
  const uint code = code_at<b>(w, from, at.x);
  out[to] = stored(T(float(scales[from / g]) * float(code) + float(biases[from / g])));
}

#define INSTANTIATE_EMBED(name, T, O) template [[host_name("embed_" #name)]] [[kernel]] decltype(embed<T, O>) embed<T, O>;

INSTANTIATE_EMBED(float32, float, float)
INSTANTIATE_EMBED(float16, half, float)
INSTANTIATE_EMBED(float16_float16, half, half)
INSTANTIATE_EMBED(bfloat16_bfloat16, bfloat, bfloat)

#define INSTANTIATE_AFFINE_EMBED(name, T, g, b)                      \
  template [[host_name("affine_embed_" #name "_gs_" #g "_b_" #b)]]   \
  [[kernel]] decltype(affine_embed<T, g, b>) affine_embed<T, g, b>;

EACH_TYPE(INSTANTIATE_AFFINE_EMBED)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Embeddings: one thread an element.
//
// @witness {embed_float|embed_bfloat|affine_embed_}* ; K=640 V=49152 ; threads 640 7 1 / 256 1 1 ; ok
// @witness embed_* ; K=576 V=49152 ; threads 575 7 1 / 256 1 1 ; refused
// @witness affine_embed_* ; K=128 V=9 ; threads 128 3 1 / 128 1 1 ; ok
// @witness affine_embed_* ; K=640 V=49152 ; threads 640 7 2 / 256 1 1 ; refused
// @witness affine_embed_*_gs_64_* ; K=544 V=100 ; threads 544 7 1 / 256 1 1 ; refused
// @witness affine_embed_*_gs_128_* ; K=576 V=100 ; threads 576 7 1 / 256 1 1 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent embed_*float16_* ; round: out: * ; an element of the table has the type already
// @equivalent affine_embed_* ; inplace: allow out * ; K = K/g for K = 0 alone: nothing is touched
