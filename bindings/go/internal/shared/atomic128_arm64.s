#include "textflag.h"

// func casLSE(slot *Slot, oldKey, oldState, newKey, newState uint64) (key, state uint64, swapped bool)
TEXT ·casLSE(SB), NOSPLIT, $0-57
	MOVD slot+0(FP), R8
	MOVD oldKey+8(FP), R4
	MOVD oldState+16(FP), R5
	MOVD newKey+24(FP), R2
	MOVD newState+32(FP), R3
	MOVD R4, R6
	MOVD R5, R7
	WORD $0x4864fd02 // CASPAL X4, X5, X2, X3, [X8]
	MOVD R4, key+40(FP)
	MOVD R5, state+48(FP)
	EOR R4, R6, R6
	EOR R5, R7, R7
	ORR R6, R7, R7
	CMP $0, R7
	CSET EQ, R9
	MOVB R9, swapped+56(FP)
	RET

// func casExclusive(slot *Slot, oldKey, oldState, newKey, newState uint64) (key, state uint64, swapped bool)
//
// The pair that LDAXP has read is from one instant only if the STLXP succeeds, so words that differ are written back.
TEXT ·casExclusive(SB), NOSPLIT, $0-57
	MOVD slot+0(FP), R8
	MOVD oldKey+8(FP), R6
	MOVD oldState+16(FP), R7
	MOVD newKey+24(FP), R2
	MOVD newState+32(FP), R3
again:
	LDAXP (R8), (R4, R5)
	CMP R4, R6
	BNE differs
	CMP R5, R7
	BNE differs
	STLXP (R2, R3), (R8), R9
	CBNZW R9, again
	MOVD $1, R9
	B done
differs:
	STLXP (R4, R5), (R8), R9
	CBNZW R9, again
	MOVD $0, R9
done:
	DMB $0xb // a full fence, as with the locked instruction of amd64, which the proof assumes
	MOVD R4, key+40(FP)
	MOVD R5, state+48(FP)
	MOVB R9, swapped+56(FP)
	RET
