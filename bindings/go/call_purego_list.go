//go:build tollbar_purego

package tollbar

import (
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go/internal/library"
)

// The calls of call_purego.go that pass their arguments to one C function as they are.
// call_cgo_list.go has the same functions.

func cLimiterFree(limiter uintptr) {
	library.Call1(tollbar_limiter_free, limiter)
}

func cLimiterAllow(limiter uintptr, cost uint64) int32 {
	return library.Call3(tollbar_limiter_check, limiter, uintptr(cost), 0)
}

func cLimiterAllowAt(limiter uintptr, now, cost uint64) int32 {
	return library.Call4(tollbar_limiter_check_at, limiter, uintptr(cost), uintptr(now), 0)
}

func cLimiterCheck(limiter uintptr, cost uint64, out *tollbar_decision) int32 {
	return library.Call3(tollbar_limiter_check, limiter, uintptr(cost), uintptr(unsafe.Pointer(out)))
}

func cLimiterCheckAt(limiter uintptr, now, cost uint64, out *tollbar_decision) int32 {
	return library.Call4(tollbar_limiter_check_at, limiter, uintptr(cost), uintptr(now), uintptr(unsafe.Pointer(out)))
}

func cLimiterPeek(limiter uintptr, cost uint64, out *tollbar_decision) int32 {
	return library.Call3(tollbar_limiter_peek, limiter, uintptr(cost), uintptr(unsafe.Pointer(out)))
}

func cLimiterPeekAt(limiter uintptr, now, cost uint64, out *tollbar_decision) int32 {
	return library.Call4(tollbar_limiter_peek_at, limiter, uintptr(cost), uintptr(now), uintptr(unsafe.Pointer(out)))
}

func cLimiterTake(limiter uintptr, most uint64, taken *uint64) int32 {
	return library.Call3(tollbar_limiter_take_up_to, limiter, uintptr(most), uintptr(unsafe.Pointer(taken)))
}

func cLimiterTakeAt(limiter uintptr, now, most uint64, taken *uint64) int32 {
	return library.Call4(tollbar_limiter_take_up_to_at, limiter, uintptr(most), uintptr(now),
		uintptr(unsafe.Pointer(taken)))
}

func cLimiterCharge(limiter uintptr, cost uint64, rest *uint64) int32 {
	return library.Call3(tollbar_limiter_charge, limiter, uintptr(cost), uintptr(unsafe.Pointer(rest)))
}

func cLimiterChargeAt(limiter uintptr, now, cost uint64, rest *uint64) int32 {
	return library.Call4(tollbar_limiter_charge_at, limiter, uintptr(cost), uintptr(now), uintptr(unsafe.Pointer(rest)))
}

func cLimiterReserve(limiter uintptr, cost, patience uint64, booked *tollbar_reservation) int32 {
	return library.Call4(tollbar_limiter_reserve, limiter, uintptr(cost), uintptr(patience),
		uintptr(unsafe.Pointer(booked)))
}

func cLimiterReserveAt(limiter uintptr, now, cost, patience uint64, booked *tollbar_reservation) int32 {
	return library.Call5(tollbar_limiter_reserve_at, limiter, uintptr(cost), uintptr(patience), uintptr(now),
		uintptr(unsafe.Pointer(booked)))
}

func cLimiterSetPolicy(limiter uintptr, spec *tollbar_policy_spec, keep uint32) int32 {
	return library.Call3(tollbar_limiter_set_policy, limiter, uintptr(unsafe.Pointer(spec)), uintptr(keep))
}

func cLimiterSetPolicyAt(limiter uintptr, now uint64, spec *tollbar_policy_spec, keep uint32) int32 {
	return library.Call4(tollbar_limiter_set_policy_at, limiter, uintptr(unsafe.Pointer(spec)), uintptr(keep),
		uintptr(now))
}

func cLimiterCancel(limiter uintptr, booked *tollbar_reservation, back *uint64) int32 {
	return library.Call3(tollbar_limiter_cancel, limiter, uintptr(unsafe.Pointer(booked)),
		uintptr(unsafe.Pointer(back)))
}

