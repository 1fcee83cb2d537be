#include "textflag.h"

// A tile is 8, 4, 2 or 1 rows of x times a panel (pack_avx512_amd64.s), with the
// sums in registers.
//
//	SI x, at the column at hand; R12, R13, R14, R15 bytes of 1, 3, 5, 7 rows
//	DX panel, at the column; CX columns left; DI y
//	Z0…Z2 the column of the panel; Z3, Z4 one x
//	Z8…Z31 the sums, three for each row

#define PANEL 192 // bytes between two columns

#define TILEARGS \
	MOVQ x+16(FP), SI \
	MOVQ ldx+24(FP), R12 \
	MOVQ panel+32(FP), DX \
	MOVQ cols+40(FP), CX \
	SHLQ $2, R12 \
	LEAQ (R12)(R12*2), R13 \
	LEAQ (R12)(R12*4), R14 \
	LEAQ (R13)(R12*4), R15

// STOREARGS turns the strides into those of y and K1…K3 into masks for the
// columns that exist.
#define STOREARGS \
	MOVQ y+0(FP), DI \
	MOVQ ldy+8(FP), R12 \
	SHLQ $2, R12 \
	LEAQ (R12)(R12*2), R13 \
	LEAQ (R12)(R12*4), R14 \
	LEAQ (R13)(R12*4), R15 \
	MOVQ n+48(FP), CX \
	MOVQ $0xffffffffffff, AX \
	BZHIQ CX, AX, AX \
	KMOVW AX, K1 \
	SHRQ $16, AX \
	KMOVW AX, K2 \
	SHRQ $16, AX \
	KMOVW AX, K3 \
	MOVBLZX add+56(FP), BX

#define CLEARROW(A, B, C) \
	VXORPS A, A, A \
	VXORPS B, B, B \
	VXORPS C, C, C

#define COLUMN \
	VMOVUPS (DX), Z0 \
	VMOVUPS 64(DX), Z1 \
	VMOVUPS 128(DX), Z2

#define ROW(X, T, A, B, C) \
	VBROADCASTSS X, T \
	VFMADD231PS Z0, T, A \
	VFMADD231PS Z1, T, B \
	VFMADD231PS Z2, T, C

#define ADDROW(Y, A, B, C) \
	VADDPS 0 Y, A, K1, A \
	VADDPS 64 Y, B, K2, B \
	VADDPS 128 Y, C, K3, C

#define STOREROW(Y, A, B, C) \
	VMOVUPS A, K1, 0 Y \
	VMOVUPS B, K2, 64 Y \
	VMOVUPS C, K3, 128 Y

#define NEXTCOLUMN(LOOP) \
	ADDQ $4, SI \
	ADDQ $PANEL, DX \
	DECQ CX \
	JNE  LOOP

// func tile8AVX512(y *float32, ldy int, x *float32, ldx int, panel *float32, cols, n int, add bool)
TEXT ·tile8AVX512(SB), NOSPLIT, $0-57
	TILEARGS
	CLEARROW(X8, X9, X10)
	CLEARROW(X11, X12, X13)
	CLEARROW(X14, X15, X16)
	CLEARROW(X17, X18, X19)
	CLEARROW(X20, X21, X22)
	CLEARROW(X23, X24, X25)
	CLEARROW(X26, X27, X28)
	CLEARROW(X29, X30, X31)

column:
	COLUMN
	ROW((SI), Z3, Z8, Z9, Z10)
	ROW((SI)(R12*1), Z4, Z11, Z12, Z13)
	ROW((SI)(R12*2), Z5, Z14, Z15, Z16)
	ROW((SI)(R13*1), Z6, Z17, Z18, Z19)
	ROW((SI)(R12*4), Z3, Z20, Z21, Z22)
	ROW((SI)(R14*1), Z4, Z23, Z24, Z25)
	ROW((SI)(R13*2), Z5, Z26, Z27, Z28)
	ROW((SI)(R15*1), Z6, Z29, Z30, Z31)
	NEXTCOLUMN(column)
	STOREARGS
	TESTL BX, BX
	JEQ  store
	ADDROW((DI), Z8, Z9, Z10)
	ADDROW((DI)(R12*1), Z11, Z12, Z13)
	ADDROW((DI)(R12*2), Z14, Z15, Z16)
	ADDROW((DI)(R13*1), Z17, Z18, Z19)
	ADDROW((DI)(R12*4), Z20, Z21, Z22)
	ADDROW((DI)(R14*1), Z23, Z24, Z25)
	ADDROW((DI)(R13*2), Z26, Z27, Z28)
	ADDROW((DI)(R15*1), Z29, Z30, Z31)

