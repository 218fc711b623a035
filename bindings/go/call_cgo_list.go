//go:build cgo && !tollbar_purego

package tollbar

// The calls of call_cgo.go that pass their arguments to one C function as they are.
// call_purego_list.go has the same functions.

/*
#include "bridge.h"

#cgo nocallback go_limiter_allow
#cgo nocallback go_limiter_allow_at
#cgo noescape go_limiter_check
#cgo nocallback go_limiter_check
#cgo noescape go_limiter_check_at
#cgo nocallback go_limiter_check_at
#cgo noescape go_limiter_peek
#cgo nocallback go_limiter_peek
#cgo noescape go_limiter_peek_at
#cgo nocallback go_limiter_peek_at
#cgo noescape go_limiter_take
#cgo nocallback go_limiter_take
#cgo noescape go_limiter_take_at
#cgo nocallback go_limiter_take_at
#cgo noescape go_limiter_now
#cgo nocallback go_limiter_now
#cgo noescape go_limiter_reserve
#cgo nocallback go_limiter_reserve
#cgo noescape go_limiter_reserve_at
#cgo nocallback go_limiter_reserve_at
#cgo noescape go_limiter_cancel
#cgo nocallback go_limiter_cancel
#cgo noescape go_limiter_cancel_at
#cgo nocallback go_limiter_cancel_at
#cgo noescape go_adaptive_acquire
#cgo nocallback go_adaptive_acquire
#cgo noescape go_adaptive_release
#cgo nocallback go_adaptive_release
#cgo noescape go_adaptive_acquire_key
#cgo nocallback go_adaptive_acquire_key
#cgo noescape go_adaptive_release_key
#cgo nocallback go_adaptive_release_key
#cgo noescape go_table_more
#cgo nocallback go_table_more
#cgo noescape go_limiter_more
#cgo nocallback go_limiter_more
#cgo noescape go_in_flight_acquire
#cgo nocallback go_in_flight_acquire
#cgo noescape go_in_flight_release
#cgo nocallback go_in_flight_release
#cgo noescape go_in_flight_count
#cgo nocallback go_in_flight_count
#cgo noescape go_table_take_estimate
#cgo nocallback go_table_take_estimate
#cgo noescape go_table_take_estimate_at
#cgo nocallback go_table_take_estimate_at
#cgo noescape go_table_settle
#cgo nocallback go_table_settle
#cgo noescape go_table_settle_at
#cgo nocallback go_table_settle_at
#cgo noescape go_table_settle_in_full
#cgo nocallback go_table_settle_in_full
#cgo noescape go_table_check
#cgo nocallback go_table_check
#cgo noescape go_table_check_at
#cgo nocallback go_table_check_at
#cgo noescape go_table_peek
#cgo nocallback go_table_peek
#cgo noescape go_table_take
#cgo nocallback go_table_take
#cgo noescape go_table_reserve
#cgo nocallback go_table_reserve
#cgo noescape go_table_cancel
#cgo nocallback go_table_cancel
#cgo noescape go_table_now
#cgo nocallback go_table_now
#cgo noescape go_table_next
#cgo nocallback go_table_next
*/
import "C"

import "unsafe"

func cLimiterFree(limiter uintptr) {
	C.go_limiter_free(C.uintptr_t(limiter))
}

func cLimiterAllow(limiter uintptr, cost uint64) int32 {
	return int32(C.go_limiter_allow(C.uintptr_t(limiter), C.uint64_t(cost)))
}

func cLimiterAllowAt(limiter uintptr, now, cost uint64) int32 {
	return int32(C.go_limiter_allow_at(C.uintptr_t(limiter), C.uint64_t(now), C.uint64_t(cost)))
}

func cLimiterCheck(limiter uintptr, cost uint64, out *tollbar_decision) int32 {
	return int32(C.go_limiter_check(C.uintptr_t(limiter), C.uint64_t(cost),
		(*C.tollbar_decision)(unsafe.Pointer(out))))
}

func cLimiterCheckAt(limiter uintptr, now, cost uint64, out *tollbar_decision) int32 {
	return int32(C.go_limiter_check_at(C.uintptr_t(limiter), C.uint64_t(now), C.uint64_t(cost),
		(*C.tollbar_decision)(unsafe.Pointer(out))))
}

