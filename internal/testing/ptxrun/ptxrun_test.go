package ptxrun

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// entryOf returns an entry that loads two words of 64 bits as %rd1 and %rd2, runs code, and stores %rd3.
func entryOf(code string) []byte {
	return fmt.Appendf(nil, `.version 8.0
.target sm_80
.address_size 64
.visible .entry k(
	.param .u64 .ptr .global .align 1 k_param_0,
	.param .u32 k_param_1
)
.maxntid 1024
{
	.reg .pred 	%%p<3>;
	.reg .b16 	%%rs<4>;
	.reg .b32 	%%r<6>;
	.reg .b64 	%%rd<7>;
	ld.param.b64 	%%rd4, [k_param_0];
	ld.global.v2.b64 	{%%rd1, %%rd2}, [%%rd4];
	cvt.u32.u64 	%%r1, %%rd1;
	cvt.u32.u64 	%%r2, %%rd2;
	cvt.u16.u64 	%%rs1, %%rd1;
	cvt.u16.u64 	%%rs2, %%rd2;
	mov.b64 	%%rd3, 0;
	%s
	st.global.b64 	[%%rd4+16], %%rd3;
	ret;
}
`, code)
}

func run(code string, a, b uint64) (uint64, error) {
	p, err := Parse(entryOf(code))
	if err != nil {
		return 0, err
	}
	memory := make([]byte, 24)
	binary.LittleEndian.PutUint64(memory, a)
	binary.LittleEndian.PutUint64(memory[8:], b)
	m := &Memory{}
	err = p.Run(m, Launch{Params: []uint64{m.Add(memory), 7}, Grid: [3]uint32{1, 1, 1}, Block: 1})
	return binary.LittleEndian.Uint64(memory[16:]), err
}

func f(x float32) uint64 { return uint64(math.Float32bits(x)) }
func d(x float64) uint64 { return math.Float64bits(x) }

