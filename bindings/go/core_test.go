//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/internal/core"
)

// The Go core (internal/core), which a program without the library uses, beside the C library, on
// the same requests.

// both is a limiter in C and one in Go, under one policy.
type both struct {
	text string
	c    *tollbar.Limiter
	g    *core.Limiter
	// Nanoseconds in which time moves on, and the policy's limit and burst.
	span, limit, burst uint64
	booked             []tollbar.Reservation
	last               uint64
}

func newBoth(t testing.TB, text string) *both {
	t.Helper()
	policy, algorithm, wrong := core.Parse(text)
	if wrong != nil {
		t.Fatalf("%s: %+v", text, wrong)
	}
	c, err := tollbar.NewLimiter(text)
	if err != nil {
		t.Fatal(err)
	}
	last, err := c.Policy().LastTime()
	if err != nil || last != algorithm.LastTime() {
		t.Fatalf("%s: the last time is %d in Go, and %d in C (%v)", text, algorithm.LastTime(), last, err)
	}
	return &both{
		text: text, c: c, g: core.NewLimiter(algorithm), span: min(policy.Period, uint64(1<<56)),
		limit: max(policy.Limit, 1), burst: policy.Burst,
		last: last,
	}
}

func wait(ns uint64) time.Duration {
	if ns > math.MaxInt64 {
		return tollbar.Forever
	}
	return time.Duration(ns)
}

func decision(a core.Answer) tollbar.Decision {
	return tollbar.Decision{
		Verdict: tollbar.Verdict(a.Verdict), Reason: tollbar.Reason(a.Reason), Remaining: a.Remaining,
		RetryAfter: wait(a.RetryAfter),
		ResetAfter: wait(a.ResetAfter),
	}
}

// step makes one random call on both sides and compares the results, and then what a peek shows of
// the states.
func (b *both) step(t *testing.T, random *rand.Rand, now uint64) {
	t.Helper()
	n := uint64(1)
	switch random.IntN(8) {
	case 0:
		n = random.Uint64N(min(b.burst, math.MaxUint64-2) + 2)
	case 1:
		n = 0
	case 2:
		n = []uint64{b.burst, b.burst + 1, math.MaxUint64, math.MaxUint64 / 2}[random.IntN(4)]
	}
	same := func(call string, c, g any) {
		t.Helper()
		if c != g {
			t.Fatalf("%s: %s(%d, %d) = %+v, in C %+v", b.text, call, now, n, g, c)
		}
	}
	switch random.IntN(12) {
	default:
		c, err := b.c.CheckAt(now, n)
		if err != nil {
			t.Fatal(err)
		}
		same("Check", c, decision(b.g.Check(now, n)))
	case 0, 1, 2:
		same("Take", tollbar.AllowNanos(b.c, now, n), b.g.Take(now, n) == core.Allowed)
	case 3:
		c, _ := b.c.TakeUpToAt(now, n)
		same("TakeUpTo", c, b.g.TakeUpTo(now, n))
	case 4:
		patience := random.Uint64N(2*b.span + 1)
		c, err := b.c.ReserveAt(now, n, time.Duration(patience))
		at, verdict := b.g.Reserve(now, n, now+min(patience, math.MaxUint64-now))
		code := tollbar.Code(0)
		errors.As(err, &code)
		same("Reserve", code, tollbar.Code(verdict))
		if err == nil {
			same("Reserve", c.Departs, at)
			b.booked = append(b.booked, c)
		}
	case 5:
		if random.IntN(4) == 0 {
			c, _ := b.c.ChargeAt(now, n)
			same("Charge", c, b.g.Charge(now, n))
		}
	case 6:
		if len(b.booked) != 0 {
			// A later time than any before: giving back reads the clock.
			i := len(b.booked) - 1 - random.IntN(2)*random.IntN(len(b.booked))
			last := b.booked[i]
			b.booked = slices.Delete(b.booked, i, i+1)
			c, err := b.c.CancelAt(now, last)
			if err != nil {
				t.Fatal(err)
			}
			same("GiveBack", c, b.g.GiveBack(core.Charge{At: last.Departs, Cost: last.Cost},
				func() uint64 { return now }))
		}
	}
	c, _ := b.c.PeekAt(now, n)
	same("Peek", c, decision(b.g.Peek(now, n)))
}

