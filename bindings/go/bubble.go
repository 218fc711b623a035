//go:build cgo || tollbar_purego

package tollbar

import (
	"os"
	"strings"
	"time"
)

// The C library reads the system's clocks. A bubble of testing/synctest has a clock of its own, so
// a call from a bubble passes the bubble's time to C. Only programs that `go test` has built check
// for a bubble.

// bubbleBegin is the time at which every bubble's clock begins.
var bubbleBegin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// bubbleMost is shorter than the time from bubbleBegin to today. A clock beyond it is the system's.
const bubbleMost = 20 * 365 * 24 * time.Hour

var isTest = isTestProgram(os.Args)

// isTestProgram reports whether `go test` has built the program that has these arguments. It
// returns false for benchmarks, which would measure the check for a bubble, too.
func isTestProgram(arguments []string) bool {
	found := false
	for n, argument := range arguments {
		if strings.HasPrefix(argument, "-test.bench") {
			return false
		}
		name := strings.TrimSuffix(argument, ".exe")
		found = found || n == 0 && strings.HasSuffix(name, ".test") || strings.HasPrefix(argument, "-test.")
	}
	return found
}

// bubbleTime returns the nanoseconds since the clock of the calling goroutine's bubble began. It
// returns false if the goroutine is in no bubble.
func bubbleTime() (uint64, bool) {
	if !isTest {
		return 0, false
	}
	passed := time.Since(bubbleBegin)
	return uint64(max(passed, 0)), passed >= 0 && passed < bubbleMost
}

// timeOf returns the time to pass to C. If at is true, the caller has given the time now.
// Otherwise, in a bubble, it is the bubble's time. It returns false if C is to read its own clock.
func timeOf(at bool, now uint64) (bool, uint64) {
	if bubble, ok := bubbleTime(); ok && !at {
		return true, bubble
	}
	return at, now
}

// given returns the time of the option Time, or of the goroutine's bubble. It returns false if C is
// to read the limiter's clock.
func (l *Limiter) given() (uint64, bool) {
	if l.time != nil {
		return l.TimeOf(l.time()), true
	}
	return bubbleTime()
}

// timeOf is the function of that name for a limiter that may have the option Time.
func (l *Limiter) timeOf(at bool, now uint64) (bool, uint64) {
	if own, ok := l.given(); ok && !at {
		return true, own
	}
	return at, now
}
