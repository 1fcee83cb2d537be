package mslc_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
)

// What nothing sets has a value that clang does not know, member by member; what is set, and the gaps between
// members, have none.
func TestUnset(t *testing.T) {
	const source = `
struct Gaps { char a; float3 v; bool b; };
kernel void k(device float* x [[buffer(0)]], device Gaps* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  float set, unset;
  set = 1;
  if (x[i] > 0) unset = 2;
  x[i] = set + unset;
  Gaps g;
  if (x[i] > 1) g.b = true;
  y[i] = g;
  simdgroup_float8x8 m;
  simdgroup_store(m, x, 8);
  float large[300];
  large[i] = 3;
  x[i + 1] = large[x[i] > 2 ? 1 : i];
}
`
	_, m := compile(t, source, mslc.Options{Unset: true})
	for typ, n := range map[string]int{"float": 1, "i8": 2, "<3 x float>": 1, "<64 x float>": 1} {
		assert.Equal(t, n, strings.Count(m, "call "+typ+" @"+air.UnsetValue), "%s in\n%s", typ, m)
	}

	assert.Equal(t, 1, strings.Count(m, "constant [1200 x i8], align 256"))
	_, plain := compile(t, source, mslc.Options{})
	assert.NotContains(t, plain, "unset")
}
