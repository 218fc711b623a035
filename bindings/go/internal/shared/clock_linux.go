package shared

import (
	"syscall"
	"time"
	"unsafe"
)

// began is the process's beginning on Go's monotonic clock, which on Linux is CLOCK_MONOTONIC without the system's
// call.
var began = time.Now()

// fromBoot is the time of began on the scale of the machine's CLOCK_MONOTONIC, by a few readings of both. It is never
// too late, and by less than the time of a system call too early: a process whose clock is behind admits nothing
// early.
var fromBoot = func() uint64 {
	const clockMonotonic = 1
	latest := uint64(0)
	for range 8 {
		var at syscall.Timespec
		_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&at)), 0)
		if after := uint64(time.Since(began)); errno == 0 {
			latest = max(latest, uint64(at.Nano())-after)
		}
	}
	return latest - uint64(ahead)
}()

// monotonic is CLOCK_MONOTONIC of the machine's first time namespace, in nanoseconds.
func monotonic() uint64 {
	since := time.Since(began)
	if since < 0 {
		return inBubble()
	}
	return fromBoot + uint64(since)
}
