//go:build cgo

package tollbar

// Receipt is the proof of a charge, for [Table.Settle]. It is plain data: it may be copied, stored, and settled by another process
// that has the same table.
type Receipt [32]byte

// Settled is what came of a receipt.
type Settled struct {
	// First is whether this call has settled the receipt. If it had been settled before, or is too old, nothing came back.
	First bool
	// GivenBack is the permits that came back.
	GivenBack uint64
	// Rest is the permits above the estimate that could not be charged, because the key owes as much as its state can hold.
	Rest uint64
}

// Take takes an estimate of what a request will cost, and returns the receipt by which [Table.Settle] settles the real cost. The
// receipt is zero unless the decision has allowed the request. [ErrReceipt] for an estimate of 2^56 or more.
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

// Settle settles a receipt of [Keys.Take] at the real cost. Less than the estimate: what is left comes back, less what time has
// brought back since. More: the difference is a debt, of one burst at most, and later requests wait until it is paid.
//
// A receipt is settled once, whoever has copies of it; one that is never settled stays charged at its estimate. [ErrReceipt] for
// what is no receipt of this table.
func (t *Table) Settle(receipt Receipt, cost uint64) (done Settled, err error) {
	err = t.Under(0).call(func(table uintptr) (code Code) {
		done, code = tableSettle(table, receipt, cost)
		return code
	})
	return done, err
}

// SettleAt is [Table.Settle] at the caller's time, which must not be before that of any call for this key that has returned.
func (t *Table) SettleAt(receipt Receipt, now, cost uint64) (done Settled, err error) {
	err = t.Under(0).call(func(table uintptr) (code Code) {
		done, code = tableSettleAt(table, receipt, now, cost)
		return code
	})
	return done, err
}

// SettleInFull is [Table.Settle] that gives back all that is left of the estimate, without regard to time. It is unsafe for the
// limit: within one refill of the burst, twice the burst may pass.
func (t *Table) SettleInFull(receipt Receipt, cost uint64) (done Settled, err error) {
	err = t.Under(0).call(func(table uintptr) (code Code) {
		done, code = tableSettleInFull(table, receipt, cost)
		return code
	})
	return done, err
}
