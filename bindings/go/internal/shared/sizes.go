package shared

import (
	"math"
	"math/bits"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

// As in src/table/memory/sizes.rs.

const (
	partUnit     = 1 << 8
	small        = 1 << 16
	sparePart    = 15
	bucketsLeast = 5 * partUnit
	bucketsMost  = 1 << 32
	bucketBytes  = 64
	slotBytes    = 16
	// groupPlaces is the number of places for overrides that share two cache lines.
	groupPlaces   = 8
	overridesMost = 1 << 19
)

// overrideGroups is override_groups.
func overrideGroups(overrides uint64) uint64 {
	if overrides == 0 {
		return 0
	}
	return max((overrides+groupPlaces/2-1)/(groupPlaces/2), 2)
}

// sizes are a table's number of buckets, and its length in bytes.
type sizes struct{ buckets, bytes uint64 }

// newSizes is Sizes::new.
func newSizes(capacity, side, overrides uint64) (sizes, core.Code) {
	slots := capacity + capacity/4
	switch {
	case capacity == 0 || slots < capacity:
		return sizes{}, errCapacity
	case overrides > overridesMost:
		return sizes{}, errOverridesFull
	}
	places := overrideGroups(overrides) * groupPlaces * slotBytes
	if fixed := (bucketsAt + places) / 16; fixed < slots/100 {
		slots -= fixed
	}
	s := sizes{buckets: roundUp(max(slots/slotsOfBucket, bucketsLeast))}
	if s.buckets > bucketsMost {
		return sizes{}, errCapacity
	}
	high, words := bits.Mul64(s.slots()*8, side)
	bytes, carry := bits.Add64(s.sideAt(), words, 0)
	bytes, more := bits.Add64(bytes, places, 0)
	if high != 0 || carry != 0 || more != 0 || bytes > math.MaxInt {
		return sizes{}, errCapacity
	}
	s.bytes = bytes
	return s, 0
}

func (s sizes) slots() uint64 { return s.buckets * slotsOfBucket }

// sideAt is the offset of the side words, and so the end of the buckets.
func (s sizes) sideAt() uint64 { return bucketsAt + s.buckets*bucketBytes }

// parts divide a table's buckets: a first part, a second one as large, and the spare buckets (Parts::new).
type parts struct{ half, spares uint64 }

func newParts(buckets uint64) parts {
	half := (buckets - leastSpares(buckets)) / (2 * partUnit) * partUnit
	return parts{half, buckets - 2*half}
}

// roundUp is Parts::round_up.
func roundUp(buckets uint64) uint64 {
	if buckets >= small {
		return buckets
	}
	main := (buckets - leastSpares(buckets) + 2*partUnit - 1) / (2 * partUnit) * (2 * partUnit)
	return main + max(main/(sparePart-1), partUnit)
}

// leastSpares is least_spares.
func leastSpares(buckets uint64) uint64 { return max(buckets/sparePart, partUnit) }
