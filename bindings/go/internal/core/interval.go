package core

import (
	"math"
	"math/bits"
)

// Interval refills limit permits at the end of each period, aligned to time 0. The word is the
// number of permits refilled since time 0, plus the number that the bucket lacks. Aligned to the
// first request an interval is a [FixedWindow].
type Interval struct {
	period, limit, burst, last uint64
}

// NewInterval compiles an interval aligned to time 0.
func NewInterval(p *Policy) (*Interval, Code) {
	intervals := math.MaxUint64 / 2 / p.Limit
	if intervals < horizon/p.Period/8 {
		return nil, RateTooHigh
	}
	if p.Burst > math.MaxUint64/2 {
		return nil, BurstTooLarge
	}
	last := subTo0(mulUpTo(addUpTo(intervals, 1), p.Period), 1)
	return &Interval{p.Period, p.Limit, p.Burst, min(last, LastTime)}, 0
}

// clock is the number of permits refilled since time 0; the greatest number after the last time.
func (i *Interval) clock(now uint64) uint64 {
	if now > i.last {
		return math.MaxUint64
	}
	return now / i.period * i.limit
}

// nanos is the time at which permits have been refilled, or NoTime.
func (i *Interval) nanos(permits uint64) uint64 {
	return until(i.last, mulUpTo(divCeil(permits, i.limit), i.period))
}

// LastTime is the last time at which a cost above 0 is admitted.
func (i *Interval) LastTime() uint64 { return i.last }

// Step decides.
func (i *Interval) Step(word, now, cost uint64) Step {
	if cost == 0 {
		return Step{Allowed, word}
	}
	if cost > i.burst {
		return Step{Never, word}
	}
	clock := i.clock(now)
	next, carry := bits.Add64(max(word, clock), cost, 0)
	if carry == 0 && next <= addUpTo(clock, i.burst) {
		return Step{Allowed, next}
	}
	return Step{Denied, word}
}

// Available is the number of permits that could be taken.
func (i *Interval) Available(word, now uint64) uint64 {
	clock := i.clock(now)
	return subTo0(addUpTo(clock, i.burst), max(word, clock))
}

// AdmitsAt is the earliest time from now on at which cost permits are admitted, or NoTime.
func (i *Interval) AdmitsAt(word, now, cost uint64) uint64 {
	if cost == 0 {
		return now
	}
	if _, at, ok := i.Reserve(word, now, cost); ok {
		return at
	}
	return NoTime
}

// FreshAt is the earliest time from now on at which the word is as good as fresh, or NoTime.
func (i *Interval) FreshAt(word, now uint64) uint64 {
	at := i.nanos(word)
	if at == NoTime {
		return NoTime
	}
	return until(i.last, max(at, now))
}

// ExpiresAt is the time from which the word is as good as fresh.
func (i *Interval) ExpiresAt(word uint64) uint64 { return i.nanos(word) }

// Owing is the number of permits refilled by the first end of an interval that is at or after that
// time.
func (i *Interval) Owing(at uint64) uint64 {
	word := mulUpTo(addUpTo(subTo0(at, 1)/i.period, 1), i.limit)
	if i.nanos(word) == NoTime {
		return NoTime
	}
	return word
}

// Reserve charges the permits when they depart, not before. A bucket with one permit left may be
// full at the departure, and a full bucket keeps no permit beyond its burst. So the one that was
// left is lost, not added.
func (i *Interval) Reserve(word, now, cost uint64) (next, at uint64, ok bool) {
	if cost > i.burst {
		return 0, 0, false
	}
	base := max(word, i.clock(now))
	due, carry := bits.Add64(base, cost, 0)
	if carry != 0 {
		return 0, 0, false
	}
	if at = i.nanos(subTo0(due, i.burst)); at == NoTime {
		return 0, 0, false
	}
	at = max(at, now)
	next, carry = bits.Add64(max(base, i.clock(at)), cost, 0)
	return next, at, carry == 0
}

// Charge goes up to two bursts beyond the clock.
func (i *Interval) Charge(word, now, cost uint64) (next, rest uint64) {
	if now > i.last {
		return word, cost
	}
	clock := i.clock(now)
	base := max(word, clock)
	permits := min(cost, subTo0(addUpTo(addUpTo(clock, i.burst), i.burst), base))
	if permits == 0 {
		return word, cost
	}
	return addUpTo(base, permits), cost - permits
}

// GiveBack gives nothing back.
func (*Interval) GiveBack(word, _ uint64, _ *GiveBack) (next, permits uint64) { return word, 0 }

// LastBooking departs at an end of an interval. All permits of one interval are alike: of the
// bookings that depart at the last end, each may stand for the last one.
func (i *Interval) LastBooking(word, cost uint64) (next, at uint64, ok bool) {
	if word < cost {
		return 0, 0, false
	}
	return max(word-cost, 1), i.nanos(subTo0(word, i.burst)), true
}

// Refill is NoTime.
func (*Interval) Refill() uint64 { return NoTime }

// BooksAhead is true.
func (*Interval) BooksAhead() bool { return true }

// CountsRefusals is false.
func (*Interval) CountsRefusals() bool { return false }
