//go:build cgo || tollbar_purego

package redis

// The calls into C of this package, by the functions of call_cgo.go or call_purego.go. A caller
// holds the lease's guard, or is the goroutine that drives its client.

import (
	"fmt"
	"math"
	"time"
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go"
)

// The structs of tollbar_redis.h, with its names. With cgo this package compiles only if they are
// as long as C's.

type tollbar_decision struct {
	struct_size, verdict                      uint32
	remaining, retry_after_ns, reset_after_ns uint64
	reason, bound                             uint32
}

// tollbar_policy_spec has only its first field: the library fills it and reads it.
type tollbar_policy_spec struct {
	_           [0]uint64
	struct_size uint32
	_           [508]uint8
}

type tollbar_lease_options struct {
	struct_size, nodes           uint32
	capacity, life_ns, overdraft uint64
	fallback, flags              uint32
}

type tollbar_lease_request struct {
	struct_size, progress uint32
	cost, until_ns        uint64
}

type tollbar_lease_stats struct {
	struct_size, circuit                                uint32
	granted, asked, overdrawn, fallback_permits         uint64
	uncounted, denied, queue_full, opened, owed, full   uint64
	denied_pending, denied_by_store, denied_by_fallback uint64
}

type tollbar_lease_part struct {
	bytes  *byte
	length uintptr
}

type tollbar_lease_call struct {
	struct_size, wait_ms uint32
	parts                *tollbar_lease_part
	count, keys          uintptr
}

type tollbar_store_question struct {
	struct_size, ask      uint32
	cost                  uint64
	script                *byte
	args                  [7]uint64
	arg_count, key_length uint32
	key                   [592]byte
}

const (
	tollbar_lease_closing       = 1
	tollbar_lease_inexact       = 1
	tollbar_lease_has_overdraft = 2
	tollbar_lease_refill        = 4
	tollbar_lease_waits         = 3
	// The most leases of a client.
	tollbar_lease_client_most = 128

	tollbar_store_check = 0
	tollbar_store_peek  = 1
	tollbar_store_up_to = 2
	tollbar_store_reset = 3
)

func newDecision() tollbar_decision {
	return tollbar_decision{struct_size: uint32(unsafe.Sizeof(tollbar_decision{}))}
}

// decided converts a C decision to a Go one.
func decided(code int32, d *tollbar_decision) tollbar.Decision {
	if code < 0 {
		return tollbar.Decision{Verdict: tollbar.Denied, Reason: tollbar.ReasonFault}
	}
	return tollbar.Decision{
		Verdict: tollbar.Verdict(code),
		Reason:  tollbar.Reason(d.reason), Remaining: d.remaining, RetryAfter: duration(d.retry_after_ns),
		ResetAfter: duration(d.reset_after_ns),
	}
}

// duration converts nanoseconds from C. It returns Forever for times above Go's range.
func duration(ns uint64) time.Duration {
	if ns > math.MaxInt64 {
		return tollbar.Forever
	}
	return time.Duration(ns)
}

// openLease makes a lease.
func openLease(name, policy string, options *LeaseOptions) (lease uintptr, of tollbar.Policy, err error) {
	of, err = tollbar.ParsePolicy(policy)
	if err != nil {
		return 0, of, err
	}
	if err := libraryError(); err != nil {
		return 0, of, err
	}
	if options.Eval != nil && options.URL != "" {
		return 0, of, fmt.Errorf("tollbar: a lease has a URL or Eval, not both")
	}
	spec := tollbar_policy_spec{struct_size: uint32(unsafe.Sizeof(tollbar_policy_spec{}))}
	if code := cSpec(policy, &spec); code != 0 {
		return 0, of, tollbar.Code(code)
	}
	o := tollbar_lease_options{
		struct_size: uint32(unsafe.Sizeof(tollbar_lease_options{})),
		nodes:       options.Nodes, capacity: options.Capacity, life_ns: uint64(max(options.Life, 0)),
		fallback: uint32(options.Fallback),
	}
	if options.Capacity == 0 {
		o.capacity = 4096
	}
	if options.Overdraft != nil {
		o.overdraft = *options.Overdraft
		o.flags |= tollbar_lease_has_overdraft
	}
	if options.Inexact {
		o.flags |= tollbar_lease_inexact
	}
	if options.Refill {
		o.flags |= tollbar_lease_refill
	}
	var made uintptr
	if code := cLeaseNew(name, &spec, &o, &made); code != 0 {
		return 0, of, &tollbar.LeaseError{Name: name, Code: tollbar.Code(code)}
	}
	return made, of, nil
}

func freeLease(lease uintptr) { cLeaseFree(lease) }

func leaseCheck(lease uintptr, key string, n uint64, d *tollbar.Decision) tollbar.Code {
	if d == nil {
		return tollbar.Code(cLeaseCheck(lease, key, n, nil))
	}
	out := newDecision()
	code := cLeaseCheck(lease, key, n, &out)
	*d = decided(code, &out)
	return tollbar.Code(code)
}

func leaseCheckAt(lease uintptr, key string, now, n uint64, d *tollbar.Decision) tollbar.Code {
	out := newDecision()
	code := cLeaseCheckAt(lease, key, now, n, &out)
	*d = decided(code, &out)
	return tollbar.Code(code)
}

func leasePeek(lease uintptr, key string, n uint64, d *tollbar.Decision) tollbar.Code {
	out := newDecision()
	code := cLeasePeek(lease, key, n, &out)
	*d = decided(code, &out)
	return tollbar.Code(code)
}

// newRequest is a request of n permits that waits for the store without an end.
func newRequest(n uint64) tollbar_lease_request {
	size := uint32(unsafe.Sizeof(tollbar_lease_request{}))
	return tollbar_lease_request{struct_size: size, cost: n, until_ns: math.MaxUint64}
}

