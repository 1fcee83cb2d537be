#include "textflag.h"

// A unit is 32 weights, the least group. Of the 16 bytes of a 4-bit unit, seen
// as the uint32 numbers w0…w3, lane l of a register takes w(l%4) (one broadcast
// load) and shifts it by 4*(l/4), or by 16 more for the other half: lane l then
// holds in its low 4 bits weight 8*(l%4) + l/4, or that + 4. VPERMPS looks the
// weight up in a table of 0…15 and regards no higher bit, which saves the mask
// and the conversion. x is brought into the same order once for all rows.

DATA nibbleShift<>+0x00(SB)/8, $0x0000000000000000
DATA nibbleShift<>+0x08(SB)/8, $0x0000000000000000
DATA nibbleShift<>+0x10(SB)/8, $0x0000000400000004
DATA nibbleShift<>+0x18(SB)/8, $0x0000000400000004
DATA nibbleShift<>+0x20(SB)/8, $0x0000000800000008
DATA nibbleShift<>+0x28(SB)/8, $0x0000000800000008
DATA nibbleShift<>+0x30(SB)/8, $0x0000000c0000000c
DATA nibbleShift<>+0x38(SB)/8, $0x0000000c0000000c
DATA nibbleShift<>+0x40(SB)/8, $0x0000001000000010
DATA nibbleShift<>+0x48(SB)/8, $0x0000001000000010
DATA nibbleShift<>+0x50(SB)/8, $0x0000001400000014
DATA nibbleShift<>+0x58(SB)/8, $0x0000001400000014
DATA nibbleShift<>+0x60(SB)/8, $0x0000001800000018
DATA nibbleShift<>+0x68(SB)/8, $0x0000001800000018
DATA nibbleShift<>+0x70(SB)/8, $0x0000001c0000001c
DATA nibbleShift<>+0x78(SB)/8, $0x0000001c0000001c
GLOBL nibbleShift<>(SB), RODATA|NOPTR, $128

// The lanes' indices into x[0:32], of both halves.
DATA nibbleOrder<>+0x00(SB)/8, $0x0000000800000000
DATA nibbleOrder<>+0x08(SB)/8, $0x0000001800000010
DATA nibbleOrder<>+0x10(SB)/8, $0x0000000900000001
DATA nibbleOrder<>+0x18(SB)/8, $0x0000001900000011
DATA nibbleOrder<>+0x20(SB)/8, $0x0000000a00000002
DATA nibbleOrder<>+0x28(SB)/8, $0x0000001a00000012
DATA nibbleOrder<>+0x30(SB)/8, $0x0000000b00000003
DATA nibbleOrder<>+0x38(SB)/8, $0x0000001b00000013
DATA nibbleOrder<>+0x40(SB)/8, $0x0000000c00000004
DATA nibbleOrder<>+0x48(SB)/8, $0x0000001c00000014
DATA nibbleOrder<>+0x50(SB)/8, $0x0000000d00000005
DATA nibbleOrder<>+0x58(SB)/8, $0x0000001d00000015
DATA nibbleOrder<>+0x60(SB)/8, $0x0000000e00000006
DATA nibbleOrder<>+0x68(SB)/8, $0x0000001e00000016
DATA nibbleOrder<>+0x70(SB)/8, $0x0000000f00000007
DATA nibbleOrder<>+0x78(SB)/8, $0x0000001f00000017
GLOBL nibbleOrder<>(SB), RODATA|NOPTR, $128

// 0.0 to 15.0.
DATA nibbleValue<>+0x00(SB)/8, $0x3f80000000000000
DATA nibbleValue<>+0x08(SB)/8, $0x4040000040000000
DATA nibbleValue<>+0x10(SB)/8, $0x40a0000040800000
DATA nibbleValue<>+0x18(SB)/8, $0x40e0000040c00000
DATA nibbleValue<>+0x20(SB)/8, $0x4110000041000000
DATA nibbleValue<>+0x28(SB)/8, $0x4130000041200000
DATA nibbleValue<>+0x30(SB)/8, $0x4150000041400000
DATA nibbleValue<>+0x38(SB)/8, $0x4170000041600000
GLOBL nibbleValue<>(SB), RODATA|NOPTR, $64

