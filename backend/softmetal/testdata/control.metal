// Where threads part and meet again. Every thread writes how many were with it.
#include <metal_stdlib>
#include <metal_simdgroup>
using namespace metal;

// Both branches say the same, and are no less two for that.
[[kernel]] void parted(
    device uint* out [[buffer(0)]], uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  uint n;
  if (lane % 3 == 0) {
    n = simd_sum(1u);
  } else {
    n = simd_sum(1u);
  }
  out[2 * i] = n;
  out[2 * i + 1] = simd_sum(1u);
}

// The mask of those who are there, asked for twice, differs inside of a branch.
[[kernel]] void nested(
    device uint* out [[buffer(0)]], uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  uint a = simd_sum(1u), b = 0, c = 0, d = 0;
  if (lane < 16) {
    b = simd_sum(1u);
    if (lane < 5) {
      c = simd_sum(1u);
    }
    d = simd_sum(1u);
  }
  out[5 * i] = a;
  out[5 * i + 1] = b;
  out[5 * i + 2] = c;
  out[5 * i + 3] = d;
  out[5 * i + 4] = simd_sum(1u);
}

// A thread goes round lane % 5 times.
[[kernel]] void rounds(
    device uint* out [[buffer(0)]], uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  uint n = 0;
  for (uint k = 0; k < lane % 5; k++) {
    n = n * 33 + simd_sum(1u);
  }
  out[2 * i] = n;
  out[2 * i + 1] = simd_sum(1u);
}

// The same, where the end of the loop stands in its middle and one in two threads skips the rest.
[[kernel]] void middle(
    device uint* out [[buffer(0)]], const constant uint& most [[buffer(1)]], uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  uint n = 0, m = 0, k = 0;
  while (true) {
    n = n * 33 + simd_sum(1u);
    if (k >= lane % 5) {
      break;
    }
    k++;
    if (lane & 1) {
      continue;
    }
    m = m * 33 + simd_sum(1u);
    if (k > most) {
      break;
    }
  }
  out[3 * i] = n;
  out[3 * i + 1] = m;
  out[3 * i + 2] = simd_sum(1u);
}

// A loop that threads leave in two ways, inside of another that all go round.
[[kernel]] void loops(
    device uint* out [[buffer(0)]], const constant uint& times [[buffer(1)]], uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  uint n = 0, m = 0;
  for (uint t = 0; t < times; t++) {
    for (uint k = 0;; k++) {
      if (k == lane / 8) {
        break;
      }
      if (k == 2) {
        break;
      }
      n += simd_sum(1u);
    }
    m = m * 33 + simd_sum(1u);
  }
  out[3 * i] = n;
  out[3 * i + 1] = m;
  out[3 * i + 2] = simd_sum(1u);
}

[[kernel]] void returned(
    device uint* out [[buffer(0)]], uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  if (lane >= 20) {
    out[2 * i] = out[2 * i + 1] = 77;
    return;
  }
  out[2 * i] = simd_sum(1u);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 3) {
    out[2 * i + 1] = 78;
    return;
  }
  out[2 * i + 1] = simd_sum(1u);
}

static uint with(uint x) { return simd_sum(x) * 2; }

[[kernel]] void cases(
    device uint* out [[buffer(0)]], uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  uint n = 0;
  switch (lane % 4) {
    case 0:
      n = with(1);
      break;
    case 1:
      n = simd_max(lane);
      break;
    case 2:
      n = simd_min(lane);
      // and goes on
    default:
      n = n * 100 + with(1);
  }
  out[2 * i] = n;
  out[2 * i + 1] = with(1);
}

// Sums of a threadgroup in memory of its own and in memory that the host gave the length of, by
// halves, with a barrier in the loop and one in a branch that all threads take or none.
[[kernel]] void halves(
    const device uint* in [[buffer(0)]], device uint* out [[buffer(1)]], const constant uint& twice [[buffer(2)]],
    threadgroup uint* given [[threadgroup(0)]], threadgroup uint* other [[threadgroup(1)]], uint i [[thread_position_in_grid]],
    uint at [[thread_index_in_threadgroup]], uint n [[threads_per_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  threadgroup uint own[1024];
  own[at] = in[i];
  given[at] = in[i] * 2;
  other[at] = in[i] * 3;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 512; k > 0; k /= 2) {
    uint a = 0, b = 0, c = 0;
    if (at + k < n && at < k) {
      a = own[at + k];
      b = given[at + k];
      c = other[at + k];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    own[at] += a;
    given[at] += b;
    other[at] += c;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (twice) {
    threadgroup_barrier(mem_flags::mem_device);
    if (at == 0) {
      own[0] *= 2;
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (at == n - 1) {
    out[3 * group] = own[0];
    out[3 * group + 1] = given[0];
    out[3 * group + 2] = other[0];
  }
}

#define PLACES                                                                                   \
  device uint* out [[buffer(0)]], uint3 grid [[thread_position_in_grid]],                        \
      uint3 local [[thread_position_in_threadgroup]], uint3 group [[threadgroup_position_in_grid]], \
      uint3 size [[threads_per_threadgroup]], uint3 groups [[threadgroups_per_grid]],            \
      uint3 all [[threads_per_grid]], uint3 dispatched [[dispatch_threads_per_threadgroup]],     \
      uint at [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],          \
      uint simd [[simdgroup_index_in_threadgroup]], uint simds [[simdgroups_per_threadgroup]],   \
      uint width [[threads_per_simdgroup]], uint quad [[quadgroup_index_in_threadgroup]],        \
      uint corner [[thread_index_in_quadgroup]], uint most [[dispatch_simdgroups_per_threadgroup]]

static void write(device uint* to, uint3 v) {
  to[0] = v.x;
  to[1] = v.y;
  to[2] = v.z;
}

#define WRITE_PLACES                                                   \
  device uint* to = out + 32 * ((grid.z * all.y + grid.y) * all.x + grid.x); \
  write(to, grid);                                                     \
  write(to + 3, local);                                                \
  write(to + 6, group);                                                \
  write(to + 9, size);                                                 \
  write(to + 12, groups);                                              \
  write(to + 15, all);                                                 \
  write(to + 18, dispatched);                                          \
  write(to + 21, uint3(at, lane, simd));                               \
  write(to + 24, uint3(simds, width, quad));                           \
  write(to + 27, uint3(corner, most, 0));

// Without exchange, threads run as the rows of a loop.
[[kernel]] void places_row(PLACES) { WRITE_PLACES }

[[kernel]] void places(PLACES) {
  WRITE_PLACES
  to[30] = simd_sum(1u);
}

[[kernel]] void short_places(
    device ushort* out [[buffer(0)]], ushort2 grid [[thread_position_in_grid]], ushort2 all [[threads_per_grid]],
    ushort2 local [[thread_position_in_threadgroup]]) {
  out[2 * (grid.y * all.x + grid.x)] = local.x;
  out[2 * (grid.y * all.x + grid.x) + 1] = local.y;
}

// Integer division has no faults: by zero it gives some value, as does the least number by -1.
[[kernel]] void divided(
    const device int* a [[buffer(0)]], const device int* b [[buffer(1)]], device int* out [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  out[6 * i] = a[i] / b[i];
  out[6 * i + 1] = a[i] % b[i];
  out[6 * i + 2] = int(uint(a[i]) / uint(b[i]));
  out[6 * i + 3] = int(uint(a[i]) % uint(b[i]));
  out[6 * i + 4] = int(long(a[i]) / long(b[i]));
  out[6 * i + 5] = short(a[i]) / short(b[i]);
}
