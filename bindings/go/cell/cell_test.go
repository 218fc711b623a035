package cell_test

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go/cell"
)

func mustPolicy(t testing.TB, limit uint64, period time.Duration, burst uint64) *cell.Policy {
	t.Helper()
	p, err := cell.New(limit, period, burst)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestToTheNanosecond(t *testing.T) {
	p := mustPolicy(t, 3, time.Second, 2)
	var c cell.Cell
	const start = uint64(time.Hour)
	d := c.Check(p, start, 2)
	if d.Verdict != cell.Allowed || d.Remaining != 0 || d.ResetAfter != 666666667 || !d.Allowed() {
		t.Errorf("%+v", d)
	}
	if d = c.Check(p, start, 1); d.Verdict != cell.Denied || d.RetryAfter != 333333334 {
		t.Errorf("%+v", d)
	}
	if c.Allow(p, start+333333333) || !c.Allow(p, start+333333334) {
		t.Error("not to the nanosecond")
	}
	if d = c.Peek(p, start, 3); d.Verdict != cell.Never || d.RetryAfter != cell.Forever {
		t.Errorf("%+v", d)
	}
	if c.AllowN(p, start, 3) || c.AllowN(p, math.MaxUint64, 1) || !c.AllowN(p, start, 0) {
		t.Error("AllowN")
	}
	c.Reset()
	if c.Word() != 0 || c.TakeUpTo(p, start, 9) != 2 {
		t.Error("Reset")
	}
	var other cell.Cell
	other.SetWord(c.Word())
	if other.Allow(p, start) || unsafe.Sizeof(other) != 8 {
		t.Error("a word is the whole state")
	}
}

func TestWhatCannotBeAPolicy(t *testing.T) {
	for i, c := range []struct {
		limit  uint64
		period time.Duration
		burst  uint64
		init   uint64
		want   error
	}{
		{1, 0, 1, 1, cell.ErrPeriod}, {1, -1, 1, 1, cell.ErrPeriod}, {1, 1e9, 0, 0, cell.ErrBurstZero},
		{1, 1e9, 1, 2, cell.ErrInitAboveBurst}, {math.MaxUint64, 1, 1, 1, cell.ErrRateTooHigh},
		{1, time.Hour, math.MaxUint64, 0, cell.ErrBurstTooLarge}, {0, 1, 0, 0, nil}, {1, math.MaxInt64, 1, 1, nil},
	} {
		if p, err := cell.NewWithInit(c.limit, c.period, c.burst, c.init); !errors.Is(err, c.want) || (p == nil) != (err != nil) {
			t.Errorf("case %d: %v", i, err)
		}
	}
	shut, _ := cell.New(0, time.Second, 5)
	var c cell.Cell
	if c.Allow(shut, 1) || c.Check(shut, 1, 1).RetryAfter != cell.Forever {
		t.Error("a limit of 0 lets something pass")
	}
	if _, ok := c.Reserve(shut, 1, 1, cell.Forever); ok || c.TakeUpTo(shut, 1, 1) != 0 {
		t.Error("a limit of 0 lets something pass")
	}
}

// Many goroutines on one word, each with a time that may be old: as many are admitted as there are
// permits.
func TestManyGoroutines(t *testing.T) {
	p := mustPolicy(t, 1, 24*time.Hour, 10000)
	var word uint64
	shared := cell.Of(&word)
	var taken atomic.Uint64
	var all sync.WaitGroup
	for i := range uint64(8) {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := range uint64(3000) {
				now := 1e15 + n*1000 - i*10e6
				switch n % 3 {
				case 0:
					if shared.Allow(p, now) {
						taken.Add(1)
					}
				case 1:
					if shared.Check(p, now, 2).Allowed() {
						taken.Add(2)
					}
				case 2:
					taken.Add(shared.TakeUpTo(p, now, 1))
				}
			}
		}()
	}
	all.Wait()
	// The last one is refused to those whose time is before the first one's.
	if taken.Load() > 10000 || taken.Load() < 9999 {
		t.Errorf("%d of 10000 taken", taken.Load())
	}
}

func TestNowGoesOn(t *testing.T) {
	a := cell.Now()
	time.Sleep(10 * time.Millisecond)
	if d := cell.Now() - a; d < 10e6 || d > 10e9 {
		t.Errorf("10 ms took %d ns", d)
	}
}

func Example() {
	perUser, err := cell.New(5, time.Minute, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	var logins cell.Cell // fresh
	for range 4 {
		fmt.Println(logins.Allow(perUser, cell.Now()))
	}
	// Output:
	// true
	// true
	// true
	// false
}
