//go:build cgo && !tollbar_purego

package tollbar

// How the bridge files call the library with cgo; call_purego.go has the other way. No C function
// calls back into Go or keeps a pointer. The cgo directives say both of the calls that decide, so
// the memory behind their pointers may stay on the goroutine's stack.

/*
#include <errno.h>
#include <stdlib.h>
#include "bridge.h"

#cgo nocallback go_nothing
#cgo noescape go_limiter_many
#cgo nocallback go_limiter_many
#cgo noescape go_limiter_many_at
#cgo nocallback go_limiter_many_at
#cgo noescape go_limiter_take_now
#cgo nocallback go_limiter_take_now
#cgo noescape go_limiter_check_class
#cgo nocallback go_limiter_check_class
#cgo noescape go_table_check_class
#cgo nocallback go_table_check_class
#cgo noescape go_hierarchy_take
#cgo nocallback go_hierarchy_take
#cgo noescape go_http_write
#cgo nocallback go_http_write
#cgo noescape go_http_read
#cgo nocallback go_http_read
#cgo noescape go_metrics
#cgo nocallback go_metrics
#cgo noescape go_pacing_acquire
#cgo nocallback go_pacing_acquire
#cgo noescape go_pacing_wait
#cgo nocallback go_pacing_wait
#cgo noescape go_pacing_respond
#cgo nocallback go_pacing_respond
#cgo noescape go_pacing_leave
#cgo nocallback go_pacing_leave
#cgo noescape go_pacing_read
#cgo nocallback go_pacing_read
#cgo noescape go_table_take_now
#cgo nocallback go_table_take_now
#cgo noescape go_table_many
#cgo nocallback go_table_many
#cgo noescape go_take_many
#cgo nocallback go_take_many
*/
import "C"

import (
	"syscall"
	"unsafe"
)

// libraryError is the reason for which the library cannot be called: none, since it is linked.
func libraryError() error { return nil }

// text returns the pointer of a string for C. The pointer is never null.
func text(s string) *C.uint8_t {
	if s == "" {
		return (*C.uint8_t)(unsafe.Pointer(&noBytes))
	}
	return (*C.uint8_t)(unsafe.Pointer(unsafe.StringData(s)))
}

// noBytes is the target of an empty string's pointer.
var noBytes byte

// first is the address of a slice's bytes for C.
func first(bytes []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(bytes))) }

// flag is a bool for C.
func flag(at bool) C.int {
	if at {
		return 1
	}
	return 0
}

// ---- the library itself, and policies ----

func cStrerror(code int32) string { return C.GoString(C.tollbar_strerror(C.int32_t(code))) }

func cVersion() string {
	// Refers to the symbol that a library of another ABI does not have.
	_ = C.go_abi()
	return C.GoString(C.tollbar_version_string())
}

func cClockNow(clock uint32, now *uint64) int32 {
	return int32(C.tollbar_clock_now(C.uint32_t(clock), (*C.uint64_t)(now)))
}

func cPolicyParse(policy string, spec *tollbar_policy_spec, why *tollbar_policy_error) int32 {
	return int32(C.tollbar_policy_spec_parse((*C.char)(unsafe.Pointer(text(policy))), C.size_t(len(policy)),
		(*C.tollbar_policy_spec)(unsafe.Pointer(spec)), (*C.tollbar_policy_error)(unsafe.Pointer(why))))
}

func cPolicyValidate(spec *tollbar_policy_spec) int32 {
	return int32(C.tollbar_policy_spec_validate((*C.tollbar_policy_spec)(unsafe.Pointer(spec))))
}

func cPolicyLastTime(spec *tollbar_policy_spec, last *uint64) int32 {
	return int32(C.tollbar_policy_spec_last_time((*C.tollbar_policy_spec)(unsafe.Pointer(spec)), (*C.uint64_t)(last)))
}

func cPolicyWorstCase(spec *tollbar_policy_spec, window uint64, most *uint64) int32 {
	return int32(C.tollbar_policy_spec_worst_case((*C.tollbar_policy_spec)(unsafe.Pointer(spec)), C.uint64_t(window),
		(*C.uint64_t)(most)))
}

