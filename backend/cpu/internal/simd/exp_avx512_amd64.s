#include "textflag.h"

// The method and the constants are those of exp_avx2_amd64.s; VSCALEFPS
// multiplies by 2^n with one rounding, subnormal or infinite results included.

#define LOAD \
	VBROADCASTSS ·expConst+0x00(SB), Z31 \
	VBROADCASTSS ·expConst+0x04(SB), Z30 \
	VBROADCASTSS ·expConst+0x08(SB), Z29 \
	VBROADCASTSS ·expConst+0x0c(SB), Z28 \
	VBROADCASTSS ·expConst+0x10(SB), Z27 \
	VBROADCASTSS ·expConst+0x14(SB), Z26 \
	VBROADCASTSS ·expConst+0x18(SB), Z25 \
	VBROADCASTSS ·expConst+0x1c(SB), Z24 \
	VBROADCASTSS ·expConst+0x20(SB), Z23 \
	VBROADCASTSS ·expConst+0x24(SB), Z22 \
	VBROADCASTSS ·expConst+0x28(SB), Z21 \
	VBROADCASTSS ·expConst+0x2c(SB), Z20

// EXP sets Z0 to e^Z0; it uses Z1, Z2, Z3. VMAXPS and VMINPS give their first Go
// operand when there is a NaN.
#define EXP \
	VMAXPS Z0, Z31, Z0 \
	VMINPS Z0, Z30, Z0 \
	VMULPS Z29, Z0, Z1 \
	VRNDSCALEPS $8, Z1, Z1 \
	VFNMADD231PS Z28, Z1, Z0 \
	VFNMADD231PS Z27, Z1, Z0 \
	VMOVAPS Z26, Z2 \
	VFMADD213PS Z25, Z0, Z2 \
	VFMADD213PS Z24, Z0, Z2 \
	VFMADD213PS Z23, Z0, Z2 \
	VFMADD213PS Z22, Z0, Z2 \
	VMULPS Z0, Z0, Z3 \
	VFMADD213PS Z0, Z3, Z2 \
	VADDPS Z21, Z2, Z0 \
	VSCALEFPS Z1, Z0, Z0

// SIGMOID sets Z0 to y or 1-y, y = 1/(1+e^|Z0|), by the sign of Z0: the steps of
// the term of v_Sigmoid, each rounded. It uses Z1 to Z4 and K2.
#define SIGMOID \
	VMOVAPS Z0, Z4 \
	VANDNPS Z0, Z20, Z0 \
	EXP \
	VADDPS Z21, Z0, Z0 \
	VDIVPS Z0, Z21, Z0 \
	VSUBPS Z0, Z21, Z1 \
	VPMOVD2M Z4, K2 \
	VBLENDMPS Z0, Z1, K2, Z0

// SILU sets Z0 to Z0/(1+e^-Z0): the steps of the term of v_Silu, each rounded.
#define SILU \
	VMOVAPS Z0, Z4 \
	VXORPS Z20, Z0, Z0 \
	EXP \
	VADDPS Z21, Z0, Z0 \
	VDIVPS Z0, Z4, Z0

#define EACH(OP) \
	MOVQ dst+0(FP), DI \
	MOVQ x+8(FP), SI \
	MOVQ n+16(FP), CX \
	LOAD \
by16: \
	SUBQ $16, CX \
	JLT  tail \
	VMOVUPS (SI), Z0 \
	OP \
	VMOVUPS Z0, (DI) \
	ADDQ $64, SI \
	ADDQ $64, DI \
	JMP  by16 \
tail: \
	ADDQ $16, CX \
	JEQ  done \
	MOVL $0xffff, BX \
	BZHIL CX, BX, BX \
	KMOVW BX, K1 \
	VMOVUPS.Z (SI), K1, Z0 \
	OP \
	VMOVUPS Z0, K1, (DI) \
done: \
	VZEROUPPER \
	RET

// func expToAVX512(dst, x *float32, n int)
TEXT ·expToAVX512(SB), NOSPLIT, $0-24
	EACH(EXP)

// func sigmoidToAVX512(dst, x *float32, n int)
TEXT ·sigmoidToAVX512(SB), NOSPLIT, $0-24
	EACH(SIGMOID)

// func siluToAVX512(dst, x *float32, n int)
TEXT ·siluToAVX512(SB), NOSPLIT, $0-24
	EACH(SILU)
