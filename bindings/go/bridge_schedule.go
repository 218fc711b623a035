package tollbar

// #include "tollbar.h"
import "C"

import "unsafe"

func printSchedule(schedule string) (string, error) {
	var buffer [C.TOLLBAR_SCHEDULE_TEXT_MAX]C.char
	why := newPolicyError()
	code := C.tollbar_schedule_print((*C.char)(unsafe.Pointer(text(schedule))), C.size_t(len(schedule)),
		&buffer[0], C.size_t(len(buffer)), nil, &why)
	return C.GoString(&buffer[0]), policyError(schedule, code, &why)
}

func scheduleAt(schedule string, unixNano uint64) (Policy, uint64, error) {
	spec, why := newSpec(), newPolicyError()
	var until C.uint64_t
	code := C.tollbar_schedule_at((*C.char)(unsafe.Pointer(text(schedule))), C.size_t(len(schedule)),
		C.uint64_t(unixNano), &spec, &until, &why)
	return policyOf(&spec), uint64(until), policyError(schedule, code, &why)
}
