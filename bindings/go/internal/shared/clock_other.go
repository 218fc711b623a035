//go:build !linux

package shared

import "time"

var began = time.Now()

// monotonic is the time since the process's beginning. Only this process reads it, because tables in files need Linux.
func monotonic() uint64 { return uint64(time.Since(began)) }
