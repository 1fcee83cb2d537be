//go:build darwin || linux

#include "textflag.h"

// void sendAll(struct record *r, long n, id (*objc_msgSend)(id, SEL, …), void *(*push)(void), void (*pop)(void *))
TEXT ·sendAll(SB), NOSPLIT|NOFRAME, $0-0
	SUB  $64, RSP
	STP  (R19, R20), 0(RSP)
	STP  (R21, R22), 16(RSP)
	STP  (R23, R29), 32(RSP)
	MOVD R30, 48(RSP)
	MOVD R0, R19
	MOVD R1, R20
	MOVD R2, R21
	MOVD R4, R22
	CBZ  R3, begin
	BL   (R3)
	MOVD R0, R23 // the pool

begin:
	CMP  $0, R20
	BLE  done

next:
	MOVD 0(R19), R0
	MOVD (R0), R0        // the object
	MOVD 16(R19), R1     // the selector
	LDP  24(R19), (R2, R3)
	LDP  40(R19), (R4, R5)
	LDP  56(R19), (R6, R7)
	BL   (R21)
	MOVD R0, 72(R19)
	FMOVD F0, 80(R19)
	ADD  $88, R19
	SUBS $1, R20, R20
	BNE  next

done:
	CBZ  R22, leave
	MOVD R23, R0
	BL   (R22)

leave:
	LDP  0(RSP), (R19, R20)
	LDP  16(RSP), (R21, R22)
	LDP  32(RSP), (R23, R29)
	MOVD 48(RSP), R30
	ADD  $64, RSP
	RET

DATA ·sendAllABI0(SB)/8, $·sendAll(SB)
GLOBL ·sendAllABI0(SB), NOPTR|RODATA, $8
