package air

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// list is n elements of a vector, of which the first are given.
func list(n int, rest string, first ...string) string {
	for len(first) < n {
		first = append(first, rest)
	}
	return "<" + strings.Join(first, ", ") + ">"
}

// TestNarrow holds lines of matrices against those of the two elements that a lane has.
func TestNarrow(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"  %1 = load <64 x float>, ptr %0, align 256", "  %1 = load <2 x float>, ptr %0, align 256"},
		{"  store <64 x half> zeroinitializer, ptr %0, align 128, !dbg !3", "  store <2 x half> zeroinitializer, ptr %0, align 128, !dbg !3"},
		{"  %1 = phi <64 x float> [ undef, %a ], [ %2, %b ]", "  %1 = phi <2 x float> [ undef, %a ], [ %2, %b ]"},
		{"  %1 = phi <64 x half> [ " + list(64, "half undef", "half 0xH3C00") + ", %a ]", "  %1 = phi <2 x half> [ <half 0xH3C00, half undef>, %a ]"},
		{"  %1 = extractelement <64 x float> %0, i64 1", "  %1 = extractelement <2 x float> %0, i64 1"},
		{"  %1 = insertelement <64 x float> " + list(64, "float undef", "float 1.0") + ", float %0, i64 1, !dbg !7", "  %1 = insertelement <2 x float> <float 1.0, float undef>, float %0, i64 1, !dbg !7"},
		{"  %1 = shufflevector <64 x float> %a, <64 x float> poison, <2 x i32> <i32 1, i32 0>", "  %1 = shufflevector <2 x float> %a, <2 x float> poison, <2 x i32> <i32 1, i32 0>"},
		{"  %1 = shufflevector <2 x float> %a, <2 x float> %b, <64 x i32> " + list(64, "i32 poison", "i32 3", "i32 0"), "  %1 = shufflevector <2 x float> %a, <2 x float> %b, <2 x i32> <i32 3, i32 0>"},
		{"  %1 = shufflevector <64 x float> %a, <64 x float> %b, <64 x i32> " + list(64, "i32 100", "i32 0", "i32 65"), "  %1 = shufflevector <2 x float> %a, <2 x float> %b, <2 x i32> <i32 0, i32 3>"},
		{"  %1 = call <64 x float> @air.simdgroup_matrix_8x8_init_filled.v64f32.f32(float 0.0)", "  %1 = call <2 x float> @air.simdgroup_matrix_8x8_init_filled.v64f32.f32(float 0.0)"},
		{"  %1 = alloca [4 x <64 x float>], align 256", "  %1 = alloca [4 x <64 x float>], align 256"},
		{"  %1 = getelementptr [4 x <64 x float>], ptr %0, i64 0, i64 %2", "  %1 = getelementptr [4 x <64 x float>], ptr %0, i64 0, i64 %2"},
		// What would make another element of use.
		{"  %1 = extractelement <64 x float> %0, i64 2", ""},
		{"  %1 = extractelement <64 x float> %0, i64 %n", ""},
		{"  %1 = shufflevector <64 x float> %a, <64 x float> poison, <2 x i32> <i32 2, i32 0>", ""},
		{"  %1 = shufflevector <64 x float> %a, <64 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>", ""},
		{"  %1 = shufflevector <64 x float> %a, <64 x float> poison, <64 x i32> " + list(64, "i32 0"), ""},
		{"  %1 = shufflevector <2 x float> %a, <2 x float> poison, <64 x i32> " + list(64, "i32 0"), ""},
		{"  %1 = shufflevector <4 x float> %a, <4 x float> poison, <64 x i32> " + list(64, "i32 poison", "i32 0"), ""},
		{"  %1 = bitcast <64 x float> %0 to <64 x i32>", ""},
		{"  %1 = call <64 x float> @llvm.fma.v64f32(<64 x float> %0, <64 x float> %0, <64 x float> %0)", ""},
		{"  store <64 x float> %1, ptr addrspace(3) %0, align 256", ""},
		{"  %1 = load [2 x <64 x float>], ptr %0, align 256", ""},
		{"  %1 = extractvalue { <64 x float>, i32 } %0, 0", ""},
	} {
		got, ok := narrowLine(c.line)
		if !ok {
			got = ""
		}
		assert.Equal(t, c.want, got, c.line)
	}
}

// TestNarrowModule checks that a module is narrowed as a whole or not at all.
func TestNarrowModule(t *testing.T) {
	const text = `%%"struct.a::b" = type { <64 x float> }
%%outer = type { i32, [2 x %%"struct.a::b"] }
define <64 x float> @helper(<64 x float> noundef %%x, i32 %%n) {
  %s
  ret <64 x float> %%x
}
declare <64 x float> @air.simdgroup_matrix_8x8_init_diag.v64f32.f32(float)
`
	for line, narrowed := range map[string]bool{
		"%y = add i32 %n, 1":                        true,
		`%y = load %"struct.a::b", ptr null`:        true,
		`%y = extractvalue %"struct.a::b" undef, 0`: false,
		`%y = extractvalue %outer undef, 1, 0, 0`:   false,
		`%y = extractvalue %outermost undef, 1`:     true,
		"%y = bitcast <64 x float> %x to i2048":     false,
	} {
		m, err := ReadModule("m", []byte(fmt.Sprintf(text, line)))
		require.NoError(t, err)
		m.narrow()
		want := "<64 x float>"
		if narrowed {
			want = "<2 x float>"
		}
		assert.Equal(t, want, m.Declares[0].Result, line)
		assert.Equal(t, want, m.Funcs[0].Params[0].Typ, line)
		assert.Equal(t, narrowed, strings.Contains(m.Funcs[0].Head, "<2 x float> @helper(<2 x float> noundef %x"), line)
		assert.Contains(t, m.Types[0], "<64 x float>", line)
	}
}
