#include "textflag.h"

// A panel is 48 rows of w, decoded and transposed: 48 float32 for each of its
// columns. It is made 16 rows at a time.

#define PANEL 192 // bytes between two columns

DATA nibbleFloat<>+0x00(SB)/8, $0x3f80000000000000 // 0.0 to 15.0
DATA nibbleFloat<>+0x08(SB)/8, $0x4040000040000000
DATA nibbleFloat<>+0x10(SB)/8, $0x40a0000040800000
DATA nibbleFloat<>+0x18(SB)/8, $0x40e0000040c00000
DATA nibbleFloat<>+0x20(SB)/8, $0x4110000041000000
DATA nibbleFloat<>+0x28(SB)/8, $0x4130000041200000
DATA nibbleFloat<>+0x30(SB)/8, $0x4150000041400000
DATA nibbleFloat<>+0x38(SB)/8, $0x4170000041600000
GLOBL nibbleFloat<>(SB), RODATA|NOPTR, $64

DATA byteMask<>+0x00(SB)/4, $0x000000ff
GLOBL byteMask<>(SB), RODATA|NOPTR, $4

// SOURCE sets R8…R11 to rows 0, 4, 8 and 12, which are R12 bytes apart (stride),
// and R13 to 3*R12.
#define SOURCE(STRIDE) \
	MOVQ STRIDE, R12 \
	LEAQ (R12)(R12*2), R13 \
	LEAQ (R8)(R12*4), R9 \
	LEAQ (R9)(R12*4), R10 \
	LEAQ (R10)(R12*4), R11

// WORDS transposes uint32 0…3 from byte OFF of the 16 rows on: Z4…Z7 get one of
// them each, lane l from row l.
#define WORDS(OFF) \
	VMOVDQU OFF(R8), X0 \
	VMOVDQU OFF(R8)(R12*1), X1 \
	VMOVDQU OFF(R8)(R12*2), X2 \
	VMOVDQU OFF(R8)(R13*1), X3 \
	VINSERTI32X4 $1, OFF(R9), Z0, Z0 \
	VINSERTI32X4 $1, OFF(R9)(R12*1), Z1, Z1 \
	VINSERTI32X4 $1, OFF(R9)(R12*2), Z2, Z2 \
	VINSERTI32X4 $1, OFF(R9)(R13*1), Z3, Z3 \
	VINSERTI32X4 $2, OFF(R10), Z0, Z0 \
	VINSERTI32X4 $2, OFF(R10)(R12*1), Z1, Z1 \
	VINSERTI32X4 $2, OFF(R10)(R12*2), Z2, Z2 \
	VINSERTI32X4 $2, OFF(R10)(R13*1), Z3, Z3 \
	VINSERTI32X4 $3, OFF(R11), Z0, Z0 \
	VINSERTI32X4 $3, OFF(R11)(R12*1), Z1, Z1 \
	VINSERTI32X4 $3, OFF(R11)(R12*2), Z2, Z2 \
	VINSERTI32X4 $3, OFF(R11)(R13*1), Z3, Z3 \
	VPUNPCKLDQ Z1, Z0, Z4 \
	VPUNPCKHDQ Z1, Z0, Z6 \
	VPUNPCKLDQ Z3, Z2, Z1 \
	VPUNPCKHDQ Z3, Z2, Z3 \
	VPUNPCKHQDQ Z1, Z4, Z5 \
	VPUNPCKLQDQ Z1, Z4, Z4 \
	VPUNPCKHQDQ Z3, Z6, Z7 \
	VPUNPCKLQDQ Z3, Z6, Z6

// STEP goes on by N bytes of each row.
#define STEP(N) \
	ADDQ $N, R8 \
	ADDQ $N, R9 \
	ADDQ $N, R10 \
	ADDQ $N, R11

// func packF32AVX512(dst, w *float32, cols, stride int)
TEXT ·packF32AVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ w+8(FP), R8
	MOVQ cols+16(FP), BX
	SOURCE(stride+24(FP))

