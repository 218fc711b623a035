package tollbar

// The calls into C for receipts. Callers hold the table's guard, so Close cannot free the table meanwhile.

/*
#include "bridge.h"

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
*/
import "C"

import "unsafe"

// A Receipt has the bytes of the C struct. That struct has a larger alignment, so the bytes are copied.
const _ = uint(len(Receipt{})-int(unsafe.Sizeof(C.tollbar_receipt{}))) +
	uint(int(unsafe.Sizeof(C.tollbar_receipt{}))-len(Receipt{}))

func receiptOf(raw *C.tollbar_receipt) Receipt { return *(*Receipt)(unsafe.Pointer(raw)) }

func (r *Receipt) raw() (raw C.tollbar_receipt) {
	*(*Receipt)(unsafe.Pointer(&raw)) = *r
	return raw
}

func tableTake(table uintptr, policy uint32, key string, estimate uint64, d *Decision) (Receipt, Code) {
	if now, ok := bubbleTime(); ok {
		return tableTakeAt(table, policy, key, now, estimate, d)
	}
	out := newDecision()
	var receipt C.tollbar_receipt
	code := C.go_table_take_estimate(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(estimate),
		&receipt, &out)
	*d, _ = decided(code, &out)
	return receiptOf(&receipt), Code(code)
}

func tableTakeAt(table uintptr, policy uint32, key string, now, estimate uint64, d *Decision) (Receipt, Code) {
	out := newDecision()
	var receipt C.tollbar_receipt
	code := C.go_table_take_estimate_at(C.uintptr_t(table), C.uint32_t(policy), text(key), C.size_t(len(key)),
		C.uint64_t(now),
		C.uint64_t(estimate), &receipt, &out)
	*d, _ = decided(code, &out)
	return receiptOf(&receipt), Code(code)
}

func newSettled() C.tollbar_settled {
	return C.tollbar_settled{struct_size: C.uint32_t(unsafe.Sizeof(C.tollbar_settled{}))}
}

func settled(out *C.tollbar_settled) Settled {
	return Settled{First: out.first == C.TOLLBAR_YES, GivenBack: uint64(out.given_back), Rest: uint64(out.rest)}
}

func tableSettle(table uintptr, receipt Receipt, cost uint64) (Settled, Code) {
	if now, ok := bubbleTime(); ok {
		return tableSettleAt(table, receipt, now, cost)
	}
	raw, out := receipt.raw(), newSettled()
	code := C.go_table_settle(C.uintptr_t(table), &raw, C.uint64_t(cost), &out)
	return settled(&out), Code(code)
}

func tableSettleAt(table uintptr, receipt Receipt, now, cost uint64) (Settled, Code) {
	raw, out := receipt.raw(), newSettled()
	code := C.go_table_settle_at(C.uintptr_t(table), &raw, C.uint64_t(now), C.uint64_t(cost), &out)
	return settled(&out), Code(code)
}

func tableSettleInFull(table uintptr, receipt Receipt, cost uint64) (Settled, Code) {
	raw, out := receipt.raw(), newSettled()
	code := C.go_table_settle_in_full(C.uintptr_t(table), &raw, C.uint64_t(cost), &out)
	return settled(&out), Code(code)
}
