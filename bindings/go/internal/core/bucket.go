package core

import "math/bits"

// Bucket is a token bucket by GCRA. The word is the theoretical arrival time (TAT) in units of the
// grid: the time at which the bucket is full again if nobody takes from it.
type Bucket struct {
	Grid Grid
	// Burst is the most permits at once.
	Burst uint64
	// Tolerance is the burst in units.
	Tolerance uint64
	// Lacking is the difference between a full bucket and a fresh one, in units. It is above 0 if
	// the policy has an `init` below the burst.
	Lacking uint64
	// Last is the policy's last time.
	Last uint64
}

// NewBucket compiles a token bucket without borrow and ban, whose limit and burst are not 0.
func NewBucket(p *Policy) (*Bucket, Code) {
	wide, code := compileBucket(p, 64)
	if code != 0 || wide.Grid.shift == 0 {
		return wide, code
	}
	// Where the clock is rounded, tables need the highest bit for words that got permits back.
	if narrow, code := compileBucket(p, 63); code == 0 && narrow.Last == LastTime {
		return narrow, 0
	}
	return wide, 0
}

// compileBucket compiles a bucket for TATs of width bits.
func compileBucket(p *Policy, width uint) (*Bucket, Code) {
	g, code := gridOf(p, p.Burst, width)
	if code != 0 {
		return nil, code
	}
	high, tolerance := bits.Mul64(p.Burst, g.PerPermit)
	if high != 0 || tolerance > mostOf(width)/2 {
		return nil, BurstTooLarge
	}
	// Until then tolerance can be added to the clock twice without overflow.
	last := min(g.Nanos(mostOf(width)-2*tolerance), g.MaxNow)
	return &Bucket{
		Grid: g, Burst: p.Burst, Tolerance: tolerance, Lacking: (p.Burst - p.Init) * g.PerPermit, Last: min(subTo0(last, 1), LastTime),
	}, 0
}

// Base is the TAT from which a request at clock units starts.
func (b *Bucket) Base(word, clock uint64) uint64 {
	if word == 0 {
		return addUpTo(clock, b.Lacking)
	}
	return max(word, clock)
}

// LastTime is the last time at which a cost above 0 is admitted.
func (b *Bucket) LastTime() uint64 { return b.Last }

// Step decides.
func (b *Bucket) Step(word, now, cost uint64) Step {
	switch {
	case cost == 0:
		return Step{Allowed, word}
	case cost > b.Burst:
		return Step{Never, word}
	case now > b.Last:
		return Step{Denied, word}
	}
	clock := b.Grid.UnitsInTime(now)
	base := b.Base(word, clock)
	next, carry := bits.Add64(base, cost*b.Grid.PerPermit, 0)
	if carry == 0 && next <= clock+b.Tolerance {
		return Step{Allowed, next}
	}
	if word == 0 && b.Lacking != 0 {
		// A bucket that starts without its burst stores the time at which it began to fill.
		return Step{Denied, base}
	}
	return Step{Denied, word}
}

// Available is the number of permits that could be taken.
func (b *Bucket) Available(word, now uint64) uint64 {
	if now > b.Last {
		return 0
	}
	clock := b.Grid.Units(now)
	return subTo0(addUpTo(clock, b.Tolerance), b.Base(word, clock)) / b.Grid.PerPermit
}

// AdmitsAt is the earliest time from now on at which cost permits are admitted, or NoTime.
func (b *Bucket) AdmitsAt(word, now, cost uint64) uint64 {
	if cost == 0 {
		return now
	}
	if cost > b.Burst {
		return NoTime
	}
	return b.Due(b.Base(word, b.Grid.Units(now)), now, cost)
}

// Due is the earliest time from now on at which cost permits beyond the TAT base are within the
// burst, or NoTime.
func (b *Bucket) Due(base, now, cost uint64) uint64 {
	next, carry := bits.Add64(base, cost*b.Grid.PerPermit, 0)
	if carry != 0 {
		return NoTime
	}
	return until(b.Last, max(b.Grid.Nanos(subTo0(next, b.Tolerance)), now))
}

