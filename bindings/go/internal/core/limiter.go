package core

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// stripes is the number of counters of a limiter, so that goroutines on different processors seldom
// share one.
const stripes = 8

// Limiter is a state word under one policy, with the statistics that the C library's limiters have.
type Limiter struct {
	word      Word
	algorithm Algorithm
	// The latest time of an admission, and the number of requests with an earlier one.
	newest, backward atomic.Uint64
	// Permits were booked for a later time than that of their call.
	booked atomic.Bool
	// Held by the calls that lower the word. Decisions and bookings only raise it, and take no
	// lock.
	lowering sync.Mutex
	// The highest word that a give-back has lowered.
	highest uint64
	gaps    gaps
	counts  [stripes]line
	// The limiter's number in this process.
	serial uint64
}

// line has counters by verdict, alone on a cache line.
type line struct {
	of [3]atomic.Uint64
	_  [40]byte
}

// serials numbers the limiters of this process.
var serials atomic.Uint64

// NewLimiter makes a fresh limiter.
func NewLimiter(a Algorithm) *Limiter { return &Limiter{algorithm: a, serial: serials.Add(1)} }

// Algorithm is the compiled policy.
func (l *Limiter) Algorithm() Algorithm { return l.algorithm }

// Word is the state word.
func (l *Limiter) Word() uint64 { return l.word.Load() }

// SetWord sets the state word.
func (l *Limiter) SetWord(word uint64) {
	l.lowering.Lock()
	defer l.lowering.Unlock()
	l.gaps.forget()
	l.word.Store(word)
}

// count counts a decision.
func (l *Limiter) count(verdict Verdict) {
	// The stack's address differs between goroutines.
	var here byte
	l.counts[uintptr(unsafe.Pointer(&here))>>11%stripes].of[verdict].Add(1)
}

// Counts are the decisions by verdict.
func (l *Limiter) Counts() (counts [3]uint64) {
	for i := range l.counts {
		for verdict := range counts {
			counts[verdict] += l.counts[i].of[verdict].Load()
		}
	}
	return counts
}

// BackwardSteps is the number of requests whose time was earlier than that of a request admitted
// before them.
func (l *Limiter) BackwardSteps() uint64 { return l.backward.Load() }

// note counts a request whose time is earlier than that of an admission.
func (l *Limiter) note(now uint64) {
	if now < l.newest.Load() {
		l.backward.Add(1)
	}
}

// admitted records the time of an admission. Of two goroutines that store at the same time the
// earlier time may win: it is a statistic.
func (l *Limiter) admitted(now uint64) {
	if now > l.newest.Load() {
		l.newest.Store(now)
	}
}

func (l *Limiter) take(now, cost uint64) (Verdict, uint64) {
	l.note(now)
	verdict, word := Take(&l.word, l.algorithm, now, cost)
	if verdict == Allowed && cost != 0 {
		l.admitted(now)
	}
	l.count(verdict)
	return verdict, word
}

// Take decides on cost permits.
func (l *Limiter) Take(now, cost uint64) Verdict {
	verdict, _ := l.take(now, cost)
	return verdict
}

// Check decides on cost permits, and returns the full decision.
func (l *Limiter) Check(now, cost uint64) Answer {
	verdict, word := l.take(now, cost)
	return Describe(l.algorithm, verdict, word, now, cost)
}

// Peek returns what Check would return.
func (l *Limiter) Peek(now, cost uint64) Answer { return Peek(l.algorithm, l.word.Load(), now, cost) }

// PeekUncounted is Peek of a request whose refusal would not count toward a ban.
func (l *Limiter) PeekUncounted(now, cost uint64) Answer {
	return PeekUncounted(l.algorithm, l.word.Load(), now, cost)
}

