#include "textflag.h"
#include "neon_arm64.h"

// The registers of both products:
//
//	R0 y, R1 x, R3 rows left, R4 w of the next rows, R5 bytes of w in a row
//	R6…R9 w of the rows at hand
//	R10 scales and R17 biases of the next rows, R15 bytes of them in a row
//	R11…R14 scales, then biases, of the rows at hand
//	R19 units (32 weights, the least group) of a group, R16 those left
//	R2 groups left, R20 xsum, R21 groups of a row
//	V0…V7 x of the unit, V8…V15 masks, V16…V19 the sums of the rows
//	V28…V31 the scales of the rows, in lane 0
//
// Weights are taken out of 32-bit lanes where they lie: a mask leaves one of
// each lane, and the conversion divides by the power of two that its place is
// worth. So x is loaded in the order in which the lanes have it.
//
// A row has the same sum, to the bit, wherever it stands among the n.

#define CLEAR(V) VEOR V.B16, V.B16, V.B16

// ARGS loads the arguments; R5 is k.
#define ARGS \
	MOVD y+0(FP), R0 \
	MOVD w+24(FP), R4 \
	MOVD scales+32(FP), R10 \
	MOVD biases+40(FP), R17 \
	MOVD n+48(FP), R3 \
	MOVD k+56(FP), R5 \
	MOVD group+64(FP), R19 \
	UDIV R19, R5, R21 \
	LSL  $2, R21, R15 \
	LSR  $5, R19, R19

// POINT4 sets R11…R14 to the rows of scales or biases from R on, and R behind
// them.
#define POINT4(R) \
	MOVD R, R11 \
	ADD  R15, R11, R12 \
	ADD  R15, R12, R13 \
	ADD  R15, R13, R14 \
	ADD  R15, R14, R

// ROWS4 begins four rows, ROWS1 one.
#define ROWS4 \
	MOVD R4, R6 \
	ADD  R5, R6, R7 \
	ADD  R5, R7, R8 \
	ADD  R5, R8, R9 \
	ADD  R5, R9, R4 \
	POINT4(R10) \
	MOVD x+8(FP), R1 \
	MOVD R21, R2 \
	CLEAR(V16) \
	CLEAR(V17) \
	CLEAR(V18) \
	CLEAR(V19)

#define ROWS1 \
	MOVD R4, R6 \
	ADD  R5, R4, R4 \
	MOVD R10, R11 \
	ADD  R15, R10, R10 \
	MOVD x+8(FP), R1 \
	MOVD R21, R2 \
	CLEAR(V16)

#define SCALES4 \
	FMOVS.P 4(R11), F28 \
	FMOVS.P 4(R12), F29 \
	FMOVS.P 4(R13), F30 \
	FMOVS.P 4(R14), F31 \
	MOVD R19, R16

#define SCALES1 \
	FMOVS.P 4(R11), F28 \
	MOVD R19, R16

#define BIAS(R, T, ACC) \
	VLD1.P 16(R), [T.S4] \
	VFMLA T.S4, V0.S4, ACC.S4

#define BIASONE(R, FT, T, ACC) \
	FMOVS.P 4(R), FT \
	VFMLA T.S4, V0.S4, ACC.S4

// BIASES4 adds biases*xsum to the sums, four groups at a time and the last ones
// one by one.
#define BIASES4(LOOP, TAIL, ONE, SUM) \
	POINT4(R17) \
	MOVD xsum+16(FP), R20 \
	MOVD R21, R2 \
LOOP: \
	SUBS $4, R2, R2 \
	BLT  TAIL \
	VLD1.P 16(R20), [V0.S4] \
	BIAS(R11, V1, V16) \
	BIAS(R12, V2, V17) \
	BIAS(R13, V3, V18) \
	BIAS(R14, V4, V19) \
	B    LOOP \
TAIL: \
	ADDS $4, R2, R2 \
	BEQ  SUM \
ONE: \
	FMOVS.P 4(R20), F0 \
	BIASONE(R11, F1, V1, V16) \
	BIASONE(R12, F2, V2, V17) \
	BIASONE(R13, F3, V3, V18) \
	BIASONE(R14, F4, V4, V19) \
	SUBS $1, R2, R2 \
	BNE  ONE \
