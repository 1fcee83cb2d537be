#include "textflag.h"

// Shifts which bring the weights of a broadcast uint32 to the low bits of their
// lanes, and the mask for them.
DATA nibbleShift8<>+0x00(SB)/8, $0x0000000400000000
DATA nibbleShift8<>+0x08(SB)/8, $0x0000000c00000008
DATA nibbleShift8<>+0x10(SB)/8, $0x0000001400000010
DATA nibbleShift8<>+0x18(SB)/8, $0x0000001c00000018
GLOBL nibbleShift8<>(SB), RODATA|NOPTR, $32

DATA nibbleMask<>+0x00(SB)/4, $0x0000000f
GLOBL nibbleMask<>(SB), RODATA|NOPTR, $4

// The eight lanes from offset 4*(8-n) on are a mask for the first n lanes.
DATA ·tailMask+0x00(SB)/8, $0xffffffffffffffff
DATA ·tailMask+0x08(SB)/8, $0xffffffffffffffff
DATA ·tailMask+0x10(SB)/8, $0xffffffffffffffff
DATA ·tailMask+0x18(SB)/8, $0xffffffffffffffff
DATA ·tailMask+0x20(SB)/8, $0x0000000000000000
DATA ·tailMask+0x28(SB)/8, $0x0000000000000000
DATA ·tailMask+0x30(SB)/8, $0x0000000000000000
DATA ·tailMask+0x38(SB)/8, $0x0000000000000000
GLOBL ·tailMask(SB), RODATA|NOPTR, $64

// The registers of both products:
//
//	SI x, R8 w, R9 scales, R10 biases (all at the rows at hand); y stays in its
//	argument, DI is the place of w to prefetch
//	R12, R14 bytes of w in 1 and 3 rows; R13, R15 bytes of scales in 1 and 3 rows
//	AX unit (32 weights, the least group), BX units of a row,
//	CX log2(units of a group), R11 rows left
//	DX the group of the unit, or the address of its scale
//	Y4…Y7 the sums of the rows, Y8…Y11 x of the unit

// Prefetches, as in quant_avx512_amd64.s.
#define AHEAD 4096 // bytes of w
#define SCALESAHEAD 1024 // bytes of scales, of biases

// ARGS loads the arguments; R12 is k.
#define ARGS \
	MOVQ w+24(FP), R8 \
	MOVQ scales+32(FP), R9 \
	MOVQ biases+40(FP), R10 \
	MOVQ n+48(FP), R11 \
	MOVQ k+56(FP), R12 \
	MOVQ group+64(FP), CX \
	BSRQ CX, CX \
	MOVQ R12, R13 \
	SHRQ CX, R13 \
	SHLQ $2, R13 \
	LEAQ (R13)(R13*2), R15 \
	SUBQ $5, CX

// ROWS begins a few rows: x again from its start.
#define ROWS \
	MOVQ x+8(FP), SI \
	MOVQ k+56(FP), BX \
	SHRQ $5, BX \
	XORL AX, AX

// BIASES adds biases*xsum to the sums, ADD eight groups at a time; the last
// ones under the mask Y3.
#define BIASES(LOOP, TAIL, SUM, ADD) \
	MOVQ xsum+16(FP), SI \
	MOVQ R13, DX \
	SHRQ $2, DX \
	XORL AX, AX \
	VPCMPEQD Y3, Y3, Y3 \
LOOP: \
	SUBQ $8, DX \
	JLT  TAIL \
	ADD \
	ADDQ $8, AX \
	JMP  LOOP \
TAIL: \
	ADDQ $8, DX \
	JEQ  SUM \
	LEAQ ·tailMask+32(SB), BX \
	SHLQ $2, DX \
	SUBQ DX, BX \
	VMOVDQU (BX), Y3 \
	ADD \
SUM:

#define BIAS4 \
	VMASKMOVPS (SI)(AX*4), Y3, Y0 \
	LEAQ (R10)(AX*4), BX \
	VMASKMOVPS (BX), Y3, Y1 \
	VMASKMOVPS (BX)(R13*1), Y3, Y2 \
	VFMADD231PS Y1, Y0, Y4 \
	VFMADD231PS Y2, Y0, Y5 \
	VMASKMOVPS (BX)(R13*2), Y3, Y1 \
	VMASKMOVPS (BX)(R15*1), Y3, Y2 \
	VFMADD231PS Y1, Y0, Y6 \
	VFMADD231PS Y2, Y0, Y7

