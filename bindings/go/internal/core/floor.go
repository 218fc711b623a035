package core

import "math/bits"

// tatMost is the highest theoretical arrival time (TAT) that leaves room for a floor. Under a
// policy that gives back, every higher word was lowered.
const tatMost = 1<<63 - 1

const (
	loweredBit = 1 << 63
	secondBit  = 1 << 62
	// roomBit is above the bits that a lowered word has for its TAT.
	roomBit = 1 << 61
)

// floors say how the word of a slot holds the time until which the slot stays taken after permits
// were given back to its key. src/algorithm/gcra/floor.rs has the layout of such words and the
// reasons for it, and the names of these methods. Of its two forms of words Go has the near one:
// the other is for keys that share slots with other processes.
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
	return word & (roomBit - 1) << f.fine
}

// nearFloor is the floor of a word of the near form, in units.
func (f *floors) nearFloor(word uint64) uint64 {
	return (f.loweredTAT(word)>>f.quantum + 1 + word>>62&1) << f.quantum
}

// near makes a word of the near form. It holds the TAT tat and a floor of floor units, rounded up
// to a quantum. It is not ok if the floor is more than two quanta after the TAT, or if the TAT
// needs more than 61 bits.
func (f *floors) near(tat, floor uint64) (word uint64, ok bool) {
	floor = f.inQuanta(floor)
	rounded := addUpTo(tat, 1<<f.fine-1) >> f.fine
	roundedTAT := rounded << f.fine
	if roundedTAT >= floor || roundedTAT >= roomBit<<f.fine {
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
