package shared

import (
	"encoding/binary"
	"os"
)

//go:noescape
func casLSE(slot *Slot, oldKey, oldState, newKey, newState uint64) (key, state uint64, swapped bool)

//go:noescape
func casExclusive(slot *Slot, oldKey, oldState, newKey, newState uint64) (key, state uint64, swapped bool)

// hasLSE: the processor has the CASP instruction. Both forms work on the same memory at the same time.
var hasLSE = lse()

// lse reads the processor's features that the kernel gives each process. Without them the code uses the exclusive
// pair, which every processor has.
func lse() bool {
	const atHWCAP, atomics = 16, 1 << 8
	vector, err := os.ReadFile("/proc/self/auxv")
	for ; err == nil && len(vector) >= 16; vector = vector[16:] {
		if binary.NativeEndian.Uint64(vector) == atHWCAP {
			return binary.NativeEndian.Uint64(vector[8:])&atomics != 0
		}
	}
	return false
}

// cas128 stores the new words if the slot holds the old ones. key and state are the words that it held.
func cas128(slot *Slot, oldKey, oldState, newKey, newState uint64) (key, state uint64, swapped bool) {
	if hasLSE {
		return casLSE(slot, oldKey, oldState, newKey, newState)
	}
	return casExclusive(slot, oldKey, oldState, newKey, newState)
}

// load128 reads both words of the slot at one instant. A load of two registers is one access only from ARMv8.4 on, so
// it is a swap of zeroes for zeroes.
func load128(slot *Slot) (key, state uint64) {
	key, state, _ = cas128(slot, 0, 0, 0, 0)
	return key, state
}

// supported is true: every processor has one of both forms.
func supported() bool { return true }
