//go:build cgo || tollbar_purego

package tollbar

// The call into C for metrics.

import "slices"

func appendMetrics(to []byte, format MetricsFormat, items []metricsItem, names []byte) ([]byte, error) {
	names = append(names, 0)
	for room := 16384; ; {
		to = slices.Grow(to, room)
		room = cap(to) - len(to)
		var length uintptr
		code := cMetrics(items, names, uint32(format), to[len(to):cap(to)], &length)
		if code == 0 {
			return to[:len(to)+int(length)], nil
		}
		if Code(code) != ErrBufferTooSmall || int(length) < room {
			return to, Code(code)
		}
		// Numbers may grow between two calls.
		room = int(length) + int(length)/8 + 1
	}
}
