package tollbar

import "time"

// Reservation holds booked permits. It is plain data: another process may cancel by it.
type Reservation struct {
	// Departs is the time from which on the permits may be used, in nanoseconds on the scale of
	// Now.
	Departs uint64
	// Wait is the time from the call to Departs.
	Wait time.Duration
	// Cost is the number of permits that were charged. It is 0 if no key was charged: an exempt or
	// empty key, or a new key that a full table admits without storing it.
	Cost uint64
}

// Cancel gives back the permits of a reservation that the caller does not use, and returns the
// number that came back. Cancel a reservation once only.
//
// The latest reservation comes back whole, under all algorithms that book ahead. An earlier one
// usually gives back nothing, because the later callers keep the departures that they have. Its own
// departure goes to the next caller that reserves as many permits, or comes back when the later
// callers have cancelled.
func (l *Limiter) Cancel(booked Reservation) (uint64, error) {
	if l.ended() {
		return 0, ErrClosed
	}
	back, code := l.cancel(booked)
	return back, asError(code)
}

// CancelAt is [Limiter.Cancel] at the caller's time, in nanoseconds, which must not be earlier than
// that of any call that has returned.
func (l *Limiter) CancelAt(now uint64, booked Reservation) (uint64, error) {
	if l.ended() {
		return 0, ErrClosed
	}
	back, code := l.cancelAt(now, booked)
	return back, asError(code)
}

// booksAhead reports whether the policy can book permits ahead of their time.
func (p *Policy) booksAhead() bool {
	return bookAhead>>p.Algorithm&1 != 0 && p.Limit != 0 && !p.AnchorFirst
}
