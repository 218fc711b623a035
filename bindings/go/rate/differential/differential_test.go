// Package differential makes the same calls of golang.org/x/time/rate and of the package rate and
// compares all answers. It is a module of its own, so that nobody who uses tollbar depends on the
// former.
package differential

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	ours "github.com/tollbar/tollbar/bindings/go/rate"
	theirs "golang.org/x/time/rate"
)

// both is a limiter of each, and the reservations made so far.
type both struct {
	theirs       *theirs.Limiter
	ours         *ours.Limiter
	reservations []reservation
}

type reservation struct {
	theirs *theirs.Reservation
	ours   *ours.Reservation
}

var limits = []float64{0, 1, 0.5, 3, 10, 1000, 1e6, 2.5e9, 1.0 / 3, 7.77, float64(theirs.Inf), -1}

func newBoth(random *rand.Rand) *both {
	limit, burst := limits[random.IntN(len(limits))], random.IntN(12)-1
	return &both{theirs: theirs.NewLimiter(theirs.Limit(limit), burst), ours: ours.NewLimiter(ours.Limit(limit), burst)}
}

func (b *both) step(t *testing.T, random *rand.Rand, now time.Time) {
	t.Helper()
	same := func(what string, theirs, ours any) {
		t.Helper()
		if theirs != ours {
			t.Fatalf("%s at %v: %v, theirs %v", what, now, ours, theirs)
		}
	}
	n := random.IntN(5)
	switch random.IntN(12) {
	case 0:
		limit := limits[random.IntN(len(limits))]
		b.theirs.SetLimitAt(now, theirs.Limit(limit))
		b.ours.SetLimitAt(now, ours.Limit(limit))
	case 1:
		burst := random.IntN(12)
		b.theirs.SetBurstAt(now, burst)
		b.ours.SetBurstAt(now, burst)
	case 2, 3, 4:
		same("AllowN", b.theirs.AllowN(now, n), b.ours.AllowN(now, n))
	case 5, 6, 7:
		r := reservation{b.theirs.ReserveN(now, n), b.ours.ReserveN(now, n)}
		same("OK", r.theirs.OK(), r.ours.OK())
		same("DelayFrom", r.theirs.DelayFrom(now), r.ours.DelayFrom(now))
		b.reservations = append(b.reservations, r)
	case 8, 9, 10:
		if len(b.reservations) > 0 {
			// One of the six latest: earlier reservations are in the past, so a cancellation
			// returns nothing.
			r := b.reservations[len(b.reservations)-1-random.IntN(min(6, len(b.reservations)))]
			same("DelayFrom", r.theirs.DelayFrom(now), r.ours.DelayFrom(now))
			r.theirs.CancelAt(now)
			r.ours.CancelAt(now)
		}
	}
	same("TokensAt", b.theirs.TokensAt(now), b.ours.TokensAt(now))
	same("Limit", float64(b.theirs.Limit()), float64(b.ours.Limit()))
	same("Burst", b.theirs.Burst(), b.ours.Burst())
}

// Times that do not go back: there both say the same, to the last bit of a float.
func TestRandomCalls(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		b := newBoth(random)
		now := []time.Time{time.Now(), time.Unix(0, 0), time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC)}[seed%3]
		for range 100 {
			switch random.IntN(4) {
			case 0:
				now = now.Add(time.Duration(random.Int64N(int64(3 * time.Second))))
			case 1:
				now = now.Add(time.Duration(random.Int64N(int64(time.Millisecond))))
			case 2:
				now = now.Add(time.Duration(random.Int64N(50)))
			}
			b.step(t, random, now)
		}
	}
}

func TestEvery(t *testing.T) {
	for _, interval := range []time.Duration{-1, 0, 1, 3, time.Millisecond, 7 * time.Second, time.Hour, 1<<63 - 1} {
		if a, b := theirs.Every(interval), ours.Every(interval); float64(a) != float64(b) {
			t.Errorf("Every(%v) = %v, theirs %v", interval, b, a)
		}
	}
	if float64(theirs.Inf) != float64(ours.Inf) || theirs.InfDuration != ours.InfDuration {
		t.Error("the constants differ")
	}
}

// The error texts of Wait are equal, because people search logs for them.
func TestWaitErrors(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	short, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, c := range []struct {
		ctx   context.Context
		limit float64
		burst int
		n     int
	}{{ended, 1, 1, 1}, {ended, 1, 1, 2}, {short, 0.01, 5, 6}, {short, float64(theirs.Inf), 0, 6}, {short, 0.01, 5, 5}} {
		a, b := theirs.NewLimiter(theirs.Limit(c.limit), c.burst), ours.NewLimiter(ours.Limit(c.limit), c.burst)
		for i := range 2 {
			x, y := a.WaitN(c.ctx, c.n), b.WaitN(c.ctx, c.n)
			if (x == nil) != (y == nil) || x != nil && x.Error() != y.Error() {
				t.Errorf("%+v, call %d: %v, theirs %v", c, i, y, x)
			}
		}
	}
}

func TestZeroValues(t *testing.T) {
	var a theirs.Limiter
	var b ours.Limiter
	if x, y := a.Allow(), b.Allow(); x != y {
		t.Errorf("Allow: %v, theirs %v", y, x)
	}
	if x, y := a.Reserve().OK(), b.Reserve().OK(); x != y {
		t.Errorf("Reserve: %v, theirs %v", y, x)
	}
	now := time.Now()
	a.SetBurstAt(now, 3)
	b.SetBurstAt(now, 3)
	a.SetLimitAt(now, 1)
	b.SetLimitAt(now, 1)
	later := now.Add(1500 * time.Millisecond)
	if x, y := a.TokensAt(later), b.TokensAt(later); x != y {
		t.Errorf("TokensAt: %v, theirs %v", y, x)
	}
}

func TestSometimes(t *testing.T) {
	for _, f := range []struct{ first, every int }{{0, 0}, {3, 0}, {0, 4}, {2, 3}, {1, 1}, {-1, -2}} {
		a, b := theirs.Sometimes{First: f.first, Every: f.every}, ours.Sometimes{First: f.first, Every: f.every}
		for i := range 30 {
			var x, y int
			a.Do(func() { x++ })
			b.Do(func() { y++ })
			if x != y {
				t.Errorf("%+v, call %d: %d, theirs %d", f, i, y, x)
			}
		}
	}
}
