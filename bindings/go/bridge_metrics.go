package tollbar

// The call into C for metrics.

/*
#include "bridge.h"

#cgo noescape go_metrics
#cgo nocallback go_metrics
*/
import "C"

import (
	"slices"
	"unsafe"
)

const _ = uint(unsafe.Sizeof(metricsItem{})-unsafe.Sizeof(C.go_metrics_source{})) +
	uint(unsafe.Sizeof(C.go_metrics_source{})-unsafe.Sizeof(metricsItem{}))
const _ = uint(MetricsMost-C.TOLLBAR_METRICS_MOST) + uint(C.TOLLBAR_METRICS_MOST-MetricsMost)

func appendMetrics(to []byte, format MetricsFormat, items []metricsItem, names []byte) ([]byte, error) {
	names = append(names, 0)
	for room := 16384; ; {
		to = slices.Grow(to, room)
		room = cap(to) - len(to)
		var length C.size_t
		code := C.go_metrics((*C.go_metrics_source)(unsafe.Pointer(unsafe.SliceData(items))),
			(*C.uint8_t)(unsafe.SliceData(names)),
			C.size_t(len(items)), C.uint32_t(format), (*C.uint8_t)(unsafe.SliceData(to[len(to):cap(to)])),
			C.size_t(room), &length)
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
