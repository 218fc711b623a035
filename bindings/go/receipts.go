//go:build cgo || tollbar_purego

package tollbar

// Receipt is the proof of a charge, for [Table.Settle]. It is plain data: it may be copied, stored,
// and settled by another process that has the same table.
type Receipt [32]byte

// Settled says what [Table.Settle] did with a receipt.
type Settled struct {
	// First is true if this call settled the receipt. It is false if an earlier call did or the
	// receipt is too old: then no permits went back to the key.
	First bool
	// GivenBack is the number of whole permits that went back to the key.
	GivenBack uint64
	// Rest is the number of permits above the estimate that could not be charged, because the key's
	// debt is as high as it may be.
	Rest uint64
}

// Take charges an estimate of a request's cost, and returns the receipt by which [Table.Settle]
// settles the real cost. The receipt is zero unless the request was allowed. The error is
// [ErrReceipt] for an estimate of 2^56 or more.
func (k Keys) Take(key string, estimate uint64) (receipt Receipt, d Decision, err error) {
	err = k.call(func(table uintptr) (code Code) {
		receipt, code = tableTake(table, k.policy, key, estimate, &d)
		return code
	})
	return receipt, d, err
}

// TakeAt is [Keys.Take] at the caller's time.
func (k Keys) TakeAt(key string, now, estimate uint64) (receipt Receipt, d Decision, err error) {
	err = k.call(func(table uintptr) (code Code) {
		receipt, code = tableTakeAt(table, k.policy, key, now, estimate, &d)
		return code
	})
	return receipt, d, err
}

// Settle settles a receipt of [Keys.Take] at the real cost. If the cost is below the estimate, the
// unused permits go back to the key, without those that the key has regained by refill since the
// charge. If the cost is above the estimate, the difference is charged as a debt, which is one
// burst at most, and later requests of the key wait until it is paid.
//
// Only the first call for a receipt settles it, even if there are copies. Without such a call the
// estimate stays charged. The error is [ErrReceipt] if receipt is not one of this table.
func (t *Table) Settle(receipt Receipt, cost uint64) (done Settled, err error) {
	err = t.Under(0).call(func(table uintptr) (code Code) {
		done, code = tableSettle(table, receipt, cost)
		return code
	})
	return done, err
}

// SettleAt is [Table.Settle] at the caller's time, which must not be before that of any call for
// this key that has returned.
func (t *Table) SettleAt(receipt Receipt, now, cost uint64) (done Settled, err error) {
	err = t.Under(0).call(func(table uintptr) (code Code) {
		done, code = tableSettleAt(table, receipt, now, cost)
		return code
	})
	return done, err
}

// SettleInFull is [Table.Settle], but returns all unused permits of the estimate to the key, also
// those that the key has regained by refill. It is unsafe for the limit: each receipt that was open
// for the refill of a burst may let one more burst pass.
func (t *Table) SettleInFull(receipt Receipt, cost uint64) (done Settled, err error) {
	err = t.Under(0).call(func(table uintptr) (code Code) {
		done, code = tableSettleInFull(table, receipt, cost)
		return code
	})
	return done, err
}