SUM: \
	VFADDP(17, 16, 16) \
	VFADDP(19, 18, 18) \
	VFADDP(18, 16, 16) \
	VST1.P [V16.S4], 16(R0)

#define BIASES1(LOOP, TAIL, ONE, SUM) \
	MOVD R17, R11 \
	ADD  R15, R17, R17 \
	MOVD xsum+16(FP), R20 \
	MOVD R21, R2 \
LOOP: \
	SUBS $4, R2, R2 \
	BLT  TAIL \
	VLD1.P 16(R20), [V0.S4] \
	BIAS(R11, V1, V16) \
	B    LOOP \
TAIL: \
	ADDS $4, R2, R2 \
	BEQ  SUM \
ONE: \
	FMOVS.P 4(R20), F0 \
	BIASONE(R11, F1, V1, V16) \
	SUBS $1, R2, R2 \
	BNE  ONE \
SUM: \
	VFADDP(16, 16, 16) \
	VFADDP(16, 16, 16) \
	FMOVS.P F16, 4(R0)

// MASKS4 sets V8…V15 to the masks of weights 0…7 of a lane.
#define MASKS4 \
	MOVD $15, R2 \
	VDUP R2, V8.S4 \
	VSHL $4, V8.S4, V9.S4 \
	VSHL $8, V8.S4, V10.S4 \
	VSHL $12, V8.S4, V11.S4 \
	VSHL $16, V8.S4, V12.S4 \
	VSHL $20, V8.S4, V13.S4 \
	VSHL $24, V8.S4, V14.S4 \
	VSHL $28, V8.S4, V15.S4

// LOADX4 sets Vs to x[s], x[8+s], x[16+s] and x[24+s] of the unit.
#define LOADX4 \
	VLD4.P 64(R1), [V20.S4, V21.S4, V22.S4, V23.S4] \
	VLD4.P 64(R1), [V24.S4, V25.S4, V26.S4, V27.S4] \
	VUZP1 V24.S4, V20.S4, V0.S4 \
	VUZP1 V25.S4, V21.S4, V1.S4 \
	VUZP1 V26.S4, V22.S4, V2.S4 \
	VUZP1 V27.S4, V23.S4, V3.S4 \
	VUZP2 V24.S4, V20.S4, V4.S4 \
	VUZP2 V25.S4, V21.S4, V5.S4 \
	VUZP2 V26.S4, V22.S4, V6.S4 \
	VUZP2 V27.S4, V23.S4, V7.S4

// Q4ROW adds the unit's products of the row at R, scaled by lane 0 of V number
// SCALE, to V number ACC. Even and odd weights have a sum each.
#define Q4ROW(R, SCALE, ACC) \
	VLD1.P 16(R), [V20.B16] \
	VAND V8.B16, V20.B16, V21.B16 \
	VAND V9.B16, V20.B16, V22.B16 \
	VAND V10.B16, V20.B16, V23.B16 \
	VAND V11.B16, V20.B16, V24.B16 \
	VUCVTF(21, 21) \
	VUCVTFX(4, 22, 22) \
	VUCVTFX(8, 23, 23) \
	VUCVTFX(12, 24, 24) \
	VFMUL(21, 0, 25) \
	VFMUL(22, 1, 26) \
	VFMLA V23.S4, V2.S4, V25.S4 \
	VFMLA V24.S4, V3.S4, V26.S4 \
	VAND V12.B16, V20.B16, V21.B16 \
	VAND V13.B16, V20.B16, V22.B16 \
	VAND V14.B16, V20.B16, V23.B16 \
	VAND V15.B16, V20.B16, V24.B16 \
	VUCVTFX(16, 21, 21) \
	VUCVTFX(20, 22, 22) \
	VUCVTFX(24, 23, 23) \
	VUCVTFX(28, 24, 24) \
	VFMLA V21.S4, V4.S4, V25.S4 \
	VFMLA V22.S4, V5.S4, V26.S4 \
	VFMLA V23.S4, V6.S4, V25.S4 \
	VFMLA V24.S4, V7.S4, V26.S4 \
	VFADD(26, 25, 25) \
	VFMLAE(0, SCALE, 25, ACC)

