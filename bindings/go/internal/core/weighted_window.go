package core

import (
	"math"
	"math/bits"
)

// WeightedWindow lets the previous window's count fade while the current one's grows. The word has
// three bit fields, from the highest: the window's number, the previous count, and the current one.
type WeightedWindow struct {
	limit, period             uint64
	currentBits, previousBits uint
	// The previous count is kept in multiples of 2^coarse.
	coarse uint
	// The greatest window that admits.
	windows uint64
	last    uint64
}

// previousLeast is the least number of bits that the previous count gets, or as many as the limit
// has.
const previousLeast = 8

// counts are those of the window in which a request is decided, with the nanoseconds since it
// began.
type counts struct{ window, elapsed, previous, current uint64 }

// NewWeightedWindow compiles a weighted window.
func NewWeightedWindow(p *Policy) (*WeightedWindow, Code) {
	currentBits := uint(bits.Len64(p.Limit))
	windowBits := uint(bits.Len64(horizon / p.Period))
	if currentBits+windowBits > 64 {
		return nil, RateTooHigh
	}
	previousBits := min(currentBits, 64-currentBits-windowBits)
	if previousBits < min(currentBits, previousLeast) {
		return nil, RateTooHigh
	}
	// The limit, rounded up, must itself fit.
	coarse := currentBits - previousBits
	if uint(bits.Len64(roundUp(p.Limit, coarse)>>coarse)) > previousBits {
		coarse++
	}
	windows := subTo0(math.MaxUint64>>(currentBits+previousBits), 2)
	last := subTo0(mulUpTo(addUpTo(windows, 1), p.Period), 1)
	return &WeightedWindow{p.Limit, p.Period, currentBits, previousBits, coarse, windows, min(last, LastTime)}, 0
}

// roundUp rounds n up to a multiple of 2^by.
func roundUp(n uint64, by uint) uint64 {
	low := uint64(1)<<by - 1
	return addUpTo(n, low) &^ low
}

func (w *WeightedWindow) unpack(word uint64) (window, previous, current uint64) {
	current = word & (1<<w.currentBits - 1)
	previous = word >> w.currentBits & (1<<w.previousBits - 1)
	return word >> (w.currentBits + w.previousBits), previous << w.coarse, current
}

func (w *WeightedWindow) pack(c counts) uint64 {
	previous := roundUp(c.previous, w.coarse) >> w.coarse
	return c.window<<(w.currentBits+w.previousBits) | previous<<w.currentBits | c.current
}

// here returns the counts at now; false after the last time.
func (w *WeightedWindow) here(word, now uint64) (counts, bool) {
	if now > w.last {
		return counts{}, false
	}
	window, elapsed := now/w.period, now%w.period
	stored, previous, current := w.unpack(word)
	switch {
	case stored > window:
		return counts{stored, 0, previous, current}, true
	case stored == window:
		return counts{window, elapsed, previous, current}, true
	case stored+1 == window:
		return counts{window, elapsed, current, 0}, true
	}
	return counts{window, elapsed, 0, 0}, true
}

// weight is the estimate times the period, in 128 bits.
func (w *WeightedWindow) weight(c counts) (high, low uint64) {
	high, low = bits.Mul64(c.previous, w.period-c.elapsed)
	currentHigh, currentLow := bits.Mul64(c.current, w.period)
	low, carry := bits.Add64(low, currentLow, 0)
	return high + currentHigh + carry, low
}

// room is the part of limit · period above the weight, in 128 bits, or 0.
func (w *WeightedWindow) room(c counts) (high, low uint64) {
	high, low = bits.Mul64(w.limit, w.period)
	weightHigh, weightLow := w.weight(c)
	low, borrow := bits.Sub64(low, weightLow, 0)
	high, borrow = bits.Sub64(high, weightHigh, borrow)
	if borrow != 0 {
		return 0, 0
	}
	return high, low
}

// start is the start of window number window + more, or NoTime if nothing is admitted then.
func (w *WeightedWindow) start(window, more uint64) uint64 {
	return until(w.last, mulUpTo(addUpTo(window, more), w.period))
}

// fitsIn is the first instant within the window of c at which taken permits fit beside the weight
// of the previous count.
func (w *WeightedWindow) fitsIn(c counts, taken uint64) (uint64, bool) {
	if taken > w.limit {
		return 0, false
	}
	elapsed := c.elapsed
	if c.previous != 0 {
		// previous · (period − elapsed) <= room · period
		if high, low := bits.Mul64(w.limit-taken, w.period); high < c.previous {
			remaining, _ := bits.Div64(high, low, c.previous)
			elapsed = max(elapsed, subTo0(w.period, remaining))
		}
	}
	high, from := bits.Mul64(c.window, w.period)
	at, carry := bits.Add64(from, elapsed, 0)
	return at, elapsed < w.period && high == 0 && carry == 0
}

// isOwing reports whether these are the counts of Owing, whose word expires at the end of its
// window. All other words last for one window more.
func (w *WeightedWindow) isOwing(previous, current uint64) bool {
	return current == 0 && previous >= w.limit
}

// LastTime is the last time at which a cost above 0 is admitted.
func (w *WeightedWindow) LastTime() uint64 { return w.last }

