package core

import (
	"math"
	"math/bits"
)

// TATMost is the highest theoretical arrival time that leaves room for a floor. Under a policy that gives back, every higher word was lowered.
const TATMost = 1<<63 - 1

const (
	loweredBit = 1 << 63
	secondBit  = 1 << 62
	wideBit    = 1 << 61
	// givenBits of a TAT are left to the floor by the wide form.
	givenBits = 10
	// A quantum has 2^stepBits of the shortest steps.
	stepBits = 6
)

// floors say how words of slots hold the time until which the slot stays taken, after permits were given back to the key.
// crates/tollbar/src/algorithm/gcra/floor.rs has the layout of such words, and the reasons; the methods have the names that they have there.
type floors struct {
	// The bit that a lowered word has; 0 if the policy lowers no word.
	mark uint64
	// A quantum is 2^this units.
	quantum, fine uint
}

// newFloors is Floors::new, for a bucket with clock readings up to most, less than 2^63.
func newFloors(tolerance, most uint64) floors {
	return floors{mark: loweredBit, quantum: min(uint(bits.Len64(subTo0(tolerance, 1))), 62), fine: uint(max(bits.Len64(most), 61) - 61)}
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

// floor is the TAT, or the floor if that is later: the word expires then.
func (f *floors) floor(word uint64) uint64 {
	if f.isLowered(word) {
		return f.loweredFloor(word)
	}
	return word
}

func (f *floors) loweredFloor(word uint64) uint64 {
	if word&wideBit != 0 {
		step := f.step(uint(word >> stepBits & 15))
		steps := f.loweredTAT(word)>>step + 1 + word&(1<<stepBits-1)
		if uint(bits.LeadingZeros64(steps)) > step {
			return steps << step
		}
		return math.MaxUint64
	}
	return (f.loweredTAT(word)>>f.quantum + 1 + word>>62&1) << f.quantum
}

// raise is the word that follows word when charges raise its TAT to tat.
func (f *floors) raise(word, tat uint64) uint64 {
	if f.isLowered(word) {
		return f.hold(tat, f.loweredFloor(word), word&wideBit != 0)
	}
	return tat
}

// lower is the word that follows word when its TAT is lowered to tat, or to the earliest later TAT that leaves room for the floor. It is word itself
// if that would lower nothing.
func (f *floors) lower(word, tat uint64) uint64 {
	floor := f.floor(word)
	if f.isLowered(word) && word&wideBit != 0 {
		if next := f.hold(tat, floor, true); f.isLowered(next) && f.tat(next) < f.tat(word) {
			return next
		}
		return word
	}
	quanta := f.quanta(floor)
	earliest := subTo0(quanta, 2) << f.quantum
	if next := f.hold(max(tat, earliest), quanta<<f.quantum, false); f.tat(next) < f.tat(word) {
		return next
	}
	return word
}

// quanta is the number of quanta in floor, rounded up.
func (f *floors) quanta(floor uint64) uint64 {
	quanta := floor >> f.quantum
	if floor&(1<<f.quantum-1) != 0 {
		quanta++
	}
	return quanta
}

// step: 2^this units are a step of the wide form.
func (f *floors) step(e uint) uint { return min(max(f.quantum, stepBits)-stepBits+2*e, 62) }

// held is the word of a bucket with the TAT tat in a slot that stays taken until floor or longer. Not ok: no word says so.
func (f *floors) held(tat, floor uint64, exact bool) (word uint64, ok bool) {
	if tat >= floor {
		return tat, true
	}
	if exact {
		quanta := f.quanta(floor)
		if subTo0(quanta, 2)<<f.quantum > tat {
			return 0, false
		}
		word = f.hold(tat, quanta<<f.quantum, false)
	} else {
		word = f.hold(tat, floor, true)
	}
	// A plain word that expires so late because no other has room would owe more.
	return word, f.isLowered(word) || word <= addUpTo(tat, 1<<(givenBits+f.fine))
}

// hold is the word of a TAT and a floor. In the near form the TAT is at most two quanta before the floor, which is a multiple of a quantum.
func (f *floors) hold(tat, floor uint64, wide bool) uint64 {
	fine := f.fine
	if wide {
		fine += givenBits
	}
	rounded := addUpTo(tat, 1<<fine-1) >> fine
	roundedTAT := rounded << fine
	if roundedTAT >= floor || roundedTAT >= wideBit<<f.fine {
		return max(tat, floor)
	}
	if !wide {
		if subTo0(floor>>f.quantum, roundedTAT>>f.quantum) <= 1 {
			return loweredBit | rounded
		}
		return loweredBit | secondBit | rounded
	}
	for e := range uint(16) {
		step := f.step(e)
		// floor is at least 1, and after roundedTAT.
		if more := (floor-1)>>step - roundedTAT>>step; more < 1<<stepBits {
			return loweredBit | wideBit | rounded<<givenBits | uint64(e)<<stepBits | more
		}
	}
	return floor
}
