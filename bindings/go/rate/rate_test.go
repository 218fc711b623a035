package rate

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var t0 = time.Unix(1_700_000_000, 0)

func at(seconds float64) time.Time { return t0.Add(time.Duration(seconds * 1e9)) }

func TestBurstThenRate(t *testing.T) {
	l := NewLimiter(10, 3)
	for i, c := range []struct {
		at   float64
		n    int
		want bool
	}{{0, 1, true}, {0, 2, true}, {0, 1, false}, {0.0999, 1, false}, {0.1, 1, true}, {0.1, 1, false}, {9, 4, false}, {9, 3, true}, {9, 0, true}} {
		if got := l.AllowN(at(c.at), c.n); got != c.want {
			t.Errorf("call %d: AllowN(%v, %d) = %v", i, c.at, c.n, got)
		}
	}
}

func TestEdges(t *testing.T) {
	if l := NewLimiter(Inf, 0); !l.AllowN(t0, 1000) || !l.Allow() || l.Wait(context.Background()) != nil {
		t.Error("Inf refuses")
	}
	if l := NewLimiter(0, 2); !l.AllowN(at(0), 2) || l.AllowN(at(1e6), 1) {
		t.Error("a limit of 0 lets its burst pass and nothing more")
	}
	if l := NewLimiter(10, 0); l.AllowN(at(0), 1) || l.ReserveN(at(1), 1).OK() {
		t.Error("a burst of 0 lets something pass")
	}
	var zero Limiter
	if zero.Allow() || zero.Reserve().OK() {
		t.Error("the zero value lets something pass")
	}
	if Every(0) != Inf || Every(100*time.Millisecond) != 10 || Limit(math.MaxFloat64) != Inf {
		t.Error("Every")
	}
}

func TestReservationsLineUp(t *testing.T) {
	l := NewLimiter(10, 2)
	var reservations []*Reservation
	for i, want := range []time.Duration{0, 0, 100, 200, 300} {
		r := l.ReserveN(t0, 1)
		if !r.OK() || r.DelayFrom(t0) != want*time.Millisecond {
			t.Fatalf("reservation %d: %v", i, r.DelayFrom(t0))
		}
		reservations = append(reservations, r)
	}
	if tokens := l.TokensAt(t0); tokens != -3 {
		t.Errorf("%v tokens", tokens)
	}
	if d := reservations[4].DelayFrom(at(0.25)); d != 50*time.Millisecond {
		t.Errorf("later it is %v", d)
	}
	if d := reservations[4].DelayFrom(at(9)); d != 0 {
		t.Errorf("when it is over it is %v", d)
	}
	// The last gives back all, again and again nothing more than it took.
	reservations[4].CancelAt(t0)
	if tokens := l.TokensAt(t0); tokens != -2 {
		t.Errorf("%v tokens after the last was cancelled", tokens)
	}
	// One that is over gives back nothing.
	reservations[0].CancelAt(at(0.05))
	if tokens := l.TokensAt(at(0.05)); tokens != -1.5 {
		t.Errorf("%v tokens after the first was cancelled", tokens)
	}
	r := l.ReserveN(at(0.05), 3)
	if r.OK() || r.DelayFrom(t0) != InfDuration {
		t.Error("more than the burst is reserved")
	}
	r.CancelAt(t0)
	r.Cancel()
}

func TestCancelledFromTheLastAllComeBack(t *testing.T) {
	l := NewLimiter(1, 1)
	first, second := l.ReserveN(t0, 1), l.ReserveN(t0, 1)
	second.CancelAt(t0)
	first.CancelAt(t0)
	if tokens := l.TokensAt(t0); tokens != 1 {
		t.Errorf("%v tokens", tokens)
	}
	// Cancelling the first reservation gives back nothing, because the second already has its time.
	l = NewLimiter(1, 1)
	first = l.ReserveN(t0, 1)
	l.ReserveN(t0, 1)
	first.CancelAt(t0)
	if tokens := l.TokensAt(t0); tokens != -1 {
		t.Errorf("%v tokens", tokens)
	}
}

func TestSetLimitAndBurst(t *testing.T) {
	l := NewLimiter(1, 10)
	l.AllowN(t0, 10)
	l.SetLimitAt(at(2), 100) // two tokens by the old limit
	if tokens := l.TokensAt(at(2.01)); math.Abs(tokens-3) > 1e-6 {
		t.Errorf("%v tokens", tokens)
	}
	l.SetBurstAt(at(2.01), 2)
	if tokens := l.TokensAt(at(2.01)); tokens != 2 || l.Burst() != 2 || l.Limit() != 100 {
		t.Errorf("%v tokens, burst %d, limit %v", tokens, l.Burst(), l.Limit())
	}
	l.SetLimit(5)
	l.SetBurst(7)
	if l.Limit() != 5 || l.Burst() != 7 || l.Tokens() > 7 {
		t.Error("SetLimit and SetBurst")
	}
}