func cLimiterPeek(limiter uintptr, cost uint64, out *tollbar_decision) int32 {
	return int32(C.go_limiter_peek(C.uintptr_t(limiter), C.uint64_t(cost),
		(*C.tollbar_decision)(unsafe.Pointer(out))))
}

func cLimiterPeekAt(limiter uintptr, now, cost uint64, out *tollbar_decision) int32 {
	return int32(C.go_limiter_peek_at(C.uintptr_t(limiter), C.uint64_t(now), C.uint64_t(cost),
		(*C.tollbar_decision)(unsafe.Pointer(out))))
}

func cLimiterTake(limiter uintptr, most uint64, taken *uint64) int32 {
	return int32(C.go_limiter_take(C.uintptr_t(limiter), C.uint64_t(most), (*C.uint64_t)(taken)))
}

func cLimiterTakeAt(limiter uintptr, now, most uint64, taken *uint64) int32 {
	return int32(C.go_limiter_take_at(C.uintptr_t(limiter), C.uint64_t(now), C.uint64_t(most), (*C.uint64_t)(taken)))
}

func cLimiterCharge(limiter uintptr, cost uint64, rest *uint64) int32 {
	return int32(C.go_limiter_charge(C.uintptr_t(limiter), C.uint64_t(cost), (*C.uint64_t)(rest)))
}

func cLimiterChargeAt(limiter uintptr, now, cost uint64, rest *uint64) int32 {
	return int32(C.go_limiter_charge_at(C.uintptr_t(limiter), C.uint64_t(now), C.uint64_t(cost), (*C.uint64_t)(rest)))
}

func cLimiterReserve(limiter uintptr, cost, patience uint64, booked *tollbar_reservation) int32 {
	return int32(C.go_limiter_reserve(C.uintptr_t(limiter), C.uint64_t(cost), C.uint64_t(patience),
		(*C.tollbar_reservation)(unsafe.Pointer(booked))))
}

func cLimiterReserveAt(limiter uintptr, now, cost, patience uint64, booked *tollbar_reservation) int32 {
	return int32(C.go_limiter_reserve_at(C.uintptr_t(limiter), C.uint64_t(now), C.uint64_t(cost),
		C.uint64_t(patience), (*C.tollbar_reservation)(unsafe.Pointer(booked))))
}

func cLimiterSetPolicy(limiter uintptr, spec *tollbar_policy_spec, keep uint32) int32 {
	return int32(C.go_limiter_set_policy(C.uintptr_t(limiter), (*C.tollbar_policy_spec)(unsafe.Pointer(spec)),
		C.uint32_t(keep)))
}

func cLimiterSetPolicyAt(limiter uintptr, now uint64, spec *tollbar_policy_spec, keep uint32) int32 {
	return int32(C.go_limiter_set_policy_at(C.uintptr_t(limiter), C.uint64_t(now),
		(*C.tollbar_policy_spec)(unsafe.Pointer(spec)), C.uint32_t(keep)))
}

func cLimiterCancel(limiter uintptr, booked *tollbar_reservation, back *uint64) int32 {
	return int32(C.go_limiter_cancel(C.uintptr_t(limiter), (*C.tollbar_reservation)(unsafe.Pointer(booked)),
		(*C.uint64_t)(back)))
}

func cLimiterCancelAt(limiter uintptr, now uint64, booked *tollbar_reservation, back *uint64) int32 {
	return int32(C.go_limiter_cancel_at(C.uintptr_t(limiter), C.uint64_t(now),
		(*C.tollbar_reservation)(unsafe.Pointer(booked)), (*C.uint64_t)(back)))
}

func cLimiterNow(limiter uintptr, now *uint64) int32 {
	return int32(C.go_limiter_now(C.uintptr_t(limiter), (*C.uint64_t)(now)))
}

func cLimiterReset(limiter uintptr) int32 {
	return int32(C.go_limiter_reset(C.uintptr_t(limiter)))
}

func cLimiterState(limiter uintptr, out *tollbar_limiter_state) int32 {
	return int32(C.go_limiter_state(C.uintptr_t(limiter), (*C.tollbar_limiter_state)(unsafe.Pointer(out))))
}

func cTableFree(table uintptr) {
	C.go_table_free(C.uintptr_t(table))
}

