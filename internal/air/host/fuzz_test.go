package host

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
)

// plainModule is a module with what the text handling looks for.
const plainModule = `target triple = "air64-apple-macosx14.0.0"
%"struct.a::b" = type { <64 x float> }
@c.MTL_FC_INIT_3_b = internal addrspace(2) externally_initialized constant i8 undef, section "air.fc_initializer", align 1
@mlxc.unset.memory.1 = external constant [16 x i8], align 256
@shared = internal unnamed_addr addrspace(3) global [32 x float] undef, align 4
define void @k(ptr addrspace(1) noundef "air-buffer-no-alias" %0, i32 noundef %1) local_unnamed_addr #0 {
  %3 = alloca [4 x bfloat], align 8
  %4 = load bfloat, ptr %3, align 2, !tbaa !1
  %5 = fadd fast bfloat %4, 0xR3F80
  %6 = sdiv i32 %1, 7
  br label %7

7:                                                ; preds = %2, %7
  %8 = phi i32 [ 0, %2 ], [ %9, %7 ]
  %9 = add i32 %8, 1
  %10 = tail call float @air.simd_sum.f32(float 1.000000e+00) #1
  store float %10, ptr addrspace(3) getelementptr inbounds ([32 x float], ptr addrspace(3) @shared, i64 0, i64 3), align 4
  tail call void @air.wg.barrier(i32 2, i32 1) #1
  %11 = tail call <64 x float> @air.simdgroup_matrix_8x8_init_filled.v64f32.f32(float %10)
  %12 = extractelement <64 x float> %11, i64 0
  store float %12, ptr addrspace(1) %0, align 4
  %13 = icmp ult i32 %9, 4
  %unset = call i32 @unset.mlxc.0()
  %some = select i1 %13, i32 undef, i32 %unset
  %from = call i32 @air.simd_shuffle.s.i32(i32 %some, i16 2)
  %odd = load i32, ptr @mlxc.unset.memory.1, align 4
  %at = getelementptr inbounds [4 x bfloat], ptr %3, i64 0, i32 %from
  store bfloat %5, ptr %at, align 2
  %less = icmp ult i32 %odd, %from
  br i1 %less, label %7, label %14

14:                                               ; preds = %7
  ret void
}
declare i32 @unset.mlxc.0()
declare i32 @air.simd_shuffle.s.i32(i32, i16)
declare float @air.simd_sum.f32(float) local_unnamed_addr #1
declare <64 x float> @air.simdgroup_matrix_8x8_init_filled.v64f32.f32(float)
declare void @air.wg.barrier(i32, i32) local_unnamed_addr #1
attributes #0 = { nounwind "frame-pointer"="all" }
attributes #1 = { convergent nounwind }
!air.kernel = !{!0}
!0 = !{ptr @k, !1, !1}
!1 = !{}
`

// handled does with a text all that Build does in Go: it takes the text for what Apple's
// compiler wrote, and for what clang made of that.
func handled(text []byte) (err error) {
	k := &air.Kernel{Name: "k", Args: []air.Arg{{Name: "out"}, {Name: "n", Attribute: "thread_position_in_grid"}}}
	for _, checked := range []bool{false, true} {
		m, e := air.ReadModule("f.ll", text)
		if e != nil {
			return e
		}
		if e := m.Prepare("k", []air.ConstantValue{{Index: 3, Bits: 1}}, checked); e != nil {
			err = e
		} else {
			_ = m.String()
		}
		if m, e = air.ReadModule("f.ll", text); e != nil {
			return e
		}
		if f := m.Function("k"); f == nil || len(f.Params) != len(k.Args) {
			continue
		}
		if _, e := (&hostModule{m}).executable(k, 22, checked); e != nil {
			err = e
		}
	}
	return err
}

// TestHandled checks that the module that the others are made from goes through.
func TestHandled(t *testing.T) { require.NoError(t, handled([]byte(plainModule))) }

// FuzzText changes the text of a module: what is done to it in Go does not panic, whatever
// stands there.
func FuzzText(f *testing.F) {
	f.Add([]byte(plainModule))
	f.Add([]byte("define @k(%0,%1){\n}"))
	// One line less, and lines that end early.
	lines := strings.SplitAfter(plainModule, "\n")
	for i, l := range lines {
		if l == "" {
			continue
		}
		for _, with := range []string{"", l[:len(l)/2] + "\n", l[:len(l)*3/4] + "\n", l[:1] + "\n"} {
			f.Add([]byte(strings.Join(lines[:i], "") + with + strings.Join(lines[i+1:], "")))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) <= 1<<16 {
			_ = handled(text)
		}
	})
}
