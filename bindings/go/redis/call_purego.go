//go:build tollbar_purego

package redis

// How bridge.go calls the library without cgo: in libtollbar-redis, which the program loads at its
// first lease; call_cgo.go has the other way.

import (
	"strings"
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go/internal/library"
)

// The libraries: that of leases, and libtollbar, which reads the policy.
var (
	libtollbar      = &library.Library{Name: "libtollbar.so.1", Variable: "TOLLBAR_LIBRARY", ABI: "tollbar_abi_1"}
	libtollbarRedis = &library.Library{
		Name: "libtollbar-redis.so.1", Variable: "TOLLBAR_REDIS_LIBRARY", ABI: "tollbar_redis_abi_1",
		Version: "tollbar_redis_version", Least: 0<<16 | 1<<8,
	}

	tollbar_policy_spec_parse        = libtollbar.Need("tollbar_policy_spec_parse")
	tollbar_lease_new                = libtollbarRedis.Need("tollbar_lease_new")
	tollbar_lease_close              = libtollbarRedis.Need("tollbar_lease_close")
	tollbar_lease_check              = libtollbarRedis.Need("tollbar_lease_check")
	tollbar_lease_check_at           = libtollbarRedis.Need("tollbar_lease_check_at")
	tollbar_lease_peek               = libtollbarRedis.Need("tollbar_lease_peek")
	tollbar_lease_poll               = libtollbarRedis.Need("tollbar_lease_poll")
	tollbar_lease_now                = libtollbarRedis.Need("tollbar_lease_now")
	tollbar_lease_get_stats          = libtollbarRedis.Need("tollbar_lease_get_stats")
	tollbar_lease_client_new         = libtollbarRedis.Need("tollbar_lease_client_new")
	tollbar_lease_client_on_change   = libtollbarRedis.Need("tollbar_lease_client_on_change")
	tollbar_lease_client_add         = libtollbarRedis.Need("tollbar_lease_client_add")
	tollbar_lease_client_report      = libtollbarRedis.Need("tollbar_lease_client_report")
	tollbar_lease_client_remove      = libtollbarRedis.Need("tollbar_lease_client_remove")
	tollbar_lease_client_run         = libtollbarRedis.Need("tollbar_lease_client_run")
	tollbar_lease_client_stop        = libtollbarRedis.Need("tollbar_lease_client_stop")
	tollbar_lease_client_lease_error = libtollbarRedis.Need("tollbar_lease_client_lease_error")
	tollbar_lease_client_close       = libtollbarRedis.Need("tollbar_lease_client_close")
	tollbar_lease_calls_new          = libtollbarRedis.Need("tollbar_lease_calls_new")
	tollbar_lease_calls_script       = libtollbarRedis.Need("tollbar_lease_calls_script")
	tollbar_lease_calls_turn         = libtollbarRedis.Need("tollbar_lease_calls_turn")
	tollbar_lease_calls_answered     = libtollbarRedis.Need("tollbar_lease_calls_answered")
	tollbar_lease_calls_refused      = libtollbarRedis.Need("tollbar_lease_calls_refused")
	tollbar_lease_calls_lost         = libtollbarRedis.Need("tollbar_lease_calls_lost")
	tollbar_lease_calls_wait         = libtollbarRedis.Need("tollbar_lease_calls_wait")
	tollbar_lease_calls_error        = libtollbarRedis.Need("tollbar_lease_calls_error")
	tollbar_lease_calls_close        = libtollbarRedis.Need("tollbar_lease_calls_close")
	tollbar_store_limit_new          = libtollbarRedis.Need("tollbar_store_limit_new")
	tollbar_store_limit_free         = libtollbarRedis.Need("tollbar_store_limit_free")
	tollbar_store_ask                = libtollbarRedis.Need("tollbar_store_ask")
	tollbar_store_answer             = libtollbarRedis.Need("tollbar_store_answer")
)

// libraryError is the reason for which the library cannot be called, or nil.
func libraryError() error { return libtollbarRedis.Err() }

func cSpec(policy string, spec *tollbar_policy_spec) int32 {
	return library.Call4(tollbar_policy_spec_parse, uintptr(library.Text(policy)), uintptr(len(policy)),
		uintptr(unsafe.Pointer(spec)), 0)
}

func cLeaseNew(name string, spec *tollbar_policy_spec, options *tollbar_lease_options, out *uintptr) int32 {
	return library.Call5(tollbar_lease_new, uintptr(library.Text(name)), uintptr(len(name)),
		uintptr(unsafe.Pointer(spec)), uintptr(unsafe.Pointer(options)), uintptr(unsafe.Pointer(out)))
}

func cLeaseFree(lease uintptr) { library.Call1(tollbar_lease_close, lease) }

func cLeaseCheck(lease uintptr, key string, cost uint64, out *tollbar_decision) int32 {
	return library.Call5(tollbar_lease_check, lease, uintptr(library.Text(key)), uintptr(len(key)), uintptr(cost),
		uintptr(unsafe.Pointer(out)))
}

func cLeaseCheckAt(lease uintptr, key string, now, cost uint64, out *tollbar_decision) int32 {
	return library.Call6(tollbar_lease_check_at, lease, uintptr(library.Text(key)), uintptr(len(key)), uintptr(cost),
		uintptr(now), uintptr(unsafe.Pointer(out)))
}