func cTableCheck(table uintptr, policy uint32, key string, cost uint64, out *tollbar_decision) int32 {
	return int32(C.go_table_check(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(cost), (*C.tollbar_decision)(unsafe.Pointer(out))))
}

func cTableCheckAt(table uintptr, policy uint32, key string, now, cost uint64, out *tollbar_decision) int32 {
	return int32(C.go_table_check_at(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(now), C.uint64_t(cost), (*C.tollbar_decision)(unsafe.Pointer(out))))
}

func cTablePeek(table uintptr, policy uint32, key string, cost uint64, out *tollbar_decision) int32 {
	return int32(C.go_table_peek(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(cost), (*C.tollbar_decision)(unsafe.Pointer(out))))
}

func cTablePeekAt(table uintptr, policy uint32, key string, now, cost uint64, out *tollbar_decision) int32 {
	return int32(C.go_table_peek_at(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(now), C.uint64_t(cost), (*C.tollbar_decision)(unsafe.Pointer(out))))
}

func cTableCharge(table uintptr, policy uint32, key string, cost uint64, rest *uint64) int32 {
	return int32(C.go_table_charge(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(cost), (*C.uint64_t)(rest)))
}

func cTableChargeAt(table uintptr, policy uint32, key string, now, cost uint64, rest *uint64) int32 {
	return int32(C.go_table_charge_at(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(now), C.uint64_t(cost), (*C.uint64_t)(rest)))
}

func cTableTake(table uintptr, policy uint32, key string, most uint64, taken *uint64) int32 {
	return int32(C.go_table_take(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(most), (*C.uint64_t)(taken)))
}

func cTableReserve(table uintptr, policy uint32, key string, cost, patience uint64,
	booked *tollbar_reservation) int32 {
	return int32(C.go_table_reserve(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(cost), C.uint64_t(patience), (*C.tollbar_reservation)(unsafe.Pointer(booked))))
}

func cTableCancel(table uintptr, policy uint32, key string, booked *tollbar_reservation, back *uint64) int32 {
	return int32(C.go_table_cancel(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		(*C.tollbar_reservation)(unsafe.Pointer(booked)), (*C.uint64_t)(back)))
}

func cTableReserveAt(table uintptr, policy uint32, key string, now, cost, patience uint64,
	booked *tollbar_reservation) int32 {
	return int32(C.go_table_reserve_at(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(now), C.uint64_t(cost), C.uint64_t(patience), (*C.tollbar_reservation)(unsafe.Pointer(booked))))
}

func cTableCancelAt(table uintptr, policy uint32, key string, now uint64, booked *tollbar_reservation,
	back *uint64) int32 {
	return int32(C.go_table_cancel_at(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(now), (*C.tollbar_reservation)(unsafe.Pointer(booked)), (*C.uint64_t)(back)))
}

func cTableTakeEstimate(table uintptr, policy uint32, key string, estimate uint64,
	receipt *tollbar_receipt, out *tollbar_decision) int32 {
	return int32(C.go_table_take_estimate(C.uintptr_t(table), C.uint32_t(policy), text(key),
		C.size_t(len(key)), C.uint64_t(estimate), (*C.tollbar_receipt)(unsafe.Pointer(receipt)), (*C.tollbar_decision)(unsafe.Pointer(out))))
}

func cTableTakeEstimateAt(table uintptr, policy uint32, key string, now, estimate uint64,
	receipt *tollbar_receipt, out *tollbar_decision) int32 {
	return int32(C.go_table_take_estimate_at(C.uintptr_t(table), C.uint32_t(policy), text(key),
		C.size_t(len(key)), C.uint64_t(now), C.uint64_t(estimate), (*C.tollbar_receipt)(unsafe.Pointer(receipt)), (*C.tollbar_decision)(unsafe.Pointer(out))))
}

func cTableSettle(table uintptr, receipt *tollbar_receipt, cost uint64, out *tollbar_settled) int32 {
	return int32(C.go_table_settle(C.uintptr_t(table), (*C.tollbar_receipt)(unsafe.Pointer(receipt)),
		C.uint64_t(cost), (*C.tollbar_settled)(unsafe.Pointer(out))))
}