// FreshAt is the earliest time from now on at which the word is as good as fresh, or NoTime.
func (b *Bucket) FreshAt(word, now uint64) uint64 {
	if word == 0 {
		return now
	}
	return until(b.Last, max(b.Grid.Nanos(subTo0(word, b.Lacking)), now))
}

// ExpiresAt is the time from which the word is as good as fresh.
func (b *Bucket) ExpiresAt(word uint64) uint64 {
	if word == 0 {
		return 0
	}
	return b.Grid.over(subTo0(word, b.Lacking), b.Last)
}

// Owing is the TAT of a bucket that is as full as a fresh one at that time.
func (b *Bucket) Owing(at uint64) uint64 {
	word := max(addUpTo(b.Grid.unitsUp(at), b.Lacking), 1)
	if b.ExpiresAt(word) == NoTime {
		// With a large burst the word could admit before the last time. The greatest word cannot.
		return NoTime
	}
	return word
}

// Reserve takes permits ahead of time.
func (b *Bucket) Reserve(word, now, cost uint64) (next, at uint64, ok bool) {
	if cost > b.Burst {
		return 0, 0, false
	}
	base := b.Base(word, b.Grid.Units(now))
	at = b.Due(base, now, cost)
	return base + cost*b.Grid.PerPermit, at, at != NoTime
}

// Charge goes up to two bursts beyond the clock.
func (b *Bucket) Charge(word, now, cost uint64) (next, rest uint64) {
	if cost == 0 || now > b.Last {
		return word, cost
	}
	clock := b.Grid.UnitsInTime(now)
	base := b.Base(word, clock)
	permits := min(cost, subTo0(clock+2*b.Tolerance, base)/b.Grid.PerPermit)
	if permits == 0 {
		return word, cost
	}
	return base + permits*b.Grid.PerPermit, cost - permits
}

// GiveBack gives back the permits that the limit has not refilled since the charge.
func (b *Bucket) GiveBack(word, now uint64, back *GiveBack) (next, permits uint64) {
	if word == 0 || now > b.Last {
		return word, 0
	}
	clock := b.Grid.UnitsInTime(now)
	if word < clock {
		return word, 0
	}
	// The latest instant for which any request has been admitted.
	newest := clock
	if back.Booked {
		newest = max(clock, subTo0(max(word, back.Highest), b.Tolerance))
	}
	passed := subTo0(newest, b.Grid.Units(back.Charge.At))
	// The instant of a booking was rounded up to a nanosecond, unless a nanosecond is a unit.
	// Nothing has passed since the last one.
	if back.Booked && passed != 0 && (b.Grid.shift != 0 || b.Grid.hi != 1) {
		passed = subTo0(newest, b.Grid.Units(subTo0(back.Charge.At, 1)))
	}
	kept := subTo0(mulUpTo(back.Charge.Cost, b.Grid.PerPermit), passed)
	units := min(kept, word-clock)
	// At least 1, since 0 is the fresh word.
	next = max(word-units, 1)
	return next, (word - next) / b.Grid.PerPermit
}

// tellsApart reports whether a booking for due is the only one that departs in its nanosecond.
// Bookings are one permit apart. So it is the only one if a permit takes more than a nanosecond, or
// if due is the last unit of its nanosecond.
func (b *Bucket) tellsApart(due uint64) bool {
	return b.Refill() > 1 || b.Grid.shift == 0 && b.Grid.hi != 0 && due%b.Grid.hi == 0
}

// LastBooking departs when the debt that the word has is within the burst.
func (b *Bucket) LastBooking(word, cost uint64) (next, at uint64, ok bool) {
	high, charge := bits.Mul64(cost, b.Grid.PerPermit)
	if high != 0 || word < b.Tolerance || word < charge || !b.tellsApart(word-b.Tolerance) {
		return 0, 0, false
	}
	return max(word-charge, 1), b.Grid.Nanos(word - b.Tolerance), true
}

// Refill is the time of a permit.
func (b *Bucket) Refill() uint64 { return b.Grid.Nanos(b.Grid.PerPermit) }

// BooksAhead is true.
func (*Bucket) BooksAhead() bool { return true }

// CountsRefusals is false.
func (*Bucket) CountsRefusals() bool { return false }