func cLimiterCancelAt(limiter uintptr, now uint64, booked *tollbar_reservation, back *uint64) int32 {
	return library.Call4(tollbar_limiter_cancel_at, limiter, uintptr(unsafe.Pointer(booked)), uintptr(now),
		uintptr(unsafe.Pointer(back)))
}

func cLimiterNow(limiter uintptr, now *uint64) int32 {
	return library.Call2(tollbar_limiter_now, limiter, uintptr(unsafe.Pointer(now)))
}

func cLimiterReset(limiter uintptr) int32 {
	return library.Call1(tollbar_limiter_reset, limiter)
}

func cLimiterState(limiter uintptr, out *tollbar_limiter_state) int32 {
	return library.Call2(tollbar_limiter_get_state, limiter, uintptr(unsafe.Pointer(out)))
}

func cTableFree(table uintptr) {
	library.Call1(tollbar_table_close, table)
}

func cTableCheck(table uintptr, policy uint32, key string, cost uint64, out *tollbar_decision) int32 {
	return library.Call6(tollbar_table_check, table, uintptr(policy), uintptr(library.Text(key)),
		uintptr(len(key)), uintptr(cost), uintptr(unsafe.Pointer(out)))
}

func cTableCheckAt(table uintptr, policy uint32, key string, now, cost uint64, out *tollbar_decision) int32 {
	return library.Call7(tollbar_table_check_at, table, uintptr(policy), uintptr(library.Text(key)),
		uintptr(len(key)), uintptr(cost), uintptr(now), uintptr(unsafe.Pointer(out)))
}

func cTablePeek(table uintptr, policy uint32, key string, cost uint64, out *tollbar_decision) int32 {
	return library.Call6(tollbar_table_peek, table, uintptr(policy), uintptr(library.Text(key)),
		uintptr(len(key)), uintptr(cost), uintptr(unsafe.Pointer(out)))
}

func cTablePeekAt(table uintptr, policy uint32, key string, now, cost uint64, out *tollbar_decision) int32 {
	return library.Call7(tollbar_table_peek_at, table, uintptr(policy), uintptr(library.Text(key)),
		uintptr(len(key)), uintptr(cost), uintptr(now), uintptr(unsafe.Pointer(out)))
}

func cTableCharge(table uintptr, policy uint32, key string, cost uint64, rest *uint64) int32 {
	return library.Call6(tollbar_table_charge, table, uintptr(policy), uintptr(library.Text(key)),
		uintptr(len(key)), uintptr(cost), uintptr(unsafe.Pointer(rest)))
}

func cTableChargeAt(table uintptr, policy uint32, key string, now, cost uint64, rest *uint64) int32 {
	return library.Call7(tollbar_table_charge_at, table, uintptr(policy), uintptr(library.Text(key)), uintptr(len(key)),
		uintptr(cost), uintptr(now), uintptr(unsafe.Pointer(rest)))
}

func cTableTake(table uintptr, policy uint32, key string, most uint64, taken *uint64) int32 {
	return library.Call6(tollbar_table_take_up_to, table, uintptr(policy), uintptr(library.Text(key)),
		uintptr(len(key)), uintptr(most), uintptr(unsafe.Pointer(taken)))
}

func cTableReserve(table uintptr, policy uint32, key string, cost, patience uint64,
	booked *tollbar_reservation) int32 {
	return library.Call7(tollbar_table_reserve, table, uintptr(policy), uintptr(library.Text(key)),
		uintptr(len(key)), uintptr(cost), uintptr(patience), uintptr(unsafe.Pointer(booked)))
}

func cTableCancel(table uintptr, policy uint32, key string, booked *tollbar_reservation, back *uint64) int32 {
	return library.Call6(tollbar_table_cancel, table, uintptr(policy), uintptr(library.Text(key)), uintptr(len(key)),
		uintptr(unsafe.Pointer(booked)), uintptr(unsafe.Pointer(back)))
}

func cTableReserveAt(table uintptr, policy uint32, key string, now, cost, patience uint64,
	booked *tollbar_reservation) int32 {
	return library.Call8(tollbar_table_reserve_at, table, uintptr(policy), uintptr(library.Text(key)),
		uintptr(len(key)), uintptr(cost), uintptr(patience), uintptr(now), uintptr(unsafe.Pointer(booked)))
}

