#include "textflag.h"
#include "neon_arm64.h"

// Loops over the last elements take them one by one: a load of one float32 sets
// the other lanes to 0, so that what is added in them is 0.

#define CLEAR(V) VEOR V.B16, V.B16, V.B16

#define CLEAR4(A, B, C, D) \
	CLEAR(A) \
	CLEAR(B) \
	CLEAR(C) \
	CLEAR(D)

// SUM0 adds up the lanes of V0 in F0.
#define SUM0 \
	VFADDP(0, 0, 0) \
	VFADDP(0, 0, 0)

// BINARY is the body of an elementwise function of a and b.
#define BINARY(OP) \
	MOVD dst+0(FP), R0 \
	MOVD a+8(FP), R1 \
	MOVD b+16(FP), R2 \
	MOVD n+24(FP), R3 \
by16: \
	SUBS $16, R3, R3 \
	BLT  rest \
	VLD1.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4] \
	VLD1.P 64(R2), [V4.S4, V5.S4, V6.S4, V7.S4] \
	OP(4, 0, 0) \
	OP(5, 1, 1) \
	OP(6, 2, 2) \
	OP(7, 3, 3) \
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0) \
	B    by16 \
rest: \
	ADD  $16, R3, R3 \
by4: \
	SUBS $4, R3, R3 \
	BLT  tail \
	VLD1.P 16(R1), [V0.S4] \
	VLD1.P 16(R2), [V4.S4] \
	OP(4, 0, 0) \
	VST1.P [V0.S4], 16(R0) \
	B    by4 \
tail: \
	ADDS $4, R3, R3 \
	BEQ  done \
one: \
	FMOVS.P 4(R1), F0 \
	FMOVS.P 4(R2), F4 \
	OP(4, 0, 0) \
	FMOVS.P F0, 4(R0) \
	SUBS $1, R3, R3 \
	BNE  one \
done: \
	RET

// func addToNEON(dst, a, b *float32, n int)
TEXT ·addToNEON(SB), NOSPLIT, $0-32
	BINARY(VFADD)

// func mulToNEON(dst, a, b *float32, n int)
TEXT ·mulToNEON(SB), NOSPLIT, $0-32
	BINARY(VFMUL)

// func scaleToNEON(dst *float32, alpha float32, x *float32, n int)
TEXT ·scaleToNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	FMOVS alpha+8(FP), F16
	VDUP V16.S[0], V16.S4
	MOVD x+16(FP), R1
	MOVD n+24(FP), R3

by16:
	SUBS $16, R3, R3
	BLT  rest
	VLD1.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	VFMUL(0, 16, 0)
	VFMUL(1, 16, 1)
	VFMUL(2, 16, 2)
	VFMUL(3, 16, 3)
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	B    by16

rest:
	ADD  $16, R3, R3

by4:
	SUBS $4, R3, R3
	BLT  tail
	VLD1.P 16(R1), [V0.S4]
	VFMUL(0, 16, 0)
	VST1.P [V0.S4], 16(R0)
	B    by4

tail:
	ADDS $4, R3, R3
	BEQ  done

one:
	FMOVS.P 4(R1), F0
	VFMUL(0, 16, 0)
	FMOVS.P F0, 4(R0)
	SUBS $1, R3, R3
	BNE  one

done:
	RET

// func axpyNEON(alpha float32, x, y *float32, n int)
TEXT ·axpyNEON(SB), NOSPLIT, $0-32
	FMOVS alpha+0(FP), F16
	VDUP V16.S[0], V16.S4
	MOVD x+8(FP), R1
	MOVD y+16(FP), R0
	MOVD n+24(FP), R3

by16:
	SUBS $16, R3, R3
	BLT  rest
	VLD1.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1 (R0), [V4.S4, V5.S4, V6.S4, V7.S4]
	VFMLA V0.S4, V16.S4, V4.S4
	VFMLA V1.S4, V16.S4, V5.S4
	VFMLA V2.S4, V16.S4, V6.S4
	VFMLA V3.S4, V16.S4, V7.S4
	VST1.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R0)
	B    by16

rest:
	ADD  $16, R3, R3

by4:
	SUBS $4, R3, R3
	BLT  tail
	VLD1.P 16(R1), [V0.S4]
	VLD1 (R0), [V4.S4]
	VFMLA V0.S4, V16.S4, V4.S4
	VST1.P [V4.S4], 16(R0)
	B    by4

tail:
	ADDS $4, R3, R3
	BEQ  done

