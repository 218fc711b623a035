package core

import "math/bits"

// TATMost is the highest theoretical arrival time that leaves room for a floor. Under a policy that gives back, every higher word was lowered.
const TATMost = 1<<63 - 1

const (
	loweredBit = 1 << 63
	secondBit  = 1 << 62
)

// floors say how words of slots hold the time until which the slot stays taken, after permits were given back to the key.
// crates/tollbar/src/algorithm/gcra/floor.rs has the layout of such words, and the reasons; the methods have the names that they have there.
type floors struct {
	// The bit that a lowered word has; 0 if the policy lowers no word.
	mark uint64
	// A quantum is 2^this units.
	quantum, fine uint
}

// newFloors is Floors::new, for a bucket whose words reach most.
func newFloors(tolerance, most uint64) floors {
	if most > TATMost {
		return floors{}
	}
	f := floors{mark: loweredBit, quantum: min(uint(bits.Len64(subTo0(tolerance, 1))), 62)}
	if most >= secondBit {
		f.fine = 1
	}
	return f
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

func (f *floors) loweredTAT(word uint64) uint64 { return word & (secondBit - 1) << f.fine }

// floor is the TAT, or the floor if that is later: the word expires then.
func (f *floors) floor(word uint64) uint64 {
	if f.isLowered(word) {
		return f.loweredFloor(word)
	}
	return word
}

func (f *floors) loweredFloor(word uint64) uint64 {
	return (f.loweredTAT(word)>>f.quantum + 1 + word>>62&1) << f.quantum
}

// raise is the word that follows word when charges raise its TAT to tat.
func (f *floors) raise(word, tat uint64) uint64 {
	if f.isLowered(word) {
		return f.hold(tat, f.loweredFloor(word))
	}
	return tat
}

// lower is the word that follows word when its TAT is lowered to tat, or to the earliest later TAT that leaves room for the floor. It is word itself
// if that would lower nothing.
func (f *floors) lower(word, tat uint64) uint64 {
	floor := f.floor(word)
	quanta := floor >> f.quantum
	if floor&(1<<f.quantum-1) != 0 {
		quanta++
	}
	earliest := subTo0(quanta, 2) << f.quantum
	if next := f.hold(max(tat, earliest), quanta<<f.quantum); f.tat(next) < f.tat(word) {
		return next
	}
	return word
}

// hold is the word of a TAT that is at most two quanta before its floor, which is a multiple of a quantum.
func (f *floors) hold(tat, floor uint64) uint64 {
	rounded := addUpTo(tat, 1<<f.fine-1) >> f.fine
	roundedTAT := rounded << f.fine
	if roundedTAT >= floor {
		return max(tat, floor)
	}
	if subTo0(floor>>f.quantum, roundedTAT>>f.quantum) <= 1 {
		return loweredBit | rounded
	}
	return loweredBit | secondBit | rounded
}