func cPolicySamples(limit, period uint64, shares []float64, spec *tollbar_policy_spec, fit *tollbar_curve_fit) int32 {
	return int32(C.tollbar_policy_spec_samples(C.uint64_t(limit), C.uint64_t(period),
		(*C.double)(unsafe.SliceData(shares)), C.size_t(len(shares)),
		(*C.tollbar_policy_spec)(unsafe.Pointer(spec)), (*C.tollbar_curve_fit)(unsafe.Pointer(fit))))
}

func cPolicyPrint(spec *tollbar_policy_spec, buffer []byte) int32 {
	return int32(C.tollbar_policy_spec_print((*C.tollbar_policy_spec)(unsafe.Pointer(spec)),
		(*C.char)(unsafe.Pointer(first(buffer))), C.size_t(len(buffer)), nil))
}

func cSchedulePrint(schedule string, buffer []byte, why *tollbar_policy_error) int32 {
	return int32(C.tollbar_schedule_print((*C.char)(unsafe.Pointer(text(schedule))), C.size_t(len(schedule)),
		(*C.char)(unsafe.Pointer(first(buffer))), C.size_t(len(buffer)), nil,
		(*C.tollbar_policy_error)(unsafe.Pointer(why))))
}

func cScheduleAt(schedule string, utc uint64, spec *tollbar_policy_spec, until *uint64,
	why *tollbar_policy_error) int32 {
	return int32(C.tollbar_schedule_at((*C.char)(unsafe.Pointer(text(schedule))), C.size_t(len(schedule)),
		C.uint64_t(utc), (*C.tollbar_policy_spec)(unsafe.Pointer(spec)), (*C.uint64_t)(until),
		(*C.tollbar_policy_error)(unsafe.Pointer(why))))
}

func cPrefix(address []byte, ipv4Bits, ipv6Bits uint32, out *tollbar_prefix) int32 {
	return int32(C.tollbar_prefix_from_address(unsafe.Pointer(first(address)), C.size_t(len(address)),
		C.uint32_t(ipv4Bits), C.uint32_t(ipv6Bits), (*C.tollbar_prefix)(unsafe.Pointer(out))))
}

// ---- calls whose arguments C puts together (bridge.h) ----

func cNothing(limiter uintptr) int32 { return int32(C.go_nothing(C.uintptr_t(limiter))) }

func cLimiterNew(spec *tollbar_policy_spec, clock, credit uint32, out *uintptr) int32 {
	var limiter C.uintptr_t
	code := C.go_limiter_new((*C.tollbar_policy_spec)(unsafe.Pointer(spec)), C.uint32_t(clock), C.uint32_t(credit),
		&limiter)
	*out = uintptr(limiter)
	return int32(code)
}

func cLimiterTakeNow(limiter uintptr, cost uint64) int32 {
	return int32(C.go_limiter_take_now(C.uintptr_t(limiter), C.uint64_t(cost)))
}

func cLimiterMany(limiter uintptr, at bool, now uint64, costs []uint64, verdicts []Verdict) int32 {
	first := (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(costs)))
	results := (*C.int32_t)(unsafe.Pointer(unsafe.SliceData(verdicts)))
	if at {
		return int32(C.go_limiter_many_at(C.uintptr_t(limiter), C.uint64_t(now), first, C.size_t(len(verdicts)), results))
	}
	return int32(C.go_limiter_many(C.uintptr_t(limiter), first, C.size_t(len(verdicts)), results))
}

func cLimiterCheckClass(limiter uintptr, at bool, now, cost uint64, class *className, out *tollbar_decision) int32 {
	return int32(C.go_limiter_check_class(C.uintptr_t(limiter), flag(at), C.uint64_t(now), C.uint64_t(cost),
		(*C.char)(unsafe.Pointer(class)), (*C.tollbar_decision)(unsafe.Pointer(out))))
}

func cTableOpen(path string, options *tollbar_table_options, specs []tollbar_policy_spec,
	out *uintptr) (int32, syscall.Errno) {
	var file *C.char
	if path != "" {
		file = C.CString(path)
		defer C.free(unsafe.Pointer(file))
	}
	var table C.uintptr_t
	code, err := C.go_table_open(file, (*C.tollbar_table_options)(unsafe.Pointer(options)),
		(*C.tollbar_policy_spec)(unsafe.Pointer(unsafe.SliceData(specs))), C.size_t(len(specs)), &table)
	*out = uintptr(table)
	return int32(code), errnoOf(err)
}

// errnoOf is the errno of a call.
func errnoOf(err error) syscall.Errno {
	errno, _ := err.(syscall.Errno)
	return errno
}

