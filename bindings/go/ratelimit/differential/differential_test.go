// Package differential makes the same calls of go.uber.org/ratelimit and github.com/juju/ratelimit and
// of the packages here that replace them, and compares all answers. It is a module of its own, so
// that nobody who uses tollbar depends on these.
package differential

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	theirJuju "github.com/juju/ratelimit"
	ourJuju "github.com/tollbar/tollbar/bindings/go/juju/ratelimit"
	ourUber "github.com/tollbar/tollbar/bindings/go/ratelimit"
	theirUber "go.uber.org/ratelimit"

	// The tests of both libraries, which ../upstream.sh runs, import these.
	_ "github.com/benbjohnson/clock"
	_ "github.com/stretchr/testify/assert"
	_ "go.uber.org/atomic"
	_ "gopkg.in/check.v1"
)

// manual is a clock that a sleep advances.
type manual struct{ now time.Time }

func (m *manual) Now() time.Time        { return m.now }
func (m *manual) Sleep(d time.Duration) { m.now = m.now.Add(d) }

var begin = time.Unix(1_700_000_000, 0)

// The rates divide their times, because go.uber.org/ratelimit rounds the time of one call.
func TestS49Uber(t *testing.T) {
	rates := []struct {
		rate int
		per  time.Duration
	}{{1, time.Second}, {4, time.Second}, {100, time.Second}, {8, time.Minute}, {1_000_000, time.Second}, {3,
		3 * time.Hour}}
	calls := 0
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		of := rates[random.IntN(len(rates))]
		theirClock, ourClock := &manual{begin}, &manual{begin}
		theirOptions := []theirUber.Option{theirUber.WithClock(theirClock), theirUber.Per(of.per)}
		ourOptions := []ourUber.Option{ourUber.WithClock(ourClock), ourUber.Per(of.per)}
		switch slack := random.IntN(20); {
		case slack == 0:
			theirOptions, ourOptions = append(theirOptions, theirUber.WithoutSlack), append(ourOptions,
				ourUber.WithoutSlack)
		case slack > 4:
			theirOptions, ourOptions = append(theirOptions, theirUber.WithSlack(slack)), append(ourOptions,
				ourUber.WithSlack(slack))
		}
		theirs, ours := theirUber.New(of.rate, theirOptions...), ourUber.New(of.rate, ourOptions...)
		one := int64(of.per) / int64(of.rate)
		for range 100 {
			if their, our := theirs.Take(), ours.Take(); !their.Equal(our) || theirClock.now != ourClock.now {
				t.Fatalf("seed %d, %d in %v: turn %v at %v, theirs %v at %v", seed, of.rate, of.per,
					our.Sub(begin), ourClock.now.Sub(begin), their.Sub(begin), theirClock.now.Sub(begin))
			}
			calls++
			if random.IntN(4) == 0 {
				idle := time.Duration(random.Int64N(30 * one))
				theirClock.Sleep(idle)
				ourClock.Sleep(idle)
			}
		}
	}
	t.Log(calls, "calls")
}

func TestS49Juju(t *testing.T) {
	calls := 0
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 1))
		interval := []time.Duration{1, 7, time.Microsecond, 250 * time.Millisecond, time.Hour}[random.IntN(5)]
		capacity, quantum := 1+random.Int64N(20), 1+random.Int64N(4)
		clock := &manual{begin}
		theirs := theirJuju.NewBucketWithQuantumAndClock(interval, capacity, quantum, clock)
		ours := ourJuju.NewBucketWithQuantumAndClock(interval, capacity, quantum, clock)
		same := func(what string, theirs, ours any) {
			t.Helper()
			if calls++; theirs != ours {
				t.Fatalf("seed %d, %s: %v, theirs %v", seed, what, ours, theirs)
			}
		}
		same("Capacity", theirs.Capacity(), ours.Capacity())
		same("Rate", theirs.Rate(), ours.Rate())
		for range 100 {
			count := random.Int64N(capacity+5) - 1
			most := time.Duration(random.Int64N(int64(interval) * 10))
			switch random.IntN(6) {
			case 0:
				same("Take", theirs.Take(count), ours.Take(count))
			case 1, 2:
				their, theirOK := theirs.TakeMaxDuration(count, most)
				our, ourOK := ours.TakeMaxDuration(count, most)
				same("TakeMaxDuration", their, our)
				same("TakeMaxDuration's bool", theirOK, ourOK)
			case 3:
				same("TakeAvailable", theirs.TakeAvailable(count), ours.TakeAvailable(count))
			case 4:
				before := clock.now
				theirOK := theirs.WaitMaxDuration(count, most)
				slept := clock.now
				clock.now = before
				same("WaitMaxDuration", theirOK, ours.WaitMaxDuration(count, most))
				same("WaitMaxDuration's sleep", slept, clock.now)
			default:
				clock.Sleep(time.Duration(random.Int64N(int64(interval)*6 + 1)))
			}
			same("Available", theirs.Available(), ours.Available())
		}
	}
	t.Log(calls, "calls")
}

// juju/ratelimit is up to 1 % off, and the replacement a millionth.
func TestJujuRate(t *testing.T) {
	for _, rate := range []float64{1e-5, 0.3, 1, 3, 7, 1e3, 999_999, 7e8, 1 << 30, 3e12, 4e18} {
		clock := &manual{begin}
		theirs, ours := theirJuju.NewBucketWithRateAndClock(rate, 10, clock).Rate(),
			ourJuju.NewBucketWithRateAndClock(rate, 10, clock).Rate()
		if off := math.Abs(ours-rate) / rate; off > 1e-6 || math.Abs(theirs-ours)/rate > 0.01 {
			t.Errorf("rate %v: %v, theirs %v", rate, ours, theirs)
		}
	}
}

func TestJujuReaderAndWriter(t *testing.T) {
	const text = "the quick brown fox jumps over the lazy dog"
	theirClock, ourClock := &manual{begin}, &manual{begin}
	theirs := theirJuju.NewBucketWithClock(time.Millisecond, 5, theirClock)
	ours := ourJuju.NewBucketWithClock(time.Millisecond, 5, ourClock)
	var theirCopy, ourCopy bytes.Buffer
	_, err := io.Copy(theirJuju.Writer(&theirCopy, theirs), theirJuju.Reader(strings.NewReader(text), theirs))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.Copy(ourJuju.Writer(&ourCopy, ours), ourJuju.Reader(strings.NewReader(text), ours)); err != nil {
		t.Fatal(err)
	}
	if theirCopy.String() != text || ourCopy.String() != text || theirClock.now != ourClock.now ||
		ourClock.now == begin {
		t.Errorf("%q after %v, theirs %q after %v", ourCopy.String(), ourClock.now.Sub(begin),
			theirCopy.String(), theirClock.now.Sub(begin))
	}
}
