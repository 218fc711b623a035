package differential

import (
	"testing"
	"time"

	theirJuju "github.com/juju/ratelimit"
	ourJuju "github.com/tollbar/tollbar/bindings/go/juju/ratelimit"
	ourUber "github.com/tollbar/tollbar/bindings/go/ratelimit"
	theirUber "go.uber.org/ratelimit"
)

// panics reports whether a call panics.
func panics(call func()) (did bool) {
	defer func() { did = recover() != nil }()
	call()
	return
}

// The table of differences from go.uber.org/ratelimit in docs/from-uber-ratelimit.md. The times are those in which a
// limiter lets 1001 calls pass.
func TestDifferencesFromUber(t *testing.T) {
	theirs := func(rate int, options ...theirUber.Option) time.Duration {
		clock := &manual{begin}
		l := theirUber.New(rate, append(options, theirUber.WithClock(clock))...)
		for range 1001 {
			l.Take()
		}
		return clock.now.Sub(begin)
	}
	ours := func(rate int, options ...ourUber.Option) time.Duration {
		clock := &manual{begin}
		l := ourUber.New(rate, append(options, ourUber.WithClock(clock))...)
		for range 1001 {
			l.Take()
		}
		return clock.now.Sub(begin)
	}
	for _, c := range []struct {
		what                         string
		theirs, ours                 time.Duration
		theirsExpected, oursExpected time.Duration
	}{
		{"7·10^8 a second", theirs(7e8), ours(7e8), 1000, 1429},
		{"2·10^9 a second", theirs(2e9), ours(2e9), 0, 500},
		{"2·10^10 a second", theirs(1, theirUber.Per(0)), ours(20, ourUber.Per(1)), 0, 0},
		{"a negative rate", theirs(-5), 0, 0, 0},
		{"Per of -1 s", theirs(5, theirUber.Per(-time.Second)), 0, 0, 0},
	} {
		if c.theirs != c.theirsExpected || c.ours != c.oursExpected {
			t.Errorf("%s: 1001 calls in %v, theirs in %v", c.what, c.ours, c.theirs)
		}
	}
	// A negative slack, after an idle hour.
	clock, ourClock := &manual{begin}, &manual{begin}
	their, our := theirUber.New(1, theirUber.WithSlack(-1), theirUber.WithClock(clock)), ourUber.New(1,
		ourUber.WithSlack(-1), ourUber.WithClock(ourClock))
	their.Take()
	our.Take()
	clock.Sleep(time.Hour)
	ourClock.Sleep(time.Hour)
	for range 3 {
		their.Take()
		our.Take()
	}
	if clock.now.Sub(begin) != time.Hour || ourClock.now.Sub(begin) != time.Hour+2*time.Second {
		t.Errorf("a slack of -1: after %v, theirs after %v", ourClock.now.Sub(begin), clock.now.Sub(begin))
	}
	if !panics(func() { theirUber.New(0) }) || !panics(func() { ourUber.New(0) }) {
		t.Error("a rate of 0 does not panic")
	}
}

// The table of differences from juju/ratelimit in docs/from-uber-ratelimit.md.
func TestDifferencesFromJuju(t *testing.T) {
	taken := func(available func(int64) int64, clock *manual) (sum int64) {
		for _, at := range []time.Duration{time.Hour, 0, time.Hour} {
			clock.now = begin.Add(at)
			if at == time.Hour && sum == 0 {
				// A full bucket sees the later time.
				available(0)
				continue
			}
			sum += available(10)
		}
		return sum
	}
	clock := &manual{begin}
	their := taken(theirJuju.NewBucketWithClock(time.Second, 10, clock).TakeAvailable, clock)
	clock.now = begin
	our := taken(ourJuju.NewBucketWithClock(time.Second, 10, clock).TakeAvailable, clock)
	if their != 20 || our != 10 {
		t.Errorf("a full bucket of 10 gives %d when the clock goes back and forth, theirs %d", our, their)
	}
	clock.now = begin
	theirs, ours := theirJuju.NewBucketWithClock(time.Hour, 1, clock), ourJuju.NewBucketWithClock(time.Hour, 1, clock)
	if their, our := theirs.Take(1<<40), ours.Take(1<<40); our != 1<<63-1 || their >= our {
		t.Errorf("2^40 hours are %v, theirs %v", our, their)
	}
	if !panics(func() { new(theirJuju.Bucket).Take(1) }) || panics(func() { new(ourJuju.Bucket).Take(1) }) {
		t.Error("zero values")
	}
}
