package mslcheck_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/toolchain/mslcheck"
	"github.com/mlxc/mlxc/msl/decl"
)

// TestCompare damages a source and its declaration in each way that Compare sees.
func TestCompare(t *testing.T) {
	const source = `#include <metal_stdlib>
using namespace metal;
#pragma clang fp contract(off)
constant bool short_rows [[function_constant(20)]];
// @kernel k
// @constant 20 short_rows bool
// @arg 0 x device f32[n] read
// @arg 1 y device f32[n] write
// @arg 2 size constant u32
// @threads n, 1, 1
// @group _, 1, 1
// @term y[i] = round(f32, x[i])
[[kernel]] void k(const device float* x [[buffer(0)]], device float* y [[buffer(1)]], constant uint& size [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
  y[i] = x[i] + (short_rows ? float(size) : float(size));
}
`
	compare := func(change ...string) []string {
		text := strings.NewReplacer(change...).Replace(source)
		l, err := mslcheck.Check(t.Context(), "k.metal", text)
		require.NoError(t, err, text)
		read, err := decl.Parse("k.metal", text)
		require.NoError(t, err)
		var out []string
		for _, err := range l.Compare("k.metal", text, read.Decls) {
			out = append(out, err.Error())
		}
		return out
	}
	assert.Empty(t, compare())
	for _, c := range []struct{ from, to, want string }{
		{"#pragma clang fp contract(off)", "//", "k.metal:13: kernel k stands before #pragma clang fp contract(off), or without it: the compiler may contract what the term rounds"},
		{"@kernel k", "@kernel other", "k.metal:13: kernel k has no declaration: write // @kernel k and what follows above it (docs/kernels.md)"},
		{"@kernel k", "@kernel other", "k.metal:5: @kernel other: the source has no kernel of this host name"},
		{"// @arg 2 size constant u32", "// @let size = 1", `k.metal:13: kernel k has the argument "2 size constant u32 read", which its declaration lacks`},
		{"// @threads", "// @arg 3 more constant u32\n// @threads", `k.metal:5: @kernel k declares the argument "3 more constant u32 read", which the source lacks`},
		{"size constant u32", "size constant i32", `k.metal:5: @kernel k declares the argument "2 size constant i32 read", which is "2 size constant u32 read" in the source`},
		{"constant 20 short_rows", "constant 21 short_rows", "k.metal:5: @kernel k: the source has no function constant 21"},
		{"constant 20 short_rows", "constant 20 quick", "k.metal:5: @kernel k declares the function constant 20 quick bool, which is short_rows bool in the source"},
		{"[[kernel]] void k", "[[kernel]] void between(device float* y [[buffer(0)]]) { y[0] = 0; }\n[[kernel]] void k", "k.metal:5: kernel between stands between k and its declaration"},
	} {
		assert.Contains(t, compare(c.from, c.to), c.want)
	}
}
