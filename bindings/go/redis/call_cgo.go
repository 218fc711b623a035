//go:build cgo && !tollbar_purego

package redis

// How bridge.go calls the library with cgo; call_purego.go has the other way.

/*
#include "bridge.h"

#cgo noescape go_lease_check
#cgo nocallback go_lease_check
#cgo noescape go_lease_check_at
#cgo nocallback go_lease_check_at
#cgo noescape go_lease_peek
#cgo nocallback go_lease_peek
#cgo noescape go_lease_poll
#cgo nocallback go_lease_poll
#cgo nocallback go_lease_now
#cgo noescape go_lease_stats
#cgo nocallback go_lease_stats
#cgo nocallback go_client_run
#cgo nocallback go_client_report
#cgo nocallback go_client_remove
#cgo nocallback go_client_close
#cgo noescape go_calls_turn
#cgo nocallback go_calls_turn
#cgo noescape go_calls_answered
#cgo nocallback go_calls_answered
#cgo nocallback go_calls_wait
#cgo noescape go_store_ask
#cgo nocallback go_store_ask
#cgo noescape go_store_answer
#cgo nocallback go_store_answer
*/
import "C"

import "unsafe"

// This compiles only if the structs in Go are as long as C's.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(tollbar_decision{})-unsafe.Sizeof(C.tollbar_decision{})]
	_ = [1]struct{}{}[unsafe.Sizeof(tollbar_policy_spec{})-unsafe.Sizeof(C.tollbar_policy_spec{})]
	_ = [1]struct{}{}[unsafe.Sizeof(tollbar_lease_options{})-unsafe.Sizeof(C.tollbar_lease_options{})]
	_ = [1]struct{}{}[unsafe.Sizeof(tollbar_lease_request{})-unsafe.Sizeof(C.tollbar_lease_request{})]
	_ = [1]struct{}{}[unsafe.Sizeof(tollbar_lease_stats{})-unsafe.Sizeof(C.tollbar_lease_stats{})]
	_ = [1]struct{}{}[unsafe.Sizeof(tollbar_lease_call{})-unsafe.Sizeof(C.tollbar_lease_call{})]
	_ = [1]struct{}{}[unsafe.Sizeof(tollbar_lease_part{})-unsafe.Sizeof(C.tollbar_lease_part{})]
	_ = [1]struct{}{}[unsafe.Sizeof(tollbar_store_question{})-unsafe.Sizeof(C.tollbar_store_question{})]
	_ = [1]struct{}{}[tollbar_lease_closing-C.TOLLBAR_LEASE_CLOSING]
	_ = [1]struct{}{}[tollbar_lease_inexact-C.TOLLBAR_LEASE_INEXACT|
		tollbar_lease_has_overdraft-C.TOLLBAR_LEASE_HAS_OVERDRAFT|
		tollbar_lease_refill-C.TOLLBAR_LEASE_REFILL|tollbar_lease_waits-C.TOLLBAR_LEASE_WAITS]
	_ = [1]struct{}{}[tollbar_store_check-C.TOLLBAR_STORE_CHECK|tollbar_store_peek-C.TOLLBAR_STORE_PEEK|
		tollbar_store_up_to-C.TOLLBAR_STORE_UP_TO|tollbar_store_reset-C.TOLLBAR_STORE_RESET]
)

// libraryError is the reason for which the library cannot be called: none, since it is linked.
func libraryError() error {
	// Refers to the symbol that a library of another ABI does not have.
	_ = C.go_abi()
	return nil
}

// text returns the pointer of a string for C. The pointer is never null.
func text(s string) *C.uint8_t {
	if s == "" {
		return (*C.uint8_t)(unsafe.Pointer(&noBytes))
	}
	return (*C.uint8_t)(unsafe.Pointer(unsafe.StringData(s)))
}

// noBytes is the target of an empty string's pointer.
var noBytes byte

func cSpec(policy string, spec *tollbar_policy_spec) int32 {
	return int32(C.go_spec(text(policy), C.size_t(len(policy)), (*C.tollbar_policy_spec)(unsafe.Pointer(spec))))
}

func cLeaseNew(name string, spec *tollbar_policy_spec, options *tollbar_lease_options, out *uintptr) int32 {
	var lease C.uintptr_t
	code := C.go_lease_new(text(name), C.size_t(len(name)), (*C.tollbar_policy_spec)(unsafe.Pointer(spec)),
		(*C.tollbar_lease_options)(unsafe.Pointer(options)), &lease)
	*out = uintptr(lease)
	return int32(code)
}

func cLeaseFree(lease uintptr) { C.go_lease_free(C.uintptr_t(lease)) }

func cLeaseCheck(lease uintptr, key string, cost uint64, out *tollbar_decision) int32 {
	return int32(C.go_lease_check(C.uintptr_t(lease), text(key), C.size_t(len(key)), C.uint64_t(cost),
		(*C.tollbar_decision)(unsafe.Pointer(out))))
}

func cLeaseCheckAt(lease uintptr, key string, now, cost uint64, out *tollbar_decision) int32 {
	return int32(C.go_lease_check_at(C.uintptr_t(lease), text(key), C.size_t(len(key)), C.uint64_t(now),
		C.uint64_t(cost), (*C.tollbar_decision)(unsafe.Pointer(out))))
}

