#include "textflag.h"
#include "neon_arm64.h"

// The method and the numbers are those of exp_avx2_amd64.s, operation for
// operation, so that both make the same bits.

#define EXPCONST(OFF, V) \
DATA expNEON<>+OFF(SB)/4, $V

EXPCONST(0x00, 0xc2d00000) // -104
EXPCONST(0x04, 0x42b20000) // 89
EXPCONST(0x08, 0x3fb8aa3b) // 1/ln 2
EXPCONST(0x0c, 0x3f317218) // ln 2, rounded up
EXPCONST(0x10, 0xb102e308) // ln 2 minus that
EXPCONST(0x14, 0x3ab5265a) // c4
EXPCONST(0x18, 0x3c091cc3) // c3
EXPCONST(0x1c, 0x3d2aac58) // c2
EXPCONST(0x20, 0x3e2aaa49) // c1
EXPCONST(0x24, 0x3efffffe) // c0
EXPCONST(0x28, 0x3f800000) // 1, and the exponent 0 of a power of two
GLOBL expNEON<>(SB), RODATA|NOPTR, $44

// LOAD sets V16…V26 to the constants.
#define LOAD \
	MOVD $expNEON<>(SB), R4 \
	VLD1R.P 4(R4), [V16.S4] \
	VLD1R.P 4(R4), [V17.S4] \
	VLD1R.P 4(R4), [V18.S4] \
	VLD1R.P 4(R4), [V19.S4] \
	VLD1R.P 4(R4), [V20.S4] \
	VLD1R.P 4(R4), [V21.S4] \
	VLD1R.P 4(R4), [V22.S4] \
	VLD1R.P 4(R4), [V23.S4] \
	VLD1R.P 4(R4), [V24.S4] \
	VLD1R.P 4(R4), [V25.S4] \
	VLD1R.P 4(R4), [V26.S4]

#define MOVE(FROM, TO) VORR FROM.B16, FROM.B16, TO.B16

// EXP sets V0 to e^V0; it uses V1…V3. FMAX and FMIN keep a NaN.
#define EXP \
	VFMAX(16, 0, 0) \
	VFMIN(17, 0, 0) \
	VFMUL(18, 0, 1) \
	VFRINTN(1, 1) \
	VFMLS V19.S4, V1.S4, V0.S4 \
	VFMLS V20.S4, V1.S4, V0.S4 \
	MOVE(V22, V2) \
	VFMLA V21.S4, V0.S4, V2.S4 \
	MOVE(V23, V3) \
	VFMLA V2.S4, V0.S4, V3.S4 \
	MOVE(V24, V2) \
	VFMLA V3.S4, V0.S4, V2.S4 \
	MOVE(V25, V3) \
	VFMLA V2.S4, V0.S4, V3.S4 \
	VFMUL(0, 0, 2) \
	VFMLA V3.S4, V2.S4, V0.S4 \
	VFADD(26, 0, 0) \
	VFCVTNS(1, 1) \
	VSSHR1(1, 2) \
	VSUB V2.S4, V1.S4, V1.S4 \
	VSHL $23, V2.S4, V2.S4 \
	VADD V26.S4, V2.S4, V2.S4 \
	VSHL $23, V1.S4, V1.S4 \
	VADD V26.S4, V1.S4, V1.S4 \
	VFMUL(2, 0, 0) \
	VFMUL(1, 0, 0)

// SIGMOID sets V0 to y or 1-y, y = 1/(1+e^|V0|), by the sign of V0: the steps of
// the term of v_Sigmoid, each rounded. It uses V1…V4.
#define SIGMOID \
	MOVE(V0, V4) \
	VFABS(0, 0) \
	EXP \
	VFADD(26, 0, 0) \
	VFDIV(0, 26, 0) \
	VFSUB(0, 26, 1) \
	VFCMLTZ(4, 4) \
	VBSL V1.B16, V0.B16, V4.B16 \
	MOVE(V4, V0)

// SILU sets V0 to V0/(1+e^-V0): the steps of the term of v_Silu, each rounded.
#define SILU \
	MOVE(V0, V4) \
	VFNEG(0, 0) \
	EXP \
	VFADD(26, 0, 0) \
	VFDIV(0, 4, 0)

#define EACH(OP) \
	MOVD dst+0(FP), R0 \
	MOVD x+8(FP), R1 \
	MOVD n+16(FP), R3 \
	LOAD \
by4: \
	SUBS $4, R3, R3 \
	BLT  tail \
	VLD1.P 16(R1), [V0.S4] \
	OP \
	VST1.P [V0.S4], 16(R0) \
	B    by4 \
tail: \
	ADDS $4, R3, R3 \
	BEQ  done \
one: \
	FMOVS.P 4(R1), F0 \
	OP \
	FMOVS.P F0, 4(R0) \
	SUBS $1, R3, R3 \
	BNE  one \
done: \
	RET

// func expToNEON(dst, x *float32, n int)
TEXT ·expToNEON(SB), NOSPLIT, $0-24
	EACH(EXP)

// func sigmoidToNEON(dst, x *float32, n int)
TEXT ·sigmoidToNEON(SB), NOSPLIT, $0-24
	EACH(SIGMOID)

// func siluToNEON(dst, x *float32, n int)
TEXT ·siluToNEON(SB), NOSPLIT, $0-24
	EACH(SILU)
