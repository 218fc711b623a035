// Package core is the part of tollbar's core that steps state words of one 64-bit word, in Go
// alone: the policies' text, the arithmetic that docs/internals/state-word.md defines, and the
// loops on a shared word. It gives the decisions of the C library, to the bit.
package core

import "math"

// Verdict says whether a request may pass. The numbers are those of tollbar.h.
type Verdict int32

// The verdicts.
const (
	Allowed Verdict = 0
	Denied  Verdict = 1
	Never   Verdict = 2
)

// Reasons of decisions that a state word gives. The numbers are those of tollbar.h.
const (
	reasonBanned = 12
)

// Step is a verdict and the word to store. The word is the former one if nothing changes.
type Step struct {
	Verdict Verdict
	Next    uint64
}

// Charge is an earlier charge, of which permits are given back.
type Charge struct {
	// At is the time of the charge in nanoseconds: when it was admitted or, if it was booked ahead,
	// when its permits may be used.
	At   uint64
	Cost uint64
}

// GiveBack says how permits of a charge are given back. src/algorithm/mod.rs proves how many are
// safe.
type GiveBack struct {
	Charge Charge
	// Booked: permits of this state may have been booked ahead.
	Booked bool
	// Highest is the highest word that an earlier give-back has lowered.
	Highest uint64
}

// place is the place of a booking in a word (Place).
type place int

const (
	// placeUnknown: the word does not tell, or the booking is not in it.
	placeUnknown place = iota
	// placeLast: the booking is the last charge of the word.
	placeLast
	// placeBefore: other charges came after it.
	placeBefore
)

// placeOf is the place of the booking back.Charge in a word that is in no slot, and the word before
// it if it is the last charge: returned whole, it was never made. A booking whose departure has
// come has no place. A word below the highest one was lowered since, perhaps to that of this
// booking, although other charges came after it.
func placeOf(a Algorithm, word, now uint64, back *GiveBack) (next uint64, p place) {
	if !back.Booked || back.Charge.At <= now || back.Charge.Cost == 0 {
		return 0, placeUnknown
	}
	next, at, ok := a.LastBooking(word, back.Charge.Cost)
	switch {
	case ok && at == back.Charge.At && word >= back.Highest:
		return next, placeLast
	case ok && at > back.Charge.At:
		return 0, placeBefore
	}
	return 0, placeUnknown
}

// Algorithm is a compiled policy whose state is one word. 0 is the fresh word of all algorithms.
// Times are nanoseconds of one clock.
type Algorithm interface {
	// LastTime is the last time at which a cost above 0 is admitted.
	LastTime() uint64
	// Step decides on cost permits at now. A cost of 0 charges nothing.
	Step(word, now, cost uint64) Step
	// Available is the number of permits that could be taken at now.
	Available(word, now uint64) uint64
	// AdmitsAt is the earliest time from now on at which cost permits are admitted, or NoTime.
	AdmitsAt(word, now, cost uint64) uint64
	// FreshAt is the earliest time from now on at which the word is as good as fresh, or NoTime.
	FreshAt(word, now uint64) uint64
	// ExpiresAt is FreshAt without a now: it depends on the word only, and no step makes it
	// earlier. 0 for the word 0.
	ExpiresAt(word uint64) uint64
	// Owing returns a word for a bucket that has no permit left until the given time.
	Owing(until uint64) uint64
	// Reserve takes permits ahead of time: the word to store, and the time from which the permits
	// may be used.
	Reserve(word, now, cost uint64) (next, at uint64, ok bool)
	// Charge charges permits without a decision: the word to store, and the rest that the word has
	// no room for.
	Charge(word, now, cost uint64) (next, rest uint64)
	// GiveBack gives permits back: the word to store and the number of permits. The word is the
	// former one if nothing changes.
	GiveBack(word, now uint64, back *GiveBack) (next, permits uint64)
	// LastBooking is the word before a booking of cost permits that led to this word, and the
	// booking's departure. Not ok: there is none, or another booking could depart in the same
	// nanosecond.
	LastBooking(word, cost uint64) (next, at uint64, ok bool)
	// Refill is the time in nanoseconds in which the limit refills a permit; NoTime if GiveBack
	// gives nothing back.
	Refill() uint64
	// BooksAhead reports whether Reserve works.
	BooksAhead() bool
	// CountsRefusals reports whether refusals lead to a ban.
	CountsRefusals() bool
}

