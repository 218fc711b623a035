package tollbar

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// No call is inside when close has returned: what Close gives back then is nobody's any more.
//
// In each round callers enter while close runs, at moments that differ from round to round by some nanoseconds. A guard
// that looks whether it is closed before it counts the caller is found out within some thousand rounds of the hundred
// thousand.
func TestNobodyIsInsideAfterClose(t *testing.T) {
	rounds, patience := 100_000, 10*time.Second
	if testing.Short() {
		rounds = 10_000
	}
	const callers = 2
	type world struct {
		guard guard
		freed atomic.Bool
	}
	var current atomic.Pointer[world]
	var round, arrived, left, inside, entered, turnedAway atomic.Int64
	var stop atomic.Bool
	// spin waits for others who are on their way: on a machine with fewer processors they need this one.
	spin := func(until func() bool) {
		for tries := 0; !until(); tries++ {
			if tries%256 == 255 {
				runtime.Gosched()
			}
		}
	}
	for n := range callers {
		go func() {
			for mine := int64(1); ; mine++ {
				spin(func() bool { return round.Load() >= mine || stop.Load() })
				if stop.Load() {
					left.Add(1)
					return
				}
				w := current.Load()
				arrived.Add(1)
				for range (int(mine)*7 + n*13) % 64 {
					spin(func() bool { return true })
				}
				for range 3 {
					if c := w.guard.enter(); c != nil {
						if w.freed.Load() {
							inside.Add(1)
						}
						entered.Add(1)
						c.leave()
					} else {
						turnedAway.Add(1)
					}
				}
				left.Add(1)
			}
		}()
	}
	start, done := time.Now(), 0
	for ; done < rounds && inside.Load() == 0 && time.Since(start) < patience; done++ {
		w := new(world)
		current.Store(w)
		arrived.Store(0)
		left.Store(0)
		round.Add(1)
		spin(func() bool { return arrived.Load() == callers })
		for range done % 64 {
			spin(func() bool { return true })
		}
		w.guard.close()
		w.freed.Store(true)
		spin(func() bool { return left.Load() == callers })
	}
	left.Store(0)
	stop.Store(true)
	spin(func() bool { return left.Load() == callers })
	if inside.Load() != 0 {
		t.Errorf("%d inside after close, in round %d", inside.Load(), done)
	}
	// Callers and close have met: else the rounds say nothing.
	if entered.Load() == 0 || turnedAway.Load() == 0 {
		t.Errorf("%d entered, %d turned away", entered.Load(), turnedAway.Load())
	}
	t.Logf("%d rounds, %d entered, %d turned away", done, entered.Load(), turnedAway.Load())
}
