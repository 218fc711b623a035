package shared

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// secrets are those of rapidhash: RapidSecrets of the crate rapidhash, version 4.
type secrets struct {
	seed uint64
	of   [7]uint64
}

// newSecrets is RapidSecrets::seed.
func newSecrets(seed uint64) secrets {
	s := secrets{seed: premix(seed, 0)}
	last := s.seed
	for i := range s.of {
		s.of[i] = premix(last, i)
		last = s.of[i]
	}
	return s
}

// premix is premix_seed.
func premix(seed uint64, i int) uint64 {
	defaults := [7]uint64{
		0x2d358dccaa6c78a5, 0x8bb84b93962eacc9, 0x4b33a62ed433d4a3, 0x4d5a2da51de1aa47, 0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x90ed1765281c388c,
	}
	seed ^= rapidMix(seed^defaults[2], defaults[i])
	for _, part := range []struct{ mask, bit uint64 }{{0xffff << 48, 1 << 63}, {0xffff << 24, 1 << 31}, {0xffff, 1}} {
		if seed&part.mask == 0 {
			seed |= part.bit
		}
	}
	return seed
}

func rapidMix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// hash is rapidhash_v3_inline of a non-empty key, with the second mixing step (Table::hash_bytes).
func (s *secrets) hash(key string) uint64 {
	data := unsafe.Slice(unsafe.StringData(key), len(key))
	seed, rest := s.seed, uint64(len(data))
	var a, b uint64
	switch {
	case len(data) > 16:
		seed, rest = s.long(data)
		a = binary.LittleEndian.Uint64(data[len(data)-16:]) ^ rest
		b = binary.LittleEndian.Uint64(data[len(data)-8:])
	case len(data) >= 8:
		seed ^= rest
		a, b = binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[len(data)-8:])
	case len(data) >= 4:
		seed ^= rest
		a, b = uint64(binary.LittleEndian.Uint32(data)), uint64(binary.LittleEndian.Uint32(data[len(data)-4:]))
	default:
		a = uint64(data[0])<<45 | uint64(data[len(data)-1])
		b = uint64(data[len(data)>>1])
	}
	high, low := bits.Mul64(a^s.of[1], b^seed)
	return rapidMix(low^0xaaaaaaaaaaaaaaaa, high^s.of[1]^rest)
}

// long mixes all blocks of a key of more than 16 bytes, and returns the seed for the last 16 and the length of the
// last part (rapidhash_core_cold).
func (s *secrets) long(data []byte) (seed, rest uint64) {
	seed = s.seed
	step := func(at int, secret int, with uint64) uint64 {
		return rapidMix(binary.LittleEndian.Uint64(data[at:])^s.of[secret], binary.LittleEndian.Uint64(data[at+8:])^with)
	}
	if len(data) > 112 {
		see := [7]uint64{seed, seed, seed, seed, seed, seed, seed}
		for len(data) > 112 {
			for i := range see {
				see[i] = step(16*i, i, see[i])
			}
			data = data[112:]
		}
		seed = see[0] ^ see[1] ^ see[6] ^ see[2] ^ see[3] ^ see[4] ^ see[5]
	}
	for i, secret := range [6]int{2, 2, 1, 1, 2, 1} {
		if len(data) > 16*(i+1) {
			seed = step(16*i, secret, seed)
		}
	}
	return seed, uint64(len(data))
}