func cTableTakeNow(table uintptr, policy uint32, key string, cost uint64) int32 {
	return int32(C.go_table_take_now(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(cost)))
}

func cTableCheckClass(table uintptr, policy uint32, key string, at bool, now, cost uint64, class *className,
	out *tollbar_decision) int32 {
	return int32(C.go_table_check_class(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		flag(at), C.uint64_t(now), C.uint64_t(cost), (*C.char)(unsafe.Pointer(class)),
		(*C.tollbar_decision)(unsafe.Pointer(out))))
}

func cTableMany(table uintptr, at bool, now uint64, keys []byte, items []batchItem, verdicts []Verdict) int32 {
	return int32(C.go_table_many(C.uintptr_t(table), flag(at), C.uint64_t(now),
		text(unsafe.String(unsafe.SliceData(keys), len(keys))),
		(*C.go_item)(unsafe.Pointer(unsafe.SliceData(items))), C.size_t(len(items)),
		(*C.int32_t)(unsafe.Pointer(unsafe.SliceData(verdicts)))))
}

func cTableManyInC(table uintptr, keys []byte, items []batchItem, verdicts []Verdict, rounds int) int32 {
	return int32(C.go_table_many_in_c(C.uintptr_t(table), text(unsafe.String(unsafe.SliceData(keys), len(keys))),
		(*C.go_item)(unsafe.Pointer(unsafe.SliceData(items))), C.size_t(len(items)),
		(*C.int32_t)(unsafe.Pointer(unsafe.SliceData(verdicts))), C.size_t(rounds)))
}

func cTakeMany(keys []byte, items []limitItem, at bool, now uint64, each *tollbar_decision, out *tollbar_taken) int32 {
	return int32(C.go_take_many(text(unsafe.String(unsafe.SliceData(keys), len(keys))),
		(*C.go_limit)(unsafe.Pointer(unsafe.SliceData(items))), C.size_t(len(items)), flag(at), C.uint64_t(now),
		(*C.tollbar_decision)(unsafe.Pointer(each)), (*C.tollbar_taken)(unsafe.Pointer(out))))
}

func cTableTopRefused(table uintptr, now uint64, found []tollbar_table_refused, count *uintptr) int32 {
	var n C.size_t
	code := C.go_table_top_refused(C.uintptr_t(table), C.uint64_t(now),
		(*C.tollbar_table_refused)(unsafe.Pointer(unsafe.SliceData(found))), C.size_t(len(found)), &n)
	*count = uintptr(n)
	return int32(code)
}

func cTableSync(table uintptr) (int32, syscall.Errno) {
	code, err := C.go_table_sync(C.uintptr_t(table))
	return int32(code), errnoOf(err)
}

func cTableHealth(table uintptr, repair bool, now uint64, out *tollbar_table_health) int32 {
	return int32(C.go_table_health(C.uintptr_t(table), flag(repair), C.uint64_t(now),
		(*C.tollbar_table_health)(unsafe.Pointer(out))))
}

func cInFlightOpen(path string, options *tollbar_in_flight_options, out *uintptr) (int32, syscall.Errno) {
	var file *C.char
	if path != "" {
		file = C.CString(path)
		defer C.free(unsafe.Pointer(file))
	}
	var table C.uintptr_t
	code, err := C.go_in_flight_open(file, (*C.tollbar_in_flight_options)(unsafe.Pointer(options)), &table)
	*out = uintptr(table)
	return int32(code), errnoOf(err)
}

func cAdaptiveInit(limit *tollbar_adaptive, options *tollbar_adaptive_options) int32 {
	return int32(C.tollbar_adaptive_init((*C.tollbar_adaptive)(unsafe.Pointer(limit)),
		(*C.tollbar_adaptive_options)(unsafe.Pointer(options))))
}

func cAdaptiveRead(limit *tollbar_adaptive, out *tollbar_adaptive_state) {
	C.tollbar_adaptive_read((*C.tollbar_adaptive)(unsafe.Pointer(limit)),
		(*C.tollbar_adaptive_state)(unsafe.Pointer(out)))
}

func cPacingNew(options *tollbar_pacing_options, hosts int, out *uintptr) int32 {
	var pacing C.uintptr_t
	code := C.go_pacing_new((*C.tollbar_pacing_options)(unsafe.Pointer(options)), C.size_t(hosts), &pacing)
	*out = uintptr(pacing)
	return int32(code)
}

