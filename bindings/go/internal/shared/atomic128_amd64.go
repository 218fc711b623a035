package shared

// load128 reads both words of the slot at one instant.
//
//go:noescape
func load128(slot *Slot) (key, state uint64)

// cas128 stores the new words if the slot holds the old ones. key and state are the words that it held.
//
//go:noescape
func cas128(slot *Slot, oldKey, oldState, newKey, newState uint64) (key, state uint64, swapped bool)

// features is ECX of CPUID's leaf 1.
func features() uint32

// supported reports whether this processor has CMPXCHG16B, and AVX, which makes aligned 16-byte loads atomic
// (Slot::supported).
func supported() bool {
	const cmpxchg16b, avx = 1 << 13, 1 << 28
	return features()&(cmpxchg16b|avx) == cmpxchg16b|avx
}
