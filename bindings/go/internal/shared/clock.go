package shared

import (
	"sync/atomic"
	"time"
)

// Clocks, as in src/clock.rs.

// wallClock is the number of the system's clock of Unix time (Source::Wall). The other sources are on the scale of
// CLOCK_MONOTONIC.
const wallClock = 3

const (
	// timeZero is the zero of the times of tables: 2025-03-13 00:00:00 UTC, in Unix nanoseconds (TIME_ZERO).
	timeZero = 20_160 * 86_400 * 1_000_000_000
	// plausible nanoseconds after timeZero, 40 years. A system clock outside this span counts as not set.
	plausible = 40 * 365 * 86_400 * 1_000_000_000
)

// wall is Unix time in nanoseconds; 0 before 1970.
func wall() uint64 { return uint64(max(time.Now().UnixNano(), 0)) }

// bubbleBegin is the time at which the clock of each bubble of testing/synctest begins, before that of any process.
var bubbleBegin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// inBubble is the time of a bubble. A table that is made in a bubble goes by it; one of other processes takes it for
// a clock that has gone back.
func inBubble() uint64 { return uint64(max(time.Since(bubbleBegin), 0)) }

// read is the time of a source, before a table's offset is added. Go has no cheaper clocks, so all sources but the
// wall clock are CLOCK_MONOTONIC.
func read(source uint64) uint64 {
	if source == wallClock {
		return wall()
	}
	return monotonic()
}

// utcOffset is this process's distance from CLOCK_MONOTONIC to UTC (offset); 0 if the system's clock is not set.
func utcOffset() uint64 {
	if known := distance.Load(); known != 0 {
		return known
	}
	distance.CompareAndSwap(0, offsetAt(monotonic(), wall()))
	return distance.Load()
}

// distance is the first one that this process has found. 0: not known yet.
var distance atomic.Uint64

// offsetAt is the distance if CLOCK_MONOTONIC says now while the system's clock says wall (offset_at).
func offsetAt(now, wall uint64) uint64 {
	if since := wall - timeZero; since < plausible {
		return since - now
	}
	return 0
}
