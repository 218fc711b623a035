// Package guard delays the end of a C object until no call uses it.
package guard

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// stripes is the number of counters of a guard, so that callers on different processors seldom
// share one.
const stripes = 16

// Guard counts the running calls, so that Close can free a table's memory, which may be gigabytes
// or a file, as soon as no call uses it.
//
// A caller counts itself, and then reads the mark. Close sets the mark, and then waits until it has
// read 0 in each counter. All of these operations are sequentially consistent, so Close sees every
// caller that has not seen the mark. Calls take microseconds, so Close does not wait for long.
type Guard struct {
	closed atomic.Bool
	_      [63]byte
	counts [stripes]Count
}

// Count is a counter of callers, on its own cache line.
type Count struct {
	n atomic.Int64
	_ [56]byte
}

// Enter returns the counter to leave by, or nil if the guard is closed or nil.
func (g *Guard) Enter() *Count {
	if g == nil {
		return nil
	}
	// The stack's address differs between goroutines, and is the same in every call of one.
	var here byte
	c := &g.counts[uintptr(unsafe.Pointer(&here))>>11%stripes]
	c.n.Add(1)
	if g.closed.Load() {
		c.n.Add(-1)
		return nil
	}
	return c
}

// Leave ends the call.
func (c *Count) Leave() { c.n.Add(-1) }

// Close returns when no call is running and none can begin. False: another call has closed the
// guard.
func (g *Guard) Close() bool {
	if g == nil || g.closed.Swap(true) {
		return false
	}
	for i := range g.counts {
		for tries := 0; g.counts[i].n.Load() != 0; tries++ {
			if tries < 100 {
				runtime.Gosched()
			} else {
				// The caller's thread is not scheduled, or waits for a disk.
				time.Sleep(50 * time.Microsecond)
			}
		}
	}
	return true
}
