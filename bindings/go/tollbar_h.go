//go:build cgo || tollbar_purego

package tollbar

//lint:file-ignore U1000 some of these structs are only for purego; with cgo C makes them

import (
	"bytes"
	"strings"
	"unsafe"
)

// The structs and numbers of tollbar.h, with its names. No struct has a pointer to Go memory:
// addresses are numbers. With cgo a test compares each field with C's, and the compiler each number
// (call_cgo_layout.go).

const (
	tollbar_forever            = 1<<64 - 1
	tollbar_allowed            = 0
	tollbar_denied             = 1
	tollbar_never              = 2
	tollbar_yes                = 1
	tollbar_policy_text_max    = 1024
	tollbar_schedule_text_max  = 19296
	tollbar_policy_borrow      = 1
	tollbar_policy_rejected    = 2
	tollbar_policy_has_init    = 4
	tollbar_unit_bytes         = 1
	tollbar_anchor_first       = 1
	tollbar_credit_on          = 1
	tollbar_table_has_seed     = 1
	tollbar_table_small_pages  = 2
	tollbar_table_trust_anyone = 4
	tollbar_flight_trust       = 1
	tollbar_adaptive_aimd      = 1
	tollbar_pacing_aimd        = 1
	tollbar_refused_key        = 48
)

type tollbar_class struct {
	name    [16]byte
	reserve uint64
}

type tollbar_policy_spec struct {
	struct_size, algorithm                           uint32
	limit, period_ns, burst, init, slack, warm_up_ns uint64
	cold, segments, mode, anchor, unit, flags        uint32
	ban_ns                                           uint64
	ban_after, from                                  uint32
	second_limit, second_period_ns, second_burst     uint64
	classes                                          [4]tollbar_class
	knots                                            [128]uint16
	zone                                             [5]uint64
}

type tollbar_curve_fit struct {
	struct_size        uint32
	code               int32
	error, time, value float64
	expected           *byte
}

type tollbar_policy_error struct {
	struct_size uint32
	code        int32
	column      uint64
	expected    *byte
}

type tollbar_decision struct {
	struct_size, verdict                      uint32
	remaining, retry_after_ns, reset_after_ns uint64
	reason, bound                             uint32
}

type tollbar_limiter_options struct {
	struct_size, clock, waiters, credit uint32
}

type tollbar_limiter_state struct {
	struct_size, waiting                                                                      uint32
	now_ns, remaining, retry_after_ns, reset_after_ns, backward_steps, allowed, denied, never uint64
}

type tollbar_table_options struct {
	struct_size, on_full                                                uint32
	capacity, seed                                                      uint64
	missing_key, clock, mode, flags, waiters, hot_keys, overrides, room uint32
}

type tollbar_request struct {
	key, length          uintptr
	cost                 uint64
	policy, class_number uint32
}

type tollbar_in_flight_options struct {
	struct_size, processes uint32
	capacity               uint64
	mode, flags            uint32
}

type tollbar_limit struct {
	limiter, table, key, length   uintptr
	cost                          uint64
	policy, most                  uint32
	in_flight, ticket, class_name uintptr
}

type tollbar_taken struct {
	struct_size, verdict                      uint32
	remaining, retry_after_ns, reset_after_ns uint64
	reason, bound                             uint32
}

type tollbar_reservation struct {
	departs_ns, wait_ns, cost uint64
}

type tollbar_receipt struct {
	words [4]uint64
}

type tollbar_settled struct {
	struct_size, first uint32
	given_back, rest   uint64
}

type tollbar_share struct {
	struct_size, verdict                                   uint32
	remaining, retry_after_ns, reset_after_ns, interval_ns uint64
	reason, bound                                          uint32
}

type tollbar_adaptive struct {
	words [16]uint64
}

type tollbar_adaptive_options struct {
	struct_size, algorithm, initial, least, most, reserved uint32
	timeout_ns, window_ns                                  uint64
}

type tollbar_adaptive_state struct {
	struct_size, limit    uint32
	in_flight, latency_ns uint64
}

type tollbar_pacing_options struct {
	struct_size, algorithm               uint32
	least, most, increase, pause_most_ns uint64
	burst, reserved                      uint32
}

type tollbar_pacing_ticket struct {
	host, turn uint64
}

type tollbar_pacing_state struct {
	struct_size, reserved              uint32
	rate, measured, waiting, paused_ns uint64
}

type tollbar_meter struct {
	struct_size, reserved                                                 uint32
	committed_bytes, period_ns, committed_burst, peak_bytes, second_burst uint64
}

type tollbar_meter_state struct {
	words [3]uint64
}

type tollbar_table_override struct {
	struct_size, policy uint32
	hash, next          uint64
}

type tollbar_prefix struct {
	length uint32
	bytes  [20]uint8
}

type tollbar_http_limit struct {
	name, name_length, policy, decision uintptr
	more_after_ns                       uint64
	partition, partition_length         uintptr
}

type tollbar_http_seen struct {
	struct_size, reserved                                      uint32
	limit, window_ns, remaining, more_after_ns, retry_after_ns uint64
}

type tollbar_metrics_source struct {
	name, name_length, limiter, table uintptr
	flags                             uint64
}

type tollbar_table_refused struct {
	struct_size, policy uint32
	count               uint64
	length, is_cut      uint32
	key                 [tollbar_refused_key]uint8
}

type tollbar_counts struct {
	struct_size, reserved  uint32
	allowed, denied, never uint64
}

type tollbar_table_entry struct {
	struct_size, policy                          uint32
	hash, state, remaining, reset_after_ns, next uint64
}

type tollbar_table_sweep_result struct {
	struct_size, done   uint32
	next, live, vacated uint64
}

type tollbar_table_stats struct {
	struct_size, policies                                                                  uint32
	capacity, slots, bytes, keys, inserted, reclaimed, vacated, resets, refused, inherited uint64
	untracked, evicted, retries, backward_steps, allowed, denied, never, overrides, room   uint64
}

type tollbar_table_health struct {
	struct_size, claimed                               uint32
	vacant, waiting, expired, live, unknown, duplicate uint64
}

type tollbar_table_copy_result struct {
	struct_size, reserved uint32
	copied, lost          uint64
}

// ---- one limit of a call, for the seam ----

// httpItem is a limit of header fields without its name and partition, which follow each other in
// the call's bytes.
type httpItem struct {
	policy          tollbar_policy_spec
	decision        tollbar_decision
	more            uint64
	name, partition uintptr
}

// cString is the text at p, which is static memory of the library.
func cString(p *byte) string {
	if p == nil {
		return ""
	}
	length := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), length)) != 0 {
		length++
	}
	return strings.Clone(unsafe.String(p, length))
}

// upToNUL is the text in a buffer.
func upToNUL(buffer []byte) string {
	text, _, _ := bytes.Cut(buffer, []byte{0})
	return string(text)
}
