//go:build darwin || linux

#include "textflag.h"

// void sendAll(struct record *r, long n, id (*objc_msgSend)(id, SEL, …), void *(*push)(void), void (*pop)(void *))
TEXT ·sendAll(SB), NOSPLIT|NOFRAME, $0-0
	// The registers that a C function keeps, and the pool, above the two arguments that go on the
	// stack; with the return address the stack stays a multiple of 16 bytes.
	SUBQ $72, SP
	MOVQ BX, 16(SP)
	MOVQ R12, 24(SP)
	MOVQ R13, 32(SP)
	MOVQ R14, 40(SP)
	MOVQ DI, BX
	MOVQ SI, R12
	MOVQ DX, R13
	MOVQ R8, R14
	TESTQ CX, CX
	JZ   begin
	CALL CX
	MOVQ AX, 48(SP) // the pool

begin:
	TESTQ R12, R12
	JLE  done

next:
	MOVQ 0(BX), DI
	MOVQ (DI), DI   // the object
	MOVQ 16(BX), SI // the selector
	MOVQ 24(BX), DX
	MOVQ 32(BX), CX
	MOVQ 40(BX), R8
	MOVQ 48(BX), R9
	MOVQ 56(BX), AX // the seventh and eighth argument
	MOVQ AX, 0(SP)
	MOVQ 64(BX), AX
	MOVQ AX, 8(SP)
	XORL AX, AX
	CALL R13
	MOVQ AX, 72(BX)
	MOVSD X0, 80(BX)
	ADDQ $88, BX
	DECQ R12
	JNZ  next

done:
	TESTQ R14, R14
	JZ   leave
	MOVQ 48(SP), DI
	CALL R14

leave:
	MOVQ 16(SP), BX
	MOVQ 24(SP), R12
	MOVQ 32(SP), R13
	MOVQ 40(SP), R14
	ADDQ $72, SP
	RET

DATA ·sendAllABI0(SB)/8, $·sendAll(SB)
GLOBL ·sendAllABI0(SB), NOPTR|RODATA, $8