one:
	FMOVS.P 4(R1), F0
	FMOVS (R0), F4
	VFMLA V0.S4, V16.S4, V4.S4
	FMOVS.P F4, 4(R0)
	SUBS $1, R3, R3
	BNE  one

done:
	RET

// FMAX gives a NaN if there is one, and +0 for +0 and −0.

// func maximumNEON(x *float32, n int) float32
TEXT ·maximumNEON(SB), NOSPLIT, $0-20
	MOVD x+0(FP), R1
	MOVD n+8(FP), R3
	MOVD $0xff800000, R4
	VDUP R4, V0.S4
	VORR V0.B16, V0.B16, V1.B16
	VORR V0.B16, V0.B16, V2.B16
	VORR V0.B16, V0.B16, V3.B16

by16:
	SUBS $16, R3, R3
	BLT  rest
	VLD1.P 64(R1), [V4.S4, V5.S4, V6.S4, V7.S4]
	VFMAX(4, 0, 0)
	VFMAX(5, 1, 1)
	VFMAX(6, 2, 2)
	VFMAX(7, 3, 3)
	B    by16

rest:
	ADDS $16, R3, R3
	BEQ  max

one:
	VLD1R.P 4(R1), [V4.S4]
	VFMAX(4, 0, 0)
	SUBS $1, R3, R3
	BNE  one

max:
	VFMAX(1, 0, 0)
	VFMAX(3, 2, 2)
	VFMAX(2, 0, 0)
	VFMAXV(0, 0)
	FMOVS F0, ret+16(FP)
	RET

// func dotNEON(a, b *float32, n int) float32
TEXT ·dotNEON(SB), NOSPLIT, $0-28
	MOVD a+0(FP), R0
	MOVD b+8(FP), R1
	MOVD n+16(FP), R3
	CLEAR4(V0, V1, V2, V3)
	CLEAR4(V4, V5, V6, V7)

by32:
	SUBS $32, R3, R3
	BLT  rest
	VLD1.P 64(R0), [V16.S4, V17.S4, V18.S4, V19.S4]
	VLD1.P 64(R1), [V24.S4, V25.S4, V26.S4, V27.S4]
	VLD1.P 64(R0), [V20.S4, V21.S4, V22.S4, V23.S4]
	VLD1.P 64(R1), [V28.S4, V29.S4, V30.S4, V31.S4]
	VFMLA V16.S4, V24.S4, V0.S4
	VFMLA V17.S4, V25.S4, V1.S4
	VFMLA V18.S4, V26.S4, V2.S4
	VFMLA V19.S4, V27.S4, V3.S4
	VFMLA V20.S4, V28.S4, V4.S4
	VFMLA V21.S4, V29.S4, V5.S4
	VFMLA V22.S4, V30.S4, V6.S4
	VFMLA V23.S4, V31.S4, V7.S4
	B    by32

rest:
	ADD  $32, R3, R3

by4:
	SUBS $4, R3, R3
	BLT  tail
	VLD1.P 16(R0), [V16.S4]
	VLD1.P 16(R1), [V24.S4]
	VFMLA V16.S4, V24.S4, V0.S4
	B    by4

tail:
	ADDS $4, R3, R3
	BEQ  sum

one:
	FMOVS.P 4(R0), F16
	FMOVS.P 4(R1), F24
	VFMLA V16.S4, V24.S4, V1.S4
	SUBS $1, R3, R3
	BNE  one

sum:
	VFADD(4, 0, 0)
	VFADD(5, 1, 1)
	VFADD(6, 2, 2)
	VFADD(7, 3, 3)
	VFADD(1, 0, 0)
	VFADD(3, 2, 2)
	VFADD(2, 0, 0)
	SUM0
	FMOVS F0, ret+24(FP)
	RET

// func groupSumsNEON(dst, x *float32, n, group int)
TEXT ·groupSumsNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD x+8(FP), R1
	MOVD n+16(FP), R3

next:
	SUBS $1, R3, R3
	BLT  done
	MOVD group+24(FP), R4
	CLEAR4(V0, V1, V2, V3)

