#include "textflag.h"

// e^x = 2^n e^r, n the integer next to x/ln 2 and r = x - n ln 2, which two FMAs
// with ln 2 in two parts get right to the last bit. On |r| <= ln(2)/2
//
//	e^r = 1 + r + r²(c0 + c1 r + c2 r² + c3 r³ + c4 r⁴)
//
// is within 3.2e-9, 1/20 ulp: a minimax fit of the relative error, each
// coefficient rounded to float32 before the next ones were fitted. The order of
// the two additions keeps the roundings near 1 ulp together.
//
// Below -104 the result is less than half the least subnormal, and above 89
// more than the greatest float32: x is clamped there. The multiplication by 2^n
// is in two halves, of which only the second can round.

#define EXPCONST(OFF, V) \
DATA ·expConst+OFF(SB)/4, $V

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
EXPCONST(0x2c, 0x80000000) // the sign
GLOBL ·expConst(SB), RODATA|NOPTR, $48

// LOAD keeps the constants that EXP uses in registers.
#define LOAD \
	VBROADCASTSS ·expConst+0x00(SB), Y15 \
	VBROADCASTSS ·expConst+0x04(SB), Y14 \
	VBROADCASTSS ·expConst+0x08(SB), Y13 \
	VBROADCASTSS ·expConst+0x0c(SB), Y12 \
	VBROADCASTSS ·expConst+0x10(SB), Y11 \
	VBROADCASTSS ·expConst+0x18(SB), Y9 \
	VBROADCASTSS ·expConst+0x1c(SB), Y8 \
	VBROADCASTSS ·expConst+0x20(SB), Y7 \
	VBROADCASTSS ·expConst+0x24(SB), Y6 \
	VBROADCASTSS ·expConst+0x28(SB), Y5

// EXP sets Y0 to e^Y0; it uses Y1, Y2, Y3. VMAXPS and VMINPS give their first Go
// operand when there is a NaN.
#define EXP \
	VMAXPS Y0, Y15, Y0 \
	VMINPS Y0, Y14, Y0 \
	VMULPS Y13, Y0, Y1 \
	VROUNDPS $8, Y1, Y1 \
	VFNMADD231PS Y12, Y1, Y0 \
	VFNMADD231PS Y11, Y1, Y0 \
	VBROADCASTSS ·expConst+0x14(SB), Y2 \
	VFMADD213PS Y9, Y0, Y2 \
	VFMADD213PS Y8, Y0, Y2 \
	VFMADD213PS Y7, Y0, Y2 \
	VFMADD213PS Y6, Y0, Y2 \
	VMULPS Y0, Y0, Y3 \
	VFMADD213PS Y0, Y3, Y2 \
	VADDPS Y5, Y2, Y0 \
	VCVTPS2DQ Y1, Y1 \
	VPSRAD $1, Y1, Y2 \
	VPSUBD Y2, Y1, Y1 \
	VPSLLD $23, Y2, Y2 \
	VPADDD Y5, Y2, Y2 \
	VPSLLD $23, Y1, Y1 \
	VPADDD Y5, Y1, Y1 \
	VMULPS Y2, Y0, Y0 \
	VMULPS Y1, Y0, Y0

// SIGMOID sets Y0 to y or 1-y, y = 1/(1+e^|Y0|), by the sign of Y0: the steps of
// the term of v_Sigmoid, each rounded. It uses Y1 to Y4.
#define SIGMOID \
	VMOVAPS Y0, Y4 \
	VBROADCASTSS ·expConst+0x2c(SB), Y1 \
	VANDNPS Y0, Y1, Y0 \
	EXP \
	VADDPS Y5, Y0, Y0 \
	VDIVPS Y0, Y5, Y0 \
	VSUBPS Y0, Y5, Y1 \
	VBLENDVPS Y4, Y0, Y1, Y0

// SILU sets Y0 to Y0/(1+e^-Y0): the steps of the term of v_Silu, each rounded.
#define SILU \
	VMOVAPS Y0, Y4 \
	VBROADCASTSS ·expConst+0x2c(SB), Y1 \
	VXORPS Y1, Y0, Y0 \
	EXP \
	VADDPS Y5, Y0, Y0 \
	VDIVPS Y0, Y4, Y0

#define EACH(OP) \
	MOVQ dst+0(FP), DI \
	MOVQ x+8(FP), SI \
	MOVQ n+16(FP), CX \
	LOAD \
by8: \
	SUBQ $8, CX \
	JLT  tail \
	VMOVUPS (SI), Y0 \
	OP \
	VMOVUPS Y0, (DI) \
	ADDQ $32, SI \
	ADDQ $32, DI \
	JMP  by8 \
tail: \
	ADDQ $8, CX \
	JEQ  done \
	LEAQ ·tailMask+32(SB), BX \
	SHLQ $2, CX \
	SUBQ CX, BX \
	VMOVDQU (BX), Y10 \
	VMASKMOVPS (SI), Y10, Y0 \
	OP \
	VMASKMOVPS Y0, Y10, (DI) \
done: \
	VZEROUPPER \
	RET

// func expToAVX2(dst, x *float32, n int)
TEXT ·expToAVX2(SB), NOSPLIT, $0-24
	EACH(EXP)

// func sigmoidToAVX2(dst, x *float32, n int)
TEXT ·sigmoidToAVX2(SB), NOSPLIT, $0-24
	EACH(SIGMOID)

// func siluToAVX2(dst, x *float32, n int)
TEXT ·siluToAVX2(SB), NOSPLIT, $0-24
	EACH(SILU)