// TestInstructions: instructions have the right results, at edge cases that are easily mistaken.
func TestInstructions(t *testing.T) {
	const nan, minus0 = 0x7fc00001, 0x80000000
	r := func(code string) string { return code + "; cvt.u64.u32 %rd3, %r3;" }
	rs := func(code string) string { return code + "; cvt.u64.u16 %rd3, %rs3;" }
	p := func(code string) string { return code + "; selp.b64 %rd3, 1, 0, %p1;" }
	for _, x := range []struct {
		code       string
		a, b, want uint64
	}{
		{r("add.rn.f32 %r3, %r1, %r2"), f(1), f(0x1p-24), f(1)},
		{r("add.rn.f32 %r3, %r1, %r2"), nan, f(1), nan32},
		{r("mul.rn.f32 %r3, %r1, %r2"), f(0x1p-100), f(0x1p-49), 1},
		{r("div.rn.f32 %r3, %r1, %r2"), f(1), minus0, f(float32(math.Inf(-1)))},
		{r("min.f32 %r3, %r1, %r2"), nan, f(3), f(3)},
		{r("min.f32 %r3, %r1, %r2"), 0, minus0, minus0},
		{r("max.f32 %r3, %r1, %r2"), minus0, 0, 0},
		{r("sqrt.rn.f32 %r3, %r1"), f(2), 0, f(float32(math.Sqrt2))},
		{r("neg.f32 %r3, %r1"), nan, 0, nan | minus0},
		{r("copysign.f32 %r3, %r1, %r2"), minus0, f(2), f(-2)},
		{"copysign.f64 %rd3, %rd1, %rd2;", 1 << 63, d(2), d(-2)},
		// Above the middle of two floats, by less than a double can hold: rounded twice, it would be the even one.
		{r("fma.rn.f32 %r3, %r1, %r1, %r2"), f(1 + 0x1p-12), f(0x1p-60), f(1 + 0x1p-11 + 0x1p-23)},
		{r("fma.rn.f32 %r3, %r1, %r2, %r1"), f(float32(math.Inf(1))), f(1), f(float32(math.Inf(1)))},
		{r("popc.b32 %r3, %r1"), 0x8000_0105, 0, 4},
		{"cvta.global.u64 %rd3, %rd1;", 1 << 40, 0, 1 << 40},
		{rs("cvt.rn.bf16.f32 %rs1, %r1; neg.bf16 %rs3, %rs1"), f(-2), 0, 0x4000},
		{rs("cvt.rn.bf16.f32 %rs1, %r1; abs.bf16 %rs3, %rs1"), f(-2), 0, 0x4000},
		{p("cvt.rn.bf16.f32 %rs1, %r1; cvt.rn.bf16.f32 %rs2, %r2; setp.lt.bf16 %p1, %rs1, %rs2"), f(-2), f(1), 1},
		{p("cvt.rn.bf16.f32 %rs1, %r1; setp.nan.bf16 %p1, %rs1, %rs1"), nan, 0, 1},
		// Of bf16, two at a time: a square and half a last place, which its last bit decides; infinity and a NaN; what overflows.
		{r("fma.rn.bf16x2 %r3, %r1, %r1, %r2"), 0x3f81_3f81, 0x3b80_3f80, 0x3f83_4001},
		{r("fma.rn.bf16x2 %r3, %r1, %r1, %r2"), 0x7f80_7fc1, 0, 0x7f80_7fff},
		{r("fma.rn.bf16x2 %r3, %r1, %r1, %r2"), 0x5f80_df7f, 0, 0x7f80_7f7e},
		{"fma.rn.f64 %rd3, %rd1, %rd2, 0dBFF0000000000000;", d(1 + 0x1p-52), d(1 - 0x1p-53), d(0x1p-53 - 0x1p-105)},
		{r("cvt.rn.f32.f64 %r3, %rd1"), d(1 + 0x1p-24), 0, f(1)},
		{"cvt.rn.f64.s32 %rd3, %r1;", 0xffffffff, 0, d(-1)},
		{r("cvt.rzi.f32.f32 %r3, %r1"), f(-2.75), 0, f(-2)},
		{r("cvt.rzi.s32.f32 %r3, %r1"), f(-2.75), 0, 0xfffffffe},
		{r("cvt.rzi.s32.f32 %r3, %r1"), f(3e9), 0, math.MaxInt32},
		{r("cvt.rzi.s32.f32 %r3, %r1"), nan, 0, 0},
		{"cvt.s64.s32 %rd3, %r1;", 0xffffffff, 0, math.MaxUint64},
		{rs("cvt.s8.s32 %rs3, %r1"), 0x1234_5680, 0, 0xff80},
		{rs("cvt.s16.s8 %rs3, %rs1"), 0x1280, 0, 0xff80},
		{r("cvt.s8.s32 %rs3, %r1; cvt.rn.f32.s16 %r3, %rs3"), 0xfe, 0, f(-2)},
		{r("ld.global.s8 %r3, [%rd4+1]"), 0x80_00, 0, 0xffffff80},
		{r("ld.global.u8 %r3, [%rd4+1]"), 0x80_00, 0, 0x80},
		{rs("cvt.rn.f16.f32 %rs3, %r1"), f(65519.996), 0, 0x7bff},
		{rs("cvt.rn.f16.f32 %rs3, %r1"), f(65520), 0, 0x7c00},
		{rs("cvt.rn.f16.f32 %rs3, %r1"), f(-0x1.8p-25), 0, 0x8001},
		{rs("cvt.rn.f16.f32 %rs3, %r1"), f(0x1p-25), 0, 0},
		{rs("cvt.rn.f16.f32 %rs3, %r1"), f(0x1.ffep-15), 0, 0x400},
		{rs("cvt.rn.f16.f32 %rs3, %r1"), f(1 + 0x1p-11), 0, 0x3c00},
		{rs("cvt.rn.f16.f32 %rs3, %r1"), f(1 + 3*0x1p-11), 0, 0x3c02},
		{rs("cvt.rn.f16.f32 %rs3, %r1"), nan, 0, nan16},
		{r("cvt.f32.f16 %r3, %rs1"), 1, 0, f(0x1p-24)},
		{rs("mul.rn.f16 %rs3, %rs1, %rs2"), 0x3c01, 0x3c01, 0x3c02},
		{p("setp.lt.f32 %p1, %r1, %r2"), nan, f(1), 0},
		{p("setp.ltu.f32 %p1, %r1, %r2"), nan, f(1), 1},
		{p("setp.ne.f32 %p1, %r1, %r2"), nan, f(1), 0},
		{p("setp.neu.f32 %p1, %r1, %r2"), nan, f(1), 1},
		{p("setp.equ.f32 %p1, %r1, %r2"), nan, f(1), 1},
		{p("setp.nan.f32 %p1, %r1, %r2"), f(1), nan, 1},
		{p("setp.eq.f32 %p1, %r1, %r2"), 0, minus0, 1},
		{p("setp.gt.s32 %p1, %r1, -1"), 0xffffffff, 0, 0},
		{p("setp.gt.u32 %p1, %r1, 5"), 0xffffffff, 0, 1},
		{p("setp.eq.f32 %p1, %r1, %r2; not.pred %p1, %p1"), f(1), f(2), 1},
		{r("shl.b32 %r3, %r1, %r2"), 1, 32, 0},
		{r("shr.u32 %r3, %r1, %r2"), 0x80000000, 40, 0},
		{r("shr.s32 %r3, %r1, %r2"), 0x80000000, 40, 0xffffffff},
		{r("prmt.b32 %r3, %r1, %r2, 0x7410"), 0x33221100, 0x77665544, 0x77441100},
		{r("prmt.b32 %r3, %r1, %r2, 0x7410U"), 0x33221100, 0x77665544, 0x77441100},
		{r("prmt.b32 %r3, %r1, %r2, 0x88c3"), 0x80221100, 0x776655c4, 0x0000_ff80},
		{r("shf.l.wrap.b32 %r3, %r1, %r2, 36"), 0x89abcdef, 0x01234567, 0x12345678},
		{r("shf.r.wrap.b32 %r3, %r1, %r2, 36"), 0x89abcdef, 0x01234567, 0x789abcde},
		{r("shf.l.clamp.b32 %r3, %r1, %r2, 36"), 0x89abcdef, 0x01234567, 0x89abcdef},
		{r("shf.r.clamp.b32 %r3, %r1, %r2, 36"), 0x89abcdef, 0x01234567, 0x01234567},
		{r("lop3.b32 %r3, %r1, %r2, 0xff00, 0xea"), 0x0f0f_0f0f, 0x00ff_00ff, 0x000f_ff0f}, // a·b or c
		{r("lop3.b32 %r3, %r1, %r2, 0, 0x30"), 0x0f0f_0f0f, 0x00ff_00ff, 0x0f00_0f00},      // a and not b
		{r("clz.b32 %r3, %r1"), 0x0001_0000, 0, 15},
		{r("brev.b32 %r3, %r1"), 0x0001_0002, 0, 0x4000_8000},
		{r("cvt.rn.f16x2.f32 %r3, %r1, %r2"), f(1), f(-2), 0x3c00_c000},
		{r("neg.f16x2 %r3, %r1"), 0x3c00_ffff, 0, 0xbc00_7fff},
		{r("add.rn.f16x2 %r3, %r1, %r2"), 0x3c00_7bff, 0x3c00_7bff, 0x4000_7c00},
		{r("sub.rn.f16x2 %r3, %r1, %r2"), 0x3c00_7c00, 0x4000_7c00, 0xbc00_7fff},
		{r("mul.rn.f16x2 %r3, %r1, %r2"), 0x3c01_4000, 0x3c01_c000, 0x3c02_c400},
		// A square that lies in the middle of two halves, and something less than a double can hold with it.
		{r("fma.rn.f16x2 %r3, %r1, %r1, %r2"), 0x7820_3c00, 0x0001_bc01, 0x7c00_9400},
		{r("mov.b32 %r4, 0x3c20; mov.b32 %r5, 0x0001; fma.rn.f16x2 %r3, %r4, %r4, %r5"), 0, 0, 0x3c41},
		{r("add.rn.bf16x2 %r3, %r1, %r2"), 0x3f80_8000, 0x3b80_8000, 0x3f80_8000},
		{r("max.u16x2 %r3, %r1, %r2"), 0x8000_0001, 0x7fff_0002, 0x8000_0002},
		{r("min.u16x2 %r3, %r1, %r2"), 0x8000_0001, 0x7fff_0002, 0x7fff_0001},
		{r("sub.rn.bf16x2 %r3, %r1, %r2"), 0x3f81_0000, 0x3f80_0000, 0x3c00_0000},
		{r("mul.rn.bf16x2 %r3, %r1, %r2"), 0x3f81_8000, 0x3f81_3f80, 0x3f82_8000},
		{rs("mov.b32 {%rs1, %rs2}, %r1; fma.rn.f16 %rs3, %rs1, %rs1, %rs2"), 0x0001_3c20, 0, 0x3c41},
		{r("mov.b32 {%rs1, %rs2}, %r1; mov.b32 %r3, {%rs2, %rs1}"), 0x0001_3c20, 0, 0x3c20_0001},
		{"mov.b64 {%rs0, %rs1, %rs2, %rs3}, %rd1; mov.b64 %rd3, {%rs3, %rs2, %rs1, %rs0};", 0x4444_3333_2222_1111, 0, 0x1111_2222_3333_4444},
		{r("ld.global.v4.u16 {%rs0, %rs1, %rs2, %rs3}, [%rd4]; cvt.u32.u16 %r3, %rs3"), 0x4444_3333_2222_1111, 0, 0x4444},
		{r("ld.global.nc.L1::no_allocate.v2.b32 {%r4, %r3}, [%rd4]"), 0x4444_3333_2222_1111, 0, 0x4444_3333},
		{r("mov.u32 %r3, %laneid; mov.u32 %r4, %warpid; add.s32 %r3, %r3, %r4"), 0, 0, 0},
		{r("bfe.u32 %r3, %r1, 23, 8"), 0xff800000, 0, 0xff & 0x1ff},
		{"mul.wide.u32 %rd3, %r1, %r2;", 0xffffffff, 2, 0x1fffffffe},
		{"mul.wide.s32 %rd3, %r1, %r2;", 0xffffffff, 2, math.MaxUint64 - 1},
		{r("mul.lo.s32 %r3, %r1, %r2"), 0xffffffff, 2, 0xfffffffe},
		{r("mad.lo.s32 %r3, %r1, %r2, 5"), 3, 4, 17},
		{r("div.u32 %r3, %r1, %r2"), 0xffffffff, 16, 0x0fffffff},
		{r("rem.u32 %r3, %r1, %r2"), 23, 10, 3},
		{r("div.s32 %r3, %r1, %r2"), 0xfffffff9, 2, 0xfffffffd},
		{r("rem.s32 %r3, %r1, %r2"), 0xfffffff9, 2, 0xffffffff},
		{r("min.u32 %r3, %r1, %r2"), 0xffffffff, 1, 1},
		{r("sub.s32 %r3, %r1, %r2"), 1, 2, 0xffffffff},
		{r("mov.b64 {_, %r3}, %rd1"), 5<<32 | 4, 0, 5},
		{r("ld.param.b32 %r3, [k_param_1]"), 0, 0, 7},
		{r("setp.eq.b32 %p1, %r1, 1; mov.b32 %r3, 8; @%p1 bra $L; mov.b32 %r3, 9; $L: @!%p1 mov.b32 %r3, 10"), 1, 0, 8},
		{r("setp.eq.b32 %p1, %r1, 1; mov.b32 %r3, 8; @%p1 bra $L; mov.b32 %r3, 9; $L: @!%p1 mov.b32 %r3, 10"), 2, 0, 10},
	} {
		got, err := run(x.code, x.a, x.b)
		require.NoError(t, err, x.code)
		assert.Equalf(t, x.want, got, "%s of 0x%x and 0x%x: 0x%x, and not 0x%x", x.code, x.a, x.b, got, x.want)
	}
}