// Step decides.
func (w *WeightedWindow) Step(word, now, cost uint64) Step {
	if cost == 0 {
		return Step{Allowed, word}
	}
	if cost > w.limit {
		return Step{Never, word}
	}
	c, ok := w.here(word, now)
	if !ok {
		return Step{Denied, word}
	}
	roomHigh, roomLow := w.room(c)
	high, low := bits.Mul64(cost, w.period)
	if high > roomHigh || high == roomHigh && low > roomLow {
		return Step{Denied, word}
	}
	c.current += cost
	return Step{Allowed, w.pack(c)}
}

// Available is the number of permits that could be taken.
func (w *WeightedWindow) Available(word, now uint64) uint64 {
	c, ok := w.here(word, now)
	if !ok {
		return 0
	}
	// The room is at most limit · period, so the quotient fits.
	high, low := w.room(c)
	quotient, _ := bits.Div64(high, low, w.period)
	return quotient
}

// AdmitsAt is the earliest time from now on at which cost permits are admitted, or NoTime.
func (w *WeightedWindow) AdmitsAt(word, now, cost uint64) uint64 {
	if cost == 0 {
		return now
	}
	c, ok := w.here(word, now)
	if cost > w.limit || !ok {
		return NoTime
	}
	// This window, the next one, and the one after, in which no permit counts any more.
	for range 3 {
		if at, ok := w.fitsIn(c, addUpTo(c.current, cost)); ok {
			return until(w.last, max(at, now))
		}
		if c = (counts{window: c.window + 1, previous: c.current}); c.window > w.windows {
			break
		}
	}
	return NoTime
}

// FreshAt is the earliest time from now on at which the word is as good as fresh, or NoTime.
func (w *WeightedWindow) FreshAt(word, now uint64) uint64 {
	c, ok := w.here(word, now)
	switch {
	case !ok:
		return NoTime
	case c.previous == 0 && c.current == 0:
		return now
	case c.current == 0:
		return w.start(c.window, 1)
	}
	return w.start(c.window, 2)
}

// ExpiresAt is the time from which the word is as good as fresh.
func (w *WeightedWindow) ExpiresAt(word uint64) uint64 {
	if word == 0 {
		return 0
	}
	window, previous, current := w.unpack(word)
	if w.isOwing(previous, current) {
		return w.start(window, 1)
	}
	return w.start(window, 2)
}

// Owing returns a word of the window that contains or ends at the given time. Its previous count is
// the whole limit.
func (w *WeightedWindow) Owing(at uint64) uint64 {
	c := counts{window: subTo0(at, 1) / w.period, previous: w.limit}
	if w.start(c.window, 1) == NoTime {
		// With both counts at the limit it never admits a request.
		c = counts{window: w.windows + 1, previous: w.limit, current: w.limit}
	}
	return w.pack(c)
}

// Reserve books nothing.
func (*WeightedWindow) Reserve(_, _, _ uint64) (next, at uint64, ok bool) { return 0, 0, false }

// Charge raises the current count up to the limit, even if the previous count leaves less than
// that.
func (w *WeightedWindow) Charge(word, now, cost uint64) (next, rest uint64) {
	c, ok := w.here(word, now)
	permits := min(cost, subTo0(w.limit, c.current))
	if !ok || permits == 0 {
		return word, cost
	}
	c.current += permits
	return w.pack(c), cost - permits
}

// GiveBack lowers the count of the charge's window.
func (w *WeightedWindow) GiveBack(word, now uint64, back *GiveBack) (next, permits uint64) {
	window, previous, current := w.unpack(word)
	switch charged := back.Charge.At / w.period; {
	case charged == window:
		// A give-back makes neither the word 0 nor a word that expires earlier.
		least := uint64(0)
		if window == 0 && previous == 0 || w.isOwing(previous, 0) {
			least = min(1, current)
		}
		current = max(subTo0(current, back.Charge.Cost), least)
	case charged+1 == window:
		previous = subTo0(previous, back.Charge.Cost)
	}
	next = w.pack(counts{window: window, previous: previous, current: current})
	if next == word {
		return word, 0
	}
	// Permits of the previous window have faded in part.
	before, ok := w.here(word, now)
	after, _ := w.here(next, now)
	if !ok {
		return next, 0
	}
	beforeHigh, beforeLow := w.weight(before)
	afterHigh, afterLow := w.weight(after)
	low, borrow := bits.Sub64(beforeLow, afterLow, 0)
	high, borrow := bits.Sub64(beforeHigh, afterHigh, borrow)
	if borrow != 0 || high >= w.period {
		return next, 0
	}
	permits, _ = bits.Div64(high, low, w.period)
	return next, permits
}

// LastBooking is none.
func (*WeightedWindow) LastBooking(_, _ uint64) (next, at uint64, ok bool) { return 0, 0, false }

// Refill is two periods: a permit fades until the end of the next window.
func (w *WeightedWindow) Refill() uint64 { return mulUpTo(w.period, 2) }

// BooksAhead is false.
func (*WeightedWindow) BooksAhead() bool { return false }

// CountsRefusals is false.
func (*WeightedWindow) CountsRefusals() bool { return false }
