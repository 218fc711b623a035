//go:build tollbar_purego

package tollbar

// The calls of meters through purego; call_cgo_meter.go has the other way.

import (
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go/internal/library"
)

var (
	tollbar_meter_validate = libtollbar.Need("tollbar_meter_validate")
	tollbar_meter_color    = libtollbar.Need("tollbar_meter_color")
	tollbar_meter_color_at = libtollbar.Need("tollbar_meter_color_at")
)

func cMeterValidate(meter *tollbar_meter) int32 {
	return library.Call1(tollbar_meter_validate, uintptr(unsafe.Pointer(meter)))
}

func cMeterColor(meter *tollbar_meter, state *tollbar_meter_state, bytes uint64,
	before uint32) int32 {
	return library.Call4(tollbar_meter_color, uintptr(unsafe.Pointer(meter)),
		uintptr(unsafe.Pointer(state)), uintptr(bytes), uintptr(before))
}

func cMeterColorAt(meter *tollbar_meter, state *tollbar_meter_state, bytes uint64, before uint32,
	now uint64) int32 {
	return library.Call5(tollbar_meter_color_at, uintptr(unsafe.Pointer(meter)),
		uintptr(unsafe.Pointer(state)), uintptr(bytes), uintptr(before), uintptr(now))
}
