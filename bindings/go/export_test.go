package tollbar

// AllowNanos is [Limiter.AllowAt] at a time in nanoseconds, on any scale.
func AllowNanos(l *Limiter, now, n uint64) bool { return !l.ended() && l.allowAt(now, n) }