func cLeasePeek(lease uintptr, key string, cost uint64, out *tollbar_decision) int32 {
	return library.Call5(tollbar_lease_peek, lease, uintptr(library.Text(key)), uintptr(len(key)), uintptr(cost),
		uintptr(unsafe.Pointer(out)))
}

func cLeasePoll(lease uintptr, key string, request *tollbar_lease_request) int32 {
	return library.Call5(tollbar_lease_poll, lease, uintptr(library.Text(key)), uintptr(len(key)),
		uintptr(unsafe.Pointer(request)), 0)
}

func cLeaseNow(lease uintptr) uint64 {
	return uint64(tollbar_lease_now.Word(lease, 0, 0, 0, 0, 0, 0, 0))
}

func cLeaseStats(lease uintptr, out *tollbar_lease_stats) int32 {
	return library.Call2(tollbar_lease_get_stats, lease, uintptr(unsafe.Pointer(out)))
}

// cClientNew makes a client that stops when the circuit of a lease changes. The listener that C calls is
// the function that stops the client, which takes the client as its first argument: so C never calls Go.
func cClientNew(lease uintptr, url string, column, out *uintptr) int32 {
	code := library.Call5(tollbar_lease_client_new, lease, uintptr(library.Text(url)), uintptr(len(url)),
		uintptr(unsafe.Pointer(column)), uintptr(unsafe.Pointer(out)))
	if code != 0 {
		return code
	}
	return library.Call3(tollbar_lease_client_on_change, *out, tollbar_lease_client_stop.At(), *out)
}

func cClientAdd(client, lease uintptr) int32 {
	return library.Call2(tollbar_lease_client_add, client, lease)
}

func cClientReport(client, lease uintptr, patience uint32) int32 {
	return library.Call3(tollbar_lease_client_report, client, lease, uintptr(patience))
}

func cClientRemove(client, lease uintptr, patience uint32) int32 {
	return library.Call3(tollbar_lease_client_remove, client, lease, uintptr(patience))
}

func cClientRun(client uintptr) { library.Call1(tollbar_lease_client_run, client) }

func cClientLeaseError(client, lease uintptr) string {
	return terminated(tollbar_lease_client_lease_error, client, lease)
}

func cClientStop(client uintptr) { library.Call1(tollbar_lease_client_stop, client) }

func cClientClose(client uintptr, patience uint32) int32 {
	return library.Call2(tollbar_lease_client_close, client, uintptr(patience))
}

func cCallsScript() string { return terminated(tollbar_lease_calls_script, 0, 0) }

// terminated is a copy of the text that a function of C returns.
func terminated(of *library.Function, handle, other uintptr) string {
	return strings.Clone(static((*byte)(library.Static(of.Word(handle, other, 0, 0, 0, 0, 0, 0)))))
}

func cCallsNew(lease uintptr, out *uintptr) int32 {
	return library.Call2(tollbar_lease_calls_new, lease, uintptr(unsafe.Pointer(out)))
}

func cCallsTurn(calls uintptr, flags uint32, out *tollbar_lease_call) int32 {
	return library.Call3(tollbar_lease_calls_turn, calls, uintptr(flags), uintptr(unsafe.Pointer(out)))
}

func cCallsAnswered(calls uintptr, reply string) int32 {
	return library.Call3(tollbar_lease_calls_answered, calls, uintptr(library.Text(reply)), uintptr(len(reply)))
}

func cCallsRefused(calls uintptr, why string) int32 {
	return library.Call3(tollbar_lease_calls_refused, calls, uintptr(library.Text(why)), uintptr(len(why)))
}

func cCallsLost(calls uintptr, why string) int32 {
	return library.Call3(tollbar_lease_calls_lost, calls, uintptr(library.Text(why)), uintptr(len(why)))
}

func cCallsWait(calls uintptr, milliseconds uint32) {
	library.Call2(tollbar_lease_calls_wait, calls, uintptr(milliseconds))
}

func cCallsError(calls uintptr) string { return terminated(tollbar_lease_calls_error, calls, 0) }

func cCallsClose(calls uintptr) int32 { return library.Call1(tollbar_lease_calls_close, calls) }

func cStoreLimitNew(name string, spec *tollbar_policy_spec, out *uintptr) int32 {
	return library.Call4(tollbar_store_limit_new, uintptr(library.Text(name)), uintptr(len(name)),
		uintptr(unsafe.Pointer(spec)), uintptr(unsafe.Pointer(out)))
}

func cStoreLimitFree(limit uintptr) { library.Call1(tollbar_store_limit_free, limit) }

func cStoreAsk(limit uintptr, ask uint32, key string, cost uint64, question *tollbar_store_question) int32 {
	return library.Call6(tollbar_store_ask, limit, uintptr(ask), uintptr(library.Text(key)), uintptr(len(key)),
		uintptr(cost), uintptr(unsafe.Pointer(question)))
}

func cStoreAnswer(
	limit uintptr, question *tollbar_store_question, reply []int64, out *tollbar_decision, taken *uint64,
) int32 {
	return library.Call6(tollbar_store_answer, limit, uintptr(unsafe.Pointer(question)),
		uintptr(unsafe.Pointer(unsafe.SliceData(reply))), uintptr(len(reply)), uintptr(unsafe.Pointer(out)),
		uintptr(unsafe.Pointer(taken)))
}
