//go:build !linux

package shared

import "time"

var began = time.Now()

// onMachineClock: other systems have no time namespaces.
const onMachineClock = true

// monotonic is the time since the process's beginning. Only this process reads it, because tables in files need Linux.
func monotonic() uint64 {
	since := time.Since(began)
	if since < 0 {
		return inBubble()
	}
	return uint64(since)
}
