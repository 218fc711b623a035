#include "textflag.h"

// func load128(slot *Slot) (key, state uint64)
//
// Processors with AVX promise that an aligned load of 16 bytes is one access (Intel SDM volume 3, 9.1.1; AMD APM volume 2, 7.3.2).
TEXT ·load128(SB), NOSPLIT, $0-24
	MOVQ slot+0(FP), AX
	MOVO (AX), X0
	MOVQ X0, key+8(FP)
	PSRLDQ $8, X0
	MOVQ X0, state+16(FP)
	RET

// func cas128(slot *Slot, oldKey, oldState, newKey, newState uint64) (key, state uint64, swapped bool)
TEXT ·cas128(SB), NOSPLIT, $0-57
	MOVQ slot+0(FP), DI
	MOVQ oldKey+8(FP), AX
	MOVQ oldState+16(FP), DX
	MOVQ newKey+24(FP), BX
	MOVQ newState+32(FP), CX
	LOCK
	CMPXCHG16B (DI)
	SETEQ swapped+56(FP)
	MOVQ AX, key+40(FP)
	MOVQ DX, state+48(FP)
	RET

// func features() uint32
TEXT ·features(SB), NOSPLIT, $0-4
	MOVL $1, AX
	XORL CX, CX
	CPUID
	MOVL CX, ret+0(FP)
	RET
