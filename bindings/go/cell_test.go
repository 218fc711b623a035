//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/cell"
)

// pair is one policy in C and in Go.
type pair struct {
	text    string
	limiter *tollbar.Limiter
	policy  *cell.Policy
	cell    cell.Cell
	span    uint64
}

func newPair(t *testing.T, text string) *pair {
	t.Helper()
	limiter, err := tollbar.NewLimiter(text)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := limiter.Policy().Cell()
	if err != nil {
		t.Fatal(err)
	}
	p := limiter.Policy()
	return &pair{text: text, limiter: limiter, policy: policy, span: uint64(p.Period)}
}

// step makes one random call on both sides and compares all that they say.
func (p *pair) step(t *testing.T, random *rand.Rand, now uint64) {
	t.Helper()
	burst := p.limiter.Policy().Burst
	n := uint64(1)
	switch random.IntN(8) {
	case 0:
		n = random.Uint64N(burst + 2)
	case 1:
		n = 0
	case 2:
		n = []uint64{burst, burst + 1, math.MaxUint64, math.MaxUint64 / 2}[random.IntN(4)]
	}
	switch random.IntN(10) {
	default:
		want, err := p.limiter.CheckAt(now, n)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.cell.Check(p.policy, now, n); got != want {
			t.Fatalf("%s: Check(%d, %d) = %+v, in C %+v", p.text, now, n, got, want)
		}
	case 0, 1, 2:
		want := tollbar.AllowNanos(p.limiter, now, n)
		if got := p.cell.AllowN(p.policy, now, n); got != want {
			t.Fatalf("%s: AllowN(%d, %d) = %v, in C %v", p.text, now, n, got, want)
		}
	case 3:
		want, _ := p.limiter.TakeUpToAt(now, n)
		if got := p.cell.TakeUpTo(p.policy, now, n); got != want {
			t.Fatalf("%s: TakeUpTo(%d, %d) = %d, in C %d", p.text, now, n, got, want)
		}
	case 4:
		patience := time.Duration(random.Int64N(int64(2*p.span) + 1))
		booked, err := p.limiter.ReserveAt(now, n, patience)
		wait := booked.Wait
		got, ok := p.cell.Reserve(p.policy, now, n, patience)
		if got != wait || ok != (err == nil) {
			t.Fatalf("%s: Reserve(%d, %d, %d) = %d %v, in C %d %v", p.text, now, n, patience, got, ok, wait, err)
		}
	}
	want, _ := p.limiter.PeekAt(now, n)
	if got := p.cell.Peek(p.policy, now, n); got != want {
		t.Fatalf("%s: Peek(%d, %d) = %+v, in C %+v", p.text, now, n, got, want)
	}
}

func (p *pair) trace(t *testing.T, random *rand.Rand, now uint64, steps int) {
	t.Helper()
	limit := max(p.limiter.Policy().Limit, 1)
	for range steps {
		switch random.IntN(20) {
		case 0:
			now += random.Uint64N(2*p.span + 1)
		case 1: // time goes back
			now -= min(now, random.Uint64N(p.span/limit+2))
		case 2: // beyond what a word can say
			if random.IntN(50) == 0 {
				now = math.MaxUint64 - random.Uint64N(1<<62)
			}
		default:
			now += random.Uint64N(2*p.span/limit + 2)
		}
		p.step(t, random, now)
		if now > 1<<62 {
			now = random.Uint64N(1 << 60)
		}
	}
}

// [the state word] The pure-Go path decides as the core does, to the bit, at any time since the machine's start.
func TestCellDecidesAsTheCore(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	starts := []uint64{0, uint64(100 * 24 * time.Hour), 1763700000 * 1e9, 1 << 60}
	for _, text := range []string{
		"1/s", "3/s", "7/s burst 1", "100/s burst 20", "1000/s burst 1000", "1/day burst 2", "700000000/s",
		"300000000/s burst 7", "15000000000/s burst 3", "11/13ms burst 5", "997/991us burst 10", "1/d burst 5000",
		"100/s burst 20 init 0", "10/min burst 10 init 3", "123456789/s burst 12345", "999999937/999999929ns burst 40",
		"1000000007/1000000009ns burst 3 init 1", "0/s",
	} {
		t.Run(text, func(t *testing.T) {
			for _, start := range starts {
				newPair(t, text).trace(t, random, start, 1500)
			}
		})
	}
}