// trace makes steps random calls at times that mostly go on.
func (b *both) trace(t *testing.T, random *rand.Rand, now uint64, steps int) {
	t.Helper()
	for range steps {
		switch random.IntN(20) {
		case 0:
			now += random.Uint64N(2*b.span + 1)
		case 1: // time goes back
			now -= min(now, random.Uint64N(b.span/b.limit+2))
		case 2: // around and beyond the last time
			if random.IntN(100) == 0 {
				now = []uint64{b.last - 1, b.last, b.last + 1, math.MaxUint64 - random.Uint64N(1<<62)}[random.IntN(4)]
			}
		default:
			now += random.Uint64N(2*b.span/b.limit + 2)
		}
		b.step(t, random, now)
		if now > 1<<62 {
			now = random.Uint64N(1 << 60)
			b.c.Reset()
			b.g.Reset()
			b.booked = nil
		}
	}
}

// Policies of every algorithm that Go steps.
var stepped = []string{
	"10/s", "3/s burst 5", "7/s burst 1", "1/5s burst 4", "5/7ns burst 9", "700000000/s burst 12",
	"997/991us burst 10", "1/d burst 5000",
	"999999937/999999929ns burst 40", "10/s burst 6 init 0", "1000000/s burst 4 init 3", "15000000000/s burst 3", "0/s",
	"5/s burst 4 ban 2s", "3/min ban 1min after 3", "1000/s burst 50 ban 1h after 1000",
	"999999937/999999929ns burst 40 ban 7s after 5",
	"5/s borrow", "7/s burst 3 borrow init 3", "997/991us burst 10 borrow init 4",
	"100/s burst 4 algo pacer", "1/5s algo pacer slack 10", "999999937/999999929ns algo pacer slack 3",
	"3/min algo interval", "2/s burst 5 algo interval", "3/min algo interval anchor first",
	"1000/s burst 7 algo interval anchor first",
	"10/s algo fixed-window", "3/min algo fixed-window count rejected", "3/min algo fixed-window anchor first",
	"100000/s algo fixed-window anchor first count rejected", "1000000/s algo fixed-window",
	"10/s algo weighted-window", "7/333333333ns algo weighted-window", "3000000/s algo weighted-window",
	"65536/s algo weighted-window",
	"10/forever", "18446744073709551614/forever", "100/s burst 5 unit bytes",
}

// A million random requests: each decision, and each state as a peek shows it, is C's.
func TestCoreDecidesAsC(t *testing.T) {
	operations := 1_000_000
	if testing.Short() {
		operations = 100_000
	}
	random := rand.New(rand.NewPCG(9, 1))
	starts := []uint64{0, uint64(100 * 24 * time.Hour), 1763700000 * 1e9, 1 << 60}
	for _, text := range stepped {
		for _, start := range starts {
			newBoth(t, text).trace(t, random, start, operations/len(stepped)/len(starts)+1)
		}
	}
}

