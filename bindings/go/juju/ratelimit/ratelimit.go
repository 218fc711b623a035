// Package ratelimit has the API of github.com/juju/ratelimit and its documented behaviour: a program
// only changes the import. It is pure Go.
//
// It differs where a shared bucket would give more than its rate: a call with an older time than
// another call does not set the bucket's time back. And [NewBucketWithRate] is exact to a millionth,
// where juju/ratelimit may be 1 % off.
package ratelimit

import (
	"fmt"
	"math"
	"math/bits"
	"sync"
	"time"
)

// Clock is a clock of the caller, such as a mock.
type Clock interface {
	Now() time.Time
	Sleep(time.Duration)
}

// Bucket is a token bucket that gets quantum tokens at the end of each fill interval. The zero value
// is empty and stays so. Any number of goroutines may use it at once; it must not be copied.
type Bucket struct {
	clock    Clock
	began    time.Time
	interval time.Duration
	quantum  int64
	capacity int64

	mu sync.Mutex
	// Tokens at the begin of the interval tick. Below 0 if callers wait for tokens.
	tokens int64
	tick   int64
}

// NewBucket makes a full bucket that gets a token each fillInterval and holds at most capacity. It
// panics if one of them is not positive: its signature has no error.
func NewBucket(fillInterval time.Duration, capacity int64) *Bucket {
	return NewBucketWithQuantumAndClock(fillInterval, capacity, 1, nil)
}

// NewBucketWithClock is [NewBucket] with a clock of the caller; nil is the system's.
func NewBucketWithClock(fillInterval time.Duration, capacity int64, clock Clock) *Bucket {
	return NewBucketWithQuantumAndClock(fillInterval, capacity, 1, clock)
}

// NewBucketWithRate makes a full bucket of capacity tokens that refills at rate tokens a second. The
// bucket's own rate differs from rate by at most a millionth of it. NewBucketWithRate panics if rate
// is not above 0, or so small or large that no bucket comes that near to it.
func NewBucketWithRate(rate float64, capacity int64) *Bucket {
	return NewBucketWithRateAndClock(rate, capacity, nil)
}

// NewBucketWithRateAndClock is [NewBucketWithRate] with a clock of the caller; nil is the system's.
func NewBucketWithRateAndClock(rate float64, capacity int64, clock Clock) *Bucket {
	interval, quantum, ok := fills(rate)
	if !ok {
		panic(fmt.Sprintf("no bucket has a rate of %v tokens a second", rate))
	}
	return NewBucketWithQuantumAndClock(interval, capacity, quantum, clock)
}

// NewBucketWithQuantum is [NewBucket] with quantum tokens each fillInterval.
func NewBucketWithQuantum(fillInterval time.Duration, capacity, quantum int64) *Bucket {
	return NewBucketWithQuantumAndClock(fillInterval, capacity, quantum, nil)
}

// NewBucketWithQuantumAndClock is [NewBucketWithQuantum] with a clock of the caller; nil is the
// system's.
func NewBucketWithQuantumAndClock(fillInterval time.Duration, capacity, quantum int64, clock Clock) *Bucket {
	switch {
	case fillInterval <= 0:
		panic("token bucket fill interval is not > 0")
	case capacity <= 0:
		panic("token bucket capacity is not > 0")
	case quantum <= 0:
		panic("token bucket quantum is not > 0")
	}
	b := &Bucket{clock: clock, interval: fillInterval, quantum: quantum, capacity: capacity, tokens: capacity}
	b.began = b.now()
	return b
}

// Take takes count tokens at once, and returns how long the caller must wait before it uses them. If
// the bucket holds fewer, Take takes tokens of the future. The caller cannot give them back. A count
// below 1 takes nothing.
func (b *Bucket) Take(count int64) time.Duration {
	wait, _ := b.takeAt(b.now(), count, forever)
	return wait
}

// TakeMaxDuration is [Bucket.Take] if the time is at most maxWait. Otherwise it takes nothing and
// reports false.
func (b *Bucket) TakeMaxDuration(count int64, maxWait time.Duration) (time.Duration, bool) {
	return b.takeAt(b.now(), count, maxWait)
}

// TakeAvailable takes the tokens that are there, count at the most, and returns their number.
func (b *Bucket) TakeAvailable(count int64) int64 { return b.takeAvailableAt(b.now(), count) }

// Wait takes count tokens, and sleeps until they have come.
func (b *Bucket) Wait(count int64) { b.WaitMaxDuration(count, forever) }