// MASKS8 sets V8…V11 to the masks of weights 0…3 of a lane.
#define MASKS8 \
	MOVD $255, R2 \
	VDUP R2, V8.S4 \
	VSHL $8, V8.S4, V9.S4 \
	VSHL $16, V8.S4, V10.S4 \
	VSHL $24, V8.S4, V11.S4

// LOADX8 sets V0…V3 to x[s], x[4+s], x[8+s] and x[12+s] of the unit, and V4…V7 to
// the same of its second half.
#define LOADX8 \
	VLD4.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4] \
	VLD4.P 64(R1), [V4.S4, V5.S4, V6.S4, V7.S4]

#define Q8ROW(R, SCALE, ACC) \
	VLD1.P 32(R), [V12.B16, V13.B16] \
	VAND V8.B16, V12.B16, V21.B16 \
	VAND V9.B16, V12.B16, V22.B16 \
	VAND V10.B16, V12.B16, V23.B16 \
	VAND V11.B16, V12.B16, V24.B16 \
	VUCVTF(21, 21) \
	VUCVTFX(8, 22, 22) \
	VUCVTFX(16, 23, 23) \
	VUCVTFX(24, 24, 24) \
	VFMUL(21, 0, 25) \
	VFMUL(22, 1, 26) \
	VFMLA V23.S4, V2.S4, V25.S4 \
	VFMLA V24.S4, V3.S4, V26.S4 \
	VAND V8.B16, V13.B16, V21.B16 \
	VAND V9.B16, V13.B16, V22.B16 \
	VAND V10.B16, V13.B16, V23.B16 \
	VAND V11.B16, V13.B16, V24.B16 \
	VUCVTF(21, 21) \
	VUCVTFX(8, 22, 22) \
	VUCVTFX(16, 23, 23) \
	VUCVTFX(24, 24, 24) \
	VFMLA V21.S4, V4.S4, V25.S4 \
	VFMLA V22.S4, V5.S4, V26.S4 \
	VFMLA V23.S4, V6.S4, V25.S4 \
	VFMLA V24.S4, V7.S4, V26.S4 \
	VFADD(26, 25, 25) \
	VFMLAE(0, SCALE, 25, ACC)

// MATVEC is a product behind its arguments and masks, with what loads the x of a
// unit and what adds a row of it.
#define MATVEC(LOADX, ROW) \
rows4: \
	SUBS $4, R3, R3 \
	BLT  rows1 \
	ROWS4 \
	CBZ  R2, bias4 \
group4: \
	SCALES4 \
unit4: \
	LOADX \
	ROW(R6, 28, 16) \
	ROW(R7, 29, 17) \
	ROW(R8, 30, 18) \
	ROW(R9, 31, 19) \
	SUBS $1, R16, R16 \
	BNE  unit4 \
	SUBS $1, R2, R2 \
	BNE  group4 \
bias4: \
	BIASES4(loop4, tail4, one4, sum4) \
	B    rows4 \
rows1: \
	ADD  $4, R3, R3 \
row1: \
	SUBS $1, R3, R3 \
	BLT  done \
	ROWS1 \
	CBZ  R2, bias1 \
group1: \
	SCALES1 \
unit1: \
	LOADX \
	ROW(R6, 28, 16) \
	SUBS $1, R16, R16 \
	BNE  unit1 \
	SUBS $1, R2, R2 \
	BNE  group1 \
bias1: \
	BIASES1(loop1, tail1, one1, sum1) \
	B    row1 \
done: \
	RET

// func matVecQ4NEON(y, x, xsum *float32, w *byte, scales, biases *float32, n, k, group int)
TEXT ·matVecQ4NEON(SB), NOSPLIT, $0-72
	ARGS
	LSR  $1, R5, R5
	MASKS4
	MATVEC(LOADX4, Q4ROW)

// func matVecQ8NEON(y, x, xsum *float32, w *byte, scales, biases *float32, n, k, group int)
TEXT ·matVecQ8NEON(SB), NOSPLIT, $0-72
	ARGS
	MASKS8
	MATVEC(LOADX8, Q8ROW)
