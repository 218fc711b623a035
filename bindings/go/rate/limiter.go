// Package rate has the API of golang.org/x/time/rate and its documented behaviour: a program only
// changes the import. It is pure Go.
//
// It differs where a shared limiter would admit more than its rate: a call with an older time than
// another call does not set the limiter's time back. (In a limiter whose time goes back, many
// goroutines with slightly old times get a multiple of the rate.) And [Limiter.Allow] costs less,
// since it reads the clock while it holds the lock and without the wall time.
//
// The state has five numbers (limit, burst, tokens, and the times of the last change and of the
// last event). SetLimit and Cancel change several of them together, so they do not fit tollbar's
// state word, and a small mutex protects them. For exact rates or without a lock, use package cell.
package rate

import (
	"math"
	"sync"
	"time"

	"github.com/tollbar/tollbar/bindings/go/internal/waiting"
)

// Limit is a number of events a second. 0 allows none.
type Limit float64

// Inf is the infinite limit: it allows all events, even if the burst is 0.
const Inf = Limit(math.MaxFloat64)

// InfDuration is the delay of a [Reservation] that is not OK.
const InfDuration = time.Duration(math.MaxInt64)

// Every is the limit of one event in an interval; [Inf] if that is not positive.
func Every(interval time.Duration) Limit {
	if interval <= 0 {
		return Inf
	}
	return 1 / Limit(interval.Seconds())
}

// tokens returns the tokens that come in d.
func (limit Limit) tokens(d time.Duration) float64 {
	if limit <= 0 {
		return 0
	}
	return d.Seconds() * float64(limit)
}

// duration returns the time in which the tokens come.
func (limit Limit) duration(tokens float64) time.Duration {
	if limit <= 0 {
		return InfDuration
	}
	if ns := tokens / float64(limit) * 1e9; ns <= math.MaxInt64 {
		return time.Duration(ns)
	}
	return InfDuration
}

// Limiter is a token bucket: it holds burst tokens at most, begins with all of them, and gets limit
// tokens a second. An event takes one. With [Inf] the burst does not matter. The zero value rejects
// all events.
//
// Any number of goroutines may use it at once. It must not be copied after its first use.
type Limiter struct {
	mu    sync.Mutex
	limit Limit
	burst int
	// Tokens at time last. Below 0 if events are reserved.
	tokens float64
	// Times are nanoseconds since base, the time of the limiter's first call.
	base    time.Time
	started bool
	last    instant
	// The time of the latest event.
	lastEvent instant
	// The goroutines that wait.
	queue  waiting.Queue[Reservation]
	places waiting.Places
}

// NewLimiter makes a limiter that lets limit events a second pass, and bursts of at most burst.
func NewLimiter(limit Limit, burst int) *Limiter {
	return &Limiter{limit: limit, burst: burst, tokens: float64(burst)}
}

// Limit returns the number of events a second.
func (l *Limiter) Limit() Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit
}

// Burst is the most tokens that one call can take. 0 allows no events, unless the limit is [Inf].
func (l *Limiter) Burst() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.burst
}

// Tokens returns the number of tokens now; below 0 if events are reserved.
func (l *Limiter) Tokens() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.advance(l.now())
}

// TokensAt returns the number of tokens at time t.
func (l *Limiter) TokensAt(t time.Time) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.advance(l.instant(t))
}

// SetLimit changes the limit now.
func (l *Limiter) SetLimit(limit Limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(l.now())
	l.limit = limit
}

// SetLimitAt changes the limit at time t. Reserved events keep their times.
func (l *Limiter) SetLimitAt(t time.Time, limit Limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(l.instant(t))
	l.limit = limit
}

// SetBurst changes the burst now.
func (l *Limiter) SetBurst(burst int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(l.now())
	l.burst = burst
}

// SetBurstAt changes the burst at time t.
func (l *Limiter) SetBurstAt(t time.Time, burst int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(l.instant(t))
	l.burst = burst
}

// Allow reports whether an event may happen now, and takes its token.
func (l *Limiter) Allow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.take(l.now(), 1, 0)
	return ok
}

// AllowN reports whether n events may happen at time t, and takes their tokens. Use it to drop
// events above the limit.
func (l *Limiter) AllowN(t time.Time, n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.take(l.instant(t), n, 0)
	return ok
}

// take takes n tokens at now for an event that is at most patience later, and returns how much
// later it is.
func (l *Limiter) take(now instant, n int, patience time.Duration) (wait time.Duration, ok bool) {
	if l.limit == Inf {
		return 0, true
	}
	tokens := l.advance(now) - float64(n)
	if tokens < 0 {
		wait = l.limit.duration(-tokens)
		if now < l.last {
			// The debt counts from the time of the tokens, which is later than this caller's time.
			wait = l.last.add(wait).sub(now)
		}
	}
	if n > l.burst || wait > patience {
		return 0, false
	}
	l.last = max(now, l.last)
	l.tokens = tokens
	l.lastEvent = now.add(wait)
	return wait, true
}

// advance returns the number of tokens at now. Before last it is the number at last: a time that
// goes back gives nothing.
func (l *Limiter) advance(now instant) float64 {
	tokens := l.tokens
	if now > l.last {
		tokens += l.limit.tokens(now.sub(l.last))
	}
	return min(tokens, float64(l.burst))
}

// settle updates the tokens to now.
func (l *Limiter) settle(now instant) {
	l.tokens = l.advance(now)
	l.last = max(now, l.last)
}

// now is the clock's time. It is read with the lock held, so callers come in the order of their
// times.
func (l *Limiter) now() instant {
	if !l.started {
		return l.instant(time.Now())
	}
	if d := time.Since(l.base); inRange(d) {
		return instant(d)
	}
	return l.instant(time.Now())
}

// instant converts t to the limiter's time.
func (l *Limiter) instant(t time.Time) instant {
	if !l.started {
		l.base, l.started = t, true
		return 0
	}
	d := t.Sub(l.base)
	if inRange(d) {
		return instant(d)
	}
	// The time is centuries away, as invented times may be. The limiter counts from there on.
	l.base = t
	l.last, l.lastEvent = l.last.add(-d), l.lastEvent.add(-d)
	return 0
}

// inRange reports whether a difference of times fitted.
func inRange(d time.Duration) bool { return d != math.MaxInt64 && d != math.MinInt64 }

// instant is a time in nanoseconds. Its arithmetic stops at the ends of the range.
type instant int64

func (at instant) add(d time.Duration) instant {
	sum := at + instant(d)
	switch {
	case d > 0 && sum < at:
		return math.MaxInt64
	case d < 0 && sum > at:
		return math.MinInt64
	}
	return sum
}

func (at instant) sub(earlier instant) time.Duration {
	difference := at - earlier
	switch {
	case earlier < 0 && difference < at:
		return math.MaxInt64
	case earlier > 0 && difference > at:
		return math.MinInt64
	}
	return time.Duration(difference)
}
