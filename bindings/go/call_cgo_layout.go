//go:build cgo && !tollbar_purego

package tollbar

// What C says of the structs and numbers of tollbar_h.go.

/*
#include "bridge.h"
*/
import "C"

import "unsafe"

// layouts are pairs of a struct in Go and the same struct in C. A test compares their fields.
func layouts() [][2]any {
	return [][2]any{
		{tollbar_class{}, C.tollbar_class{}},
		{tollbar_policy_spec{}, C.tollbar_policy_spec{}},
		{tollbar_policy_error{}, C.tollbar_policy_error{}},
		{tollbar_curve_fit{}, C.tollbar_curve_fit{}},
		{tollbar_decision{}, C.tollbar_decision{}},
		{tollbar_limiter_options{}, C.tollbar_limiter_options{}},
		{tollbar_limiter_state{}, C.tollbar_limiter_state{}},
		{tollbar_table_options{}, C.tollbar_table_options{}},
		{tollbar_request{}, C.tollbar_request{}},
		{tollbar_in_flight_options{}, C.tollbar_in_flight_options{}},
		{tollbar_limit{}, C.tollbar_limit{}},
		{tollbar_taken{}, C.tollbar_taken{}},
		{tollbar_reservation{}, C.tollbar_reservation{}},
		{tollbar_receipt{}, C.tollbar_receipt{}},
		{tollbar_settled{}, C.tollbar_settled{}},
		{tollbar_share{}, C.tollbar_share{}},
		{tollbar_adaptive{}, C.tollbar_adaptive{}},
		{tollbar_adaptive_options{}, C.tollbar_adaptive_options{}},
		{tollbar_adaptive_state{}, C.tollbar_adaptive_state{}},
		{tollbar_pacing_options{}, C.tollbar_pacing_options{}},
		{tollbar_pacing_ticket{}, C.tollbar_pacing_ticket{}},
		{tollbar_pacing_state{}, C.tollbar_pacing_state{}},
		{tollbar_meter{}, C.tollbar_meter{}},
		{tollbar_meter_state{}, C.tollbar_meter_state{}},
		{tollbar_table_override{}, C.tollbar_table_override{}},
		{tollbar_prefix{}, C.tollbar_prefix{}},
		{tollbar_http_limit{}, C.tollbar_http_limit{}},
		{tollbar_http_seen{}, C.tollbar_http_seen{}},
		{tollbar_metrics_source{}, C.tollbar_metrics_source{}},
		{tollbar_table_refused{}, C.tollbar_table_refused{}},
		{tollbar_counts{}, C.tollbar_counts{}},
		{tollbar_table_entry{}, C.tollbar_table_entry{}},
		{tollbar_table_sweep_result{}, C.tollbar_table_sweep_result{}},
		{tollbar_table_stats{}, C.tollbar_table_stats{}},
		{tollbar_table_health{}, C.tollbar_table_health{}},
		{tollbar_table_copy_result{}, C.tollbar_table_copy_result{}},
		{batchItem{}, C.go_item{}}, {limitItem{}, C.go_limit{}}, {httpItem{}, C.go_http_limit{}},
		{metricsItem{}, C.go_metrics_source{}}, {Receipt{}, C.tollbar_receipt{}}, {adaptiveWords{}, C.tollbar_adaptive{}},
	}
}

// This file compiles only if the numbers are C's: each index must be 0.
var (
	_ = [1]struct{}{}[tollbar_forever-C.TOLLBAR_FOREVER]
	_ = [1]struct{}{}[tollbar_allowed-C.TOLLBAR_ALLOWED]
	_ = [1]struct{}{}[tollbar_denied-C.TOLLBAR_DENIED]
	_ = [1]struct{}{}[tollbar_never-C.TOLLBAR_NEVER]
	_ = [1]struct{}{}[tollbar_yes-C.TOLLBAR_YES]
	_ = [1]struct{}{}[tollbar_policy_text_max-C.TOLLBAR_POLICY_TEXT_MAX]
	_ = [1]struct{}{}[tollbar_schedule_text_max-C.TOLLBAR_SCHEDULE_TEXT_MAX]
	_ = [1]struct{}{}[tollbar_policy_borrow-C.TOLLBAR_POLICY_BORROW]
	_ = [1]struct{}{}[tollbar_policy_rejected-C.TOLLBAR_POLICY_COUNT_REJECTED]
	_ = [1]struct{}{}[tollbar_policy_has_init-C.TOLLBAR_POLICY_HAS_INIT]
	_ = [1]struct{}{}[tollbar_unit_bytes-C.TOLLBAR_UNIT_BYTES]
	_ = [1]struct{}{}[tollbar_anchor_first-C.TOLLBAR_ANCHOR_FIRST]
	_ = [1]struct{}{}[tollbar_credit_on-C.TOLLBAR_CREDIT_ON]
	_ = [1]struct{}{}[tollbar_table_has_seed-C.TOLLBAR_TABLE_HAS_SEED]
	_ = [1]struct{}{}[tollbar_table_small_pages-C.TOLLBAR_TABLE_SMALL_PAGES]
	_ = [1]struct{}{}[tollbar_table_trust_anyone-C.TOLLBAR_TABLE_TRUST_ANYONE]
	_ = [1]struct{}{}[tollbar_flight_trust-C.TOLLBAR_IN_FLIGHT_TRUST_ANYONE]
	_ = [1]struct{}{}[tollbar_adaptive_aimd-C.TOLLBAR_ADAPTIVE_AIMD]
	_ = [1]struct{}{}[tollbar_pacing_aimd-C.TOLLBAR_PACING_AIMD]
	_ = [1]struct{}{}[tollbar_refused_key-C.TOLLBAR_REFUSED_KEY]
	_ = [1]struct{}{}[unsafe.Sizeof(className{})-C.TOLLBAR_CLASS_NAME_SIZE]
	_ = [1]struct{}{}[ClassesMost-C.TOLLBAR_CLASSES_MOST]
	_ = [1]struct{}{}[LimitsMost-C.TOLLBAR_LIMITS_MOST]
	_ = [1]struct{}{}[MetricsMost-C.TOLLBAR_METRICS_MOST]
	_ = [1]struct{}{}[FieldRetryAfter-C.TOLLBAR_HTTP_RETRY_AFTER|FieldsLegacy-C.TOLLBAR_HTTP_LEGACY|
		FieldsLegacyEpoch-C.TOLLBAR_HTTP_LEGACY_EPOCH|FieldsDraft06-C.TOLLBAR_HTTP_DRAFT_06|
		FieldsDraft07-C.TOLLBAR_HTTP_DRAFT_07|FieldsDraft11-C.TOLLBAR_HTTP_DRAFT_11]
)