// WaitMaxDuration is [Bucket.Wait] if the sleep is at most maxWait. Otherwise it takes nothing and
// reports false at once.
func (b *Bucket) WaitMaxDuration(count int64, maxWait time.Duration) bool {
	wait, ok := b.takeAt(b.now(), count, maxWait)
	switch {
	case wait <= 0:
	case b.clock != nil:
		b.clock.Sleep(wait)
	default:
		time.Sleep(wait)
	}
	return ok
}

// Available returns the number of tokens that are there, for people and metrics. It is below 0 while
// callers wait for tokens.
func (b *Bucket) Available() int64 { return b.availableAt(b.now()) }

// Capacity returns the most tokens that the bucket holds.
func (b *Bucket) Capacity() int64 { return b.capacity }

// Rate returns the tokens a second; 0 for the zero value.
func (b *Bucket) Rate() float64 {
	if b.interval == 0 {
		return 0
	}
	return float64(b.quantum) * 1e9 / float64(b.interval)
}

// String describes the bucket for people.
func (b *Bucket) String() string {
	return fmt.Sprintf("ratelimit.Bucket(%d each %v, %d of %d)", b.quantum, b.interval, b.Available(), b.capacity)
}

// forever is a wait that never ends.
const forever time.Duration = math.MaxInt64

func (b *Bucket) now() time.Time {
	if b.clock == nil {
		return time.Now()
	}
	return b.clock.Now()
}

func (b *Bucket) takeAt(now time.Time, count int64, most time.Duration) (wait time.Duration, ok bool) {
	if count <= 0 {
		return 0, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	elapsed := b.advance(now)
	if b.interval == 0 || b.tokens < math.MinInt64+count {
		// The tokens never come.
		return never(most)
	}
	tokens := b.tokens - count
	if tokens < 0 {
		if wait = b.until(tokens, elapsed); wait > most {
			return 0, false
		}
	}
	b.tokens = tokens
	return wait, true
}

// never is the answer about tokens that never come.
func never(most time.Duration) (time.Duration, bool) {
	if most < forever {
		return 0, false
	}
	return forever, true
}

// until returns the time from elapsed to the end of the interval that pays the tokens below 0.
func (b *Bucket) until(tokens int64, elapsed time.Duration) time.Duration {
	owed, quantum := -uint64(tokens), uint64(b.quantum)
	ticks, carry := bits.Add64(owed/quantum, uint64(b.tick), 0)
	if owed%quantum != 0 {
		ticks++
	}
	high, end := bits.Mul64(ticks, uint64(b.interval))
	if carry != 0 || high != 0 || end-uint64(elapsed) > math.MaxInt64 {
		return forever
	}
	return time.Duration(end - uint64(elapsed))
}

func (b *Bucket) takeAvailableAt(now time.Time, count int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	taken := max(min(count, b.tokens), 0)
	b.tokens -= taken
	return taken
}

func (b *Bucket) availableAt(now time.Time) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	return b.tokens
}

// advance adds the tokens that have come, and returns the time since the bucket began. A time before
// that of another call adds nothing.
func (b *Bucket) advance(now time.Time) (elapsed time.Duration) {
	elapsed = max(now.Sub(b.began), 0)
	if b.interval == 0 {
		return elapsed
	}
	tick := int64(elapsed / b.interval)
	if tick <= b.tick {
		return elapsed
	}
	lacking := uint64(b.capacity) - uint64(b.tokens)
	if high, come := bits.Mul64(uint64(tick-b.tick), uint64(b.quantum)); high != 0 || come >= lacking {
		b.tokens = b.capacity
	} else {
		b.tokens += int64(come)
	}
	b.tick = tick
	return elapsed
}

// rateMargin is the relative error of a rate.
const rateMargin = 1e-6

// fills returns an interval in whole nanoseconds, and the tokens that come in it, for a rate. It
// tries the quanta 1 to 64, and then their doubles.
func fills(rate float64) (interval time.Duration, quantum int64, ok bool) {
	if !(rate > 0) {
		return 0, 0, false
	}
	for quantum = 1; quantum > 0; quantum = next(quantum) {
		ns := math.Round(1e9 * float64(quantum) / rate)
		if ns >= math.MaxInt64 {
			return 0, 0, false
		}
		if ns >= 1 && math.Abs(1e9*float64(quantum)/ns-rate) <= rateMargin*rate {
			return time.Duration(ns), quantum, true
		}
	}
	return 0, 0, false
}

// next returns 0 after 2^62.
func next(quantum int64) int64 {
	if quantum < 64 {
		return quantum + 1
	}
	return max(quantum*2, 0)
}