// Answer is a full decision. Times are nanoseconds from now; NoTime where no wait helps.
type Answer struct {
	Verdict                           Verdict
	Reason                            uint32
	Remaining, RetryAfter, ResetAfter uint64
}

// Describe is the full decision on a request that got verdict at now and left word.
func Describe(a Algorithm, verdict Verdict, word, now, cost uint64) Answer {
	d := Answer{
		Verdict: verdict, Reason: uint32(verdict),
		Remaining: a.Available(word, now), ResetAfter: After(a.FreshAt(word, now), now),
	}
	switch verdict {
	case Denied:
		d.RetryAfter = After(a.AdmitsAt(word, now, cost), now)
	case Never:
		d.RetryAfter = NoTime
	}
	if verdict == Denied && Bans(a, word, now) {
		d.Reason = reasonBanned
	}
	return d
}

// Bans reports whether a ban of word refuses requests at now.
func Bans(a Algorithm, word, now uint64) bool {
	ban, ok := a.(*Ban)
	return ok && ban.isBanned(word, now)
}

// After is the wait from now until at.
func After(at, now uint64) uint64 {
	if at == NoTime {
		return NoTime
	}
	return subTo0(at, now)
}

// until is at, or NoTime if that is after last.
func until(last, at uint64) uint64 {
	if at > last {
		return NoTime
	}
	return at
}

// Closed is a limit of 0: it denies all.
type Closed struct{}

// LastTime is the last time of every policy.
func (Closed) LastTime() uint64 { return LastTime }

// Step denies.
func (Closed) Step(word, _, cost uint64) Step {
	if cost == 0 {
		return Step{Allowed, word}
	}
	return Step{Denied, word}
}

// Available is 0.
func (Closed) Available(_, _ uint64) uint64 { return 0 }

// AdmitsAt is now for a cost of 0.
func (Closed) AdmitsAt(_, now, cost uint64) uint64 {
	if cost == 0 {
		return now
	}
	return NoTime
}

// FreshAt is now.
func (Closed) FreshAt(_, now uint64) uint64 { return now }

// ExpiresAt is the word, which is a time.
func (Closed) ExpiresAt(word uint64) uint64 { return until(LastTime, word) }

// Owing is the time.
func (Closed) Owing(at uint64) uint64 { return until(LastTime, max(at, 1)) }

// Reserve books nothing.
func (Closed) Reserve(_, _, _ uint64) (next, at uint64, ok bool) { return 0, 0, false }

// Charge charges nothing.
func (Closed) Charge(word, _, cost uint64) (next, rest uint64) { return word, cost }

// GiveBack gives nothing back.
func (Closed) GiveBack(word, _ uint64, _ *GiveBack) (next, permits uint64) { return word, 0 }

// LastBooking is none.
func (Closed) LastBooking(_, _ uint64) (next, at uint64, ok bool) { return 0, 0, false }

// Refill is NoTime.
func (Closed) Refill() uint64 { return NoTime }

// BooksAhead is false.
func (Closed) BooksAhead() bool { return false }

// CountsRefusals is false.
func (Closed) CountsRefusals() bool { return false }

// gridOf is the grid of a policy whose word must hold span permits beyond the clock in width bits.
func gridOf(p *Policy, span uint64, width uint) (Grid, Code) {
	g, ok := NewGrid(p.Limit, p.Period, span, width)
	if ok {
		return g, 0
	}
	// If a burst of 1 fits, the burst is too large; otherwise the rate is too high.
	if _, ok := NewGrid(p.Limit, p.Period, 1, width); ok {
		return g, BurstTooLarge
	}
	return g, RateTooHigh
}

// mostOf is the greatest number of width bits.
func mostOf(width uint) uint64 { return math.MaxUint64 >> (64 - width) }
