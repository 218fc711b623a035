package tollbar

import "time"

// The zero of the times of limiters, and of those of ClockWall.
var (
	limiterZero = time.Date(2025, 3, 13, 0, 0, 0, 0, time.UTC)
	unixZero    = time.Unix(0, 0)
)

// TimeOf returns the time t for the calls whose time is in nanoseconds, such as [Limiter.CheckAt]. It
// is on the scale of [Limiter.Now]: nanoseconds since 2025-03-13, or since 1970 on [ClockWall].
//
// If the first time that a limiter gets in this way is before that, it counts from 1970, or from year
// 1, so that a test may begin at any time. Then calls with and without a time do not mix.
func (l *Limiter) TimeOf(t time.Time) uint64 {
	zero := l.zero.Load()
	if zero == nil {
		first := l.zeroFor(t)
		l.zero.CompareAndSwap(nil, &first)
		zero = l.zero.Load()
	}
	return uint64(max(t.Sub(*zero), 0))
}

func (l *Limiter) zeroFor(t time.Time) time.Time {
	if _, inBubble := bubbleTime(); inBubble && l.time == nil {
		return bubbleBegin
	}
	if !l.wall && !t.Before(limiterZero) {
		return limiterZero
	}
	if !t.Before(unixZero) {
		return unixZero
	}
	return time.Time{}
}