// leasePoll returns tollbar_lease_waits while the request waits for the store.
func leasePoll(lease uintptr, key string, request *tollbar_lease_request) tollbar.Code {
	return tollbar.Code(cLeasePoll(lease, key, request))
}

func leaseNow(lease uintptr) uint64 { return cLeaseNow(lease) }

func leaseStats(lease uintptr) (LeaseStats, tollbar.Code) {
	s := tollbar_lease_stats{struct_size: uint32(unsafe.Sizeof(tollbar_lease_stats{}))}
	code := cLeaseStats(lease, &s)
	return LeaseStats{
		Circuit: Circuit(s.circuit), Granted: s.granted, Asked: s.asked, Overdrawn: s.overdrawn,
		FallbackPermits: s.fallback_permits, Uncounted: s.uncounted, Denied: s.denied, QueueFull: s.queue_full,
		Opened: s.opened, Owed: s.owed, Full: s.full,
		DeniedPending: s.denied_pending, DeniedByStore: s.denied_by_store, DeniedByFallback: s.denied_by_fallback,
	}, tollbar.Code(code)
}

// newClient makes a client of the store at the URL, which stops when a circuit changes.
func newClient(lease uintptr, url string) (client uintptr, code tollbar.Code, column uintptr) {
	code = tollbar.Code(cClientNew(lease, url, &column, &client))
	return client, code, column
}

// addLease gives the client a further lease. No thread runs the client.
func addLease(client, lease uintptr) tollbar.Code { return tollbar.Code(cClientAdd(client, lease)) }

// reportLease reports to the store what it does not know of a lease. No thread runs the client.
func reportLease(client, lease uintptr, patience uint32) tollbar.Code {
	return tollbar.Code(cClientReport(client, lease, patience))
}

// removeLease is reportLease, and takes the lease from the client.
func removeLease(client, lease uintptr, patience uint32) tollbar.Code {
	return tollbar.Code(cClientRemove(client, lease, patience))
}

// runClient returns when the client has been stopped, or when the circuit of a lease has changed.
func runClient(client uintptr) { cClientRun(client) }

// clientLeaseError returns why the store does not serve this lease, or an empty text. The caller must not
// run the client at the same time.
func clientLeaseError(client, lease uintptr) string { return cClientLeaseError(client, lease) }

func stopClient(client uintptr) { cClientStop(client) }

func closeClient(client uintptr, patience uint32) tollbar.Code {
	return tollbar.Code(cClientClose(client, patience))
}

func newCalls(lease uintptr) (calls uintptr, code tollbar.Code) {
	code = tollbar.Code(cCallsNew(lease, &calls))
	return calls, code
}

// callsTurn returns the call to make now, or after how many milliseconds to ask again. The strings are
// copies.
func callsTurn(calls uintptr, flags uint32) (keys []string, args []any, wait uint32) {
	call := tollbar_lease_call{struct_size: uint32(unsafe.Sizeof(tollbar_lease_call{}))}
	if cCallsTurn(calls, flags, &call) != 0 {
		return nil, nil, 1
	}
	for i, part := range unsafe.Slice(call.parts, call.count) {
		text := string(unsafe.Slice(part.bytes, part.length))
		if uintptr(i) < call.keys {
			keys = append(keys, text)
		} else {
			args = append(args, text)
		}
	}
	return keys, args, call.wait_ms
}

func callsAnswered(calls uintptr, reply string) { cCallsAnswered(calls, reply) }

func callsRefused(calls uintptr, why string) { cCallsRefused(calls, why) }

func callsLost(calls uintptr, why string) { cCallsLost(calls, why) }

func callsWait(calls uintptr, milliseconds uint32) { cCallsWait(calls, milliseconds) }

func callsError(calls uintptr) string { return cCallsError(calls) }

func closeCalls(calls uintptr) tollbar.Code { return tollbar.Code(cCallsClose(calls)) }

func newStoreLimit(name, policy string) (limit uintptr, err error) {
	if _, err := tollbar.ParsePolicy(policy); err != nil {
		return 0, err
	}
	if err := libraryError(); err != nil {
		return 0, err
	}
	spec := tollbar_policy_spec{struct_size: uint32(unsafe.Sizeof(tollbar_policy_spec{}))}
	if code := cSpec(policy, &spec); code != 0 {
		return 0, tollbar.Code(code)
	}
	if code := cStoreLimitNew(name, &spec, &limit); code != 0 {
		return 0, tollbar.Code(code)
	}
	return limit, nil
}

func freeStoreLimit(limit uintptr) { cStoreLimitFree(limit) }

func newQuestion() tollbar_store_question {
	return tollbar_store_question{struct_size: uint32(unsafe.Sizeof(tollbar_store_question{}))}
}

// words returns what a client sends. The script is not NULL. The library keeps it for ever.
func (q *tollbar_store_question) words() (script, key string, args []any) {
	for _, arg := range q.args[:q.arg_count] {
		args = append(args, int64(arg))
	}
	return static(q.script), string(q.key[:q.key_length]), args
}

// static is a text of the library that ends in a NUL and stays where it is.
func static(at *byte) string {
	length := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(at), length)) != 0 {
		length++
	}
	return unsafe.String(at, length)
}

func storeAsk(limit uintptr, ask uint32, key string, n uint64, question *tollbar_store_question) tollbar.Code {
	return tollbar.Code(cStoreAsk(limit, ask, key, n, question))
}

func storeAnswer(
	limit uintptr, question *tollbar_store_question, reply []int64,
) (d tollbar.Decision, taken uint64, code tollbar.Code) {
	out := newDecision()
	number := cStoreAnswer(limit, question, reply, &out, &taken)
	return decided(number, &out), taken, tollbar.Code(number)
}
