// Attention of many queries, by MLX's names and arguments: a threadgroup takes 32 queries of a head, four lanes a query, each
// lane a quarter of its elements, and the keys one by one.

#include "common.h"

constant bool align_Q [[function_constant(200)]];
constant bool align_K [[function_constant(201)]];
constant bool has_mask [[function_constant(300)]];
constant bool do_causal [[function_constant(301)]];
constant bool has_sinks [[function_constant(302)]];
constant bool save_lse [[function_constant(303)]];

// MLX's struct of parameters is an array of 32-bit words here: 3 and 4 are the queries and keys, 5 the query heads that
// share a key head, 6 the scale; the others up to 13 say what follows from these and from the grid. Behind them are
// strides of 64 bits, by batch, head and position, of Q (14), K (20), V (26) and O (32).
//
// @text    widths() = 32_bd64_bv64=64|32_bd72_bv72=72|32_bd80_bv80=80|32_bd96_bv96=96|16_bd128_bv128=128
// @text    masked() = =plain|=sinks|=mask|=mask_sinks
// @text    taken_out() = select(mask[b,h,q,j] != 0, product[b,h,q,j], -3.4028235e38)
// @text    added() = product[b,h,q,j] + mask[b,h,q,j]
// @lines   full(M; how)
// @constant 200 align_Q bool
// @constant 201 align_K bool
// @constant 300 has_mask bool
// @constant 301 do_causal bool
// @constant 302 has_sinks bool
// @constant 303 save_lse bool
// @arg 0 Q            device {T}[B, H, params[3], D : params[14], params[16], params[18], 1] read
// @arg   K            device {T}[B, ceil(H/params[5]), params[4], D : params[20], params[22], params[24], 1] read
// @arg   V            device {T}[B, ceil(H/params[5]), params[4], D : params[26], params[28], params[30], 1] read
// @arg   O            device {T}[B, H, params[3], D : params[32], params[34], params[36], 1] write
// @arg   params       constant i32[38]
// @if    with == mask|mask_sinks
// @arg   mask_params  constant i64[3]
// @arg   mask         device {M}[B, H, params[3], params[4] : mask_params[0], mask_params[1], mask_params[2], 1] read
// @require has_mask == 1
// @else
// @require has_mask == 0
// @end
// @if    with == sinks|mask_sinks
// @arg 7 sinks        device {T}[H] read
// @require has_sinks == 1
// @else
// @require has_sinks == 0
// @end
// @groups  ceil(params[3]/32), H, B
// @group   32, 4, 1
// @require save_lse == 0
// @require params[4] >= 1 && params[5] >= 1 && (do_causal == 0 || params[4] >= params[3])
// @require params[15] == 0 && params[17] == 0 && params[19] == 0 && params[21] == 0 && params[23] == 0 && params[25] == 0
// @require params[27] == 0 && params[29] == 0 && params[31] == 0 && params[33] == 0 && params[35] == 0 && params[37] == 0
// @let     block = 32 - D/128*16
// @require params[7] == ceil(params[3]/32) && params[9] == params[3]/32 && params[11] == params[3] % 32
// @require (align_Q == 0 || params[3] % 32 == 0) && (align_K == 0 || params[4] % block == 0)
// @require params[8] == ceil(params[4]/block) && params[10] == params[4]/block && params[12] == params[4] % block
// @require params[34] >= D && params[36] >= D
// @require params[36] >= H*params[34] || params[34] >= params[3]*params[36]
// @require params[32] >= H*params[34] && params[32] >= params[3]*params[36]
// @let     keys = params[4] - do_causal*(params[3] - 1)
// @where   product[b,h,q,j] = sum[quarters](d < D, (as_f32(params[6]) * Q[b,h,q,d]) * K[b,h/params[5],j,d])
// @if      with == plain|sinks
// @where   score[b,h,q,j] = product[b,h,q,j]
// @else
// @where   score[b,h,q,j] = {{how}()}
// @end
// @if      with == sinks|mask_sinks
// @where   top[b,h,q] = max(sinks[h], max[sdpa_full](j < keys + do_causal*q, score[b,h,q,j]))
// @where   weight[b,h,q,j] = exp(score[b,h,q,j] - top[b,h,q])
// @where   total[b,h,q] = sum[sdpa_full](j < keys + do_causal*q, weight[b,h,q,j]) + exp(sinks[h] - top[b,h,q])
// @else
// @where   top[b,h,q] = max[sdpa_full](j < keys + do_causal*q, score[b,h,q,j])
// @where   weight[b,h,q,j] = exp(score[b,h,q,j] - top[b,h,q])
// @where   total[b,h,q] = sum[sdpa_full](j < keys + do_causal*q, weight[b,h,q,j])
// @end
// @term    O[b,h,q,d] = round({T}, sum[sdpa_full](j < keys + do_causal*q, weight[b,h,q,j] * V[b,h/params[5],j,d]) / total[b,h,q])
// @end

