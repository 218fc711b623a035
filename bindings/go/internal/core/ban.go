package core

import "math/bits"

// Ban is a token bucket that bans: the lowest bits of the word are a mark, the number of refusals
// so far, or after for a banned key.
type Ban struct {
	bucket Bucket
	// The length of a ban in nanoseconds.
	time uint64
	// The mark of a ban.
	after    uint64
	markBits uint
}

// NewBan compiles a token bucket with ban.
func NewBan(p *Policy) (*Ban, Code) {
	after := uint64(p.BanAfter)
	markBits := uint(bits.Len64(after))
	width := 64 - markBits
	// The grid has room for twice its span beyond the clock: for a debt of two bursts, or for a ban
	// and a burst.
	high, low := bits.Mul64(p.Ban, p.Limit)
	low, carry := bits.Add64(low, p.Period-1, 0)
	high += carry
	if high >= p.Period {
		return nil, BadBan
	}
	banned, _ := bits.Div64(high, low, p.Period)
	// A policy that would not fit without its ban either gets the error of a bucket without a ban,
	// such as a burst that is too large.
	if _, code := gridOf(p, p.Burst, width); code != 0 {
		return nil, code
	}
	span, carry := bits.Add64(p.Burst, banned/2+1, 0)
	if carry != 0 {
		return nil, BadBan
	}
	g, code := gridOf(p, span, width)
	if code != 0 {
		return nil, BadBan
	}
	high, tolerance := bits.Mul64(p.Burst, g.PerPermit)
	if high != 0 || tolerance > mostOf(width)/2 {
		return nil, BurstTooLarge
	}
	last := subTo0(min(g.Nanos(mostOf(width)-2*tolerance), g.MaxNow), 1)
	bucket := Bucket{Grid: g, Burst: p.Burst, Tolerance: tolerance, Last: min(last, LastTime)}
	return &Ban{bucket, p.Ban, after, markBits}, 0
}

func (b *Ban) unpack(word uint64) (tat, mark uint64) {
	return word >> b.markBits, word & (1<<b.markBits - 1)
}

// pack makes a word. A TAT above the highest that the word can hold becomes the highest, which
// expires at NoTime.
func (b *Ban) pack(tat, mark uint64) uint64 {
	return min(tat, mostOf(64-b.markBits))<<b.markBits | mark
}

// due is the clock, in units, at which a bucket with this TAT admits charge units more.
func (b *Ban) due(tat, charge uint64) uint64 {
	return subTo0(addUpTo(tat, charge), b.bucket.Tolerance)
}

// shut reports whether the ban still refuses a request of cost 1.
func (b *Ban) shut(tat, mark, clock uint64) bool {
	return mark >= b.after && b.due(tat, b.bucket.Grid.PerPermit) > clock
}

func (b *Ban) isBanned(word, now uint64) bool {
	tat, mark := b.unpack(word)
	return b.shut(tat, mark, b.bucket.Grid.Units(now))
}

// banned is the TAT at which a cost of 1 first passes at that time.
func (b *Ban) banned(until uint64) uint64 {
	g := &b.bucket.Grid
	units := g.Units(until)
	if g.Nanos(units) < until {
		units = addUpTo(units, 1)
	}
	return addUpTo(units, subTo0(b.bucket.Tolerance, g.PerPermit))
}

// here is the TAT and the mark at clock; false for a banned key.
func (b *Ban) here(word, clock uint64) (tat, mark uint64, ok bool) {
	tat, mark = b.unpack(word)
	switch {
	case tat <= clock:
		return clock, 0, true
	case mark < b.after:
		return tat, mark, true
	case b.shut(tat, mark, clock):
		return 0, 0, false
	}
	return tat, 0, true
}

// refused is the word after one more refusal.
func (b *Ban) refused(tat, mark, now uint64) uint64 {
	if mark+1 >= b.after {
		return b.pack(max(tat, b.banned(addUpTo(now, b.time))), b.after)
	}
	return b.pack(tat, mark+1)
}

// LastTime is the last time at which a cost above 0 is admitted.
func (b *Ban) LastTime() uint64 { return b.bucket.Last }

