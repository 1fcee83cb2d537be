#include "textflag.h"
#include "neon_arm64.h"

// A tile is 4, 2 or 1 rows of x times a panel (pack_neon_arm64.s), with the sums
// in registers. All 16 columns of y are written.
//
//	R6…R9 x of the rows, at the column at hand
//	R10 panel, at the column; R3 columns left; R0 y, R5 bytes of a row of y;
//	R11 add
//	V16…V19 the column of the panel; V24…V27 x of the rows, four columns
//	V0…V15 the sums, four for each row

#define CLEAR(V) VEOR V.B16, V.B16, V.B16

#define CLEARROW(A, B, C, D) \
	CLEAR(A) \
	CLEAR(B) \
	CLEAR(C) \
	CLEAR(D)

#define TILEARGS \
	MOVD y+0(FP), R0 \
	MOVD ldy+8(FP), R5 \
	LSL  $2, R5, R5 \
	MOVD x+16(FP), R6 \
	MOVD ldx+24(FP), R4 \
	LSL  $2, R4, R4 \
	ADD  R4, R6, R7 \
	ADD  R4, R7, R8 \
	ADD  R4, R8, R9 \
	MOVD panel+32(FP), R10 \
	MOVD cols+40(FP), R3 \
	MOVBU add+48(FP), R11

#define COLUMN VLD1.P 64(R10), [V16.S4, V17.S4, V18.S4, V19.S4]

// ROW adds lane I of V number X times the column to the sums from V number A on.
#define ROW(I, X, A) \
	VFMLAE(I, X, 16, A) \
	VFMLAE(I, X, 17, A+1) \
	VFMLAE(I, X, 18, A+2) \
	VFMLAE(I, X, 19, A+3)

// PUTROW stores a row of sums, and goes on to the next row of y; ADDEDROW adds what
// is there to it first.
#define PUTROW(A, B, C, D) \
	VST1 [A.S4, B.S4, C.S4, D.S4], (R0) \
	ADD  R5, R0, R0

#define ADDEDROW(A, V0, V1, V2, V3) \
	VLD1 (R0), [V16.S4, V17.S4, V18.S4, V19.S4] \
	VFADD(16, A, A) \
	VFADD(17, A+1, A+1) \
	VFADD(18, A+2, A+2) \
	VFADD(19, A+3, A+3) \
	PUTROW(V0, V1, V2, V3)

// What is done for 1, 2 or 4 rows.

#define CLEAR1 \
	CLEARROW(V0, V1, V2, V3)

#define CLEAR2 \
	CLEAR1 \
	CLEARROW(V4, V5, V6, V7)

#define CLEAR4 \
	CLEAR2 \
	CLEARROW(V8, V9, V10, V11) \
	CLEARROW(V12, V13, V14, V15)

#define LOAD1 \
	VLD1.P 16(R6), [V24.S4]

#define LOAD2 \
	LOAD1 \
	VLD1.P 16(R7), [V25.S4]

#define LOAD4 \
	LOAD2 \
	VLD1.P 16(R8), [V26.S4] \
	VLD1.P 16(R9), [V27.S4]

#define LOADONE1 \
	FMOVS.P 4(R6), F24

#define LOADONE2 \
	LOADONE1 \
	FMOVS.P 4(R7), F25

#define LOADONE4 \
	LOADONE2 \
	FMOVS.P 4(R8), F26 \
	FMOVS.P 4(R9), F27

#define ROWS1(I) \
	ROW(I, 24, 0)

#define ROWS2(I) \
	ROWS1(I) \
	ROW(I, 25, 4)

#define ROWS4(I) \
	ROWS2(I) \
	ROW(I, 26, 8) \
	ROW(I, 27, 12)

#define ADDED1 \
	ADDEDROW(0, V0, V1, V2, V3)

#define ADDED2 \
	ADDED1 \
	ADDEDROW(4, V4, V5, V6, V7)

#define ADDED4 \
	ADDED2 \
	ADDEDROW(8, V8, V9, V10, V11) \
	ADDEDROW(12, V12, V13, V14, V15)

#define PUT1 \
	PUTROW(V0, V1, V2, V3)

#define PUT2 \
	PUT1 \
	PUTROW(V4, V5, V6, V7)

#define PUT4 \
	PUT2 \
	PUTROW(V8, V9, V10, V11) \
	PUTROW(V12, V13, V14, V15)

// TILE is a tile of so many rows as the macros are for.
#define TILE(CLEARS, LOADS, LOADONES, COLUMNS, ADDROWS, PUTS) \
	TILEARGS \
	CLEARS \
by4: \
	SUBS $4, R3, R3 \
	BLT  rest \
	LOADS \
	COLUMN \
	COLUMNS(0) \
	COLUMN \
	COLUMNS(1) \
	COLUMN \
	COLUMNS(2) \
	COLUMN \
	COLUMNS(3) \
	B    by4 \
rest: \
	ADDS $4, R3, R3 \
	BEQ  out \
one: \
	LOADONES \
	COLUMN \
	COLUMNS(0) \
	SUBS $1, R3, R3 \
	BNE  one \
out: \
	CBZ  R11, store \
	ADDROWS \
	RET \
store: \
	PUTS \
	RET

// func tile4NEON(y *float32, ldy int, x *float32, ldx int, panel *float32, cols int, add bool)
TEXT ·tile4NEON(SB), NOSPLIT, $0-49
	TILE(CLEAR4, LOAD4, LOADONE4, ROWS4, ADDED4, PUT4)

// func tile2NEON(y *float32, ldy int, x *float32, ldx int, panel *float32, cols int, add bool)
TEXT ·tile2NEON(SB), NOSPLIT, $0-49
	TILE(CLEAR2, LOAD2, LOADONE2, ROWS2, ADDED2, PUT2)

// func tile1NEON(y *float32, ldy int, x *float32, ldx int, panel *float32, cols int, add bool)
TEXT ·tile1NEON(SB), NOSPLIT, $0-49
	TILE(CLEAR1, LOAD1, LOADONE1, ROWS1, ADDED1, PUT1)
