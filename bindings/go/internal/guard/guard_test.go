package guard

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// When Close has returned, no call uses the C object, so Close may free it.
//
// In each round callers enter and leave until they are turned away, and Close comes into the midst
// of it. A guard that looks whether it is closed before it counts the caller is found out within
// some hundred rounds of the hundred thousand.
func TestNobodyIsInsideAfterClose(t *testing.T) {
	const rounds, patience = 100_000, 5 * time.Second
	type world struct {
		guard Guard
		freed atomic.Bool
	}
	var current atomic.Pointer[world]
	var round, inside, entered, turnedAway atomic.Int64
	// With more goroutines than processors the callers would run one after the other, and never at
	// the same time.
	callers := int64(min(max(runtime.GOMAXPROCS(0)-1, 1), 3))
	spin := func(until func() bool) {
		for tries := 1; !until(); tries++ {
			if tries%256 == 0 {
				runtime.Gosched()
			}
		}
	}
	for range callers {
		go func() {
			for mine := int64(1); ; mine++ {
				spin(func() bool { return round.Load() >= mine })
				w := current.Load()
				if w == nil {
					return
				}
				for c := w.guard.Enter(); c != nil; c = w.guard.Enter() {
					if w.freed.Load() {
						inside.Add(1)
					}
					entered.Add(1)
					c.Leave()
				}
				turnedAway.Add(1)
			}
		}()
	}
	start, done := time.Now(), int64(0)
	for done < rounds && inside.Load() == 0 && time.Since(start) < patience {
		w := new(world)
		current.Store(w)
		before := entered.Load()
		done++
		round.Store(done)
		spin(func() bool { return entered.Load() > before+done%8 })
		w.guard.Close()
		w.freed.Store(true)
		spin(func() bool { return turnedAway.Load() == done*callers })
	}
	current.Store(nil)
	round.Store(done + 1)
	if inside.Load() != 0 {
		t.Errorf("%d inside after close, in round %d", inside.Load(), done)
	}
	t.Logf("%d rounds, %d entered", done, entered.Load())
}
