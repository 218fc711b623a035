//go:build cgo && !tollbar_purego

package tollbar

// The calls of meters with cgo; call_purego_meter.go has the other way. No `noescape`: a meter's
// buckets must not be on a goroutine's stack, which may move.

/*
#include "bridge.h"

#cgo nocallback tollbar_meter_validate
#cgo nocallback tollbar_meter_color
#cgo nocallback tollbar_meter_color_at
*/
import "C"

import "unsafe"

func cMeterValidate(meter *tollbar_meter) int32 {
	return int32(C.tollbar_meter_validate((*C.tollbar_meter)(unsafe.Pointer(meter))))
}

func cMeterColor(meter *tollbar_meter, state *tollbar_meter_state, bytes uint64,
	before uint32) int32 {
	return int32(C.tollbar_meter_color((*C.tollbar_meter)(unsafe.Pointer(meter)),
		(*C.tollbar_meter_state)(unsafe.Pointer(state)), C.uint64_t(bytes), C.uint32_t(before)))
}

func cMeterColorAt(meter *tollbar_meter, state *tollbar_meter_state, bytes uint64, before uint32,
	now uint64) int32 {
	return int32(C.tollbar_meter_color_at((*C.tollbar_meter)(unsafe.Pointer(meter)),
		(*C.tollbar_meter_state)(unsafe.Pointer(state)), C.uint64_t(bytes), C.uint32_t(before),
		C.uint64_t(now)))
}