// The registers of both products:
//
//	SI x, R8 w, R9 scales, R10 biases (all at the rows at hand); y stays in its
//	argument, DI is the place of w to prefetch
//	R12, R14 bytes of w in 1 and 3 rows; R13, R15 bytes of scales in 1 and 3 rows
//	AX unit, BX units of a row, CX log2(units of a group), R11 rows left
//	DX the group of the unit, or the address of its scale
//	Z20…Z23 the sums of the rows

// The four rows at hand are four streams within a page or two, which the
// hardware does not follow far enough. But rows lie one after another, so that
// the next ones are one stream again, of 4 times the bytes of a row: it is
// fetched ahead, by distances that were measured (a model's 115 MB: 13 ms a pass
// without, 7 ms with). A prefetch past the end of the memory is no fault.
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

// BIASES adds biases*xsum to the sums, ADD sixteen groups at a time; the last
// ones under a mask.
#define BIASES(LOOP, TAIL, SUM, ADD) \
	MOVQ xsum+16(FP), SI \
	MOVQ R13, DX \
	SHRQ $2, DX \
	XORL AX, AX \
	KXNORW K1, K1, K1 \
LOOP: \
	SUBQ $16, DX \
	JLT  TAIL \
	ADD \
	ADDQ $16, AX \
	JMP  LOOP \
TAIL: \
	ADDQ $16, DX \
	JEQ  SUM \
	MOVL $0xffff, BX \
	BZHIL DX, BX, BX \
	KMOVW BX, K1 \
	ADD \
SUM:

#define BIAS4 \
	VMOVUPS.Z (SI)(AX*4), K1, Z0 \
	LEAQ (R10)(AX*4), BX \
	VFMADD231PS (BX), Z0, K1, Z20 \
	VFMADD231PS (BX)(R13*1), Z0, K1, Z21 \
	VFMADD231PS (BX)(R13*2), Z0, K1, Z22 \
	VFMADD231PS (BX)(R15*1), Z0, K1, Z23

#define BIAS1 \
	VMOVUPS.Z (SI)(AX*4), K1, Z0 \
	VFMADD231PS (R10)(AX*4), Z0, K1, Z20

// NEXT4 stores the sums of the lanes of Z20…Z23 and goes on by four rows; R8 is
// behind the first of them already.
#define NEXT4 \
	VEXTRACTF64X4 $1, Z20, Y0 \
	VEXTRACTF64X4 $1, Z21, Y1 \
	VEXTRACTF64X4 $1, Z22, Y2 \
	VEXTRACTF64X4 $1, Z23, Y3 \
	VADDPS Y20, Y0, Y0 \
	VADDPS Y21, Y1, Y1 \
	VADDPS Y22, Y2, Y2 \
	VADDPS Y23, Y3, Y3 \
	VHADDPS Y1, Y0, Y0 \
	VHADDPS Y3, Y2, Y2 \
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
	VEXTRACTF64X4 $1, Z20, Y0 \
	VADDPS Y20, Y0, Y0 \
	VEXTRACTF128 $1, Y0, X1 \
	VADDPS X1, X0, X0 \
	VHADDPS X0, X0, X0 \
	VHADDPS X0, X0, X0 \
	MOVQ y+0(FP), DI \
	VMOVSS X0, (DI) \
	ADDQ $4, DI \
	MOVQ DI, y+0(FP) \
	ADDQ R13, R9 \
	ADDQ R13, R10

#define CLEAR4 \
	VXORPS X20, X20, X20 \
	VXORPS X21, X21, X21 \
	VXORPS X22, X22, X22 \
	VXORPS X23, X23, X23

#define Q4X \
	VMOVUPS (SI), Z16 \
	VMOVUPS (SI), Z17 \
	VPERMT2PS 64(SI), Z28, Z16 \
	VPERMT2PS 64(SI), Z29, Z17