func cTableCancelAt(table uintptr, policy uint32, key string, now uint64, booked *tollbar_reservation,
	back *uint64) int32 {
	return library.Call7(tollbar_table_cancel_at, table, uintptr(policy), uintptr(library.Text(key)), uintptr(len(key)),
		uintptr(unsafe.Pointer(booked)), uintptr(now), uintptr(unsafe.Pointer(back)))
}

func cTableTakeEstimate(table uintptr, policy uint32, key string, estimate uint64,
	receipt *tollbar_receipt, out *tollbar_decision) int32 {
	return library.Call7(tollbar_table_take, table, uintptr(policy), uintptr(library.Text(key)),
		uintptr(len(key)), uintptr(estimate), uintptr(unsafe.Pointer(receipt)), uintptr(unsafe.Pointer(out)))
}

func cTableTakeEstimateAt(table uintptr, policy uint32, key string, now, estimate uint64,
	receipt *tollbar_receipt, out *tollbar_decision) int32 {
	return library.Call8(tollbar_table_take_at, table, uintptr(policy), uintptr(library.Text(key)), uintptr(len(key)),
		uintptr(estimate), uintptr(now), uintptr(unsafe.Pointer(receipt)), uintptr(unsafe.Pointer(out)))
}

func cTableSettle(table uintptr, receipt *tollbar_receipt, cost uint64, out *tollbar_settled) int32 {
	return library.Call4(tollbar_table_settle, table, uintptr(unsafe.Pointer(receipt)), uintptr(cost),
		uintptr(unsafe.Pointer(out)))
}

func cTableSettleAt(table uintptr, receipt *tollbar_receipt, now, cost uint64, out *tollbar_settled) int32 {
	return library.Call5(tollbar_table_settle_at, table, uintptr(unsafe.Pointer(receipt)), uintptr(cost), uintptr(now),
		uintptr(unsafe.Pointer(out)))
}

func cTableSettleInFull(table uintptr, receipt *tollbar_receipt, cost uint64, out *tollbar_settled) int32 {
	return library.Call4(tollbar_table_settle_in_full, table, uintptr(unsafe.Pointer(receipt)), uintptr(cost),
		uintptr(unsafe.Pointer(out)))
}

func cTableHash(table uintptr, policy uint32, key string, hash *uint64) int32 {
	return library.Call5(tollbar_table_hash, table, uintptr(policy), uintptr(library.Text(key)), uintptr(len(key)),
		uintptr(unsafe.Pointer(hash)))
}

func cTableReset(table uintptr, policy uint32, key string) int32 {
	return answer(library.Call4(tollbar_table_reset, table, uintptr(policy), uintptr(library.Text(key)),
		uintptr(len(key))))
}

func cTableResetAt(table uintptr, policy uint32, key string, now uint64) int32 {
	return answer(library.Call5(tollbar_table_reset_at, table, uintptr(policy), uintptr(library.Text(key)),
		uintptr(len(key)), uintptr(now)))
}

func cTableExempt(table uintptr, policy uint32, key string) int32 {
	return library.Call4(tollbar_table_exempt, table, uintptr(policy), uintptr(library.Text(key)), uintptr(len(key)))
}

func cTableUnexempt(table uintptr, policy uint32, key string) int32 {
	return answer(library.Call4(tollbar_table_unexempt, table, uintptr(policy), uintptr(library.Text(key)),
		uintptr(len(key))))
}

func cTableNow(table uintptr, now *uint64) int32 {
	return library.Call2(tollbar_table_now, table, uintptr(unsafe.Pointer(now)))
}

func cTableNext(table uintptr, from, now uint64, out *tollbar_table_entry) int32 {
	return answer(library.Call4(tollbar_table_next, table, uintptr(from), uintptr(now), uintptr(unsafe.Pointer(out))))
}

func cTableSweep(table uintptr, from, most, now uint64, out *tollbar_table_sweep_result) int32 {
	return library.Call5(tollbar_table_sweep, table, uintptr(from), uintptr(most), uintptr(now),
		uintptr(unsafe.Pointer(out)))
}