func TestCellDecidesAsTheCoreForRandomPolicies(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	accepted := 0
	for range 600 {
		magnitude := func(most int) uint64 { return 1 + random.Uint64N(uint64(1)<<(1+random.IntN(most))) }
		limit, period, burst := magnitude(36), magnitude(56), magnitude(30)
		text, init := fmt.Sprintf("%d/%dns burst %d", limit, period, burst), burst
		if random.IntN(3) == 0 {
			init = random.Uint64N(burst + 1)
			text += fmt.Sprintf(" init %d", init)
		}
		if _, err := tollbar.NewLimiter(text); err != nil {
			// What the core refuses, the cell refuses for the same reason.
			_, ours := cell.NewWithInit(limit, time.Duration(period), burst, init)
			if errors.Is(err, tollbar.ErrRateTooHigh) != errors.Is(ours, cell.ErrRateTooHigh) ||
				errors.Is(err, tollbar.ErrBurstTooLarge) != errors.Is(ours, cell.ErrBurstTooLarge) || ours == nil {
				t.Fatalf("%s: %v, in C %v", text, ours, err)
			}
			continue
		}
		accepted++
		newPair(t, text).trace(t, random, random.Uint64N(1<<60), 150)
	}
	if accepted < 300 {
		t.Fatalf("only %d policies were any", accepted)
	}
}

// The word itself is the same: a table shows the core's.
func TestCellHasTheCoresWord(t *testing.T) {
	seed := uint64(5)
	for _, text := range []string{"100/s burst 20", "7/13ms burst 50", "3/min burst 3 init 1"} {
		table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 1, Seed: &seed}, text)
		if err != nil {
			t.Fatal(err)
		}
		p := newPair(t, text)
		random := rand.New(rand.NewPCG(7, 8))
		now := uint64(1e15)
		words := 0
		for range 500 {
			now += random.Uint64N(p.span / 2)
			if _, err := table.Under(0).CheckAt("key", now, 1); err != nil {
				t.Fatal(err)
			}
			p.cell.Allow(p.policy, now)
			for entry := range table.Entries() {
				words++
				if entry.State != p.cell.Word() {
					t.Fatalf("%s: the word is %d, in C %d", text, p.cell.Word(), entry.State)
				}
			}
		}
		if words != 500 {
			t.Fatalf("%d words compared", words)
		}
		table.Close()
	}
}

func TestPoliciesThatAreNoBucketHaveNoCell(t *testing.T) {
	for _, text := range []string{"5/s algo pacer", "5/s borrow", "5/s algo sliding-log", "5/s algo fixed-window"} {
		policy, err := tollbar.ParsePolicy(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := policy.Cell(); !errors.Is(err, tollbar.ErrNotOneWord) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Around the last time, at every power of two and its neighbours, both sides agree, and neither
// admits after it.
func TestCellEndsWhereCEnds(t *testing.T) {
	texts := []string{"100/s burst 20", "3/min", "7/s burst 3", "5/min burst 5 init 3", "15000000000/s burst 1000",
		"1/s burst 100000000", "0/s"}
	for _, text := range texts {
		p := newPair(t, text)
		last, err := p.limiter.Policy().LastTime()
		if err != nil || last != p.policy.LastTime() {
			t.Fatalf("%s: the last time is %d in C (%v) and %d in Go", text, last, err, p.policy.LastTime())
		}
		times := []uint64{last - 1, last, last + 1, math.MaxUint64 - 1, math.MaxUint64}
		for bit := range 64 {
			times = append(times, 1<<bit-1, 1<<bit, 1<<bit+1)
		}
		for _, now := range times {
			p := newPair(t, text)
			for _, n := range []uint64{1, 2, 0} {
				want, err := p.limiter.CheckAt(now, n)
				got := p.cell.Check(p.policy, now, n)
				if err != nil || got != want {
					t.Fatalf("%s: Check(%d, %d) = %+v, in C %+v (%v)", text, now, n, got, want, err)
				}
				if n != 0 && got.Allowed() && now > last {
					t.Fatalf("%s: %d is admitted at %d", text, n, now)
				}
			}
			fresh := newPair(t, text)
			allowed := fresh.cell.Allow(fresh.policy, now)
			if allowed != (now <= last && text != "0/s") {
				t.Fatalf("%s: Allow at %d is %v", text, now, allowed)
			}
			if now > last && (fresh.cell.TakeUpTo(fresh.policy, now, 5) != 0 || fresh.cell.Word() != 0) {
				t.Fatalf("%s: something is taken at %d", text, now)
			}
		}
	}
	if _, err := (tollbar.Policy{Limit: 1}).LastTime(); err == nil {
		t.Fatal("a policy without a period has a last time")
	}
}