// Bookings that are cancelled in all orders, of policies that book ahead and of few that do not:
// departures, gaps and what comes back are C's.
func TestCoreTakesBookingsBackAsC(t *testing.T) {
	random := rand.New(rand.NewPCG(61, 62))
	filled, whole, cancelled := 0, 0, 0
	for _, text := range append([]string{"10/s burst 20", "11/s burst 2", "7/min burst 4", "7/s algo pacer burst 4"},
		stepped...) {
		b := newBoth(t, text)
		now := uint64(1e17)
		last := uint64(0)
		for range 10_000 {
			switch random.IntN(8) {
			case 0, 1, 2:
				n := 1 + random.Uint64N(min(b.burst, 2)+1)
				c, err := b.c.ReserveAt(now, n, tollbar.Forever)
				at, verdict := b.g.Reserve(now, n, math.MaxUint64)
				code := tollbar.Code(0)
				errors.As(err, &code)
				if code != tollbar.Code(verdict) || err == nil && c.Departs != at {
					t.Fatalf("%s: Reserve(%d, %d) = %d, in C %+v (%v)", text, now, n, at, c, err)
				}
				if err == nil {
					if at < last {
						filled++
					}
					last = max(last, at)
					b.booked = append(b.booked, c)
				}
			case 3, 4, 5:
				if len(b.booked) == 0 {
					continue
				}
				i := random.IntN(len(b.booked))
				of := b.booked[i]
				b.booked = slices.Delete(b.booked, i, i+1)
				c, err := b.c.CancelAt(now, of)
				back := b.g.GiveBack(core.Charge{At: of.Departs, Cost: of.Cost}, func() uint64 { return now })
				if err != nil || c != back {
					t.Fatalf("%s: GiveBack(%d, %+v) = %d, in C %d (%v)", text, now, of, back, c, err)
				}
				if cancelled++; back == of.Cost {
					whole++
				}
			case 6:
				now += random.Uint64N(b.span/b.limit + 2)
			default:
				b.step(t, random, now)
			}
			c, _ := b.c.PeekAt(now, 1)
			if g := decision(b.g.Peek(now, 1)); c != g {
				t.Fatalf("%s: Peek(%d) = %+v, in C %+v", text, now, g, c)
			}
		}
	}
	t.Logf("%d bookings departed before others that came first; %d of %d came back whole", filled, whole, cancelled)
	if filled < 1000 || whole < 1000 || whole > cancelled*9/10 {
		t.Error("too few of a kind")
	}
}

// words are the parts of random policies' texts.
var words = []string{
	"1", "5", "100", "0", "18446744073709551615", "18446744073709551616", "3kb", "7gib", "/", "/", "/", " per ", "s",
	"min", "day", "h", "100ms", "7ns",
	"0s", "forever", "2 minutes", "weeks", "sec", " burst ", " burst 3", " algo ", "gcra", "pacer", "interval",
	"fixed-window", "weighted-window",
	"quota", " token-bucket", " init 2", " init 0", " borrow", " anchor first", " anchor epoch", " anchor",
	" slack 4", " slack 0", " ban 1h",
	" after 3", " after 1001", " count rejected", " count", " unit bytes", " unit permits", " segments 4",
	" mode strict", " warm 2s", " cold 3", ";",
	"; 1000/day", " ", "\t", "x", "-", "\x00", "é", " curve ln", " zone UTC", " reserve low 2", "month", "3 months",
	"2 forever", "1 year", "sliding-log", " algo nothing",
}

// texts calls each with policies that are well formed for the most part, and with changed ones.
func texts(random *rand.Rand, number int, each func(text string)) {
	for range number {
		text := stepped[random.IntN(len(stepped))]
		switch random.IntN(6) {
		default:
			text = strings.ReplaceAll(text, " ", []string{" ", "  ", "\t"}[random.IntN(3)])
			text = strings.Replace(text, "/", []string{"/", " / ", " per "}[random.IntN(3)], 1)
		case 0:
			at := random.IntN(len(text) + 1)
			text = text[:at] + words[random.IntN(len(words))] + text[at:]
		case 1:
			from := random.IntN(len(text))
			text = text[:from] + text[from+random.IntN(len(text)-from):]
		case 2:
			text = words[random.IntN(8)] + words[8+random.IntN(4)] + words[12+random.IntN(11)]
			for range random.IntN(4) {
				text += words[random.IntN(len(words))]
			}
		case 3:
			text += words[random.IntN(len(words))] + words[random.IntN(len(words))]
		}
		each(text)
	}
}