func cLeasePeek(lease uintptr, key string, cost uint64, out *tollbar_decision) int32 {
	return int32(C.go_lease_peek(C.uintptr_t(lease), text(key), C.size_t(len(key)), C.uint64_t(cost),
		(*C.tollbar_decision)(unsafe.Pointer(out))))
}

func cLeasePoll(lease uintptr, key string, request *tollbar_lease_request) int32 {
	return int32(C.go_lease_poll(C.uintptr_t(lease), text(key), C.size_t(len(key)),
		(*C.tollbar_lease_request)(unsafe.Pointer(request))))
}

func cLeaseNow(lease uintptr) uint64 { return uint64(C.go_lease_now(C.uintptr_t(lease))) }

func cLeaseStats(lease uintptr, out *tollbar_lease_stats) int32 {
	return int32(C.go_lease_stats(C.uintptr_t(lease), (*C.tollbar_lease_stats)(unsafe.Pointer(out))))
}

func cClientNew(lease uintptr, url string, column, out *uintptr) int32 {
	var at C.size_t
	var client C.uintptr_t
	code := C.go_client_new(C.uintptr_t(lease), text(url), C.size_t(len(url)), &at, &client)
	*column, *out = uintptr(at), uintptr(client)
	return int32(code)
}

func cClientAdd(client, lease uintptr) int32 {
	return int32(C.go_client_add(C.uintptr_t(client), C.uintptr_t(lease)))
}

func cClientReport(client, lease uintptr, patience uint32) int32 {
	return int32(C.go_client_report(C.uintptr_t(client), C.uintptr_t(lease), C.uint32_t(patience)))
}

func cClientRemove(client, lease uintptr, patience uint32) int32 {
	return int32(C.go_client_remove(C.uintptr_t(client), C.uintptr_t(lease), C.uint32_t(patience)))
}

func cClientRun(client uintptr) { C.go_client_run(C.uintptr_t(client)) }

func cClientLeaseError(client, lease uintptr) string {
	return C.GoString(C.go_client_lease_error(C.uintptr_t(client), C.uintptr_t(lease)))
}

func cClientStop(client uintptr) { C.go_client_stop(C.uintptr_t(client)) }

func cClientClose(client uintptr, patience uint32) int32 {
	return int32(C.go_client_close(C.uintptr_t(client), C.uint32_t(patience)))
}

func cCallsScript() string { return C.GoString(C.tollbar_lease_calls_script()) }

func cCallsNew(lease uintptr, out *uintptr) int32 {
	var calls C.uintptr_t
	code := C.go_calls_new(C.uintptr_t(lease), &calls)
	*out = uintptr(calls)
	return int32(code)
}

func cCallsTurn(calls uintptr, flags uint32, out *tollbar_lease_call) int32 {
	return int32(C.go_calls_turn(C.uintptr_t(calls), C.uint32_t(flags), (*C.tollbar_lease_call)(unsafe.Pointer(out))))
}

func cCallsAnswered(calls uintptr, reply string) int32 {
	return int32(C.go_calls_answered(C.uintptr_t(calls), text(reply), C.size_t(len(reply))))
}

func cCallsRefused(calls uintptr, why string) int32 {
	return int32(C.go_calls_refused(C.uintptr_t(calls), text(why), C.size_t(len(why))))
}

func cCallsLost(calls uintptr, why string) int32 {
	return int32(C.go_calls_lost(C.uintptr_t(calls), text(why), C.size_t(len(why))))
}

func cCallsWait(calls uintptr, milliseconds uint32) {
	C.go_calls_wait(C.uintptr_t(calls), C.uint32_t(milliseconds))
}

func cCallsError(calls uintptr) string { return C.GoString(C.go_calls_error(C.uintptr_t(calls))) }

func cCallsClose(calls uintptr) int32 { return int32(C.go_calls_close(C.uintptr_t(calls))) }

func cStoreLimitNew(name string, spec *tollbar_policy_spec, out *uintptr) int32 {
	var limit C.uintptr_t
	code := C.go_store_limit_new(text(name), C.size_t(len(name)), (*C.tollbar_policy_spec)(unsafe.Pointer(spec)), &limit)
	*out = uintptr(limit)
	return int32(code)
}

func cStoreLimitFree(limit uintptr) { C.go_store_limit_free(C.uintptr_t(limit)) }

func cStoreAsk(limit uintptr, ask uint32, key string, cost uint64, question *tollbar_store_question) int32 {
	return int32(C.go_store_ask(C.uintptr_t(limit), C.uint32_t(ask), text(key), C.size_t(len(key)), C.uint64_t(cost),
		(*C.tollbar_store_question)(unsafe.Pointer(question))))
}

func cStoreAnswer(
	limit uintptr, question *tollbar_store_question, reply []int64, out *tollbar_decision, taken *uint64,
) int32 {
	return int32(C.go_store_answer(C.uintptr_t(limit), (*C.tollbar_store_question)(unsafe.Pointer(question)),
		(*C.int64_t)(unsafe.SliceData(reply)), C.size_t(len(reply)), (*C.tollbar_decision)(unsafe.Pointer(out)),
		(*C.uint64_t)(taken)))
}
