// What kernels share that normalise rows of x by their root mean square on the way into a product, as the kernel rms of
// norm.metal does.

#include "products.h"

// The norm of rows of K elements, whose element k of row m is {to}[m,k].
//
// @lines norm(K; to)
// @where inv[m] = rsqrt(sum[rms](k < {K}, x[m,k] * x[m,k]) / f32({K}) + eps)
// @where {to}[m,k] = round({T}, norm[k] * round({T}, x[m,k] * inv[m]))
// @end

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
