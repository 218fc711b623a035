//go:build cgo || tollbar_purego

package tollbar

// RefusedMost is the most keys that [Table.TopRefused] returns.
const RefusedMost = 224

// Refused is a key that a table has refused.
type Refused struct {
	// Policy is the number of the policy under which the table refused the key.
	Policy uint32
	// Count is about the number of refusals in the last two minutes.
	Count uint64
	// Key has the key's first 48 bytes. They are the client's: escape them before they go to a
	// terminal, a page or a log.
	Key string
	// Cut: the key is longer.
	Cut bool
}

// RecordRefusals sets whether requests of all processes record the keys that they refuse, for
// [Table.TopRefused]. No table does at first: a table that records keeps the first 48 bytes of
// refused keys, where it keeps hashes otherwise, and checks are a little slower.
func (t *Table) RecordRefusals(on bool) error {
	return t.with(func(table uintptr) error { return tableRecordRefusals(table, on) })
}

// RecordsRefusals returns whether requests record the keys that they refuse.
func (t *Table) RecordsRefusals() (on bool, err error) {
	err = t.with(func(table uintptr) error {
		on = tableRecordsRefusals(table)
		return nil
	})
	return on, err
}

// TopRefused returns the keys that requests were refused most in the last minute or two, the most
// refused first, at most [RefusedMost]. Counts are halved every 68.7 s, and are not exact.
func (t *Table) TopRefused(most int) (top []Refused, err error) {
	if most < 0 {
		return nil, ErrOutOfRange
	}
	err = t.with(func(table uintptr) error {
		var code Code
		top, code = tableTopRefused(table, min(most, RefusedMost))
		if code < 0 {
			return code
		}
		return nil
	})
	return top, err
}
