package mslc_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
)

const withPadding = `
#include <metal_stdlib>
using namespace metal;
constant int32_t wide [[function_constant(3)]];
struct Shape { uint rows; uint unused; uint16_t stride; bool turned; uint64_t where; };
kernel void shaped(constant Shape &s [[buffer(0)]], constant uint *table [[buffer(1)]], device uint *out [[buffer(2)]],
                   constant Shape &all [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  uint v = s.rows * s.stride;
  if (wide == 2 && s.turned) v += uint(s.where);
  constant uint *words = (constant uint *)&all;
  out[i] = v + table[i] + words[i];
}
struct Pair { uint a; uint unused; uint b; };
kernel void chosen(constant Pair &p [[buffer(0)]], device uint *out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  constant uint *which = i % 2 == 1 ? &p.a : &p.b;
  out[i] = *which;
}
kernel void other(device uint *out [[buffer(0)]]) { out[0] = 1; }
`

// What a kernel never reads of its constant arguments: padding, and fields of no use. What is read by an index may be any byte.
func TestUnread(t *testing.T) {
	u, err := mslc.Compile(t.Context(), "k", withPadding, mslc.Options{Kernels: []string{"shaped"}})
	require.NoError(t, err)
	got, err := u.Unread("shaped")
	require.NoError(t, err)
	var unread []int
	for i, is := range got[0] {
		if is {
			unread = append(unread, i)
		}
	}
	require.Len(t, got[0], 24)
	assert.Equal(t, []int{4, 5, 6, 7, 11, 12, 13, 14, 15}, unread)
	assert.NotContains(t, got, 1)
	assert.NotContains(t, got, 3)
	assert.Equal(t, []air.FunctionConstant{{Name: "wide", Index: 3, Type: "int"}}, u.Kernels[0].Constants)
}

// An address may be that of one field or another.
func TestUnreadChosen(t *testing.T) {
	u, err := mslc.Compile(t.Context(), "k", withPadding, mslc.Options{Kernels: []string{"chosen"}})
	require.NoError(t, err)
	got, err := u.Unread("chosen")
	require.NoError(t, err)
	f, y := false, true
	assert.Equal(t, map[int][]bool{0: {f, f, f, f, y, y, y, y, f, f, f, f}}, got)
}

func TestNames(t *testing.T) {
	names, err := mslc.Names(t.Context(), "k", withPadding, mslc.Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"shaped", "chosen", "other"}, names)
	_, err = mslc.Names(t.Context(), "k", "#include \"none.h\"\n", mslc.Options{})
	assert.ErrorContains(t, err, "none.h")
}