#define BIAS1 \
	VMASKMOVPS (SI)(AX*4), Y3, Y0 \
	VMASKMOVPS (R10)(AX*4), Y3, Y1 \
	VFMADD231PS Y1, Y0, Y4

// NEXT4 stores the sums of the lanes of Y4…Y7 and goes on by four rows; R8 is
// behind the first of them already.
#define NEXT4 \
	VHADDPS Y5, Y4, Y0 \
	VHADDPS Y7, Y6, Y2 \
	VHADDPS Y2, Y0, Y0 \
	VEXTRACTF128 $1, Y0, X1 \
	VADDPS X1, X0, X0 \
	MOVQ y+0(FP), DI \
	VMOVUPS X0, (DI) \
	ADDQ $16, DI \
	MOVQ DI, y+0(FP) \
	ADDQ R14, R8 \
	LEAQ (R9)(R13*4), R9 \
	LEAQ (R10)(R13*4), R10

#define NEXT1 \
	VEXTRACTF128 $1, Y4, X1 \
	VADDPS X1, X4, X0 \
	VHADDPS X0, X0, X0 \
	VHADDPS X0, X0, X0 \
	MOVQ y+0(FP), DI \
	VMOVSS X0, (DI) \
	ADDQ $4, DI \
	MOVQ DI, y+0(FP) \
	ADDQ R13, R9 \
	ADDQ R13, R10

#define CLEAR4 \
	VXORPS X4, X4, X4 \
	VXORPS X5, X5, X5 \
	VXORPS X6, X6, X6 \
	VXORPS X7, X7, X7

#define LOADX \
	VMOVUPS (SI), Y8 \
	VMOVUPS 32(SI), Y9 \
	VMOVUPS 64(SI), Y10 \
	VMOVUPS 96(SI), Y11

#define Q4WORD(W, OUT) \
	VPBROADCASTD W, OUT \
	VPSRLVD Y15, OUT, OUT \
	VPAND Y14, OUT, OUT \
	VCVTDQ2PS OUT, OUT

#define Q4ROW(W0, W1, W2, W3, SCALE, ACC) \
	Q4WORD(W0, Y0) \
	Q4WORD(W1, Y1) \
	Q4WORD(W2, Y2) \
	Q4WORD(W3, Y3) \
	VMULPS Y0, Y8, Y0 \
	VMULPS Y2, Y10, Y2 \
	VFMADD231PS Y1, Y9, Y0 \
	VFMADD231PS Y3, Y11, Y2 \
	VBROADCASTSS SCALE, Y1 \
	VADDPS Y2, Y0, Y0 \
	VFMADD231PS Y1, Y0, ACC

// func matVecQ4AVX2(y, x, xsum *float32, w *byte, scales, biases *float32, n, k, group int)
TEXT ·matVecQ4AVX2(SB), NOSPLIT, $0-72
	ARGS
	SHRQ $1, R12
	LEAQ (R12)(R12*2), R14
	VMOVDQU nibbleShift8<>+0(SB), Y15
	VPBROADCASTD nibbleMask<>+0(SB), Y14

rows4:
	SUBQ $4, R11
	JLT  rows1
	ROWS
	MOVQ R8, DI
	CLEAR4
	CMPQ AX, BX
	JGE  bias4

unit4:
	LOADX
	PREFETCHT0 AHEAD(DI)
	ADDQ $64, DI
	MOVQ AX, DX
	SHRQ CX, DX
	ADDQ DX, DX
	PREFETCHT0 SCALESAHEAD(R9)(DX*8)
	PREFETCHT0 SCALESAHEAD(R10)(DX*8)
	LEAQ (R9)(DX*2), DX
	Q4ROW((R8), 4(R8), 8(R8), 12(R8), (DX), Y4)
	Q4ROW((R8)(R12*1), 4(R8)(R12*1), 8(R8)(R12*1), 12(R8)(R12*1), (DX)(R13*1), Y5)
	Q4ROW((R8)(R12*2), 4(R8)(R12*2), 8(R8)(R12*2), 12(R8)(R12*2), (DX)(R13*2), Y6)
	Q4ROW((R8)(R14*1), 4(R8)(R14*1), 8(R8)(R14*1), 12(R8)(R14*1), (DX)(R15*1), Y7)
	ADDQ $128, SI
	ADDQ $16, R8
	INCQ AX
	CMPQ AX, BX
	JLT  unit4

