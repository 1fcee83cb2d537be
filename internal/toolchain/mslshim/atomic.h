// Atomic variables. As in matrix.h, the functions of AIR get the address space of the pointer (global
// or local) after compilation.
#pragma once
#pragma clang system_header
#include "simd.h"

namespace metal {
enum memory_order { memory_order_relaxed = 0, memory_order_acq_rel = 4, memory_order_seq_cst = 5 };
template <typename T>
struct atomic {
  T value;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<bool> atomic_bool;
typedef atomic<float> atomic_float;
typedef atomic<ulong> atomic_ulong;
} // namespace metal

// The last arguments are the order, the scope (2, the device) and "volatile".
#define MSL_AIR_ATOMIC(R, NAME, ARGS, AIR) \
  extern "C" R NAME ARGS __asm__("air.atomic.generic." AIR) __attribute__((nothrow));
namespace msl {
#define MSL_ATOMIC_MEMORY(T, S)                                                                          \
  MSL_AIR_ATOMIC(T, msl_atomic_load_##T, (const T*, int, int, bool), "load." S)                          \
  MSL_AIR_ATOMIC(void, msl_atomic_store_##T, (T*, T, int, int, bool), "store." S)                        \
  MSL_AIR_ATOMIC(T, msl_atomic_exchange_##T, (T*, T, int, int, bool), "xchg." S)                         \
  MSL_AIR_ATOMIC(T, msl_atomic_compare_##T, (T*, T*, T, int, int, int, bool), "cmpxchg.weak." S)         \
  MSL_INLINE T atomic_load(const T* p, int o) { return msl_atomic_load_##T(p, o, 2, true); }             \
  MSL_INLINE void atomic_store(T* p, T x, int o) { msl_atomic_store_##T(p, x, o, 2, true); }             \
  MSL_INLINE T atomic_exchange(T* p, T x, int o) { return msl_atomic_exchange_##T(p, x, o, 2, true); }   \
  MSL_INLINE bool atomic_compare(T* p, T* e, T x, int o, int f) {                                        \
    const T expected = *e;                                                                               \
    return msl_atomic_compare_##T(p, e, x, o, f, 2, true) == expected;                                   \
  }
#define MSL_ATOMIC_FETCH(T, S, NAME)                                                                     \
  MSL_AIR_ATOMIC(T, msl_atomic_##NAME##_##T, (T*, T, int, int, bool), #NAME "." S)                       \
  MSL_INLINE T atomic_##NAME(T* p, T x, int o) { return msl_atomic_##NAME##_##T(p, x, o, 2, true); }
#define MSL_ATOMIC_INTEGER(T, S)                                                                         \
  MSL_ATOMIC_FETCH(T, S, add) MSL_ATOMIC_FETCH(T, S, sub) MSL_ATOMIC_FETCH(T, S, max)                    \
  MSL_ATOMIC_FETCH(T, S, min) MSL_ATOMIC_FETCH(T, S, and) MSL_ATOMIC_FETCH(T, S, or)                     \
  MSL_ATOMIC_FETCH(T, S, xor)
MSL_ATOMIC_MEMORY(int, "i32")
MSL_ATOMIC_MEMORY(float, "f32")
MSL_ATOMIC_INTEGER(int, "s.i32")
MSL_ATOMIC_INTEGER(uint, "u.i32")
MSL_ATOMIC_FETCH(float, "f32", add)
MSL_ATOMIC_FETCH(float, "f32", sub)
// AIR does not tell uint from int where the sign does not matter.
MSL_INLINE uint atomic_load(const uint* p, int o) { return uint(atomic_load(reinterpret_cast<const int*>(p), o)); }
MSL_INLINE void atomic_store(uint* p, uint x, int o) { atomic_store(reinterpret_cast<int*>(p), int(x), o); }
MSL_INLINE uint atomic_exchange(uint* p, uint x, int o) { return uint(atomic_exchange(reinterpret_cast<int*>(p), int(x), o)); }
MSL_INLINE bool atomic_compare(uint* p, uint* e, uint x, int o, int f) {
  return atomic_compare(reinterpret_cast<int*>(p), reinterpret_cast<int*>(e), int(x), o, f);
}
} // namespace msl

extern "C" void msl_atomic_fence(int, int, int) __asm__("air.atomic.fence") __attribute__((convergent, nothrow));
namespace metal {
MSL_INLINE void atomic_thread_fence(mem_flags f, memory_order o, thread_scope s = thread_scope_device) {
  msl_atomic_fence(int(f), int(o), int(s));
}
template <typename T>
MSL_INLINE T atomic_load_explicit(const volatile atomic<T>* p, memory_order o) {
  return ::msl::atomic_load(const_cast<const T*>(&p->value), o);
}
template <typename T, typename V>
MSL_INLINE void atomic_store_explicit(volatile atomic<T>* p, V x, memory_order o) {
  ::msl::atomic_store(const_cast<T*>(&p->value), T(x), o);
}
template <typename T, typename V>
MSL_INLINE T atomic_exchange_explicit(volatile atomic<T>* p, V x, memory_order o) {
  return ::msl::atomic_exchange(const_cast<T*>(&p->value), T(x), o);
}
template <typename T, typename V>
MSL_INLINE bool atomic_compare_exchange_weak_explicit(
    volatile atomic<T>* p, T* expected, V x, memory_order o, memory_order f) {
  return ::msl::atomic_compare(const_cast<T*>(&p->value), expected, T(x), o, f);
}
#define MSL_FETCH(NAME)                                                                           \
  template <typename T, typename V>                                                               \
  MSL_INLINE T atomic_fetch_##NAME##_explicit(volatile atomic<T>* p, V x, memory_order o) {       \
    return ::msl::atomic_##NAME(const_cast<T*>(&p->value), T(x), o);                              \
  }
MSL_FETCH(add)
MSL_FETCH(sub)
MSL_FETCH(max)
MSL_FETCH(min)
MSL_FETCH(and)
MSL_FETCH(or)
MSL_FETCH(xor)
} // namespace metal
