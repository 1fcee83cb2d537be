#include "textflag.h"
#include "neon_arm64.h"

// A panel is 16 rows of w, decoded and transposed: 16 float32 for each of its
// columns. It is made 4 rows at a time.

// SOURCE sets R6…R9 to the four rows from R6 on, R5 bytes apart.
#define SOURCE \
	ADD R5, R6, R7 \
	ADD R5, R7, R8 \
	ADD R5, R8, R9

// WORDS transposes the next four uint32 of the rows: V4…V7 get one of them each,
// lane l from row l.
#define WORDS \
	VLD1.P 16(R6), [V0.S4] \
	VLD1.P 16(R7), [V1.S4] \
	VLD1.P 16(R8), [V2.S4] \
	VLD1.P 16(R9), [V3.S4] \
	VZIP1 V2.S4, V0.S4, V16.S4 \
	VZIP1 V3.S4, V1.S4, V17.S4 \
	VZIP2 V2.S4, V0.S4, V18.S4 \
	VZIP2 V3.S4, V1.S4, V19.S4 \
	VZIP1 V17.S4, V16.S4, V4.S4 \
	VZIP2 V17.S4, V16.S4, V5.S4 \
	VZIP1 V19.S4, V18.S4, V6.S4 \
	VZIP2 V19.S4, V18.S4, V7.S4

// STORE stores a column and goes on to the next one: R1 is 64 bytes.
#define STORE(V) VST1.P [V.S4], (R0)(R1)

#define PACKARGS \
	MOVD dst+0(FP), R0 \
	MOVD w+8(FP), R6 \
	MOVD scales+16(FP), R10 \
	MOVD biases+24(FP), R11 \
	MOVD cols+32(FP), R3 \
	MOVD stride+40(FP), R5 \
	MOVD group+48(FP), R4 \
	MOVD $64, R1 \
	SOURCE

// func packF32NEON(dst, w *float32, cols, stride int)
TEXT ·packF32NEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD w+8(FP), R6
	MOVD cols+16(FP), R3
	MOVD stride+24(FP), R5
	MOVD $64, R1
	SOURCE

next:
	SUBS $4, R3, R3
	BLT  done
	WORDS
	STORE(V4)
	STORE(V5)
	STORE(V6)
	STORE(V7)
	B    next

done:
	RET

// GROUP loads the scales and biases of the next group, of R4 columns, and sets R2
// to the number of its units of 32.
#define GROUP \
	VLD1.P (R10)(R1), [V29.S4] \
	VLD1.P (R11)(R1), [V30.S4] \
	LSR  $5, R4, R2

// FIRST and FIELD store what a mask leaves of each uint32 in W as the next column:
// the lowest bits, or those that stand F bits higher.
#define FIRST(W) \
	VAND V8.B16, W.B16, V20.B16 \
	VUCVTF(20, 20) \
	COLUMN

#define FIELD(W, MASK, F) \
	VAND MASK.B16, W.B16, V20.B16 \
	VUCVTFX(F, 20, 20) \
	COLUMN

#define COLUMN \
	VORR V30.B16, V30.B16, V28.B16 \
	VFMLA V20.S4, V29.S4, V28.S4 \
	STORE(V28)

#define NIBBLES(W) \
	FIRST(W) \
	FIELD(W, V9, 4) \
	FIELD(W, V10, 8) \
	FIELD(W, V11, 12) \
	FIELD(W, V12, 16) \
	FIELD(W, V13, 20) \
	FIELD(W, V14, 24) \
	FIELD(W, V15, 28)

// UNIT4 and UNIT8 store the 32 columns of a unit.
#define UNIT4 \
	WORDS \
	NIBBLES(V4) \
	NIBBLES(V5) \
	NIBBLES(V6) \
	NIBBLES(V7)

// GROUPS goes through the units of all groups.
#define GROUPS(UNIT) \
	CBZ  R3, done \
group: \
	GROUP \
unit: \
	UNIT \
	SUBS $1, R2, R2 \
	BNE  unit \
	SUBS R4, R3, R3 \
	BNE  group \
done: \
	RET

// func packQ4NEON(dst *float32, w *byte, scales, biases *float32, cols, stride, group int)
TEXT ·packQ4NEON(SB), NOSPLIT, $0-56
	PACKARGS
	MOVD $15, R2
	VDUP R2, V8.S4
	VSHL $4, V8.S4, V9.S4
	VSHL $8, V8.S4, V10.S4
	VSHL $12, V8.S4, V11.S4
	VSHL $16, V8.S4, V12.S4
	VSHL $20, V8.S4, V13.S4
	VSHL $24, V8.S4, V14.S4
	VSHL $28, V8.S4, V15.S4
	GROUPS(UNIT4)

#define BYTES(W) \
	FIRST(W) \
	FIELD(W, V9, 8) \
	FIELD(W, V10, 16) \
	FIELD(W, V11, 24)

#define UNIT8 \
	WORDS \
	BYTES(V4) \
	BYTES(V5) \
	BYTES(V6) \
	BYTES(V7) \
	WORDS \
	BYTES(V4) \
	BYTES(V5) \
	BYTES(V6) \
	BYTES(V7)

// func packQ8NEON(dst *float32, w *byte, scales, biases *float32, cols, stride, group int)
TEXT ·packQ8NEON(SB), NOSPLIT, $0-56
	PACKARGS
	MOVD $255, R2
	VDUP R2, V8.S4
	VSHL $8, V8.S4, V9.S4
	VSHL $16, V8.S4, V10.S4
	VSHL $24, V8.S4, V11.S4
	GROUPS(UNIT8)
