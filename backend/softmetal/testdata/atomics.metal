// Atomic operations of threads in many threadgroups, on several workers at once.
#include <metal_stdlib>
using namespace metal;

[[kernel]] void integers(
    device atomic_int* s [[buffer(0)]], device atomic_uint* u [[buffer(1)]], const device int* in [[buffer(2)]],
    device uint* tickets [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  const int x = in[i];
  atomic_fetch_add_explicit(&s[0], x, memory_order_relaxed);
  atomic_fetch_min_explicit(&s[1], x, memory_order_relaxed);
  atomic_fetch_max_explicit(&s[2], x, memory_order_relaxed);
  atomic_fetch_sub_explicit(&s[3], x, memory_order_relaxed);
  atomic_fetch_add_explicit(&u[0], uint(x), memory_order_relaxed);
  atomic_fetch_min_explicit(&u[1], uint(x), memory_order_relaxed);
  atomic_fetch_max_explicit(&u[2], uint(x), memory_order_relaxed);
  atomic_fetch_and_explicit(&u[3], uint(x) | 0xff00u, memory_order_relaxed);
  atomic_fetch_or_explicit(&u[4], uint(x), memory_order_relaxed);
  atomic_fetch_xor_explicit(&u[5], uint(x), memory_order_relaxed);
  tickets[i] = atomic_fetch_add_explicit(&u[6], 1u, memory_order_relaxed);
}

[[kernel]] void floats(device atomic_float* f [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(&f[0], in[i], memory_order_relaxed);
  // The greatest, and a product, by comparing and exchanging.
  float was = atomic_load_explicit(&f[1], memory_order_relaxed);
  while (was < in[i] && !atomic_compare_exchange_weak_explicit(&f[1], &was, in[i], memory_order_relaxed, memory_order_relaxed)) {
  }
}

// A chain: each thread leaves its number and takes that of the thread before. The first takes ~0.
[[kernel]] void chain(device atomic_uint* last [[buffer(0)]], device uint* before [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  before[i] = atomic_exchange_explicit(last, i, memory_order_relaxed);
}

// Those of a threadgroup in its own memory.
[[kernel]] void counted(
    const device uint* in [[buffer(0)]], device atomic_uint* out [[buffer(1)]], uint i [[thread_position_in_grid]],
    uint at [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint bins[16];
  if (at < 16) {
    atomic_store_explicit(&bins[at], 0u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&bins[in[i] % 16], 1u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (at < 16) {
    atomic_fetch_add_explicit(&out[at], atomic_load_explicit(&bins[at], memory_order_relaxed), memory_order_relaxed);
  }
}