store:
	STOREROW((DI), Z8, Z9, Z10)
	STOREROW((DI)(R12*1), Z11, Z12, Z13)
	STOREROW((DI)(R12*2), Z14, Z15, Z16)
	STOREROW((DI)(R13*1), Z17, Z18, Z19)
	STOREROW((DI)(R12*4), Z20, Z21, Z22)
	STOREROW((DI)(R14*1), Z23, Z24, Z25)
	STOREROW((DI)(R13*2), Z26, Z27, Z28)
	STOREROW((DI)(R15*1), Z29, Z30, Z31)
	VZEROUPPER
	RET

// func tile4AVX512(y *float32, ldy int, x *float32, ldx int, panel *float32, cols, n int, add bool)
TEXT ·tile4AVX512(SB), NOSPLIT, $0-57
	TILEARGS
	CLEARROW(X8, X9, X10)
	CLEARROW(X11, X12, X13)
	CLEARROW(X14, X15, X16)
	CLEARROW(X17, X18, X19)

column:
	COLUMN
	ROW((SI), Z3, Z8, Z9, Z10)
	ROW((SI)(R12*1), Z4, Z11, Z12, Z13)
	ROW((SI)(R12*2), Z5, Z14, Z15, Z16)
	ROW((SI)(R13*1), Z6, Z17, Z18, Z19)
	NEXTCOLUMN(column)
	STOREARGS
	TESTL BX, BX
	JEQ  store
	ADDROW((DI), Z8, Z9, Z10)
	ADDROW((DI)(R12*1), Z11, Z12, Z13)
	ADDROW((DI)(R12*2), Z14, Z15, Z16)
	ADDROW((DI)(R13*1), Z17, Z18, Z19)

store:
	STOREROW((DI), Z8, Z9, Z10)
	STOREROW((DI)(R12*1), Z11, Z12, Z13)
	STOREROW((DI)(R12*2), Z14, Z15, Z16)
	STOREROW((DI)(R13*1), Z17, Z18, Z19)
	VZEROUPPER
	RET

// func tile2AVX512(y *float32, ldy int, x *float32, ldx int, panel *float32, cols, n int, add bool)
TEXT ·tile2AVX512(SB), NOSPLIT, $0-57
	TILEARGS
	CLEARROW(X8, X9, X10)
	CLEARROW(X11, X12, X13)

column:
	COLUMN
	ROW((SI), Z3, Z8, Z9, Z10)
	ROW((SI)(R12*1), Z4, Z11, Z12, Z13)
	NEXTCOLUMN(column)
	STOREARGS
	TESTL BX, BX
	JEQ  store
	ADDROW((DI), Z8, Z9, Z10)
	ADDROW((DI)(R12*1), Z11, Z12, Z13)

store:
	STOREROW((DI), Z8, Z9, Z10)
	STOREROW((DI)(R12*1), Z11, Z12, Z13)
	VZEROUPPER
	RET

// func tile1AVX512(y *float32, ldy int, x *float32, ldx int, panel *float32, cols, n int, add bool)
TEXT ·tile1AVX512(SB), NOSPLIT, $0-57
	TILEARGS
	CLEARROW(X8, X9, X10)

column:
	COLUMN
	ROW((SI), Z3, Z8, Z9, Z10)
	NEXTCOLUMN(column)
	STOREARGS
	TESTL BX, BX
	JEQ  store
	ADDROW((DI), Z8, Z9, Z10)

store:
	STOREROW((DI), Z8, Z9, Z10)
	VZEROUPPER
	RET