// The Go reader reads each text as the C library does: it returns the same policy, or the same
// error at the same column. For a policy that Go cannot step it returns ErrNeedsLibrary.
func TestCoreReadsPoliciesAsC(t *testing.T) {
	read, refused, left := 0, 0, 0
	texts(rand.New(rand.NewPCG(5, 6)), 60_000, func(text string) {
		policy, algorithm, wrong := core.Parse(text)
		c, err := tollbar.ParsePolicy(text)
		var why *tollbar.PolicyError
		switch {
		case wrong != nil && wrong.Code == core.NeedsLibrary:
			left++
		case errors.As(err, &why) && why.Column != 0:
			refused++
			expected := ""
			if wrong != nil {
				if expected = wrong.Expected; expected == "" {
					expected = wrong.Code.String()
				}
			}
			if wrong == nil || tollbar.Code(wrong.Code) != why.Code ||
				wrong.Column != why.Column || expected != why.Expected {
				t.Fatalf("%q: %+v, in C %+v", text, wrong, why)
			}
		case wrong != nil:
			t.Fatalf("%q: %+v, in C %+v", text, wrong, c)
		case err == nil:
			read++
			last, _ := c.LastTime()
			if policy.String() != c.String() || algorithm.LastTime() != last {
				t.Fatalf("%q is %q, in C %q", text, policy.String(), c.String())
			}
		}
	})
	if read < 10_000 || refused < 10_000 || left < 1_000 {
		t.Fatalf("%d texts read, %d refused, %d for the library", read, refused, left)
	}
}

// ErrNeedsLibrary is returned only for policies that C reads and Go cannot step.
func TestCoreLeavesTheRestToTheLibrary(t *testing.T) {
	for _, text := range []string{
		"10/s; 1000/day", "6/s algo sliding-window", "10/s algo sliding-log", "100/min curve ln",
		"10/s burst 8 refill 0:50% 50%:100%",
		"3/day algo calendar", "10/month", "5/day zone UTC", "10/month from 31",
		"100/s burst 20 algo warm-up warm 2s", "100/s reserve low 20",
	} {
		if _, err := tollbar.ParsePolicy(text); err != nil {
			t.Fatal(err)
		}
		if _, _, wrong := core.Parse(text); wrong == nil || wrong.Code != core.NeedsLibrary {
			t.Errorf("%s: %+v", text, wrong)
		}
	}
	for _, text := range stepped {
		if _, _, wrong := core.Parse(text); wrong != nil {
			t.Errorf("%s: %+v", text, wrong)
		}
	}
}

// The errors have the library's texts.
func TestCoreNamesErrorsAsC(t *testing.T) {
	for code := tollbar.Code(2); code > -130; code-- {
		if c := strings.TrimPrefix(code.Error(), "tollbar: "); core.Code(code).String() != c {
			t.Errorf("%d: %q, in C %q", code, core.Code(code), c)
		}
	}
}

// Random rates, bursts and options: Go refuses what C refuses, and decides as C does.
func TestCoreDecidesAsCForRandomPolicies(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	accepted := 0
	for range 1200 {
		magnitude := func(most int) uint64 { return 1 + random.Uint64N(uint64(1)<<(1+random.IntN(most))) }
		limit, period, burst := magnitude(40), magnitude(56), magnitude(30)
		text := fmt.Sprintf("%d/%dns", limit, period)
		switch random.IntN(8) {
		case 0:
			text += fmt.Sprintf(" burst %d init %d", burst, random.Uint64N(burst+1))
		case 1:
			text += fmt.Sprintf(" burst %d borrow", burst)
		case 2:
			text += fmt.Sprintf(" burst %d ban %dns after %d", burst, magnitude(50), 1+random.IntN(1000))
		case 3:
			text += fmt.Sprintf(" burst %d algo pacer slack %d", burst, magnitude(20))
		case 4:
			text += fmt.Sprintf(" burst %d algo interval", burst)
		case 5:
			text += " algo fixed-window" + []string{"", " anchor first", " count rejected"}[random.IntN(3)]
		case 6:
			text += " algo weighted-window"
		case 7:
			text += fmt.Sprintf(" burst %d algo interval anchor first", min(burst, limit))
		}
		_, err := tollbar.NewLimiter(text)
		_, _, wrong := core.Parse(text)
		var why *tollbar.PolicyError
		if errors.As(err, &why) {
			if wrong == nil || tollbar.Code(wrong.Code) != why.Code || wrong.Column != why.Column {
				t.Fatalf("%s: %+v, in C %v", text, wrong, why)
			}
			continue
		}
		accepted++
		newBoth(t, text).trace(t, random, random.Uint64N(1<<60), 300)
	}
	if accepted < 500 {
		t.Fatalf("%d policies accepted", accepted)
	}
}