func cTableAddPolicy(table uintptr, spec *tollbar_policy_spec, number *uint32) int32 {
	return library.Call3(tollbar_table_add_policy, table, uintptr(unsafe.Pointer(spec)),
		uintptr(unsafe.Pointer(number)))
}

func cTableFindOrAddPolicy(table uintptr, spec *tollbar_policy_spec, number *uint32) int32 {
	return library.Call3(tollbar_table_find_or_add_policy, table, uintptr(unsafe.Pointer(spec)),
		uintptr(unsafe.Pointer(number)))
}

func cTableSetPolicy(table uintptr, number uint32, spec *tollbar_policy_spec, keep uint32) int32 {
	return library.Call4(tollbar_table_set_policy, table, uintptr(number), uintptr(unsafe.Pointer(spec)), uintptr(keep))
}

func cTableSetOverride(table uintptr, policy uint32, key string, spec *tollbar_policy_spec, keep uint32) int32 {
	return library.Call6(tollbar_table_set_override, table, uintptr(policy), uintptr(library.Text(key)),
		uintptr(len(key)), uintptr(unsafe.Pointer(spec)), uintptr(keep))
}

func cTableClearOverride(table uintptr, policy uint32, key string) int32 {
	return answer(library.Call4(tollbar_table_clear_override, table, uintptr(policy), uintptr(library.Text(key)),
		uintptr(len(key))))
}

func cTableGetOverride(table uintptr, policy uint32, key string, out *tollbar_policy_spec) int32 {
	return answer(library.Call5(tollbar_table_get_override, table, uintptr(policy), uintptr(library.Text(key)),
		uintptr(len(key)), uintptr(unsafe.Pointer(out))))
}

func cTableNextOverride(table uintptr, from uint64, out *tollbar_table_override, spec *tollbar_policy_spec) int32 {
	return library.Call4(tollbar_table_next_override, table, uintptr(from), uintptr(unsafe.Pointer(out)),
		uintptr(unsafe.Pointer(spec)))
}

func cTableRecordRefusals(table uintptr, on uint32) int32 {
	return library.Call2(tollbar_table_record_refusals, table, uintptr(on))
}

func cTableRecordsRefusals(table uintptr) int32 {
	return library.Call1(tollbar_table_records_refusals, table)
}

func cTableGetPolicy(table uintptr, number uint32, out *tollbar_policy_spec) int32 {
	return library.Call3(tollbar_table_get_policy, table, uintptr(number), uintptr(unsafe.Pointer(out)))
}

func cTableCounts(table uintptr, policy uint32, out *tollbar_counts) int32 {
	return library.Call3(tollbar_table_get_counts, table, uintptr(policy), uintptr(unsafe.Pointer(out)))
}

func cTableStats(table uintptr, out *tollbar_table_stats) int32 {
	return library.Call2(tollbar_table_get_stats, table, uintptr(unsafe.Pointer(out)))
}

func cTableCopy(table, from uintptr, now uint64, out *tollbar_table_copy_result) int32 {
	return library.Call4(tollbar_table_copy, table, from, uintptr(now), uintptr(unsafe.Pointer(out)))
}

func cInFlightClose(table uintptr) {
	library.Call1(tollbar_in_flight_close, table)
}

func cInFlightAcquire(table uintptr, key string, limit uint32, ticket *uint64) int32 {
	return library.Call5(tollbar_in_flight_acquire, table, uintptr(library.Text(key)), uintptr(len(key)),
		uintptr(limit), uintptr(unsafe.Pointer(ticket)))
}

func cInFlightRelease(table uintptr, ticket uint64) int32 {
	return library.Call2(tollbar_in_flight_release, table, uintptr(ticket))
}

func cInFlightCount(table uintptr, key string, count *uint64) int32 {
	return library.Call4(tollbar_in_flight_count, table, uintptr(library.Text(key)), uintptr(len(key)),
		uintptr(unsafe.Pointer(count)))
}

func cAdaptiveAcquire(limit *tollbar_adaptive, ticket *uint64) int32 {
	return library.Call2(tollbar_adaptive_acquire, uintptr(unsafe.Pointer(limit)), uintptr(unsafe.Pointer(ticket)))
}

