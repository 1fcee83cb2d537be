#include "textflag.h"

// A panel is 24 rows of w, decoded and transposed: 24 float32 for each of its
// columns. It is made 8 rows at a time.

#define PANEL 96 // bytes between two columns

DATA lowNibble<>+0x00(SB)/4, $0x0000000f
GLOBL lowNibble<>(SB), RODATA|NOPTR, $4

DATA lowByte<>+0x00(SB)/4, $0x000000ff
GLOBL lowByte<>(SB), RODATA|NOPTR, $4

// SOURCE sets R8 and R9 to rows 0 and 4, which are R12 bytes apart (stride), and
// R13 to 3*R12.
#define SOURCE(STRIDE) \
	MOVQ STRIDE, R12 \
	LEAQ (R12)(R12*2), R13 \
	LEAQ (R8)(R12*4), R9

// WORDS transposes uint32 0…3 from byte OFF of the 8 rows on: Y4…Y7 get one of
// them each, lane l from row l.
#define WORDS(OFF) \
	VMOVDQU OFF(R8), X0 \
	VMOVDQU OFF(R8)(R12*1), X1 \
	VMOVDQU OFF(R8)(R12*2), X2 \
	VMOVDQU OFF(R8)(R13*1), X3 \
	VINSERTI128 $1, OFF(R9), Y0, Y0 \
	VINSERTI128 $1, OFF(R9)(R12*1), Y1, Y1 \
	VINSERTI128 $1, OFF(R9)(R12*2), Y2, Y2 \
	VINSERTI128 $1, OFF(R9)(R13*1), Y3, Y3 \
	VPUNPCKLDQ Y1, Y0, Y4 \
	VPUNPCKHDQ Y1, Y0, Y6 \
	VPUNPCKLDQ Y3, Y2, Y1 \
	VPUNPCKHDQ Y3, Y2, Y3 \
	VPUNPCKHQDQ Y1, Y4, Y5 \
	VPUNPCKLQDQ Y1, Y4, Y4 \
	VPUNPCKHQDQ Y3, Y6, Y7 \
	VPUNPCKLQDQ Y3, Y6, Y6

// STEP goes on by N bytes of each row.
#define STEP(N) \
	ADDQ $N, R8 \
	ADDQ $N, R9

// func packF32AVX2(dst, w *float32, cols, stride int)
TEXT ·packF32AVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ w+8(FP), R8
	MOVQ cols+16(FP), BX
	SOURCE(stride+24(FP))

next:
	SUBQ $4, BX
	JLT  done
	WORDS(0)
	VMOVUPS Y4, (0*PANEL)(DI)
	VMOVUPS Y5, (1*PANEL)(DI)
	VMOVUPS Y6, (2*PANEL)(DI)
	VMOVUPS Y7, (3*PANEL)(DI)
	STEP(16)
	ADDQ $(4*PANEL), DI
	JMP  next

done:
	VZEROUPPER
	RET

// GROUP loads the scales and biases of the group of unit AX into Y14 and Y15.
#define GROUP \
	MOVQ AX, DX \
	SHRQ CX, DX \
	IMULQ $PANEL, DX \
	VMOVUPS (R14)(DX*1), Y14 \
	VMOVUPS (R15)(DX*1), Y15

// FIELD stores bits S… of each uint32 in W, as many as the mask Y13 has, as
// column C.
#define FIELD(W, S, C, T) \
	VPSRLD $(S), W, T \
	VPAND Y13, T, T \
	VCVTDQ2PS T, T \
	VFMADD213PS Y15, Y14, T \
	VMOVUPS T, (C*PANEL)(DI)

#define NIBBLES(W, C) \
	FIELD(W, 0, (C+0), Y0) \
	FIELD(W, 4, (C+1), Y1) \
	FIELD(W, 8, (C+2), Y2) \
	FIELD(W, 12, (C+3), Y3) \
	FIELD(W, 16, (C+4), Y8) \
	FIELD(W, 20, (C+5), Y9) \
	FIELD(W, 24, (C+6), Y10) \
	FIELD(W, 28, (C+7), Y11)

// func packQ4AVX2(dst *float32, w *byte, scales, biases *float32, cols, stride, group int)
TEXT ·packQ4AVX2(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ w+8(FP), R8
	MOVQ scales+16(FP), R14
	MOVQ biases+24(FP), R15
	MOVQ cols+32(FP), BX
	SOURCE(stride+40(FP))
	BSRQ group+48(FP), CX
	SUBQ $5, CX
	SHRQ $5, BX
	XORL AX, AX
	VPBROADCASTD lowNibble<>+0(SB), Y13
	CMPQ AX, BX
	JGE  done

unit:
	GROUP
	WORDS(0)
	NIBBLES(Y4, 0)
	NIBBLES(Y5, 8)
	NIBBLES(Y6, 16)
	NIBBLES(Y7, 24)
	STEP(16)
	ADDQ $(32*PANEL), DI
	INCQ AX
	CMPQ AX, BX
	JLT  unit

done:
	VZEROUPPER
	RET

#define BYTES(W, C) \
	FIELD(W, 0, (C+0), Y0) \
	FIELD(W, 8, (C+1), Y1) \
	FIELD(W, 16, (C+2), Y2) \
	FIELD(W, 24, (C+3), Y3)

// func packQ8AVX2(dst *float32, w *byte, scales, biases *float32, cols, stride, group int)
TEXT ·packQ8AVX2(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ w+8(FP), R8
	MOVQ scales+16(FP), R14
	MOVQ biases+24(FP), R15
	MOVQ cols+32(FP), BX
	SOURCE(stride+40(FP))
	BSRQ group+48(FP), CX
	SUBQ $5, CX
	SHRQ $5, BX
	XORL AX, AX
	VPBROADCASTD lowByte<>+0(SB), Y13
	CMPQ AX, BX
	JGE  done

unit:
	GROUP
	WORDS(0)
	BYTES(Y4, 0)
	BYTES(Y5, 4)
	BYTES(Y6, 8)
	BYTES(Y7, 12)
	WORDS(16)
	BYTES(Y4, 16)
	BYTES(Y5, 20)
	BYTES(Y6, 24)
	BYTES(Y7, 28)
	STEP(32)
	ADDQ $(32*PANEL), DI
	INCQ AX
	CMPQ AX, BX
	JLT  unit

done:
	VZEROUPPER
	RET