func cTableSettleAt(table uintptr, receipt *tollbar_receipt, now, cost uint64, out *tollbar_settled) int32 {
	return int32(C.go_table_settle_at(C.uintptr_t(table), (*C.tollbar_receipt)(unsafe.Pointer(receipt)),
		C.uint64_t(now), C.uint64_t(cost), (*C.tollbar_settled)(unsafe.Pointer(out))))
}

func cTableSettleInFull(table uintptr, receipt *tollbar_receipt, cost uint64, out *tollbar_settled) int32 {
	return int32(C.go_table_settle_in_full(C.uintptr_t(table), (*C.tollbar_receipt)(unsafe.Pointer(receipt)),
		C.uint64_t(cost), (*C.tollbar_settled)(unsafe.Pointer(out))))
}

func cTableHash(table uintptr, policy uint32, key string, hash *uint64) int32 {
	return int32(C.go_table_hash(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		(*C.uint64_t)(hash)))
}

func cTableReset(table uintptr, policy uint32, key string) int32 {
	return int32(C.go_table_reset(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key))))
}

func cTableResetAt(table uintptr, policy uint32, key string, now uint64) int32 {
	return int32(C.go_table_reset_at(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(now)))
}

func cTableExempt(table uintptr, policy uint32, key string) int32 {
	return int32(C.go_table_exempt(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key))))
}

func cTableUnexempt(table uintptr, policy uint32, key string) int32 {
	return int32(C.go_table_unexempt(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key))))
}

func cTableNow(table uintptr, now *uint64) int32 {
	return int32(C.go_table_now(C.uintptr_t(table), (*C.uint64_t)(now)))
}

func cTableNext(table uintptr, from, now uint64, out *tollbar_table_entry) int32 {
	return int32(C.go_table_next(C.uintptr_t(table), C.uint64_t(from), C.uint64_t(now),
		(*C.tollbar_table_entry)(unsafe.Pointer(out))))
}

func cTableSweep(table uintptr, from, most, now uint64, out *tollbar_table_sweep_result) int32 {
	return int32(C.go_table_sweep(C.uintptr_t(table), C.uint64_t(from), C.uint64_t(most), C.uint64_t(now),
		(*C.tollbar_table_sweep_result)(unsafe.Pointer(out))))
}

func cTableAddPolicy(table uintptr, spec *tollbar_policy_spec, number *uint32) int32 {
	return int32(C.go_table_add_policy(C.uintptr_t(table), (*C.tollbar_policy_spec)(unsafe.Pointer(spec)),
		(*C.uint32_t)(number)))
}

func cTableFindOrAddPolicy(table uintptr, spec *tollbar_policy_spec, number *uint32) int32 {
	return int32(C.go_table_find_or_add_policy(C.uintptr_t(table),
		(*C.tollbar_policy_spec)(unsafe.Pointer(spec)), (*C.uint32_t)(number)))
}

func cTableSetPolicy(table uintptr, number uint32, spec *tollbar_policy_spec, keep uint32) int32 {
	return int32(C.go_table_set_policy(C.uintptr_t(table), C.uint32_t(number),
		(*C.tollbar_policy_spec)(unsafe.Pointer(spec)), C.uint32_t(keep)))
}

func cTableSetOverride(table uintptr, policy uint32, key string, spec *tollbar_policy_spec, keep uint32) int32 {
	return int32(C.go_table_set_override(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		(*C.tollbar_policy_spec)(unsafe.Pointer(spec)), C.uint32_t(keep)))
}

func cTableClearOverride(table uintptr, policy uint32, key string) int32 {
	return int32(C.go_table_clear_override(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key))))
}

func cTableGetOverride(table uintptr, policy uint32, key string, out *tollbar_policy_spec) int32 {
	return int32(C.go_table_get_override(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		(*C.tollbar_policy_spec)(unsafe.Pointer(out))))
}

func cTableNextOverride(table uintptr, from uint64, out *tollbar_table_override, spec *tollbar_policy_spec) int32 {
	return int32(C.go_table_next_override(C.uintptr_t(table), C.uint64_t(from),
		(*C.tollbar_table_override)(unsafe.Pointer(out)), (*C.tollbar_policy_spec)(unsafe.Pointer(spec))))
}

func cTableRecordRefusals(table uintptr, on uint32) int32 {
	return int32(C.go_table_record_refusals(C.uintptr_t(table), C.uint32_t(on)))
}

