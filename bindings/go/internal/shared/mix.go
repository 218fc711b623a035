package shared

// As in src/table/memory/mix.rs.

// fold is a checksum against accidents.
func fold(words ...uint64) uint64 {
	sum := uint64(0x5851f42d4c957f2d)
	for _, word := range words {
		sum = mix(sum ^ word)
	}
	return sum
}

// mix is a bijection of 64-bit words whose every output bit depends on every input bit (the finalizer of SplitMix64).
func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}