bias4:
	BIASES(groups4, tail4, sum4, BIAS4)
	NEXT4
	JMP  rows4

rows1:
	ADDQ $4, R11

row1:
	SUBQ $1, R11
	JLT  done
	ROWS
	VXORPS X4, X4, X4
	CMPQ AX, BX
	JGE  bias1

unit1:
	LOADX
	MOVQ AX, DX
	SHRQ CX, DX
	Q4ROW((R8), 4(R8), 8(R8), 12(R8), (R9)(DX*4), Y4)
	ADDQ $128, SI
	ADDQ $16, R8
	INCQ AX
	CMPQ AX, BX
	JLT  unit1

bias1:
	BIASES(groups1, tail1, sum1, BIAS1)
	NEXT1
	JMP  row1

done:
	VZEROUPPER
	RET

#define Q8ROW(B0, B1, B2, B3, SCALE, ACC) \
	VPMOVZXBD B0, Y0 \
	VPMOVZXBD B1, Y1 \
	VPMOVZXBD B2, Y2 \
	VPMOVZXBD B3, Y3 \
	VCVTDQ2PS Y0, Y0 \
	VCVTDQ2PS Y1, Y1 \
	VCVTDQ2PS Y2, Y2 \
	VCVTDQ2PS Y3, Y3 \
	VMULPS Y0, Y8, Y0 \
	VMULPS Y2, Y10, Y2 \
	VFMADD231PS Y1, Y9, Y0 \
	VFMADD231PS Y3, Y11, Y2 \
	VBROADCASTSS SCALE, Y1 \
	VADDPS Y2, Y0, Y0 \
	VFMADD231PS Y1, Y0, ACC

// func matVecQ8AVX2(y, x, xsum *float32, w *byte, scales, biases *float32, n, k, group int)
TEXT ·matVecQ8AVX2(SB), NOSPLIT, $0-72
	ARGS
	LEAQ (R12)(R12*2), R14

rows4:
	SUBQ $4, R11
	JLT  rows1
	ROWS
	MOVQ R8, DI
	CLEAR4
	CMPQ AX, BX
	JGE  bias4

unit4:
	LOADX
	PREFETCHT0 AHEAD(DI)
	PREFETCHT0 (AHEAD+64)(DI)
	ADDQ $128, DI
	MOVQ AX, DX
	SHRQ CX, DX
	ADDQ DX, DX
	PREFETCHT0 SCALESAHEAD(R9)(DX*8)
	PREFETCHT0 SCALESAHEAD(R10)(DX*8)
	LEAQ (R9)(DX*2), DX
	Q8ROW((R8), 8(R8), 16(R8), 24(R8), (DX), Y4)
	Q8ROW((R8)(R12*1), 8(R8)(R12*1), 16(R8)(R12*1), 24(R8)(R12*1), (DX)(R13*1), Y5)
	Q8ROW((R8)(R12*2), 8(R8)(R12*2), 16(R8)(R12*2), 24(R8)(R12*2), (DX)(R13*2), Y6)
	Q8ROW((R8)(R14*1), 8(R8)(R14*1), 16(R8)(R14*1), 24(R8)(R14*1), (DX)(R15*1), Y7)
	ADDQ $128, SI
	ADDQ $32, R8
	INCQ AX
	CMPQ AX, BX
	JLT  unit4

bias4:
	BIASES(groups4, tail4, sum4, BIAS4)
	NEXT4
	JMP  rows4

rows1:
	ADDQ $4, R11

row1:
	SUBQ $1, R11
	JLT  done
	ROWS
	VXORPS X4, X4, X4
	CMPQ AX, BX
	JGE  bias1

unit1:
	LOADX
	MOVQ AX, DX
	SHRQ CX, DX
	Q8ROW((R8), 8(R8), 16(R8), 24(R8), (R9)(DX*4), Y4)
	ADDQ $128, SI
	ADDQ $32, R8
	INCQ AX
	CMPQ AX, BX
	JLT  unit1

bias1:
	BIASES(groups1, tail1, sum1, BIAS1)
	NEXT1
	JMP  row1

done:
	VZEROUPPER
	RET