func cPacingAcquire(pacing uintptr, host string, now uint64, out *tollbar_pacing_ticket) int32 {
	return int32(C.go_pacing_acquire(C.uintptr_t(pacing), text(host), C.size_t(len(host)), C.uint64_t(now),
		(*C.tollbar_pacing_ticket)(unsafe.Pointer(out))))
}

func cPacingWait(pacing uintptr, ticket *tollbar_pacing_ticket, now uint64) uint64 {
	return uint64(C.go_pacing_wait(C.uintptr_t(pacing), *(*C.tollbar_pacing_ticket)(unsafe.Pointer(ticket)),
		C.uint64_t(now)))
}

func cPacingRespond(pacing uintptr, ticket *tollbar_pacing_ticket, status uint32, lines string, utc, now uint64) {
	C.go_pacing_respond(C.uintptr_t(pacing), *(*C.tollbar_pacing_ticket)(unsafe.Pointer(ticket)), C.uint32_t(status),
		text(lines), C.size_t(len(lines)), C.uint64_t(utc), C.uint64_t(now))
}

func cPacingLeave(pacing uintptr, ticket *tollbar_pacing_ticket, now uint64) {
	C.go_pacing_leave(C.uintptr_t(pacing), *(*C.tollbar_pacing_ticket)(unsafe.Pointer(ticket)), C.uint64_t(now))
}

func cPacingRead(pacing uintptr, host string, now uint64, out *tollbar_pacing_state) int32 {
	return int32(C.go_pacing_read(C.uintptr_t(pacing), text(host), C.size_t(len(host)), C.uint64_t(now),
		(*C.tollbar_pacing_state)(unsafe.Pointer(out))))
}

func cHTTPWrite(limits []httpItem, names []byte, what uint32, number uint64, buffer []byte, length *uintptr) int32 {
	var n C.size_t
	code := C.go_http_write((*C.go_http_limit)(unsafe.Pointer(unsafe.SliceData(limits))), first(names),
		C.size_t(len(limits)), C.uint32_t(what), C.uint64_t(number), first(buffer), C.size_t(len(buffer)), &n)
	*length = uintptr(n)
	return int32(code)
}

func cHTTPRead(lines string, utc uint64, out *tollbar_http_seen) int32 {
	return int32(C.go_http_read(text(lines), C.size_t(len(lines)), C.uint64_t(utc),
		(*C.tollbar_http_seen)(unsafe.Pointer(out))))
}

func cMetrics(items []metricsItem, names []byte, format uint32, buffer []byte, length *uintptr) int32 {
	var n C.size_t
	code := C.go_metrics((*C.go_metrics_source)(unsafe.Pointer(unsafe.SliceData(items))), first(names),
		C.size_t(len(items)), C.uint32_t(format), first(buffer), C.size_t(len(buffer)), &n)
	*length = uintptr(n)
	return int32(code)
}

func cHierarchyNew(rate string, burst uint64, classes, policy uint32, out *uintptr) int32 {
	of := C.CString(rate)
	defer C.free(unsafe.Pointer(of))
	var hierarchy C.uintptr_t
	code := C.go_hierarchy_new(of, C.uint64_t(burst), C.uint32_t(classes), C.uint32_t(policy), &hierarchy)
	*out = uintptr(hierarchy)
	return int32(code)
}

func cHierarchyAdd(of uintptr, parent uint32, name, guaranteed, ceiling string, keys uint32, number *uint32) int32 {
	n, g, c := C.CString(name), C.CString(guaranteed), C.CString(ceiling)
	defer C.free(unsafe.Pointer(n))
	defer C.free(unsafe.Pointer(g))
	defer C.free(unsafe.Pointer(c))
	return int32(C.go_hierarchy_add(C.uintptr_t(of), C.uint32_t(parent), n, g, c, C.uint32_t(keys),
		(*C.uint32_t)(number)))
}

func cHierarchyTake(of, table uintptr, leaf uint32, key string, cost uint64, at bool, now uint64,
	share *tollbar_share) int32 {
	return int32(C.go_hierarchy_take(C.uintptr_t(of), C.uintptr_t(table), C.uint32_t(leaf), text(key),
		C.size_t(len(key)), C.uint64_t(cost), flag(at), C.uint64_t(now), (*C.tollbar_share)(unsafe.Pointer(share))))
}