by32:
	VLD1.P 64(R1), [V16.S4, V17.S4, V18.S4, V19.S4]
	VLD1.P 64(R1), [V20.S4, V21.S4, V22.S4, V23.S4]
	VFADD(16, 0, 0)
	VFADD(17, 1, 1)
	VFADD(18, 2, 2)
	VFADD(19, 3, 3)
	VFADD(20, 0, 0)
	VFADD(21, 1, 1)
	VFADD(22, 2, 2)
	VFADD(23, 3, 3)
	SUBS $32, R4, R4
	BNE  by32
	VFADD(1, 0, 0)
	VFADD(3, 2, 2)
	VFADD(2, 0, 0)
	SUM0
	FMOVS.P F0, 4(R0)
	B    next

done:
	RET

// MATROW adds the products of one row's next 8 weights, at R, in A and B; x is in
// V16 and V17.
#define MATROW(R, A, B, T, U) \
	VLD1.P 32(R), [T.S4, U.S4] \
	VFMLA T.S4, V16.S4, A.S4 \
	VFMLA U.S4, V17.S4, B.S4

#define MATROW4(R, A, T) \
	VLD1.P 16(R), [T.S4] \
	VFMLA T.S4, V16.S4, A.S4

#define MATROW1(R, FT, A, T) \
	FMOVS.P 4(R), FT \
	VFMLA T.S4, V16.S4, A.S4

// A row has the same sum, to the bit, wherever it stands among the n.

// func matVecF32NEON(y, x, w *float32, n, k, ld int)
TEXT ·matVecF32NEON(SB), NOSPLIT, $0-48
	MOVD y+0(FP), R0
	MOVD w+16(FP), R4
	MOVD n+24(FP), R3
	MOVD ld+40(FP), R5
	LSL  $2, R5, R5

rows4:
	SUBS $4, R3, R3
	BLT  rows1
	MOVD R4, R6
	ADD  R5, R6, R7
	ADD  R5, R7, R8
	ADD  R5, R8, R9
	ADD  R5, R9, R4
	MOVD x+8(FP), R1
	MOVD k+32(FP), R2
	CLEAR4(V0, V1, V2, V3)
	CLEAR4(V4, V5, V6, V7)

by8:
	SUBS $8, R2, R2
	BLT  rest
	VLD1.P 32(R1), [V16.S4, V17.S4]
	MATROW(R6, V0, V4, V18, V19)
	MATROW(R7, V1, V5, V20, V21)
	MATROW(R8, V2, V6, V22, V23)
	MATROW(R9, V3, V7, V24, V25)
	B    by8

rest:
	ADD  $8, R2, R2
	SUBS $4, R2, R2
	BLT  tail
	VLD1.P 16(R1), [V16.S4]
	MATROW4(R6, V0, V18)
	MATROW4(R7, V1, V20)
	MATROW4(R8, V2, V22)
	MATROW4(R9, V3, V24)
	SUB  $4, R2, R2

tail:
	ADDS $4, R2, R2
	BEQ  sum

one:
	FMOVS.P 4(R1), F16
	MATROW1(R6, F18, V4, V18)
	MATROW1(R7, F20, V5, V20)
	MATROW1(R8, F22, V6, V22)
	MATROW1(R9, F24, V7, V24)
	SUBS $1, R2, R2
	BNE  one

sum:
	VFADD(4, 0, 0)
	VFADD(5, 1, 1)
	VFADD(6, 2, 2)
	VFADD(7, 3, 3)
	VFADDP(1, 0, 0)
	VFADDP(3, 2, 2)
	VFADDP(2, 0, 0)
	VST1.P [V0.S4], 16(R0)
	B    rows4

rows1:
	ADD  $4, R3, R3

row1:
	SUBS $1, R3, R3
	BLT  done
	MOVD R4, R6
	ADD  R5, R4, R4
	MOVD x+8(FP), R1
	MOVD k+32(FP), R2
	CLEAR(V0)
	CLEAR(V4)

row1by8:
	SUBS $8, R2, R2
	BLT  row1rest
	VLD1.P 32(R1), [V16.S4, V17.S4]
	MATROW(R6, V0, V4, V18, V19)
	B    row1by8

row1rest:
	ADD  $8, R2, R2
	SUBS $4, R2, R2
	BLT  row1tail
	VLD1.P 16(R1), [V16.S4]
	MATROW4(R6, V0, V18)
	SUB  $4, R2, R2

row1tail:
	ADDS $4, R2, R2
	BEQ  row1sum

row1one:
	FMOVS.P 4(R1), F16
	MATROW1(R6, F18, V4, V18)
	SUBS $1, R2, R2
	BNE  row1one

row1sum:
	VFADD(4, 0, 0)
	SUM0
	FMOVS.P F0, 4(R0)
	B    row1

done:
	RET