func cTableRecordsRefusals(table uintptr) int32 {
	return int32(C.go_table_records_refusals(C.uintptr_t(table)))
}

func cTableGetPolicy(table uintptr, number uint32, out *tollbar_policy_spec) int32 {
	return int32(C.go_table_get_policy(C.uintptr_t(table), C.uint32_t(number),
		(*C.tollbar_policy_spec)(unsafe.Pointer(out))))
}

func cTableCounts(table uintptr, policy uint32, out *tollbar_counts) int32 {
	return int32(C.go_table_counts(C.uintptr_t(table), C.uint32_t(policy), (*C.tollbar_counts)(unsafe.Pointer(out))))
}

func cTableStats(table uintptr, out *tollbar_table_stats) int32 {
	return int32(C.go_table_stats(C.uintptr_t(table), (*C.tollbar_table_stats)(unsafe.Pointer(out))))
}

func cTableCopy(table, from uintptr, now uint64, out *tollbar_table_copy_result) int32 {
	return int32(C.go_table_copy(C.uintptr_t(table), C.uintptr_t(from), C.uint64_t(now),
		(*C.tollbar_table_copy_result)(unsafe.Pointer(out))))
}

func cInFlightClose(table uintptr) {
	C.go_in_flight_close(C.uintptr_t(table))
}

func cInFlightAcquire(table uintptr, key string, limit uint32, ticket *uint64) int32 {
	return int32(C.go_in_flight_acquire(C.uintptr_t(table), text(key), C.size_t(len(key)), C.uint32_t(limit),
		(*C.uint64_t)(ticket)))
}

func cInFlightRelease(table uintptr, ticket uint64) int32 {
	return int32(C.go_in_flight_release(C.uintptr_t(table), C.uint64_t(ticket)))
}

func cInFlightCount(table uintptr, key string, count *uint64) int32 {
	return int32(C.go_in_flight_count(C.uintptr_t(table), text(key), C.size_t(len(key)), (*C.uint64_t)(count)))
}

func cAdaptiveAcquire(limit *tollbar_adaptive, ticket *uint64) int32 {
	return int32(C.go_adaptive_acquire((*C.tollbar_adaptive)(unsafe.Pointer(limit)), (*C.uint64_t)(ticket)))
}

func cAdaptiveRelease(limit *tollbar_adaptive, ticket uint64, outcome uint32, latency uint64) int32 {
	return int32(C.go_adaptive_release((*C.tollbar_adaptive)(unsafe.Pointer(limit)), C.uint64_t(ticket),
		C.uint32_t(outcome), C.uint64_t(latency)))
}

func cAdaptiveAcquireKey(limit *tollbar_adaptive, table uintptr, key string, ticket *uint64) int32 {
	return int32(C.go_adaptive_acquire_key((*C.tollbar_adaptive)(unsafe.Pointer(limit)), C.uintptr_t(table),
		text(key), C.size_t(len(key)), (*C.uint64_t)(ticket)))
}

func cAdaptiveReleaseKey(limit *tollbar_adaptive, table uintptr, key string, ticket uint64, outcome uint32,
	latency uint64) int32 {
	return int32(C.go_adaptive_release_key((*C.tollbar_adaptive)(unsafe.Pointer(limit)), C.uintptr_t(table),
		text(key), C.size_t(len(key)), C.uint64_t(ticket), C.uint32_t(outcome), C.uint64_t(latency)))
}

func cPacingFree(pacing uintptr) {
	C.go_pacing_free(C.uintptr_t(pacing))
}

func cTableMore(table uintptr, policy uint32, key string, cost uint64, decision *tollbar_decision,
	more *uint64) int32 {
	return int32(C.go_table_more(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(cost), (*C.tollbar_decision)(unsafe.Pointer(decision)), (*C.uint64_t)(more)))
}

func cLimiterMore(limiter uintptr, cost uint64, decision *tollbar_decision, more *uint64) int32 {
	return int32(C.go_limiter_more(C.uintptr_t(limiter), C.uint64_t(cost),
		(*C.tollbar_decision)(unsafe.Pointer(decision)), (*C.uint64_t)(more)))
}

func cHierarchyFree(of uintptr) {
	C.go_hierarchy_free(C.uintptr_t(of))
}
