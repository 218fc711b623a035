// Package cell is a token bucket in one 64-bit word, in Go alone.
//
// It steps the state word that tollbar publishes (docs/internals/state-word.md) and gives the same
// decisions as the C library, to the bit, on the same word too. A decision is an atomic load and a
// compare-and-swap; a refusal writes nothing.
//
//	var perUser, _ = cell.New(5, time.Minute, 3) // 5 a minute, at most 3 at once
//
//	type user struct{ logins cell.Cell } // the zero value is fresh
//
//	if !u.logins.Allow(perUser, cell.Now()) {
//		return errTryLater
//	}
//
// Times are nanoseconds of any one clock from its zero on, up to the policy's last time
// ([Policy.LastTime], 73 years for all but the fastest policies); later times admit nothing. All
// calls on a cell come with one policy and one clock. Time may go back between calls or goroutines:
// that never admits more.
package cell

import (
	"math"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

// Forever means that no wait would help, or that the wait is longer than 292 years.
const Forever = time.Duration(math.MaxInt64)

// Verdict says whether a request may pass. In the results of a batch a negative verdict is an
// error's number.
type Verdict int32

const (
	// Allowed: the request may pass, and its cost has been charged.
	Allowed Verdict = 0
	// Denied: the request is refused now. Nothing has been charged.
	Denied Verdict = 1
	// Never: the request can never pass, because its cost is above the burst. Nothing has been
	// charged.
	Never Verdict = 2
)

// String is "allowed", "denied", "never", or the number of an error.
func (v Verdict) String() string {
	switch v {
	case Allowed:
		return "allowed"
	case Denied:
		return "denied"
	case Never:
		return "never"
	}
	return "error " + strconv.Itoa(int(v))
}

// Decision is a full decision.
type Decision struct {
	Verdict Verdict
	// Reason is the reason of the verdict.
	Reason Reason
	// Remaining permits that could be taken at this instant, after this decision.
	Remaining uint64
	// RetryAfter is the time until the same request would pass if no other request came first,
	// exact to the nanosecond. 0 if it passed, and [Forever] if no wait would help.
	RetryAfter time.Duration
	// ResetAfter is the time until the state is as good as fresh if no other request comes first,
	// or [Forever].
	ResetAfter time.Duration
	// Bound is the policy of a list that bound, from 0: of a refusal the one with the longest wait,
	// and of an admission the one with the fewest permits left. 0 without a list.
	Bound int
}

// Allowed says whether the request may pass.
func (d Decision) Allowed() bool { return d.Verdict == Allowed }

// Cell is the state of one token bucket. The zero value is fresh. Any number of goroutines may use
// it at once; it must not be copied after its first use.
type Cell struct {
	word atomic.Uint64
}

// Of returns the cell in a word of the caller, for example in mapped memory that is shared with
// programs that use the C library's tollbar_cell calls. These programs must use an equal policy,
// and times of the same clock.
func Of(word *uint64) *Cell { return (*Cell)(unsafe.Pointer(word)) }

// start is this process's zero of Now.
var start = time.Now()

// Now returns a time for the calls of this package: nanoseconds since this process began, by the
// monotonic clock. (A cell that several processes use needs a clock that they share.) In a bubble
// of testing/synctest it is the bubble's time.
func Now() uint64 {
	if since := time.Since(start); since >= 0 {
		return uint64(since)
	}
	return uint64(max(time.Since(bubbleBegin), 0))
}

// bubbleBegin is the time at which the clock of each bubble of testing/synctest begins.
var bubbleBegin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Allow takes one permit at time now, in nanoseconds. False: refused.
func (c *Cell) Allow(p *Policy, now uint64) bool { return c.AllowN(p, now, 1) }

// AllowN takes n permits at time now, in nanoseconds, or none. False: refused. n of 0 takes nothing
// and is allowed.
func (c *Cell) AllowN(p *Policy, now, n uint64) bool {
	word := c.word.Load()
	for {
		// The usual case in few steps: 0 < n <= burst, a time that is not after the last, and a
		// bucket that has been started.
		if n-1 >= p.bucket.Burst || now > p.bucket.Last || word < p.started {
			verdict, _ := core.Take(&c.word, p.rule, now, n)
			return verdict == core.Allowed
		}
		clock := p.bucket.Grid.UnitsInTime(now)
		// n <= burst: the charge is at most the tolerance, so nothing here wraps before the last
		// time.
		charge := n * p.bucket.Grid.PerPermit
		if word > clock+p.bucket.Tolerance-charge {
			return false
		}
		if c.word.CompareAndSwap(word, max(word, clock)+charge) {
			return true
		}
		word = c.word.Load()
	}
}

// Check takes n permits at time now, in nanoseconds, and returns the full decision. An n of 0
// charges nothing.
func (c *Cell) Check(p *Policy, now, n uint64) Decision {
	verdict, word := core.Take(&c.word, p.rule, now, n)
	return p.describe(verdict, word, now, n)
}

// Peek returns what [Cell.Check] would return, and changes nothing.
func (c *Cell) Peek(p *Policy, now, n uint64) Decision {
	word := c.word.Load()
	return p.describe(p.rule.Step(word, now, n).Verdict, word, now, n)
}

// TakeUpTo takes all permits that are left at time now, most at the most, and returns their number.
func (c *Cell) TakeUpTo(p *Policy, now, most uint64) uint64 {
	return core.TakeUpTo(&c.word, p.rule, now, most)
}

// Reserve takes n permits ahead of time. If ok, the caller must act wait after now, not earlier. It
// is not ok and charges nothing if that would be longer than patience or if n is above the burst. n
// of 0 takes nothing and departs now.
func (c *Cell) Reserve(p *Policy, now, n uint64, patience time.Duration) (wait time.Duration, ok bool) {
	if n == 0 {
		return 0, true
	}
	if patience < 0 {
		return 0, false
	}
	latest := uint64(math.MaxUint64)
	if sum := now + uint64(patience); patience != Forever && sum >= now {
		latest = sum
	}
	at, ok := core.Reserve(&c.word, p.rule, now, n, latest, func() {})
	if !ok {
		return 0, false
	}
	return time.Duration(at - now), true
}

// Reset makes the cell fresh. Admissions in the same instant may survive it.
func (c *Cell) Reset() { c.word.Store(0) }

// Word returns the state. It may be stored or sent, and put into a cell again with [Cell.SetWord].
func (c *Cell) Word() uint64 { return c.word.Load() }

// SetWord sets the state to one that [Cell.Word] returned.
func (c *Cell) SetWord(word uint64) { c.word.Store(word) }
