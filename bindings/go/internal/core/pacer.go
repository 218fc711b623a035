package core

import (
	"math"
	"math/bits"
)

// Pacer has evenly spaced departures, and is also the token bucket that lends. The word is the next
// departure in units of the grid, plus the units that a fresh state has in store.
type Pacer struct {
	grid Grid
	// The largest cost.
	most uint64
	// The units by which a departure may lag behind the clock.
	slack uint64
	// The units by which the departure of a fresh state lags behind the clock.
	initial uint64
	// The burst in units.
	burst uint64
	last  uint64
}

// NewPacer compiles a pacer, or a token bucket with borrow.
func NewPacer(p *Policy) (*Pacer, Code) {
	slack, initial, span := p.Slack, uint64(0), max(p.Burst, p.Slack)
	if p.Borrow {
		slack, initial, span = p.Burst, p.Init, p.Burst
	}
	g, code := gridOf(p, span, 64)
	if code != 0 {
		return nil, code
	}
	for _, permits := range []uint64{slack, initial, p.Burst} {
		if high, _ := bits.Mul64(permits, g.PerPermit); high != 0 {
			return nil, BurstTooLarge
		}
	}
	most := p.Burst
	if p.Borrow {
		most = math.MaxUint64 / g.PerPermit
	}
	return &Pacer{g, most, slack * g.PerPermit, initial * g.PerPermit, p.Burst * g.PerPermit, min(g.MaxNow, LastTime)}, 0
}

func (p *Pacer) clock(now uint64) uint64 { return addUpTo(p.grid.Units(now), p.initial) }

func (p *Pacer) departure(word, clock uint64) uint64 {
	if word == 0 {
		return subTo0(clock, p.initial)
	}
	return max(word, subTo0(clock, p.slack))
}

// LastTime is the last time at which a cost above 0 is admitted.
func (p *Pacer) LastTime() uint64 { return p.last }

// Step decides.
func (p *Pacer) Step(word, now, cost uint64) Step {
	switch {
	case cost == 0:
		return Step{Allowed, word}
	case cost > p.most:
		return Step{Never, word}
	case now > p.last:
		return Step{Denied, word}
	}
	clock := p.clock(now)
	departure := p.departure(word, clock)
	next, carry := bits.Add64(departure, cost*p.grid.PerPermit, 0)
	if carry == 0 && departure <= clock {
		return Step{Allowed, next}
	}
	return Step{Denied, word}
}

// Available is the number of requests of cost 1 that could be taken.
func (p *Pacer) Available(word, now uint64) uint64 {
	clock := p.clock(now)
	departure := p.departure(word, clock)
	if now > p.last || departure > clock || departure+p.grid.PerPermit < departure {
		return 0
	}
	return (clock-departure)/p.grid.PerPermit + 1
}

// AdmitsAt is the earliest time from now on at which cost permits are admitted, or NoTime.
func (p *Pacer) AdmitsAt(word, now, cost uint64) uint64 {
	if cost == 0 {
		return now
	}
	if _, at, ok := p.Reserve(word, now, cost); ok {
		return at
	}
	return NoTime
}

// FreshAt is the earliest time from now on at which the word is as good as fresh, or NoTime.
func (p *Pacer) FreshAt(word, now uint64) uint64 {
	if word == 0 {
		return now
	}
	return until(p.last, max(p.grid.Nanos(word), now))
}

// ExpiresAt is the time from which the word is as good as fresh.
func (p *Pacer) ExpiresAt(word uint64) uint64 {
	if word == 0 {
		return 0
	}
	return p.grid.over(word, p.last)
}

// Owing is the word of a fresh state at that time.
func (p *Pacer) Owing(at uint64) uint64 {
	word := max(p.grid.unitsUp(at), 1)
	if p.ExpiresAt(word) == NoTime {
		return NoTime
	}
	return word
}

// Reserve takes permits ahead of time.
func (p *Pacer) Reserve(word, now, cost uint64) (next, at uint64, ok bool) {
	if cost > p.most || now > p.last {
		return 0, 0, false
	}
	departure := p.departure(word, p.clock(now))
	high, charge := bits.Mul64(cost, p.grid.PerPermit)
	next, carry := bits.Add64(departure, charge, 0)
	if high != 0 || carry != 0 {
		return 0, 0, false
	}
	at = until(p.last, max(p.grid.Nanos(subTo0(departure, p.initial)), now))
	return next, at, at != NoTime
}

// Charge goes one largest cost further than a request could.
func (p *Pacer) Charge(word, now, cost uint64) (next, rest uint64) {
	if cost == 0 || now > p.last {
		return word, cost
	}
	permit := p.grid.PerPermit
	clock := p.clock(now)
	departure := p.departure(word, clock)
	largest := mulUpTo(p.most, permit)
	permits := min(cost, subTo0(addUpTo(addUpTo(clock, largest), largest), departure)/permit)
	if permits == 0 {
		return word, cost
	}
	return addUpTo(departure, permits*permit), cost - permits
}

// GiveBack gives nothing back.
func (*Pacer) GiveBack(word, _ uint64, _ *GiveBack) (next, permits uint64) { return word, 0 }

// LastBooking departs at the time of the word before it.
func (p *Pacer) LastBooking(word, cost uint64) (next, at uint64, ok bool) {
	high, charge := bits.Mul64(cost, p.grid.PerPermit)
	// A later booking departs a permit later. If that takes less than a nanosecond, both may depart
	// in the same one.
	if high != 0 || word <= charge || p.grid.Nanos(p.grid.PerPermit) <= 1 {
		return 0, 0, false
	}
	return word - charge, p.grid.Nanos(subTo0(word-charge, p.initial)), true
}

// Refill is NoTime.
func (*Pacer) Refill() uint64 { return NoTime }

// BooksAhead is true.
func (*Pacer) BooksAhead() bool { return true }

// CountsRefusals is false.
func (*Pacer) CountsRefusals() bool { return false }