// TestRefusals: what is not known, and what a program must not do, is an error that says where.
func TestRefusals(t *testing.T) {
	for code, want := range map[string]string{
		"add.f32 %r3, %r1, %r2;":                "add.f32 is not known here", // may be contracted
		"add.rn.ftz.f32 %r3, %r1, %r2;":         "is not known here",
		"ex2.approx.f32 %r3, %r1;":              "is not known here",
		"mov.b32 %r9, 1;":                       "there is no register %r9",
		"bra $L;":                               "there is no label $L",
		"$L: bra $L;":                           "the thread does not end",
		"ld.global.b32 %r3, [%rd4+24];":         "4 bytes at 0x100000018 are nobody's",
		"ld.global.b32 %r3, [%rd4+2];":          "are not at a multiple of their size",
		"call.uni (retval0), f, (param0);":      "(retval0)",
		"@%p7 mov.b32 %r3, 1;":                  "there is no register %p7",
		"ld.global.b32 %r3, [nothing];":         "there is no register nothing",
		"setp.lt.and.f32 %p1, %r1, %r2, %p2;":   "is not known here",
		"st.global.b32 [%rd3], %r1;":            "are nobody's",
		"cvt.rpi.f32.f32 %r3, %r1;":             "is not known here",
		"atom.global.add.u32 %r3, [%rd4], %r1;": "is not known here",
	} {
		_, err := run(code, 0, 0)
		assert.ErrorContains(t, err, want, code)
	}
	_, err := Parse([]byte(".func f"))
	assert.Error(t, err)
}
