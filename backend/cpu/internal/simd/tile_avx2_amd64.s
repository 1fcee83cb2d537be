#include "textflag.h"

// A tile is 4, 2 or 1 rows of x times a panel (pack_avx2_amd64.s), with the
// sums in registers.
//
//	SI x, at the column at hand; R12, R13 bytes of 1 and 3 rows
//	DX panel, at the column; CX columns left; DI y
//	Y0…Y2 the column of the panel; Y3 one x
//	Y4…Y15 the sums, three for each row

#define PANEL 96 // bytes between two columns

#define TILEARGS \
	MOVQ x+16(FP), SI \
	MOVQ ldx+24(FP), R12 \
	MOVQ panel+32(FP), DX \
	MOVQ cols+40(FP), CX \
	SHLQ $2, R12 \
	LEAQ (R12)(R12*2), R13

#define CLEARROW(A, B, C) \
	VXORPS A, A, A \
	VXORPS B, B, B \
	VXORPS C, C, C

#define COLUMN \
	VMOVUPS (DX), Y0 \
	VMOVUPS 32(DX), Y1 \
	VMOVUPS 64(DX), Y2

#define ROW(X, A, B, C) \
	VBROADCASTSS X, Y3 \
	VFMADD231PS Y0, Y3, A \
	VFMADD231PS Y1, Y3, B \
	VFMADD231PS Y2, Y3, C

#define NEXTCOLUMN(LOOP) \
	ADDQ $4, SI \
	ADDQ $PANEL, DX \
	DECQ CX \
	JNE  LOOP

// MASKS turns the strides into those of y, and Y0…Y2 into masks for the columns
// that exist: the lanes whose number is less than n.
#define MASKS \
	MOVQ y+0(FP), DI \
	MOVQ ldy+8(FP), R12 \
	SHLQ $2, R12 \
	LEAQ (R12)(R12*2), R13 \
	VPBROADCASTD n+48(FP), Y3 \
	VPCMPGTD laneNumber<>+0(SB), Y3, Y0 \
	VPCMPGTD laneNumber<>+32(SB), Y3, Y1 \
	VPCMPGTD laneNumber<>+64(SB), Y3, Y2 \
	MOVBLZX add+56(FP), BX

DATA laneNumber<>+0x00(SB)/8, $0x0000000100000000
DATA laneNumber<>+0x08(SB)/8, $0x0000000300000002
DATA laneNumber<>+0x10(SB)/8, $0x0000000500000004
DATA laneNumber<>+0x18(SB)/8, $0x0000000700000006
DATA laneNumber<>+0x20(SB)/8, $0x0000000900000008
DATA laneNumber<>+0x28(SB)/8, $0x0000000b0000000a
DATA laneNumber<>+0x30(SB)/8, $0x0000000d0000000c
DATA laneNumber<>+0x38(SB)/8, $0x0000000f0000000e
DATA laneNumber<>+0x40(SB)/8, $0x0000001100000010
DATA laneNumber<>+0x48(SB)/8, $0x0000001300000012
DATA laneNumber<>+0x50(SB)/8, $0x0000001500000014
DATA laneNumber<>+0x58(SB)/8, $0x0000001700000016
GLOBL laneNumber<>(SB), RODATA|NOPTR, $96

#define ADDROW(Y, A, B, C) \
	VMASKMOVPS 0 Y, Y0, Y3 \
	VADDPS Y3, A, A \
	VMASKMOVPS 32 Y, Y1, Y3 \
	VADDPS Y3, B, B \
	VMASKMOVPS 64 Y, Y2, Y3 \
	VADDPS Y3, C, C

#define STOREROW(Y, A, B, C) \
	VMASKMOVPS A, Y0, 0 Y \
	VMASKMOVPS B, Y1, 32 Y \
	VMASKMOVPS C, Y2, 64 Y

// func tile4AVX2(y *float32, ldy int, x *float32, ldx int, panel *float32, cols, n int, add bool)
TEXT ·tile4AVX2(SB), NOSPLIT, $0-57
	TILEARGS
	CLEARROW(X4, X5, X6)
	CLEARROW(X7, X8, X9)
	CLEARROW(X10, X11, X12)
	CLEARROW(X13, X14, X15)

column:
	COLUMN
	ROW((SI), Y4, Y5, Y6)
	ROW((SI)(R12*1), Y7, Y8, Y9)
	ROW((SI)(R12*2), Y10, Y11, Y12)
	ROW((SI)(R13*1), Y13, Y14, Y15)
	NEXTCOLUMN(column)
	MASKS
	TESTL BX, BX
	JEQ  store
	ADDROW((DI), Y4, Y5, Y6)
	ADDROW((DI)(R12*1), Y7, Y8, Y9)
	ADDROW((DI)(R12*2), Y10, Y11, Y12)
	ADDROW((DI)(R13*1), Y13, Y14, Y15)

store:
	STOREROW((DI), Y4, Y5, Y6)
	STOREROW((DI)(R12*1), Y7, Y8, Y9)
	STOREROW((DI)(R12*2), Y10, Y11, Y12)
	STOREROW((DI)(R13*1), Y13, Y14, Y15)
	VZEROUPPER
	RET

// func tile2AVX2(y *float32, ldy int, x *float32, ldx int, panel *float32, cols, n int, add bool)
TEXT ·tile2AVX2(SB), NOSPLIT, $0-57
	TILEARGS
	CLEARROW(X4, X5, X6)
	CLEARROW(X7, X8, X9)

column:
	COLUMN
	ROW((SI), Y4, Y5, Y6)
	ROW((SI)(R12*1), Y7, Y8, Y9)
	NEXTCOLUMN(column)
	MASKS
	TESTL BX, BX
	JEQ  store
	ADDROW((DI), Y4, Y5, Y6)
	ADDROW((DI)(R12*1), Y7, Y8, Y9)

store:
	STOREROW((DI), Y4, Y5, Y6)
	STOREROW((DI)(R12*1), Y7, Y8, Y9)
	VZEROUPPER
	RET

// func tile1AVX2(y *float32, ldy int, x *float32, ldx int, panel *float32, cols, n int, add bool)
TEXT ·tile1AVX2(SB), NOSPLIT, $0-57
	TILEARGS
	CLEARROW(X4, X5, X6)

column:
	COLUMN
	ROW((SI), Y4, Y5, Y6)
	NEXTCOLUMN(column)
	MASKS
	TESTL BX, BX
	JEQ  store
	ADDROW((DI), Y4, Y5, Y6)

store:
	STOREROW((DI), Y4, Y5, Y6)
	VZEROUPPER
	RET
