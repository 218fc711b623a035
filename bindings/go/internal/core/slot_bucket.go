package core

import "math/bits"

// SlotBucket is a [Bucket] for words in slots of a table, whose TAT may have been lowered although
// the slot's time of expiry may not fall.
type SlotBucket struct {
	Bucket
	floors floors
}

// InSlots is the algorithm for words of slots (Rule::in_slots).
func InSlots(a Algorithm) Algorithm {
	b, ok := a.(*Bucket)
	if !ok {
		return a
	}
	last := b.Grid.Units(b.Last)
	if addUpTo(last, mulUpTo(b.Tolerance, 2)) > tatMost {
		return &SlotBucket{Bucket: *b}
	}
	return &SlotBucket{*b, newFloors(b.Tolerance, last)}
}

// base is [Bucket.Base] for a word that may have been lowered.
func (b *SlotBucket) base(word, clock uint64) uint64 {
	if word == 0 {
		return addUpTo(clock, b.Lacking)
	}
	return max(b.floors.tat(word), clock)
}

// Step decides.
func (b *SlotBucket) Step(word, now, cost uint64) Step {
	switch {
	case cost == 0:
		return Step{Allowed, word}
	case cost > b.Burst:
		return Step{Never, word}
	case now > b.Last:
		return Step{Denied, word}
	}
	clock := b.Grid.UnitsInTime(now)
	base := b.base(word, clock)
	next, carry := bits.Add64(base, cost*b.Grid.PerPermit, 0)
	if carry == 0 && next <= clock+b.Tolerance {
		return Step{Allowed, b.raise(word, next)}
	}
	if word == 0 && b.Lacking != 0 {
		// A bucket that starts without its burst stores the time at which it began to fill.
		return Step{Denied, base}
	}
	return Step{Denied, word}
}

// Available is the number of permits that could be taken.
func (b *SlotBucket) Available(word, now uint64) uint64 {
	if now > b.Last {
		return 0
	}
	clock := b.Grid.Units(now)
	return subTo0(addUpTo(clock, b.Tolerance), b.base(word, clock)) / b.Grid.PerPermit
}

// AdmitsAt is the earliest time from now on at which cost permits are admitted, or NoTime.
func (b *SlotBucket) AdmitsAt(word, now, cost uint64) uint64 {
	if cost == 0 {
		return now
	}
	if cost > b.Burst {
		return NoTime
	}
	return b.Due(b.base(word, b.Grid.Units(now)), now, cost)
}

// FreshAt is the earliest time from now on at which the word is as good as fresh, or NoTime.
func (b *SlotBucket) FreshAt(word, now uint64) uint64 {
	return b.Bucket.FreshAt(b.floors.tat(word), now)
}

// ExpiresAt is the time from which the word is as good as fresh and its slot may be given away.
func (b *SlotBucket) ExpiresAt(word uint64) uint64 {
	if word == 0 {
		return 0
	}
	if b.floors.isLowered(word) {
		return b.expiresPlain(b.floors.nearFloor(word))
	}
	return b.expiresPlain(word)
}

// expiresPlain is the time at which a word that is the TAT tat expires.
func (b *SlotBucket) expiresPlain(tat uint64) uint64 {
	return b.Grid.over(subTo0(tat, b.Lacking), b.Last)
}

// Owing is the TAT of a bucket that is as full as a fresh one at that time.
func (b *SlotBucket) Owing(at uint64) uint64 {
	most := uint64(NoTime)
	if b.floors.exist() {
		most = tatMost
	}
	word := min(max(addUpTo(b.Grid.unitsUp(at), b.Lacking), 1), most)
	if b.ExpiresAt(word) == NoTime {
		// With a large burst the word could admit before the last time. The greatest word cannot.
		return most
	}
	return word
}

// Reserve takes permits ahead of time.
func (b *SlotBucket) Reserve(word, now, cost uint64) (next, at uint64, ok bool) {
	if cost > b.Burst {
		return 0, 0, false
	}
	base := b.base(word, b.Grid.Units(now))
	next, carry := bits.Add64(base, cost*b.Grid.PerPermit, 0)
	if carry != 0 {
		return 0, 0, false
	}
	at = b.Due(base, now, cost)
	return b.raise(word, next), at, at != NoTime
}

// Charge goes up to two bursts beyond the clock.
func (b *SlotBucket) Charge(word, now, cost uint64) (next, rest uint64) {
	if cost == 0 || now > b.Last {
		return word, cost
	}
	clock := b.Grid.UnitsInTime(now)
	base := b.base(word, clock)
	permits := min(cost, subTo0(addUpTo(addUpTo(clock, b.Tolerance), b.Tolerance), base)/b.Grid.PerPermit)
	if permits == 0 {
		return word, cost
	}
	return b.raise(word, addUpTo(base, permits*b.Grid.PerPermit)), cost - permits
}

// GiveBack gives back the permits that the limit has not refilled since the charge. The word's time
// of expiry stays.
func (b *SlotBucket) GiveBack(word, now uint64, back *GiveBack) (next, permits uint64) {
	if word == 0 || now > b.Last || !b.floors.exist() {
		return word, 0
	}
	clock, tat := b.Grid.UnitsInTime(now), b.floors.tat(word)
	if tat < clock {
		return word, 0
	}
	// The latest instant for which any request has been admitted.
	newest := clock
	if back.Booked {
		newest = max(clock, subTo0(max(b.floor(word), back.Highest), b.Tolerance))
	}
	passed := subTo0(newest, b.Grid.Units(back.Charge.At))
	// The instant of a booking was rounded up to a nanosecond, unless a nanosecond is a unit.
	// Nothing has passed since the last one.
	if back.Booked && passed != 0 && (b.Grid.shift != 0 || b.Grid.hi != 1) {
		passed = subTo0(newest, b.Grid.Units(subTo0(back.Charge.At, 1)))
	}
	kept := subTo0(mulUpTo(back.Charge.Cost, b.Grid.PerPermit), passed)
	next = b.lower(word, tat-min(kept, tat-clock))
	return next, (tat - b.floors.tat(next)) / b.Grid.PerPermit
}

// LastBooking is none.
func (*SlotBucket) LastBooking(_, _ uint64) (next, at uint64, ok bool) { return 0, 0, false }

// Refill is the time of a permit; NoTime at the few rates at which words have no room for floors.
func (b *SlotBucket) Refill() uint64 {
	if !b.floors.exist() {
		return NoTime
	}
	return b.Bucket.Refill()
}

// raise is the word that follows word when charges raise its TAT to tat (Gcra::raise).
func (b *SlotBucket) raise(word, tat uint64) uint64 {
	if !b.floors.isLowered(word) {
		return tat
	}
	floor := b.floors.nearFloor(word)
	if next, ok := b.floors.near(tat, floor); ok {
		return next
	}
	return max(tat, floor)
}

// lower lowers the TAT of word to tat and keeps its floor (Gcra::lower). If the word has no room
// for both, the TAT becomes the earliest later one that fits. It returns word itself if nothing
// would be lowered.
func (b *SlotBucket) lower(word, tat uint64) uint64 {
	floor := b.floor(word)
	next, ok := b.floors.near(max(tat, b.floors.nearest(floor)), floor)
	if ok && b.floors.tat(next) < b.floors.tat(word) {
		return next
	}
	return word
}

// floor is the TAT, or the floor if that is later, in units.
func (b *SlotBucket) floor(word uint64) uint64 {
	if b.floors.isLowered(word) {
		return b.floors.nearFloor(word)
	}
	return word
}
