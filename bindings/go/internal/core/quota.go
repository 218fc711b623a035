package core

import "math"

// Quota is a lifetime quota, which no time refills. The word is 0 for a fresh state, and otherwise
// the permits used, plus 1.
type Quota struct{ limit uint64 }

// NewQuota compiles a quota.
func NewQuota(p *Policy) (*Quota, Code) {
	if p.Limit == math.MaxUint64 {
		return nil, RateTooHigh
	}
	return &Quota{p.Limit}, 0
}

func (q *Quota) left(word, now uint64) uint64 {
	if now > LastTime {
		return 0
	}
	return subTo0(q.limit, subTo0(word, 1))
}

// LastTime is the last time of every policy.
func (*Quota) LastTime() uint64 { return LastTime }

// Step decides.
func (q *Quota) Step(word, now, cost uint64) Step {
	switch {
	case cost == 0:
		return Step{Allowed, word}
	case cost > q.limit:
		return Step{Never, word}
	case cost <= q.left(word, now):
		return Step{Allowed, max(word, 1) + cost}
	}
	return Step{Denied, word}
}

// Available is the number of permits that could be taken.
func (q *Quota) Available(word, now uint64) uint64 { return q.left(word, now) }

// AdmitsAt is now or NoTime.
func (q *Quota) AdmitsAt(word, now, cost uint64) uint64 {
	if cost <= q.left(word, now) {
		return now
	}
	return NoTime
}

// FreshAt is now if no permit is used, otherwise NoTime.
func (*Quota) FreshAt(word, now uint64) uint64 {
	if word <= 1 {
		return now
	}
	return NoTime
}

// ExpiresAt is NoTime: only the word 0 expires.
func (*Quota) ExpiresAt(word uint64) uint64 {
	if word == 0 {
		return 0
	}
	return NoTime
}

// Owing is the word of a quota that is used up.
func (q *Quota) Owing(uint64) uint64 { return q.limit + 1 }

// Reserve books nothing.
func (*Quota) Reserve(_, _, _ uint64) (next, at uint64, ok bool) { return 0, 0, false }

// Charge counts up to the limit.
func (q *Quota) Charge(word, now, cost uint64) (next, rest uint64) {
	permits := min(cost, q.left(word, now))
	if permits == 0 {
		return word, cost
	}
	return max(word, 1) + permits, cost - permits
}

// GiveBack lowers the count.
func (*Quota) GiveBack(word, now uint64, back *GiveBack) (next, permits uint64) {
	permits = min(back.Charge.Cost, subTo0(word, 1))
	if permits == 0 || now > LastTime {
		return word, 0
	}
	return word - permits, permits
}

// LastBooking is none.
func (*Quota) LastBooking(_, _ uint64) (next, at uint64, ok bool) { return 0, 0, false }

// Refill is the longest time, because a quota refills no permit.
func (*Quota) Refill() uint64 { return NoTime - 1 }

// BooksAhead is false.
func (*Quota) BooksAhead() bool { return false }

// CountsRefusals is false.
func (*Quota) CountsRefusals() bool { return false }