// TakeUpTo takes all permits that are left, most at the most. It counts as a refusal if it takes
// none.
func (l *Limiter) TakeUpTo(now, most uint64) uint64 {
	l.note(now)
	taken := TakeUpTo(&l.word, l.algorithm, now, most)
	if taken == 0 {
		l.count(Denied)
		return 0
	}
	l.admitted(now)
	l.count(Allowed)
	return taken
}

// Reserve takes permits ahead of time, for a time up to latest, and returns that time.
func (l *Limiter) Reserve(now, cost, latest uint64) (at uint64, verdict Verdict) {
	ok := true
	if at = now; cost != 0 {
		if at, ok = l.takeGap(now, cost, latest); !ok {
			at, ok = Reserve(&l.word, l.algorithm, now, cost, latest, func() { l.booked.Store(true) })
		}
	}
	if !ok {
		at, verdict = 0, Denied
		if l.Peek(now, cost).Verdict == Never {
			verdict = Never
		}
	}
	l.count(verdict)
	return at, verdict
}

// Charge charges permits without a decision, and returns the rest that the state has no room for.
func (l *Limiter) Charge(now, cost uint64) (rest uint64) {
	l.note(now)
	return ChargeWord(&l.word, l.algorithm, now, cost)
}

// takeGap takes a gap that departs before the time that the word would give, and not after latest.
func (l *Limiter) takeGap(now, cost, latest uint64) (at uint64, ok bool) {
	if !l.gaps.exist() {
		return 0, false
	}
	_, other, booked := l.algorithm.Reserve(l.word.Load(), now, cost)
	if !booked {
		other = NoTime
	}
	gap, ok := l.gaps.takeEarliest(now, cost, min(other, addUpTo(latest, 1)))
	return gap.At, ok
}

// GiveBack gives the unused permits of a charge back, and returns their number. A booking that
// others follow gives nothing back, and stays as a gap.
//
// Of these calls one runs at a time, so that meanwhile the word only rises. If it could fall and
// rise again to the word that was read, the swap would succeed with what is out of date, and more
// would come back than was charged. (The Rust core's limiters count the lowered words beside the
// word instead.)
func (l *Limiter) GiveBack(charge Charge, now func() uint64) (permits uint64) {
	l.lowering.Lock()
	defer l.lowering.Unlock()
	permits, p := l.lower(charge, now, true)
	switch {
	case p == placeUnknown:
		return permits
	case p == placeBefore && !l.gaps.keep(charge, now()):
		permits, _ = l.lower(charge, now, false)
		return permits
	}
	l.closeGaps(now)
	return permits
}

// lower gives permits of a charge back to the word (Cell::lower_for), and returns their number and
// the charge's place. With spares it gives back nothing of a booking that others follow. It reads
// the time after each word, since with an older time it would return permits that the limit has
// refilled meanwhile.
func (l *Limiter) lower(charge Charge, now func() uint64, spares bool) (permits uint64, p place) {
	for {
		word := l.word.Load()
		back := GiveBack{Charge: charge, Booked: l.booked.Load(), Highest: l.highest}
		now := now()
		next, p := placeOf(l.algorithm, word, now, &back)
		permits := charge.Cost
		switch {
		case p == placeBefore && spares:
			return 0, p
		case p != placeLast:
			next, permits = l.algorithm.GiveBack(word, now, &back)
		}
		if next == word {
			return 0, p
		}
		if !l.word.CompareAndSwap(word, next) {
			continue
		}
		if p != placeLast {
			l.highest = max(l.highest, word)
		}
		return permits, p
	}
}

// closeGaps gives back the gaps that no booking follows any more (Cell::close_gaps).
func (l *Limiter) closeGaps(now func() uint64) {
	for {
		gap, ok := l.gaps.takeLatest(now())
		if !ok {
			return
		}
		if _, p := l.lower(gap, now, true); p == placeBefore {
			// The place that it had is free: only calls under the lock keep gaps.
			l.gaps.keep(gap, now())
			return
		}
	}
}

// Reset makes the state fresh.
func (l *Limiter) Reset() { l.SetWord(0) }