constexpr constant int QUERIES = 32; // of a threadgroup
constexpr constant int PARTS = 4;    // lanes of a query

inline long stride(constant int* params, int i) { return long(ulong(uint(params[i + 1])) << 32 | ulong(uint(params[i]))); }

// A key that a boolean mask takes out has the least score that is a number, so that a query that sees none takes the
// mean of all values, as MLX's kernels do.
inline float masked(float score, bool seen) { return seen ? score : -MAXFLOAT; }
inline float masked(float score, float added) { return score + added; }
inline float masked(float score, half added) { return score + float(added); }
inline float masked(float score, bfloat added) { return score + float(added); }

// @kernel   steel_attention_{T:{floats()}}_bq32_bk{D:{widths()}}_wm4_wn1_maskbool_{with:{masked()}}
// @mlx
// @use      full(bool; taken_out)
//
// Masks that are added.
//
// @kernel   steel_attention_{T:float32=f32}_bq32_bk{D:{widths()}}_wm4_wn1_maskfloat32{with:{masked()}}
// @mlx
// @use      full(f32; added)
//
// @kernel   steel_attention_{T:float16=f16}_bq32_bk{D:{widths()}}_wm4_wn1_maskfloat16{with:{masked()}}
// @mlx
// @use      full(f16; added)
//
// @kernel   steel_attention_{T:bfloat16=bf16}_bq32_bk{D:{widths()}}_wm4_wn1_maskbfloat16{with:{masked()}}
// @mlx
// @use      full(bf16; added)
template <typename T, typename M, int D>
[[kernel, max_total_threads_per_threadgroup(128)]] void attention(
    const device T* Q [[buffer(0)]],
    const device T* K [[buffer(1)]],
    const device T* V [[buffer(2)]],
    device T* O [[buffer(3)]],
    constant int params[38] [[buffer(4)]],
    constant long mask_params[3] [[buffer(5), function_constant(has_mask)]],
    const device M* mask [[buffer(6), function_constant(has_mask)]],
    const device T* sinks [[buffer(7), function_constant(has_sinks)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  constexpr int each = D / PARTS;
  const int queries = params[3];
  const int keys = params[4];
  const float scale = as_type<float>(params[6]);
  const long head = group.y;
  const long kv_head = group.y / uint(params[5]);
  const long batch = group.z;
  const int own = int(lane) % PARTS * each;
  const int first = int(group.x) * QUERIES;
  // Lanes without a query go along with the last one, as all of a simdgroup exchange, and store nothing.
  const int row = first + int(simdgroup) * (QUERIES / PARTS) + int(lane) / PARTS;
  const int query = min(row, queries - 1);

  const device T* q_row = Q + batch * stride(params, 14) + head * stride(params, 16) + query * stride(params, 18) + own;
  const device T* k_rows = K + batch * stride(params, 20) + kv_head * stride(params, 22) + own;
  const device T* v_rows = V + batch * stride(params, 26) + kv_head * stride(params, 28) + own;
  const long k_step = stride(params, 24);
  const long v_step = stride(params, 30);
  const device M* mask_row = mask;
  if (has_mask) {
    mask_row = mask + batch * mask_params[0] + head * mask_params[1] + query * mask_params[2];
  }

  float q[each];
  float o[each];
#pragma unroll
  for (int i = 0; i < each; i++) {
    q[i] = scale * float(q_row[i]);
    o[i] = 0;
  }
  float top = -MAXFLOAT;
  float sum = 0;
  if (has_sinks) {
    top = float(sinks[head]);
    sum = 1;
  }
  const int visible = do_causal ? keys - queries + query + 1 : keys;
  const int last = do_causal ? min(keys, keys - queries + first + QUERIES) : keys; // of any query of the threadgroup
  for (int j = 0; j < last; j++) {
    float score = 0;
#pragma unroll
    for (int i = 0; i < each; i++) {
      score += q[i] * float(k_rows[j * k_step + i]);
    }
    score += simd_shuffle_xor(score, ushort(1));
    score += simd_shuffle_xor(score, ushort(2));
    if (j < visible) {
      if (has_mask) {
        score = masked(score, mask_row[j]);
      }
      const float new_top = max(top, score);
      const float factor = precise::exp(top - new_top);
      const float weight = precise::exp(score - new_top);
      top = new_top;
      sum = sum * factor + weight;
#pragma unroll
      for (int i = 0; i < each; i++) {
        o[i] = o[i] * factor + weight * float(v_rows[j * v_step + i]);
      }
    }
  }
  if (row < queries) {
    device T* out = O + batch * stride(params, 32) + head * stride(params, 34) + query * stride(params, 36) + own;
#pragma unroll
    for (int i = 0; i < each; i++) {
      out[i] = stored(T(o[i] / sum));
    }
  }
}

#define INSTANTIATE_FULL(name, T, mask_name, M, D, widths)                                                                   \
  template [[host_name("steel_attention_" #name "_bq32_bk" #widths "_wm4_wn1_mask" #mask_name)]] [[kernel]]                  \
  decltype(attention<T, M, D>) attention<T, M, D>;
#define INSTANTIATE_WIDTHS(name, T, mask_name, M)                                                                            \
  INSTANTIATE_FULL(name, T, mask_name, M, 64, 32_bd64_bv64)                                                                  \
  INSTANTIATE_FULL(name, T, mask_name, M, 72, 32_bd72_bv72)                                                                  \
  INSTANTIATE_FULL(name, T, mask_name, M, 80, 32_bd80_bv80)                                                                  \
  INSTANTIATE_FULL(name, T, mask_name, M, 96, 32_bd96_bv96)                                                                  \
  INSTANTIATE_FULL(name, T, mask_name, M, 128, 16_bd128_bv128)
#define INSTANTIATE_MASKS(name, T) INSTANTIATE_WIDTHS(name, T, bool_, bool) INSTANTIATE_WIDTHS(name, T, name, T)

EACH_FLOAT(INSTANTIATE_MASKS)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302=0 do_causal@301={0|1} params=2,4,128,8,8,2,1040187392,1,1,0,0,8,8,0,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; ok
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302=1 do_causal@301={0|1} params=2,4,128,8,8,2,1040187392,1,1,0,0,8,8,0,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; ok
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302=0 mask_params=5280,1320,40 do_causal@301={0|1} params=2,4,128,8,8,2,1040187392,1,1,0,0,8,8,0,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; ok
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302=1 mask_params=5280,1320,40 do_causal@301={0|1} params=2,4,128,8,8,2,1040187392,1,1,0,0,8,8,0,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; ok
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params={2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,1,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,1,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,1,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,1,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,1,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,1,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,1,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,1,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,1,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,1,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,1,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,1} ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params={2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,1,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,1,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,1,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,1,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,1,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,1,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,1,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,1,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,1,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,1,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,1,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,1} ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,0,2,1040187392,2,0,1,0,1,0,-33,16896,0,128,0,512,0,0,0,128,0,256,0,5,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,0,2,1040187392,2,0,1,0,1,0,-33,16896,0,128,0,512,0,0,0,128,0,256,0,5,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,8,0,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,8,0,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} do_causal@301=1 params=2,4,128,8,8,2,1040187392,1,1,0,0,8,8,0,16896,0,128,0,512,0,8448,0,128,0,256,0,8453,0,128,0,256,0,16896,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; ok
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 do_causal@301=1 params=2,4,128,8,8,2,1040187392,1,1,0,0,8,8,0,16896,0,128,0,512,0,8448,0,128,0,256,0,8453,0,128,0,256,0,16896,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; ok
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} do_causal@301=1 params=2,4,128,8,7,2,1040187392,1,1,0,0,8,7,-1,16896,0,128,0,512,0,8192,0,128,0,256,0,8197,0,128,0,256,0,16896,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 do_causal@301=1 params=2,4,128,8,7,2,1040187392,1,1,0,0,8,7,-1,16896,0,128,0,512,0,8192,0,128,0,256,0,8197,0,128,0,256,0,16896,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,1,1,1,1040187392,1,1,0,0,1,1,0,512,0,128,0,512,0,256,0,128,0,256,0,261,0,128,0,256,0,512,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; ok
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,1,1,1,1040187392,1,1,0,0,1,1,0,512,0,128,0,512,0,256,0,128,0,256,0,261,0,128,0,256,0,512,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; ok
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 3 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 3 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,32,8,2,1040187392,1,1,1,0,0,8,-24,16384,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16384,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; ok
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,32,8,2,1040187392,1,1,1,0,0,8,-24,16384,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16384,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; ok
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 128 1 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 128 1 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 32 4 2 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 32 4 2 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,63,0,512,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,63,0,512,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,511,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,511,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16895,0,128,0,512,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16895,0,128,0,512,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 32 4 1 ; ok
// @witness steel_attention_* ; save_lse@303=1 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; save_lse@303=1 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_*_bd128_* ; has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,4224,0,128,0 ; groups 2 4 2 / 32 4 1 ; ok
// @witness steel_attention_*_bd128_* ; has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,4223,0,128,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_*_bd128_* ; has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,4224,0,127,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_*_bd128_* ; has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16895,0,4224,0,128,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_*_bd128_* ; has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,4224,0,128,0 ; groups 2 4 2 / 32 4 1 ; ok
// @witness steel_attention_*_bd128_* ; has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,4223,0,128,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_*_bd128_* ; has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,4224,0,127,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_*_bd128_* ; has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16895,0,4224,0,128,0 ; groups 2 4 2 / 32 4 1 ; refused
//
// Keys are divided into blocks of 32, or of 16 for the widest heads; ours does not look at these numbers, MLX's reads by them.
//
// @witness steel_attention_*_bk16_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,40,2,1040187392,2,3,1,2,1,8,7,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 32 4 1 ; ok
// @witness steel_attention_*_bk16_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params={2,4,128,33,40,2,1040187392,2,4,1,2,1,8,7,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,40,2,1040187392,2,3,1,3,1,8,7,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,40,2,1040187392,2,3,1,2,1,9,7,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0} ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_*_bk16_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,40,2,1040187392,2,3,1,2,1,8,7,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 32 4 1 ; ok
// @witness steel_attention_*_bk16_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params={2,4,128,33,40,2,1040187392,2,4,1,2,1,8,7,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,40,2,1040187392,2,3,1,3,1,8,7,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,40,2,1040187392,2,3,1,2,1,9,7,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0} ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_*_bk32_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,40,2,1040187392,2,2,1,1,1,8,7,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 32 4 1 ; ok
// @witness steel_attention_*_bk32_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params={2,4,128,33,40,2,1040187392,2,3,1,1,1,8,7,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,40,2,1040187392,2,2,1,2,1,8,7,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,40,2,1040187392,2,2,1,1,1,9,7,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0} ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_*_bk32_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,40,2,1040187392,2,2,1,1,1,8,7,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 32 4 1 ; ok
// @witness steel_attention_*_bk32_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params={2,4,128,33,40,2,1040187392,2,3,1,1,1,8,7,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,40,2,1040187392,2,2,1,2,1,8,7,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,40,2,1040187392,2,2,1,1,1,9,7,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0} ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params={2,4,128,33,8,2,1040187392,1,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,0,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,0,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0} ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=1 align_K@201=0 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=1 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_*_bk16_* ; align_Q@200=1 align_K@201=1 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,32,64,2,1040187392,1,4,1,4,0,0,32,16384,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16384,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; ok
// @witness steel_attention_*_bk32_* ; align_Q@200=1 align_K@201=1 save_lse@303=0 has_mask@300=0 has_sinks@302={0|1} params=2,4,128,32,64,2,1040187392,1,2,1,2,0,0,32,16384,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16384,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; ok
// @witness steel_attention_* ; align_Q@200=0 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params={2,4,128,33,8,2,1040187392,1,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,0,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0|2,4,128,33,8,2,1040187392,2,1,1,0,0,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0} ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=1 align_K@201=0 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_* ; align_Q@200=0 align_K@201=1 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=5280,1320,40 params=2,4,128,33,8,2,1040187392,2,1,1,0,1,8,-25,16896,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16896,0,128,0,512,0 ; groups 2 4 2 / 32 4 1 ; refused
// @witness steel_attention_*_bk16_* ; align_Q@200=1 align_K@201=1 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=8192,2048,64 params=2,4,128,32,64,2,1040187392,1,4,1,4,0,0,32,16384,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16384,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; ok
// @witness steel_attention_*_bk32_* ; align_Q@200=1 align_K@201=1 save_lse@303=0 has_mask@300=1 has_sinks@302={0|1} mask_params=8192,2048,64 params=2,4,128,32,64,2,1040187392,1,2,1,2,0,0,32,16384,0,128,0,512,0,10240,0,128,0,256,0,10245,0,128,0,256,0,16384,0,128,0,512,0 ; groups 1 4 2 / 32 4 1 ; ok
//
// @equivalent steel_attention_*#? ; require: params[4] >= 1 && params[5] >= 1 -> params[4] >= 1 ; params[5] = 0 divides by zero in the shape of the keys
// @equivalent steel_attention_*#? ; inplace: allow O Q ; a lane reads its part of a query before it writes it, and what others make of that is not stored
// @equivalent steel_attention_*float??#{2|3} ; inplace: allow O mask ; the lanes of a query read its row of the mask before they write this row
// @equivalent steel_attention_*bool_#2 ; operation: score: -3.4028235e+38 -> abs(3.4028235e+38) ; the error of a maximum as large as that is so large that nothing is said of weights
// @equivalent steel_attention_*bool_#{2|3} ; constant: score: 3.4028235e+38 -> inf ; likewise
