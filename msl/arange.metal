// Numbers that count up, such as indices that were left out.

#include "common.h"

// @kernel   arange{T:uint32=u32|int32=i32}
// @mlx      unlisted
// @arg 0 start  constant {T}
// @arg 1 step   constant {T}
// @arg 2 out    device {T}[n] write
// @threads  n, 1, 1
// @group    _, _, _
// @term     out[i] = {T}(start + i * step)
template <typename T>
[[kernel]] void arange(constant T& start [[buffer(0)]], constant T& step [[buffer(1)]], device T* out [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  out[i] = T(uint(start) + i * uint(step));
}

template [[host_name("arangeuint32")]] [[kernel]] decltype(arange<uint>) arange<uint>;
template [[host_name("arangeint32")]] [[kernel]] decltype(arange<int>) arange<int>;

// @witness arange* ; start=0 step=1 ; threads 7 1 1 / 7 1 1 ; ok
// @witness arange* ; start=0 step=1 ; threads 7 2 1 / 7 1 1 ; refused
// @witness arange* ; start=0 step=1 ; threads 7 1 2 / 7 1 1 ; refused
