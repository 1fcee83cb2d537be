//go:build darwin || linux

#include "textflag.h"

// void sendAll(struct record *r, long n, id (*objc_msgSend)(id, SEL, …))
TEXT ·sendAll(SB), NOSPLIT|NOFRAME, $0-0
	SUB  $48, RSP
	STP  (R19, R20), 0(RSP)
	STP  (R21, R29), 16(RSP)
	MOVD R30, 32(RSP)
	MOVD R0, R19
	MOVD R1, R20
	MOVD R2, R21
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
	ADD  $80, R19
	SUBS $1, R20, R20
	BNE  next

done:
	LDP  0(RSP), (R19, R20)
	LDP  16(RSP), (R21, R29)
	MOVD 32(RSP), R30
	ADD  $48, RSP
	RET

DATA ·sendAllABI0(SB)/8, $·sendAll(SB)
GLOBL ·sendAllABI0(SB), NOPTR|RODATA, $8