func cAdaptiveRelease(limit *tollbar_adaptive, ticket uint64, outcome uint32, latency uint64) int32 {
	return library.Call4(tollbar_adaptive_release, uintptr(unsafe.Pointer(limit)), uintptr(ticket), uintptr(outcome),
		uintptr(latency))
}

func cAdaptiveAcquireKey(limit *tollbar_adaptive, table uintptr, key string, ticket *uint64) int32 {
	return library.Call5(tollbar_adaptive_acquire_key, uintptr(unsafe.Pointer(limit)), table,
		uintptr(library.Text(key)), uintptr(len(key)), uintptr(unsafe.Pointer(ticket)))
}

func cAdaptiveReleaseKey(limit *tollbar_adaptive, table uintptr, key string, ticket uint64, outcome uint32,
	latency uint64) int32 {
	return library.Call7(tollbar_adaptive_release_key, uintptr(unsafe.Pointer(limit)), table,
		uintptr(library.Text(key)), uintptr(len(key)), uintptr(ticket), uintptr(outcome), uintptr(latency))
}

func cPacingFree(pacing uintptr) {
	library.Call1(tollbar_pacing_free, pacing)
}

func cTableMore(table uintptr, policy uint32, key string, cost uint64, decision *tollbar_decision,
	more *uint64) int32 {
	return library.Call7(tollbar_table_more_after, table, uintptr(policy), uintptr(library.Text(key)),
		uintptr(len(key)), uintptr(cost), uintptr(unsafe.Pointer(decision)), uintptr(unsafe.Pointer(more)))
}

func cLimiterMore(limiter uintptr, cost uint64, decision *tollbar_decision, more *uint64) int32 {
	return library.Call4(tollbar_limiter_more_after, limiter, uintptr(cost), uintptr(unsafe.Pointer(decision)),
		uintptr(unsafe.Pointer(more)))
}

func cHierarchyFree(of uintptr) {
	library.Call1(tollbar_hierarchy_free, of)
}

// ---- the functions, with their names in libtollbar ----

