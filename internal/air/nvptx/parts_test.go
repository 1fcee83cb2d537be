package nvptx

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// partsText is a kernel that multiplies factors in parts where cond holds, and stores a number of its own elsewhere.
func partsText(cond string) string {
	words := make([]string, 18)
	for i := range words {
		words[i] = fmt.Sprintf("i32 %%p%d", i%3)
	}
	return `define void @k(ptr addrspace(1) %y, i32 %group, i32 %lane) {
` + cond + `
  br i1 %go, label %mma, label %plain
mma:
  %v = load float, ptr addrspace(1) %y
  %p = call <4 x i32> @air.simdgroup_parts_of.f32(float %v, float 3.0) #1
  %p0 = extractelement <4 x i32> %p, i32 0
  %p1 = extractelement <4 x i32> %p, i32 1
  %p2 = extractelement <4 x i32> %p, i32 2
  %s = call <4 x float> @air.simdgroup_parts_multiply.f32(` + strings.Join(words, ", ") + `) #0
  store <4 x float> %s, ptr addrspace(1) %y, align 4
  br label %end
plain:
  store float 4.25, ptr addrspace(1) %y
  br label %end
end:
  ret void
}
declare i1 @air.simdgroup_parts_known() #1
declare i1 @air.simd_any(i1) #0
declare i1 @air.simd_all(i1) #0
declare <4 x i32> @air.simdgroup_parts_of.f32(float, float) #1
declare <4 x float> @air.simdgroup_parts_multiply.f32(` + strings.Repeat("i32, ", 17) + `i32) #0
attributes #0 = { convergent nounwind }
attributes #1 = { nounwind }
`
}

// TestParts: functions of parts mean something where tensor cores multiply factors in f32, and where all threads
// of a warp come to; nothing is left of them elsewhere.
func TestParts(t *testing.T) {
	c, err := clang.Find(t.Context())
	require.NoError(t, err)
	make := func(text string, launch Launch) (string, error) {
		return launchOf(t, c, launch, text, air.Arg{Name: "y", Space: air.Device},
			air.Arg{Name: "group", Attribute: "threadgroup_position_in_grid"}, air.Arg{Name: "lane", Attribute: "thread_index_in_simdgroup"})
	}
	const plain = "0f40880000" // 4.25
	known := "  %go = call i1 @air.simdgroup_parts_known() #1"
	text, err := make(partsText(known), Launch{MMA: AllMMA})
	require.NoError(t, err)
	assert.Equal(t, 6, strings.Count(text, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"))
	assert.Equal(t, 3, strings.Count(text, "cvt.rn.bf16x2.f32"))
	assert.NotContains(t, strings.ToLower(text), plain)
	assert.NotContains(t, text, ".minnctapersm", "a block may have 1024 threads")
	assert.Equal(t, []string{".maxntid 128", ".minnctapersm 3"}, bounds(&air.Kernel{MaxThreadgroup: 128}, true))
	for _, which := range []MMA{NoMMA, HalfMMA} {
		text, err = make(partsText(known), Launch{MMA: which})
		require.NoError(t, err)
		assert.NotContains(t, text, "mma.sync")
		assert.NotContains(t, text, "bf16x2")
		assert.NotContains(t, text, "simdgroup_parts")
	}

	m, err := air.ReadModule("f.ll", []byte(partsText(known))) // for a machine that is no GPU
	require.NoError(t, err)
	require.NoError(t, m.Prepare("k", nil, false))
	assert.NotContains(t, m.String(), "simdgroup_parts")
	assert.Contains(t, m.String(), "%go = or i1 false, false")

	for cond, ok := range map[string]bool{
		"  %go = icmp eq i32 %group, 1":                                             true,
		"  %go = icmp ult i32 %lane, 3":                                             false,
		"  %low = icmp ult i32 %lane, 3\n  %go = call i1 @air.simd_any(i1 %low) #0": true,
		"  %low = icmp ult i32 %lane, 3\n  %go = call i1 @air.simd_all(i1 %low) #0": true,
		"  %low = icmp ult i32 %lane, 3\n  br i1 %low, label %some, label %end\nsome:\n  %odd = trunc i32 %lane to i1\n  %go = call i1 @air.simd_any(i1 %odd) #0": false,
	} {
		_, err := make(partsText(cond), Launch{MMA: AllMMA})
		if ok {
			assert.NoError(t, err, cond)
		} else {
			assert.ErrorContains(t, err, "all threads of a simdgroup", cond)
		}
	}

	_, err = make(strings.ReplaceAll(partsText(known), "<4 x i32> @air", "<3 x i32> @air"), Launch{MMA: AllMMA})
	assert.ErrorContains(t, err, "simdgroup_parts_of.f32 has another type")
}