next:
	SUBQ $4, BX
	JLT  done
	WORDS(0)
	VMOVUPS Z4, (0*PANEL)(DI)
	VMOVUPS Z5, (1*PANEL)(DI)
	VMOVUPS Z6, (2*PANEL)(DI)
	VMOVUPS Z7, (3*PANEL)(DI)
	STEP(16)
	ADDQ $(4*PANEL), DI
	JMP  next

done:
	VZEROUPPER
	RET

// GROUP loads the scales and biases of the group of unit AX into Z16 and Z17.
#define GROUP \
	MOVQ AX, DX \
	SHRQ CX, DX \
	IMULQ $PANEL, DX \
	VMOVUPS (R14)(DX*1), Z16 \
	VMOVUPS (R15)(DX*1), Z17

// NIBBLE stores the weight J of each uint32 in W as column C.
#define NIBBLE(W, J, C, T) \
	VPSRLD $(4*J), W, T \
	VPERMPS Z18, T, T \
	VFMADD213PS Z17, Z16, T \
	VMOVUPS T, (C*PANEL)(DI)

#define NIBBLES(W, C) \
	NIBBLE(W, 0, (C+0), Z8) \
	NIBBLE(W, 1, (C+1), Z9) \
	NIBBLE(W, 2, (C+2), Z10) \
	NIBBLE(W, 3, (C+3), Z11) \
	NIBBLE(W, 4, (C+4), Z12) \
	NIBBLE(W, 5, (C+5), Z13) \
	NIBBLE(W, 6, (C+6), Z14) \
	NIBBLE(W, 7, (C+7), Z15)

// func packQ4AVX512(dst *float32, w *byte, scales, biases *float32, cols, stride, group int)
TEXT ·packQ4AVX512(SB), NOSPLIT, $0-56
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
	VMOVUPS nibbleFloat<>+0(SB), Z18
	CMPQ AX, BX
	JGE  done

unit:
	GROUP
	WORDS(0)
	NIBBLES(Z4, 0)
	NIBBLES(Z5, 8)
	NIBBLES(Z6, 16)
	NIBBLES(Z7, 24)
	STEP(16)
	ADDQ $(32*PANEL), DI
	INCQ AX
	CMPQ AX, BX
	JLT  unit

done:
	VZEROUPPER
	RET

// BYTES stores the four weights of each uint32 in W from column C on.
#define BYTES(W, C) \
	VPANDD Z19, W, Z8 \
	VPSRLD $8, W, Z9 \
	VPSRLD $16, W, Z10 \
	VPSRLD $24, W, Z11 \
	VPANDD Z19, Z9, Z9 \
	VPANDD Z19, Z10, Z10 \
	VCVTDQ2PS Z8, Z8 \
	VCVTDQ2PS Z9, Z9 \
	VCVTDQ2PS Z10, Z10 \
	VCVTDQ2PS Z11, Z11 \
	VFMADD213PS Z17, Z16, Z8 \
	VFMADD213PS Z17, Z16, Z9 \
	VFMADD213PS Z17, Z16, Z10 \
	VFMADD213PS Z17, Z16, Z11 \
	VMOVUPS Z8, ((C+0)*PANEL)(DI) \
	VMOVUPS Z9, ((C+1)*PANEL)(DI) \
	VMOVUPS Z10, ((C+2)*PANEL)(DI) \
	VMOVUPS Z11, ((C+3)*PANEL)(DI)

// func packQ8AVX512(dst *float32, w *byte, scales, biases *float32, cols, stride, group int)
TEXT ·packQ8AVX512(SB), NOSPLIT, $0-56
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
	VPBROADCASTD byteMask<>+0(SB), Z19
	CMPQ AX, BX
	JGE  done

unit:
	GROUP
	WORDS(0)
	BYTES(Z4, 0)
	BYTES(Z5, 4)
	BYTES(Z6, 8)
	BYTES(Z7, 12)
	WORDS(16)
	BYTES(Z4, 16)
	BYTES(Z5, 20)
	BYTES(Z6, 24)
	BYTES(Z7, 28)
	STEP(32)
	ADDQ $(32*PANEL), DI
	INCQ AX
	CMPQ AX, BX
	JLT  unit

done:
	VZEROUPPER
	RET
