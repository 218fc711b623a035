package core

import "math/bits"

// TATMost is the highest theoretical arrival time (TAT) that leaves room for a floor. Under a policy that gives back,
// every higher word was lowered.
const TATMost = 1<<63 - 1

const (
	loweredBit = 1 << 63
	secondBit  = 1 << 62
	wideBit    = 1 << 61
	// givenBits of a TAT are left to the floor by the wide form.
	givenBits = 10
	// countBits count steps.
	countBits = 6
	// 2^shortestStep nanoseconds are the shortest step of the wide form. 64 of the longest, 2^55 ns, are all times.
	shortestStep = 25
)

// floors say how the word of a slot holds the time until which the slot stays taken after permits were given back to
// its key. src/algorithm/gcra/floor.rs has the layout of such words and the reasons for it. The methods
// have the names that they have there.
type floors struct {
	// The bit that a lowered word has; 0 if the policy lowers no word.
	mark uint64
	// A quantum is 2^this units.
	quantum, fine uint
}

// newFloors is Floors::new, for a bucket with clock readings up to most, less than 2^63.
func newFloors(tolerance, most uint64) floors {
	return floors{
		mark:    loweredBit,
		quantum: min(uint(bits.Len64(subTo0(tolerance, 1))), 62),
		fine:    uint(max(bits.Len64(most), 61) - 61),
	}
}

func (f *floors) exist() bool { return f.mark != 0 }

func (f *floors) isLowered(word uint64) bool { return word&f.mark != 0 }

// tat is the theoretical arrival time that word holds.
func (f *floors) tat(word uint64) uint64 {
	if f.isLowered(word) {
		return f.loweredTAT(word)
	}
	return word
}

func (f *floors) loweredTAT(word uint64) uint64 {
	if word&wideBit != 0 {
		return word & (wideBit - 1) >> givenBits << (givenBits + f.fine)
	}
	return word & (wideBit - 1) << f.fine
}

// isWide: the word has the wide form.
func (f *floors) isWide(word uint64) bool { return f.isLowered(word) && word&wideBit != 0 }

// nearFloor is the floor of a word of the near form, in units.
func (f *floors) nearFloor(word uint64) uint64 {
	return (f.loweredTAT(word)>>f.quantum + 1 + word>>62&1) << f.quantum
}

// near makes a word of the near form. It holds the TAT tat and a floor of floor units, rounded up to a quantum. It is
// not ok if the floor is more than two quanta after the TAT, or if the TAT needs more than 61 bits.
func (f *floors) near(tat, floor uint64) (word uint64, ok bool) {
	floor = f.inQuanta(floor)
	rounded := addUpTo(tat, 1<<f.fine-1) >> f.fine
	roundedTAT := rounded << f.fine
	if roundedTAT >= floor || roundedTAT >= wideBit<<f.fine {
		return 0, false
	}
	switch subTo0(floor>>f.quantum, roundedTAT>>f.quantum) {
	case 0, 1:
		return loweredBit | rounded, true
	case 2:
		return loweredBit | secondBit | rounded, true
	}
	return 0, false
}

// nearest is the earliest TAT that the near form has room for beside floor.
func (f *floors) nearest(floor uint64) uint64 { return subTo0(f.inQuanta(floor), 2<<f.quantum) }

// inQuanta is floor rounded up to a quantum.
func (f *floors) inQuanta(floor uint64) uint64 {
	quanta := floor >> f.quantum
	if floor&(1<<f.quantum-1) != 0 {
		quanta++
	}
	return quanta << f.quantum
}

// wideFloor returns the floor of a word of the wide form, in nanoseconds. The word holds the floor as a number of steps
// after expires, the time at which a plain word of the same TAT expires.
func wideFloor(word, expires uint64) uint64 {
	if expires == NoTime {
		return NoTime
	}
	step := stepOf(word >> countBits & 15)
	return (expires>>step + 1 + word&(1<<countBits-1)) << step
}

// wide makes a word of the wide form. It holds the TAT tat, which wideTAT has rounded, and a floor of floor
// nanoseconds, rounded up to a step. expires is when a plain word of this TAT expires. It is not ok if the floor is not
// after that, or if the TAT needs more than 61 bits.
func (f *floors) wide(tat, expires, floor uint64) (word uint64, ok bool) {
	if expires >= floor || tat >= wideBit<<f.fine {
		return 0, false
	}
	tat = tat >> (givenBits + f.fine) << givenBits
	for e := range uint64(16) {
		if more := (floor-1)>>stepOf(e) - expires>>stepOf(e); more < 1<<countBits {
			return loweredBit | wideBit | tat | e<<countBits | more, true
		}
	}
	return 0, false
}

// roundedDown rounds tat down to a number that words of both forms hold exactly.
func (f *floors) roundedDown(tat uint64) uint64 {
	fine := givenBits + f.fine
	return tat >> fine << fine
}

// wideTAT rounds tat up to the next TAT that a word of the wide form can hold. That form has no room for its last bits.
func (f *floors) wideTAT(tat uint64) uint64 {
	fine := givenBits + f.fine
	return addUpTo(tat, 1<<fine-1) >> fine << fine
}

// stepOf: 2^this nanoseconds are a step of the wide form.
func stepOf(e uint64) uint { return uint(shortestStep + 2*e) }
