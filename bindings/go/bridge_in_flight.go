package tollbar

// The calls into C that have to do with permits in flight. Callers hold the table's guard, so that Close cannot take
// it away.

/*
#include <stdlib.h>
#include "bridge.h"

#cgo noescape go_in_flight_acquire
#cgo nocallback go_in_flight_acquire
#cgo noescape go_in_flight_release
#cgo nocallback go_in_flight_release
#cgo noescape go_in_flight_count
#cgo nocallback go_in_flight_count
*/
import "C"

import "unsafe"

// openInFlight makes a table, or opens the one at path unless that is empty.
func openInFlight(path string, options *InFlightOptions) (uintptr, error) {
	o := C.tollbar_in_flight_options{
		struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_in_flight_options{})),
		processes:   C.uint32_t(options.Processes),
		capacity:    C.uint64_t(options.Capacity),
		mode:        C.uint32_t(options.Mode.Perm()),
	}
	if options.TrustAnyone {
		o.flags |= C.TOLLBAR_IN_FLIGHT_TRUST_ANYONE
	}
	var file *C.char
	if path != "" {
		file = C.CString(path)
		defer C.free(unsafe.Pointer(file))
	}
	var table C.uintptr_t
	code, err := C.go_in_flight_open(file, &o, &table)
	if code != 0 {
		return 0, &TableError{Path: path, Code: Code(code), Errno: errnoOf(Code(code), err)}
	}
	return uintptr(table), nil
}

func freeInFlight(table uintptr) { C.go_in_flight_close(C.uintptr_t(table)) }

func inFlightAcquire(table uintptr, key string, limit uint32) (uint64, Code) {
	var ticket C.uint64_t
	code := C.go_in_flight_acquire(C.uintptr_t(table), text(key), C.size_t(len(key)), C.uint32_t(limit), &ticket)
	return uint64(ticket), Code(code)
}

func inFlightRelease(table uintptr, ticket uint64) Code {
	return Code(C.go_in_flight_release(C.uintptr_t(table), C.uint64_t(ticket)))
}

func inFlightCount(table uintptr, key string) uint64 {
	var count C.uint64_t
	C.go_in_flight_count(C.uintptr_t(table), text(key), C.size_t(len(key)), &count)
	return uint64(count)
}