#define Q4ROW(W, SCALE, ACC) \
	VBROADCASTI32X4 W, Z0 \
	VPSRLVD Z30, Z0, Z1 \
	VPSRLVD Z31, Z0, Z2 \
	VPERMPS Z27, Z1, Z1 \
	VPERMPS Z27, Z2, Z2 \
	VMULPS Z1, Z16, Z1 \
	VFMADD231PS Z2, Z17, Z1 \
	VFMADD231PS.BCST SCALE, Z1, ACC

// func matVecQ4AVX512(y, x, xsum *float32, w *byte, scales, biases *float32, n, k, group int)
TEXT ·matVecQ4AVX512(SB), NOSPLIT, $0-72
	ARGS
	SHRQ $1, R12
	LEAQ (R12)(R12*2), R14
	VMOVUPS nibbleShift<>+0(SB), Z30
	VMOVUPS nibbleShift<>+64(SB), Z31
	VMOVUPS nibbleOrder<>+0(SB), Z28
	VMOVUPS nibbleOrder<>+64(SB), Z29
	VMOVUPS nibbleValue<>+0(SB), Z27

rows4:
	SUBQ $4, R11
	JLT  rows1
	ROWS
	MOVQ R8, DI
	CLEAR4
	CMPQ AX, BX
	JGE  bias4

unit4:
	Q4X
	PREFETCHT0 AHEAD(DI)
	ADDQ $64, DI
	MOVQ AX, DX
	SHRQ CX, DX
	ADDQ DX, DX
	PREFETCHT0 SCALESAHEAD(R9)(DX*8)
	PREFETCHT0 SCALESAHEAD(R10)(DX*8)
	LEAQ (R9)(DX*2), DX
	Q4ROW((R8), (DX), Z20)
	Q4ROW((R8)(R12*1), (DX)(R13*1), Z21)
	Q4ROW((R8)(R12*2), (DX)(R13*2), Z22)
	Q4ROW((R8)(R14*1), (DX)(R15*1), Z23)
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
	VXORPS X20, X20, X20
	CMPQ AX, BX
	JGE  bias1

unit1:
	Q4X
	MOVQ AX, DX
	SHRQ CX, DX
	Q4ROW((R8), (R9)(DX*4), Z20)
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

#define Q8X \
	VMOVUPS (SI), Z16 \
	VMOVUPS 64(SI), Z17

#define Q8ROW(LO, HI, SCALE, ACC) \
	VPMOVZXBD LO, Z0 \
	VPMOVZXBD HI, Z1 \
	VCVTDQ2PS Z0, Z0 \
	VCVTDQ2PS Z1, Z1 \
	VMULPS Z0, Z16, Z0 \
	VFMADD231PS Z1, Z17, Z0 \
	VFMADD231PS.BCST SCALE, Z0, ACC

// func matVecQ8AVX512(y, x, xsum *float32, w *byte, scales, biases *float32, n, k, group int)
TEXT ·matVecQ8AVX512(SB), NOSPLIT, $0-72
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
	Q8X
	PREFETCHT0 AHEAD(DI)
	PREFETCHT0 (AHEAD+64)(DI)
	ADDQ $128, DI
	MOVQ AX, DX
	SHRQ CX, DX
	ADDQ DX, DX
	PREFETCHT0 SCALESAHEAD(R9)(DX*8)
	PREFETCHT0 SCALESAHEAD(R10)(DX*8)
	LEAQ (R9)(DX*2), DX
	Q8ROW((R8), 16(R8), (DX), Z20)
	Q8ROW((R8)(R12*1), 16(R8)(R12*1), (DX)(R13*1), Z21)
	Q8ROW((R8)(R12*2), 16(R8)(R12*2), (DX)(R13*2), Z22)
	Q8ROW((R8)(R14*1), 16(R8)(R14*1), (DX)(R15*1), Z23)
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
	VXORPS X20, X20, X20
	CMPQ AX, BX
	JGE  bias1

unit1:
	Q8X
	MOVQ AX, DX
	SHRQ CX, DX
	Q8ROW((R8), 16(R8), (R9)(DX*4), Z20)
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