var (
	tollbar_policy_spec_parse        = libtollbar.Need("tollbar_policy_spec_parse")
	tollbar_policy_spec_print        = libtollbar.Need("tollbar_policy_spec_print")
	tollbar_policy_spec_worst_case   = libtollbar.Need("tollbar_policy_spec_worst_case")
	tollbar_policy_spec_samples      = libtollbar.Need("tollbar_policy_spec_samples")
	tollbar_policy_spec_validate     = libtollbar.Need("tollbar_policy_spec_validate")
	tollbar_policy_spec_last_time    = libtollbar.Need("tollbar_policy_spec_last_time")
	tollbar_clock_now                = libtollbar.Need("tollbar_clock_now")
	tollbar_limiter_new              = libtollbar.Need("tollbar_limiter_new")
	tollbar_limiter_free             = libtollbar.Need("tollbar_limiter_free")
	tollbar_limiter_now              = libtollbar.Need("tollbar_limiter_now")
	tollbar_limiter_check            = libtollbar.Need("tollbar_limiter_check")
	tollbar_limiter_check_at         = libtollbar.Need("tollbar_limiter_check_at")
	tollbar_limiter_peek             = libtollbar.Need("tollbar_limiter_peek")
	tollbar_limiter_peek_at          = libtollbar.Need("tollbar_limiter_peek_at")
	tollbar_limiter_check_many       = libtollbar.Need("tollbar_limiter_check_many")
	tollbar_limiter_check_many_at    = libtollbar.Need("tollbar_limiter_check_many_at")
	tollbar_limiter_take_up_to       = libtollbar.Need("tollbar_limiter_take_up_to")
	tollbar_limiter_take_up_to_at    = libtollbar.Need("tollbar_limiter_take_up_to_at")
	tollbar_limiter_reset            = libtollbar.Need("tollbar_limiter_reset")
	tollbar_limiter_get_state        = libtollbar.Need("tollbar_limiter_get_state")
	tollbar_limiter_set_policy       = libtollbar.Need("tollbar_limiter_set_policy")
	tollbar_limiter_set_policy_at    = libtollbar.Need("tollbar_limiter_set_policy_at")
	tollbar_table_new                = libtollbar.Need("tollbar_table_new")
	tollbar_table_open               = libtollbar.Need("tollbar_table_open")
	tollbar_table_close              = libtollbar.Need("tollbar_table_close")
	tollbar_table_check              = libtollbar.Need("tollbar_table_check")
	tollbar_table_check_at           = libtollbar.Need("tollbar_table_check_at")
	tollbar_table_peek               = libtollbar.Need("tollbar_table_peek")
	tollbar_table_peek_at            = libtollbar.Need("tollbar_table_peek_at")
	tollbar_table_check_many_at      = libtollbar.Need("tollbar_table_check_many_at")
	tollbar_table_take_up_to         = libtollbar.Need("tollbar_table_take_up_to")
	tollbar_table_reset              = libtollbar.Need("tollbar_table_reset")
	tollbar_table_reset_at           = libtollbar.Need("tollbar_table_reset_at")
	tollbar_table_exempt             = libtollbar.Need("tollbar_table_exempt")
	tollbar_table_unexempt           = libtollbar.Need("tollbar_table_unexempt")
	tollbar_table_hash               = libtollbar.Need("tollbar_table_hash")
	tollbar_table_now                = libtollbar.Need("tollbar_table_now")
	tollbar_in_flight_new            = libtollbar.Need("tollbar_in_flight_new")
	tollbar_in_flight_open           = libtollbar.Need("tollbar_in_flight_open")
	tollbar_in_flight_acquire        = libtollbar.Need("tollbar_in_flight_acquire")
	tollbar_in_flight_release        = libtollbar.Need("tollbar_in_flight_release")
	tollbar_in_flight_count          = libtollbar.Need("tollbar_in_flight_count")
	tollbar_in_flight_close          = libtollbar.Need("tollbar_in_flight_close")
	tollbar_take_many                = libtollbar.Need("tollbar_take_many")
	tollbar_take_many_at             = libtollbar.Need("tollbar_take_many_at")
	tollbar_limiter_reserve          = libtollbar.Need("tollbar_limiter_reserve")
	tollbar_limiter_reserve_at       = libtollbar.Need("tollbar_limiter_reserve_at")
	tollbar_table_reserve            = libtollbar.Need("tollbar_table_reserve")
	tollbar_table_reserve_at         = libtollbar.Need("tollbar_table_reserve_at")
	tollbar_limiter_cancel           = libtollbar.Need("tollbar_limiter_cancel")
	tollbar_limiter_cancel_at        = libtollbar.Need("tollbar_limiter_cancel_at")
	tollbar_table_cancel             = libtollbar.Need("tollbar_table_cancel")
	tollbar_table_cancel_at          = libtollbar.Need("tollbar_table_cancel_at")
	tollbar_table_take               = libtollbar.Need("tollbar_table_take")
	tollbar_table_take_at            = libtollbar.Need("tollbar_table_take_at")
	tollbar_table_settle             = libtollbar.Need("tollbar_table_settle")
	tollbar_table_settle_at          = libtollbar.Need("tollbar_table_settle_at")
	tollbar_table_settle_in_full     = libtollbar.Need("tollbar_table_settle_in_full")
	tollbar_table_charge             = libtollbar.Need("tollbar_table_charge")
	tollbar_table_charge_at          = libtollbar.Need("tollbar_table_charge_at")
	tollbar_limiter_charge           = libtollbar.Need("tollbar_limiter_charge")
	tollbar_limiter_charge_at        = libtollbar.Need("tollbar_limiter_charge_at")
	tollbar_limiter_check_class      = libtollbar.Need("tollbar_limiter_check_class")
	tollbar_limiter_check_class_at   = libtollbar.Need("tollbar_limiter_check_class_at")
	tollbar_table_check_class        = libtollbar.Need("tollbar_table_check_class")
	tollbar_table_check_class_at     = libtollbar.Need("tollbar_table_check_class_at")
	tollbar_hierarchy_new            = libtollbar.Need("tollbar_hierarchy_new")
	tollbar_hierarchy_free           = libtollbar.Need("tollbar_hierarchy_free")
	tollbar_hierarchy_add            = libtollbar.Need("tollbar_hierarchy_add")
	tollbar_hierarchy_take           = libtollbar.Need("tollbar_hierarchy_take")
	tollbar_hierarchy_take_at        = libtollbar.Need("tollbar_hierarchy_take_at")
	tollbar_schedule_at              = libtollbar.Need("tollbar_schedule_at")
	tollbar_schedule_print           = libtollbar.Need("tollbar_schedule_print")
	tollbar_adaptive_init            = libtollbar.Need("tollbar_adaptive_init")
	tollbar_adaptive_acquire         = libtollbar.Need("tollbar_adaptive_acquire")
	tollbar_adaptive_release         = libtollbar.Need("tollbar_adaptive_release")
	tollbar_adaptive_acquire_key     = libtollbar.Need("tollbar_adaptive_acquire_key")
	tollbar_adaptive_release_key     = libtollbar.Need("tollbar_adaptive_release_key")
	tollbar_adaptive_read            = libtollbar.Need("tollbar_adaptive_read")
	tollbar_pacing_new               = libtollbar.Need("tollbar_pacing_new")
	tollbar_pacing_free              = libtollbar.Need("tollbar_pacing_free")
	tollbar_pacing_acquire_at        = libtollbar.Need("tollbar_pacing_acquire_at")
	tollbar_pacing_wait_at           = libtollbar.Need("tollbar_pacing_wait_at")
	tollbar_pacing_respond_at        = libtollbar.Need("tollbar_pacing_respond_at")
	tollbar_pacing_leave_at          = libtollbar.Need("tollbar_pacing_leave_at")
	tollbar_pacing_read_at           = libtollbar.Need("tollbar_pacing_read_at")
	tollbar_table_set_override       = libtollbar.Need("tollbar_table_set_override")
	tollbar_table_clear_override     = libtollbar.Need("tollbar_table_clear_override")
	tollbar_table_get_override       = libtollbar.Need("tollbar_table_get_override")
	tollbar_table_next_override      = libtollbar.Need("tollbar_table_next_override")
	tollbar_prefix_from_address      = libtollbar.Need("tollbar_prefix_from_address")
	tollbar_http_fields              = libtollbar.Need("tollbar_http_fields")
	tollbar_http_problem             = libtollbar.Need("tollbar_http_problem")
	tollbar_http_read                = libtollbar.Need("tollbar_http_read")
	tollbar_table_more_after         = libtollbar.Need("tollbar_table_more_after")
	tollbar_limiter_more_after       = libtollbar.Need("tollbar_limiter_more_after")
	tollbar_metrics                  = libtollbar.Need("tollbar_metrics")
	tollbar_table_record_refusals    = libtollbar.Need("tollbar_table_record_refusals")
	tollbar_table_records_refusals   = libtollbar.Need("tollbar_table_records_refusals")
	tollbar_table_top_refused        = libtollbar.Need("tollbar_table_top_refused")
	tollbar_table_get_counts         = libtollbar.Need("tollbar_table_get_counts")
	tollbar_table_next               = libtollbar.Need("tollbar_table_next")
	tollbar_table_sweep              = libtollbar.Need("tollbar_table_sweep")
	tollbar_table_add_policy         = libtollbar.Need("tollbar_table_add_policy")
	tollbar_table_find_or_add_policy = libtollbar.Need("tollbar_table_find_or_add_policy")
	tollbar_table_set_policy         = libtollbar.Need("tollbar_table_set_policy")
	tollbar_table_get_policy         = libtollbar.Need("tollbar_table_get_policy")
	tollbar_table_get_stats          = libtollbar.Need("tollbar_table_get_stats")
	tollbar_table_sync               = libtollbar.Need("tollbar_table_sync")
	tollbar_table_validate           = libtollbar.Need("tollbar_table_validate")
	tollbar_table_repair             = libtollbar.Need("tollbar_table_repair")
	tollbar_table_copy               = libtollbar.Need("tollbar_table_copy")
	tollbar_version                  = libtollbar.Need("tollbar_version")
	tollbar_version_string           = libtollbar.Need("tollbar_version_string")
)
