package cell

// Reason is the reason of a decision. The numbers are those of tollbar.h.
type Reason uint32

// The reasons. A later version of the library may have more. A [Cell] gives the first three.
const (
	// Admitted: the limit had the permits: the usual reason of [Allowed].
	ReasonAdmitted Reason = 0
	// Rate: denied: the permits are spent and come back with time (with a limit of 0, never).
	ReasonRate Reason = 1
	// Burst: never: the cost is above the burst.
	ReasonBurst Reason = 2
	// TableFull: the table has no free slot for a new key. OnFullDeny denies the request, and
	// OnFullAllow allows it without storing the key.
	ReasonTableFull Reason = 3
	// InheritedDebt: denied: a new key inherits the debt of the key whose slot it needs
	// (OnFullInherit), and that debt is too high.
	ReasonInheritedDebt Reason = 4
	// MissingKey: the request had an empty key; the table's options say whether it passes.
	ReasonMissingKey Reason = 5
	// Exempt: allowed and not charged: the key is exempt.
	ReasonExempt Reason = 6
	// QueueFull: denied: the permits would have come within the caller's patience, but the maximum
	// number of callers sleeps already.
	ReasonQueueFull Reason = 7
	// Fault: denied: the state is damaged. C calls return an error instead.
	ReasonFault Reason = 8
	// Pending: denied for now: the client has asked the store, and the store has not answered yet.
	ReasonPending Reason = 9
	// StoreDenied: denied: by the store's last answer the limit is used up.
	ReasonStoreDenied Reason = 10
	// StoreDown: the store does not answer: the options of the lease decided.
	ReasonStoreDown Reason = 11
	// Banned: denied: the key is banned (the policy's option ban). For one permit RetryAfter is the
	// end of the ban.
	ReasonBanned Reason = 12
	// InFlight: denied: as many permits as the limit are in flight. They come back when their
	// holders release them, so no wait is known.
	ReasonInFlight Reason = 13
	// Reserve: denied or never: the request's class leaves permits to others. Without the reserve
	// the request would have passed.
	ReasonReserve Reason = 14
)

var reasons = [...]string{
	"admitted",
	"over the rate",
	"above the burst",
	"table full",
	"inherited debt",
	"missing key",
	"exempt",
	"queue full",
	"fault",
	"pending",
	"denied by the store",
	"store down",
	"banned",
	"too many in flight",
	"reserved for other classes",
}

// String returns the reason in a few English words, such as "over the rate".
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "unknown reason"
}
