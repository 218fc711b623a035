//go:build cgo

package tollbar

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// stripes is how many counters a guard has: callers on different processors should seldom meet on one.
const stripes = 16

// guard counts the calls that are under way, so that Close can give back a table's memory, which may be gigabytes or a
// file, at once and not in the middle of a call.
//
// A caller counts itself, then looks whether the table is closed; Close marks it closed, then waits until each counter
// has been seen at 0. All of these are sequentially consistent, so a caller who has not seen the mark is seen by
// Close. Callers stay for microseconds, so Close does not wait for long.
type guard struct {
	closed atomic.Bool
	_      [63]byte
	counts [stripes]count
}

// count has a cache line for itself.
type count struct {
	n atomic.Int64
	_ [56]byte
}

// enter returns the counter to leave by, or nil if the guard is closed.
func (g *guard) enter() *count {
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

func (c *count) leave() { c.n.Add(-1) }

// close returns when no call is under way and none will be. False: another has closed it.
func (g *guard) close() bool {
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