// Where times go back nothing is gained: x/time/rate admits a multiple of its rate here.
func TestOldTimesGainNothing(t *testing.T) {
	l := NewLimiter(1000, 1000)
	admitted := 0
	for i := range 100_000 { // a second, each second caller 10 ms late
		now := at(float64(i)/100_000 - float64(i%2)*0.01)
		for range 3 {
			if l.AllowN(now, 1) {
				admitted++
			}
		}
	}
	if admitted > 2000 || admitted < 1990 {
		t.Errorf("%d admitted in a second of burst and rate 1000", admitted)
	}
	// One who comes with an old time waits for the time of the tokens, too.
	l = NewLimiter(10, 1)
	l.AllowN(at(1), 1)
	if d := l.ReserveN(at(0.5), 1).DelayFrom(at(0.5)); d != 600*time.Millisecond {
		t.Errorf("a delay of %v", d)
	}
}

func TestManyGoroutinesStayInTheBound(t *testing.T) {
	l := NewLimiter(1e5, 100)
	start := time.Now()
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			// Longer where a busy machine has lost that time.
			for time.Since(start) < 100*time.Millisecond || admitted.Load() <= 100 && time.Since(start) < 30*time.Second {
				if l.AllowN(time.Now(), 1) {
					admitted.Add(1)
				}
				if l.Allow() {
					admitted.Add(1)
				}
			}
		}()
	}
	all.Wait()
	if most := 100 + 1e5*time.Since(start).Seconds() + 1; float64(admitted.Load()) > most {
		t.Errorf("%d admitted, at most %.0f may be", admitted.Load(), most)
	} else if admitted.Load() <= 100 {
		t.Errorf("only %d admitted", admitted.Load())
	}
}

func TestWait(t *testing.T) {
	l := NewLimiter(100, 1)
	start := time.Now()
	for range 4 {
		if err := l.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if waited := time.Since(start); waited < 29*time.Millisecond {
		t.Errorf("three tokens came in %v", waited)
	}

	// A deadline that cannot be kept is refused at once, and takes nothing.
	slow := NewLimiter(0.1, 1)
	slow.Allow()
	short, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	start = time.Now()
	if err := slow.Wait(short); err == nil || time.Since(start) > 2500*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	if tokens := slow.Tokens(); tokens < 0 {
		t.Errorf("%v tokens", tokens)
	}
	if slow.WaitN(context.Background(), 2) == nil {
		t.Error("more than the burst can be waited for")
	}

	// A Wait that is cancelled gives its permit back.
	ctx, stop := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, stop)
	if err := slow.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if tokens := slow.Tokens(); tokens < 0 {
		t.Errorf("%v tokens after it was cancelled", tokens)
	}
	if err := slow.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Made-up times may be centuries apart.
func TestCenturies(t *testing.T) {
	l := NewLimiter(1, 2)
	l.Allow()
	for _, year := range []int{1, 900, 1970, 9999} {
		day := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		if year > 1 && !l.AllowN(day, 2) {
			t.Errorf("year %d: the bucket is not full", year)
		}
		if year > 1 && (l.AllowN(day, 1) || !l.AllowN(day.Add(time.Second), 1)) {
			t.Errorf("year %d: not one a second", year)
		}
		if year == 1 {
			l = NewLimiter(1, 2)
			l.AllowN(day, 2)
		}
	}
}

func TestInstantsStopAtTheEnds(t *testing.T) {
	const most, least = instant(math.MaxInt64), instant(math.MinInt64)
	if most.add(1) != most || least.add(-1) != least || most.sub(least) != math.MaxInt64 || least.sub(most) != math.MinInt64 ||
		instant(5).add(-7) != -2 || instant(5).sub(7) != -2 {
		t.Error("an instant wraps")
	}
}

func TestSometimes(t *testing.T) {
	run := func(s *Sometimes, calls int) (done []int) {
		for i := range calls {
			s.Do(func() { done = append(done, i) })
		}
		return done
	}
	for _, c := range []struct {
		s    *Sometimes
		want []int
	}{
		{&Sometimes{}, []int{0}},
		{&Sometimes{First: 2}, []int{0, 1}},
		{&Sometimes{Every: 3}, []int{0, 3, 6, 9}},
		{&Sometimes{First: 3, Every: 4}, []int{0, 1, 2, 4, 8}},
		{&Sometimes{Interval: time.Hour}, []int{0}},
		{&Sometimes{Interval: 1}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
	} {
		got := run(c.s, 10)
		if len(got) != len(c.want) {
			t.Errorf("%v, want %v", got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%v, want %v", got, c.want)
				break
			}
		}
	}
}

func BenchmarkAllow(b *testing.B) {
	l := NewLimiter(1e9, 1e9)
	for range b.N {
		l.Allow()
	}
}
