package tollbar

import "github.com/tollbar/tollbar/bindings/go/cell"

// Reason is the reason of a decision: the limit, the table, the key or the store.
type Reason = cell.Reason

// The reasons, as [cell] describes them.
const (
	ReasonAdmitted      = cell.ReasonAdmitted
	ReasonRate          = cell.ReasonRate
	ReasonBurst         = cell.ReasonBurst
	ReasonTableFull     = cell.ReasonTableFull
	ReasonInheritedDebt = cell.ReasonInheritedDebt
	ReasonMissingKey    = cell.ReasonMissingKey
	ReasonExempt        = cell.ReasonExempt
	ReasonQueueFull     = cell.ReasonQueueFull
	ReasonFault         = cell.ReasonFault
	ReasonPending       = cell.ReasonPending
	ReasonStoreDenied   = cell.ReasonStoreDenied
	ReasonStoreDown     = cell.ReasonStoreDown
	ReasonBanned        = cell.ReasonBanned
	ReasonInFlight      = cell.ReasonInFlight
	ReasonReserve       = cell.ReasonReserve
)