// Step decides. A refusal raises the mark.
func (b *Ban) Step(word, now, cost uint64) Step {
	switch {
	case cost == 0:
		return Step{Allowed, word}
	case cost > b.bucket.Burst:
		return Step{Never, word}
	case now > b.bucket.Last:
		return Step{Denied, word}
	}
	clock := b.bucket.Grid.UnitsInTime(now)
	tat, mark, ok := b.here(word, clock)
	if !ok {
		return Step{Denied, word}
	}
	next := addUpTo(tat, cost*b.bucket.Grid.PerPermit)
	if next <= addUpTo(clock, b.bucket.Tolerance) {
		return Step{Allowed, b.pack(next, mark)}
	}
	return Step{Denied, b.refused(tat, mark, now)}
}

// Available is the number of permits that could be taken.
func (b *Ban) Available(word, now uint64) uint64 {
	if now > b.bucket.Last {
		return 0
	}
	clock := b.bucket.Grid.UnitsInTime(now)
	tat, _ := b.unpack(word)
	return subTo0(addUpTo(clock, b.bucket.Tolerance), max(tat, clock)) / b.bucket.Grid.PerPermit
}

// AdmitsAt is the earliest time from now on at which cost permits are admitted, or NoTime.
func (b *Ban) AdmitsAt(word, now, cost uint64) uint64 {
	if cost == 0 {
		return now
	}
	if cost > b.bucket.Burst {
		return NoTime
	}
	tat, _ := b.unpack(word)
	due := b.due(max(tat, b.bucket.Grid.Units(now)), cost*b.bucket.Grid.PerPermit)
	return until(b.bucket.Last, max(b.bucket.Grid.Nanos(due), now))
}

// FreshAt is the earliest time from now on at which the word is as good as fresh, or NoTime.
func (b *Ban) FreshAt(word, now uint64) uint64 {
	if word == 0 {
		return now
	}
	tat, _ := b.unpack(word)
	return until(b.bucket.Last, max(b.bucket.Grid.Nanos(tat), now))
}

// ExpiresAt is the time from which the word is as good as fresh.
func (b *Ban) ExpiresAt(word uint64) uint64 {
	if word == 0 {
		return 0
	}
	tat, _ := b.unpack(word)
	return b.bucket.Grid.over(tat, b.bucket.Last)
}

// Owing is the word of a bucket that is full at that time, without a ban.
func (b *Ban) Owing(at uint64) uint64 {
	word := b.pack(max(b.bucket.Grid.unitsUp(at), 1), 0)
	if b.ExpiresAt(word) == NoTime {
		return NoTime
	}
	return word
}

// Reserve takes permits ahead of time, unless the key is banned.
func (b *Ban) Reserve(word, now, cost uint64) (next, at uint64, ok bool) {
	if cost > b.bucket.Burst {
		return 0, 0, false
	}
	tat, mark, ok := b.here(word, b.bucket.Grid.Units(now))
	if !ok {
		return 0, 0, false
	}
	charge := cost * b.bucket.Grid.PerPermit
	sum, carry := bits.Add64(tat, charge, 0)
	if carry != 0 || sum > mostOf(64-b.markBits) {
		return 0, 0, false
	}
	at = until(b.bucket.Last, max(b.bucket.Grid.Nanos(b.due(tat, charge)), now))
	return b.pack(sum, mark), at, at != NoTime
}

// Charge goes up to two bursts beyond the clock. A charge that leaves no permit counts as a
// refusal.
func (b *Ban) Charge(word, now, cost uint64) (next, rest uint64) {
	if cost == 0 || now > b.bucket.Last {
		return word, cost
	}
	clock := b.bucket.Grid.UnitsInTime(now)
	tat, mark, ok := b.here(word, clock)
	if !ok {
		return word, cost
	}
	permit := b.bucket.Grid.PerPermit
	line := addUpTo(clock, b.bucket.Tolerance)
	permits := min(cost, subTo0(addUpTo(line, b.bucket.Tolerance), tat)/permit)
	next = addUpTo(tat, permits*permit)
	if addUpTo(next, permit) > line {
		return b.refused(next, mark, now), cost - permits
	}
	return b.pack(next, mark), cost - permits
}

// GiveBack gives nothing back.
func (*Ban) GiveBack(word, _ uint64, _ *GiveBack) (next, permits uint64) { return word, 0 }

// LastBooking is none.
func (*Ban) LastBooking(_, _ uint64) (next, at uint64, ok bool) { return 0, 0, false }

// Refill is NoTime.
func (*Ban) Refill() uint64 { return NoTime }

// BooksAhead is true.
func (*Ban) BooksAhead() bool { return true }

// CountsRefusals is true.
func (*Ban) CountsRefusals() bool { return true }
