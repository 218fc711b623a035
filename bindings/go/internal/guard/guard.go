// Package guard keeps what C holds from being freed in the middle of a call.
package guard

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// stripes is how many counters a guard has: callers on different processors should seldom meet on one.
const stripes = 16

// Guard counts the calls that are under way, so that Close can give back a table's memory, which may be gigabytes or a
// file, at once and not in the middle of a call.
//
// A caller counts itself, then looks whether the table is closed; Close marks it closed, then waits until each counter
// has been seen at 0. All of these are sequentially consistent, so a caller who has not seen the mark is seen by
// Close. Callers stay for microseconds, so Close does not wait for long.
type Guard struct {
	closed atomic.Bool
	_      [63]byte
	counts [stripes]Count
}

// Count is a counter of callers, with a cache line for itself.
type Count struct {
	n atomic.Int64
	_ [56]byte
}

// Enter returns the counter to leave by, or nil if the guard is closed.
func (g *Guard) Enter() *Count {
	// The stack's address tells goroutines apart, and is the same at every call of one.
	var here byte
	c := &g.counts[uintptr(unsafe.Pointer(&here))>>11%stripes]
	c.n.Add(1)
	if g.closed.Load() {
		c.n.Add(-1)
		return nil
	}
	return c
}

// Leave says that the call is over.
func (c *Count) Leave() { c.n.Add(-1) }

// Close returns when no call is under way and none will be. False: another has closed it.
func (g *Guard) Close() bool {
	if g.closed.Swap(true) {
		return false
	}
	for i := range g.counts {
		for tries := 0; g.counts[i].n.Load() != 0; tries++ {
			if tries < 100 {
				runtime.Gosched()
			} else {
				// A thread that is not running, or one that waits for a disk.
				time.Sleep(50 * time.Microsecond)
			}
		}
	}
	return true
}
