//go:build cgo || tollbar_purego

package tollbar

// The calls into C that have to do with permits in flight. Callers hold the table's guard, so that
// Close cannot take it away.

import "unsafe"

// openInFlight makes a table, or opens the one at path unless that is empty.
func openInFlight(path string, options *InFlightOptions) (uintptr, error) {
	o := tollbar_in_flight_options{
		struct_size: uint32(unsafe.Sizeof(tollbar_in_flight_options{})),
		processes:   options.Processes,
		capacity:    options.Capacity,
		mode:        uint32(options.Mode.Perm()),
	}
	if options.TrustAnyone {
		o.flags |= tollbar_flight_trust
	}
	var table uintptr
	code, errno := cInFlightOpen(path, &o, &table)
	if Code(code) == needsLibraryCode {
		return 0, libraryError()
	}
	if code != 0 {
		return 0, &TableError{Path: path, Code: Code(code), Errno: reasonOf(Code(code), errno)}
	}
	return uintptr(table), nil
}

func freeInFlight(table uintptr) { cInFlightClose(table) }

func inFlightAcquire(table uintptr, key string, limit uint32) (uint64, Code) {
	var ticket uint64
	code := cInFlightAcquire(table, key, limit, &ticket)
	return ticket, Code(code)
}

func inFlightRelease(table uintptr, ticket uint64) Code {
	return Code(cInFlightRelease(table, ticket))
}

func inFlightCount(table uintptr, key string) uint64 {
	var count uint64
	cInFlightCount(table, key, &count)
	return count
}
