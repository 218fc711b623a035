package core

import "math"

// FixedWindow is a counter for each window. The word is start · (limit + 1) + used. Aligned to time
// 0, start is the window's number. Aligned to the first request it is that request's time in
// grains, rounded up, plus 1.
type FixedWindow struct {
	limit uint64
	// limit + 1.
	radix uint64
	// Nanoseconds per step of start: the period, or the grain of an anchored start.
	grain  uint64
	period uint64
	// The greatest start of a window that admits.
	starts        uint64
	last          uint64
	anchored      bool
	countRejected bool
	// An interval that is aligned to the first request. Its words do not become a window's when a
	// policy changes.
	interval bool
}

// NewFixedWindow compiles windows of the policy's period with limit permits. An interval that is
// aligned to the first request is a fixed window of its burst.
func NewFixedWindow(p *Policy, limit uint64) (*FixedWindow, Code) {
	var w *FixedWindow
	if !p.AnchorFirst {
		w = newWindow(limit, p.Period, p.Period, false)
	}
	for decade := uint64(1); p.AnchorFirst && w == nil; decade *= 10 {
		for _, times := range []uint64{1, 2, 5} {
			grain := decade * times
			// Rounding a start up to the next grain must add less than a period.
			if grain > p.Period || decade > math.MaxUint64/10 {
				return nil, RateTooHigh
			}
			if w = newWindow(limit, p.Period, grain, true); w != nil {
				break
			}
		}
	}
	if w == nil {
		return nil, RateTooHigh
	}
	w.countRejected, w.interval = p.CountRejected, p.Kind == kindInterval
	return w, 0
}

// newWindow is nil if the word cannot hold the counter beside the window.
func newWindow(limit, period, grain uint64, anchored bool) *FixedWindow {
	if limit == math.MaxUint64 {
		return nil
	}
	radix := limit + 1
	starts := subTo0(math.MaxUint64/radix, 2)
	needed := horizon / grain / 2
	if anchored {
		needed = horizon/grain + 2
	}
	if starts < max(needed, 1) {
		return nil
	}
	last := subTo0(mulUpTo(addUpTo(starts, 1), grain), 1)
	if anchored {
		last = mulUpTo(starts-1, grain)
	}
	return &FixedWindow{limit: limit, radix: radix, grain: grain, period: period, starts: starts, last: min(last, LastTime), anchored: anchored}
}

// here is the window in which a request at now is decided, and the permits used in it; false after
// the last time.
func (w *FixedWindow) here(word, now uint64) (start, used uint64, ok bool) {
	if now > w.last {
		return 0, 0, false
	}
	if !w.anchored {
		window := now / w.grain
		from := window * w.radix
		if word < from {
			return window, 0, true
		}
		return word / w.radix, word % w.radix, true
	}
	start, used = word/w.radix, word%w.radix
	if word != 0 && now < w.end(start) {
		return start, used, true
	}
	return divCeil(now, w.grain) + 1, 0, true
}

// from is the start of a window in nanoseconds.
func (w *FixedWindow) from(start uint64) uint64 {
	if w.anchored {
		start = subTo0(start, 1)
	}
	return mulUpTo(start, w.grain)
}

func (w *FixedWindow) end(start uint64) uint64 { return addUpTo(w.from(start), w.period) }

// over is the end of a window, or NoTime if nothing is admitted after it.
func (w *FixedWindow) over(start uint64) uint64 { return until(w.last, w.end(start)) }

func (w *FixedWindow) word(start, used uint64) uint64 { return start*w.radix + used }

// LastTime is the last time at which a cost above 0 is admitted.
func (w *FixedWindow) LastTime() uint64 { return w.last }

// Step decides.
func (w *FixedWindow) Step(word, now, cost uint64) Step {
	if cost == 0 {
		return Step{Allowed, word}
	}
	if cost > w.limit {
		return Step{Never, word}
	}
	start, used, ok := w.here(word, now)
	switch {
	case !ok:
		return Step{Denied, word}
	case cost <= subTo0(w.limit, used):
		return Step{Allowed, w.word(start, used+cost)}
	case w.countRejected:
		return Step{Denied, w.word(start, w.limit)}
	}
	return Step{Denied, word}
}

// Available is the number of permits that could be taken.
func (w *FixedWindow) Available(word, now uint64) uint64 {
	_, used, ok := w.here(word, now)
	if !ok {
		return 0
	}
	return subTo0(w.limit, used)
}

// AdmitsAt is the earliest time from now on at which cost permits are admitted, or NoTime.
func (w *FixedWindow) AdmitsAt(word, now, cost uint64) uint64 {
	if cost == 0 {
		return now
	}
	start, used, ok := w.here(word, now)
	switch {
	case cost > w.limit || !ok:
		return NoTime
	case cost <= subTo0(w.limit, used):
		return now
	}
	return w.over(start)
}

// FreshAt is the earliest time from now on at which the word is as good as fresh, or NoTime.
func (w *FixedWindow) FreshAt(word, now uint64) uint64 {
	start, used, ok := w.here(word, now)
	switch {
	case !ok:
		return NoTime
	case used == 0:
		return now
	}
	return w.over(start)
}

// ExpiresAt is the end of the word's window.
func (w *FixedWindow) ExpiresAt(word uint64) uint64 {
	if word == 0 {
		return 0
	}
	return w.over(word / w.radix)
}

// Owing is the first window that ends at or after that time, with all permits used.
func (w *FixedWindow) Owing(at uint64) uint64 {
	start := subTo0(at, 1) / w.grain
	if w.anchored {
		start = addUpTo(divCeil(subTo0(at, w.period), w.grain), 1)
	}
	if w.end(start) == NoTime {
		start = math.MaxUint64
	}
	return w.word(min(start, w.starts+1), w.limit)
}

// Reserve books nothing.
func (*FixedWindow) Reserve(_, _, _ uint64) (next, at uint64, ok bool) { return 0, 0, false }

// Charge counts up to the limit.
func (w *FixedWindow) Charge(word, now, cost uint64) (next, rest uint64) {
	start, used, ok := w.here(word, now)
	permits := min(cost, subTo0(w.limit, used))
	if !ok || permits == 0 {
		return word, cost
	}
	return w.word(start, used+permits), cost - permits
}

// GiveBack lowers the count of a window that holds the charge. With countRejected a full count may
// hold refusals, so it gives nothing back.
func (w *FixedWindow) GiveBack(word, now uint64, back *GiveBack) (next, permits uint64) {
	start, used := word/w.radix, word%w.radix
	from, end := w.from(start), w.end(start)
	holds := from <= back.Charge.At && back.Charge.At < end
	if !holds || now > w.last || now >= end || w.countRejected && used >= w.limit {
		return word, 0
	}
	// The word 0 would expire at time 0.
	next = max(word-min(back.Charge.Cost, used), 1)
	if next >= word {
		return word, 0
	}
	return next, word - next
}

// LastBooking is none.
func (*FixedWindow) LastBooking(_, _ uint64) (next, at uint64, ok bool) { return 0, 0, false }

// Refill is the rest of the window at most.
func (w *FixedWindow) Refill() uint64 { return w.period }

// BooksAhead is false.
func (*FixedWindow) BooksAhead() bool { return false }

// CountsRefusals is false.
func (*FixedWindow) CountsRefusals() bool { return false }
