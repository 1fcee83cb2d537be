package litmus

// source has the kernels of all tests. A step reads its element, spins, and writes the element last: a write by
// another step meanwhile is lost. The spinning depends on what was read, and adds 0 to the result.
const source = `#include <metal_stdlib>
using namespace metal;

struct Step { uint times, plus, spin, begin, end, zero; };

static inline uint next(uint v, constant Step& s) {
  uint t = s.begin + (v & s.zero);
  for (uint k = 0; k < s.spin; k++)
    t = t * 1664525u + 1013904223u;
  return v * s.times + s.plus + (t - s.end);
}

kernel void litmus_step(device uint* x [[buffer(0)]], constant Step& s [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  x[i] = next(x[i], s);
}

// The same, for a pipeline that nothing dispatches but an indirect command buffer.
kernel void litmus_cold(device uint* x [[buffer(0)]], constant Step& s [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  x[i] = next(x[i], s);
}

// The same, through memory of the threadgroup: what a thread puts there another one brings back.
kernel void litmus_group(device uint* x [[buffer(0)]], constant Step& s [[buffer(1)]], threadgroup uint* t [[threadgroup(0)]],
                         uint i [[thread_position_in_grid]], uint k [[thread_index_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
  t[n - 1 - k] = next(x[i], s);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint other = t[k];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  t[n - 1 - k] = other;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = t[k];
}

kernel void litmus_copy(const device uint* from [[buffer(0)]], device uint* to [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  to[i] = from[i];
}

kernel void litmus_constant(constant uint* from [[buffer(0)]], device uint* to [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  to[i] = from[i];
}
`

// Sizes of the chain that programs compute.
const (
	elements = 64  // of the buffer x
	group    = 32  // threads of a threadgroup
	steps    = 6   // in a chain
	stride   = 256 // bytes from the argument of one step to the next: a multiple of any alignment
)

// step is the argument of a step, with the layout of struct Step in the kernels.
type step struct{ times, plus, spin, begin, end, zero uint32 }

// stepOf returns the argument of step i of a chain: every second step is slow, by spin turns.
func stepOf(i, spin int) step {
	s := step{times: uint32(2*i + 3), plus: uint32(7*i + 1), begin: uint32(i) * 2654435761}
	s.end = s.begin
	if i%2 == 0 {
		s.spin = uint32(spin)
		for range spin {
			s.end = s.end*1664525 + 1013904223
		}
	}
	return s
}

// first returns the initial value of element i of x.
func first(i int) uint32 { return uint32(5 + i) }

// chained returns the value of element i after n steps in order.
func chained(i, n int) uint32 {
	v := first(i)
	for k := range n {
		v = v*uint32(2*k+3) + uint32(7*k+1)
	}
	return v
}
