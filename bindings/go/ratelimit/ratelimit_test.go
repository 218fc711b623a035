package ratelimit_test

import (
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	tollbar "github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/ratelimit"
)

// manual is a clock that a sleep advances.
type manual struct {
	mu  sync.Mutex
	now time.Time
}

func (m *manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *manual) Sleep(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
}

var begin = time.Unix(1_700_000_000, 0)

// turns are the times of so many calls of Take after begin.
func turns(l ratelimit.Limiter, calls int) (times []time.Duration) {
	for range calls {
		times = append(times, l.Take().Sub(begin))
	}
	return times
}

// Idle time adds the slack and no more.
func TestSlack(t *testing.T) {
	for _, c := range []struct {
		option ratelimit.Option
		slack  int
	}{{ratelimit.WithoutSlack, 0}, {ratelimit.WithSlack(3), 3}, {ratelimit.WithSlack(-1), 0},
		{ratelimit.Per(time.Second), 10}} {
		clock := &manual{now: begin}
		l := ratelimit.New(100, c.option, ratelimit.WithClock(clock))
		if got := turns(l, 2); got[0] != 0 || got[1] != 10*time.Millisecond {
			t.Errorf("slack %d: the first calls at %v", c.slack, got)
		}
		clock.Sleep(time.Hour)
		idle := clock.now.Sub(begin)
		for i, at := range turns(l, c.slack+3) {
			if want := idle + time.Duration(max(i-c.slack, 0))*10*time.Millisecond; at != want {
				t.Errorf("slack %d: call %d after the idle time at %v, not at %v", c.slack, i, at, want)
			}
		}
	}
}

// docs/from-uber-ratelimit.md: a limiter with a burst of the slack and one, and one permit at first, gives the same
// turns.
func TestPolicyOfALimiter(t *testing.T) {
	clock := &manual{now: begin}
	l := ratelimit.New(100, ratelimit.WithClock(clock))
	limiter, err := tollbar.NewLimiter("100/s burst 11 init 1", tollbar.WithTime(clock.Now))
	if err != nil {
		t.Fatal(err)
	}
	for _, idle := range []time.Duration{0, 0, 0, time.Hour, 0, 45 * time.Millisecond, 0, 0, 0, 0, time.Second, 0, 0,
		0} {
		clock.Sleep(idle)
		now := clock.Now()
		booked, err := limiter.Reserve(1, tollbar.Forever)
		if at := l.Take(); err != nil || now.Add(booked.Wait) != at {
			t.Errorf("a turn at %v, and a reservation for %v (%v)", at.Sub(begin), now.Add(booked.Wait).Sub(begin), err)
		}
	}
}

// The rate is exact where the time of a call is no whole number of nanoseconds.
func TestExactRate(t *testing.T) {
	clock := &manual{now: begin}
	l := ratelimit.New(700_000_000, ratelimit.WithoutSlack, ratelimit.WithClock(clock))
	var last time.Duration
	for range 700_001 {
		last = l.Take().Sub(begin)
	}
	if last != time.Millisecond {
		t.Errorf("call 700,001 of 7·10^8 a second at %v", last)
	}
}

// A time that goes back makes no turn earlier than the rate allows.
func TestTimeGoesBack(t *testing.T) {
	clock := &manual{now: begin}
	l := ratelimit.New(10, ratelimit.WithClock(clock))
	turns(l, 5)
	last := clock.now
	clock.now = begin.Add(-time.Hour)
	if at := l.Take(); at.Before(last.Add(100 * time.Millisecond)) {
		t.Errorf("a turn at %v after one at %v", at.Sub(begin), last.Sub(begin))
	}
}

// No two of the goroutines get turns that are closer than the rate.
func TestGoroutines(t *testing.T) {
	l := ratelimit.New(1_000_000, ratelimit.WithoutSlack, ratelimit.WithClock(&manual{now: begin}))
	seen := map[time.Time]bool{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 1000 {
				at := l.Take()
				mu.Lock()
				if seen[at] || at.Sub(begin)%time.Microsecond != 0 {
					t.Errorf("a second turn at %v, or one between turns", at.Sub(begin))
				}
				seen[at] = true
				mu.Unlock()
			}
		}()
	}
	all.Wait()
}

func TestEdges(t *testing.T) {
	clock := &manual{now: begin}
	for name, l := range map[string]ratelimit.Limiter{
		"unlimited":               ratelimit.NewUnlimited(),
		"a rate above all clocks": ratelimit.New(math.MaxInt, ratelimit.WithClock(clock), ratelimit.Per(1)),
	} {
		for range 1000 {
			l.Take()
		}
		if clock.now != begin {
			t.Errorf("%s: sleeps", name)
		}
	}
	// More slack than decades of idle time bring.
	l := ratelimit.New(1, ratelimit.Per(time.Hour), ratelimit.WithSlack(math.MaxInt32), ratelimit.WithClock(clock))
	if got := turns(l, 2); got[1] != time.Hour {
		t.Errorf("with a huge slack at %v", got)
	}
	// The second of two calls that are 292 years apart.
	rare := &manual{now: begin}
	l = ratelimit.New(1, ratelimit.Per(math.MaxInt64), ratelimit.WithClock(rare))
	if got := turns(l, 2); got[0] != 0 || got[1] < 100*365*24*time.Hour || rare.now.Sub(begin) != got[1] {
		t.Errorf("one call in 292 years: the first ones at %v", got)
	}
	if at := ratelimit.New(1, ratelimit.WithClock(nil)).Take(); time.Since(at) < 0 {
		t.Errorf("the first turn of the system's clock at %v", at)
	}
	for _, c := range []struct {
		rate int
		per  time.Duration
		says string
	}{{0, time.Second, "rate 0"}, {-1, time.Second, "rate -1"}, {1, 0, "Per(0s)"}, {1, -1, "Per(-1ns)"}} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, c.says+"; expected") {
					t.Errorf("New(%d, Per(%v)): %q", c.rate, c.per, text)
				}
			}()
			ratelimit.New(c.rate, ratelimit.Per(c.per))
		}()
	}
}
