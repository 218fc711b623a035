//go:build cgo || tollbar_purego

package tollbar

// The calls into C for receipts. Callers hold the table's guard, so Close cannot free the table
// meanwhile.

import "unsafe"

// A Receipt has the bytes of the C struct. That struct has a larger alignment, so the bytes are
// copied.
func receiptOf(raw *tollbar_receipt) Receipt { return *(*Receipt)(unsafe.Pointer(raw)) }

func (r *Receipt) raw() (raw tollbar_receipt) {
	*(*Receipt)(unsafe.Pointer(&raw)) = *r
	return raw
}

func tableTake(table uintptr, policy uint32, key string, estimate uint64, d *Decision) (Receipt, Code) {
	if now, ok := bubbleTime(); ok {
		return tableTakeAt(table, policy, key, now, estimate, d)
	}
	out := newDecision()
	var receipt tollbar_receipt
	code := cTableTakeEstimate(table, policy, key, estimate, &receipt, &out)
	*d, _ = decided(code, &out)
	return receiptOf(&receipt), Code(code)
}

func tableTakeAt(table uintptr, policy uint32, key string, now, estimate uint64, d *Decision) (Receipt, Code) {
	out := newDecision()
	var receipt tollbar_receipt
	code := cTableTakeEstimateAt(table, policy, key, now, estimate, &receipt, &out)
	*d, _ = decided(code, &out)
	return receiptOf(&receipt), Code(code)
}

func newSettled() tollbar_settled {
	return tollbar_settled{struct_size: uint32(unsafe.Sizeof(tollbar_settled{}))}
}

func settled(out *tollbar_settled) Settled {
	return Settled{First: out.first == tollbar_yes, GivenBack: out.given_back, Rest: out.rest}
}

func tableSettle(table uintptr, receipt Receipt, cost uint64) (Settled, Code) {
	if now, ok := bubbleTime(); ok {
		return tableSettleAt(table, receipt, now, cost)
	}
	raw, out := receipt.raw(), newSettled()
	code := cTableSettle(table, &raw, cost, &out)
	return settled(&out), Code(code)
}

func tableSettleAt(table uintptr, receipt Receipt, now, cost uint64) (Settled, Code) {
	raw, out := receipt.raw(), newSettled()
	code := cTableSettleAt(table, &raw, now, cost, &out)
	return settled(&out), Code(code)
}

func tableSettleInFull(table uintptr, receipt Receipt, cost uint64) (Settled, Code) {
	raw, out := receipt.raw(), newSettled()
	code := cTableSettleInFull(table, &raw, cost, &out)
	return settled(&out), Code(code)
}
