//go:build cgo

package tollbar

import (
	"errors"
	"iter"
	"runtime"
	"syscall"
	"time"
)

const noSuchFile = syscall.ENOENT

// sweepStep is how many slots a sweep looks at before Close may come between.
const sweepStep = 1 << 16

// Entry is one key of a table.
type Entry struct {
	// Policy is the number of its policy.
	Policy uint32
	// Hash is all that the table knows of the key: [Keys.Hash].
	Hash uint64
	// State is its state word.
	State uint64
	// Remaining permits that could be taken.
	Remaining uint64
	// ResetAfter is how long until it is as good as fresh; 0: it has expired.
	ResetAfter time.Duration
}

// Swept is what a sweep saw.
type Swept struct {
	// Live keys have a debt.
	Live uint64
	// Vacated slots were made vacant.
	Vacated uint64
}

// TableStats are counters and sizes of a table: since it was made, of all processes. One that is killed may miss its last.
type TableStats struct {
	// Policies is how many there are.
	Policies int
	// Capacity is the keys it was made for, Slots what it has for them, and Bytes what it takes.
	Capacity, Slots, Bytes uint64
	// Keys is slots that hold a key, expired or not.
	Keys uint64
	// Inserted keys were put into an empty or vacant slot.
	Inserted uint64
	// Reclaimed slots of expired keys were given to others.
	Reclaimed uint64
	// Vacated slots became so by a sweep or a reset.
	Vacated uint64
	// Resets of keys.
	Resets uint64
	// Refused newcomers: for want of a place, or by the debt that they would have taken over.
	Refused uint64
	// Inherited: newcomers that took over a slot and its debt.
	Inherited uint64
	// Untracked: newcomers admitted and not remembered.
	Untracked uint64
	// Evicted keys had a debt and were forgotten.
	Evicted uint64
	// Retries of swaps because another thread came first.
	Retries uint64
	// BackwardSteps counts requests with an older time than one before them, by a microsecond or more.
	BackwardSteps uint64
	// Allowed, Denied and Never count decisions by verdict, over all policies, threads and processes. Peeks and errors do not count.
	Allowed, Denied, Never uint64
}

// Counts are decisions by verdict.
type Counts struct {
	Allowed, Denied uint64
	// Never counts requests that cost more than the burst.
	Never uint64
}

// TableHealth is what is in a table's slots.
type TableHealth struct {
	// Claimed records of policies were begun and not finished.
	Claimed uint32
	// Vacant slots hold no key and may be taken; Waiting ones not yet.
	Vacant, Waiting uint64
	// Expired keys; Live keys, which have a debt.
	Expired, Live uint64
	// Unknown slots are under a version of a policy that nobody knows.
	Unknown uint64
	// Duplicate: slots whose key another slot holds, too.
	Duplicate uint64
}

// Now is the time that calls without one read: nanoseconds of the table's clock.
func (t *Table) Now() (now uint64, err error) {
	_, err = t.ask(func(table uintptr) (code Code) {
		now, code = tableNow(table)
		return code
	})
	return now, err
}

// Entries are the table's keys as of now, for as long as the table is not closed. Keys that come or go meanwhile may be
// seen or not, or twice. The table may be used, and closed, by the loop's body.
func (t *Table) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		now, err := t.Now()
		from := uint64(0)
		for err == nil {
			var entry Entry
			found := false
			found, err = t.ask(func(table uintptr) (code Code) {
				entry, from, code = tableNext(table, from, now)
				return code
			})
			if !found || !yield(entry) {
				return
			}
		}
	}
}

// Sweep makes slots vacant whose keys have expired. The table does without; it is for those who want to know how many keys
// have a debt.
func (t *Table) Sweep() (Swept, error) {
	var all Swept
	now, err := t.Now()
	from, done := uint64(0), false
	for err == nil && !done {
		_, err = t.ask(func(table uintptr) Code {
			var part Swept
			var code Code
			part, from, done, code = tableSweep(table, from, now)
			all.Live += part.Live
			all.Vacated += part.Vacated
			return code
		})
	}
	return all, err
}

// AddPolicy adds a policy while the table is in use, in all processes; its number is how requests name it. The error is
// a [*PolicyError].
func (t *Table) AddPolicy(policy string) (number uint32, err error) {
	err = t.with(func(table uintptr) (err error) {
		number, err = tableAddPolicy(table, policy)
		return err
	})
	return number, err
}

// FindOrAddPolicy is the number of the first policy that equals this one in every field, which is added if there is none.
// All goroutines and processes that ask for the same policy at once get the same number. The error is a [*PolicyError].
func (t *Table) FindOrAddPolicy(policy string) (number uint32, err error) {
	err = t.with(func(table uintptr) (err error) {
		number, err = tableFindOrAddPolicy(table, policy)
		return err
	})
	return number, err
}

// Keep is what a key keeps of its debt when its policy is changed.
type Keep uint32

const (
	// KeepCount: the permits that it has left, up to the new burst. No wait is longer than the new policy refills.
	KeepCount Keep = iota
	// KeepTime: the time until the debt is paid.
	KeepTime
	// KeepReset: nothing.
	KeepReset
)

// SetPolicy changes the policy of that number while the table is in use, in all processes at once. Each key keeps the
// permits that it has left, up to the new burst. The error is a [*PolicyError].
func (t *Table) SetPolicy(number uint32, policy string) error {
	return t.SetPolicyKeeping(number, policy, KeepCount)
}

// SetPolicyKeeping is SetPolicy with the choice of what keys keep of their debts.
func (t *Table) SetPolicyKeeping(number uint32, policy string, keep Keep) error {
	return t.with(func(table uintptr) error { return tableSetPolicy(table, number, policy, keep) })
}

// Policy is the policy of that number as it is now.
func (t *Table) Policy(number uint32) (policy Policy, err error) {
	_, err = t.ask(func(table uintptr) (code Code) {
		policy, code = tableGetPolicy(table, number)
		return code
	})
	return policy, err
}

// Counts are the decisions under the policy since the table was made, of all threads and processes. [Table.Stats] has the sums
// of all policies.
func (k Keys) Counts() (counts Counts, err error) {
	err = k.call(func(table uintptr) (code Code) {
		counts, code = tableCounts(table, k.policy)
		return code
	})
	return counts, err
}

// Stats are the table's counters and sizes.
func (t *Table) Stats() (stats TableStats, err error) {
	_, err = t.ask(func(table uintptr) (code Code) {
		stats, code = tableStats(table)
		return code
	})
	return stats, err
}

// Sync writes a file's table to the disk, and the time with it, from which it goes on after the machine's next start.
// As long as the machine runs nothing is lost without. It takes as long as the disk does, and Close waits for it.
func (t *Table) Sync() error {
	err := t.with(tableSync)
	var failed *TableError
	if errors.As(err, &failed) {
		failed.Path = t.path
	}
	return err
}

// Validate looks at every slot. The error is [ErrSlotsInvalid] if there is anything to repair; the health is given either way.
func (t *Table) Validate() (TableHealth, error) { return t.health(false) }

// Repair empties invalid slots and frees policy records that a killed process left unfinished. Call it only while no other
// thread or process uses the table, because an emptied slot may have held a debt. It returns what Validate saw before the repair.
func (t *Table) Repair() (TableHealth, error) { return t.health(true) }

func (t *Table) health(repair bool) (health TableHealth, err error) {
	now, err := t.Now()
	if err != nil {
		return health, err
	}
	_, err = t.ask(func(table uintptr) (code Code) {
		health, code = tableHealth(table, repair, now)
		return code
	})
	return health, err
}

// CopyFrom copies what the keys of another table owe now into this one, and who is exempt: to go on in a table of another
// size. Both have the same seed ([TableOptions].Seed) and clock, or it is [ErrOtherOptions], and this one has a policy of
// each number that the other has, or it is [ErrOtherPolicies]. copied keys are in this table now; for lost ones there was
// no place.
func (t *Table) CopyFrom(other *Table) (copied, lost uint64, err error) {
	now, err := t.Now()
	if err != nil {
		return 0, 0, err
	}
	err = other.with(func(from uintptr) error {
		_, err := t.ask(func(table uintptr) (code Code) {
			copied, lost, code = tableCopy(table, from, now)
			return code
		})
		return err
	})
	return copied, lost, err
}

// with runs f unless the table is closed.
func (t *Table) with(f func(table uintptr) error) error {
	c := t.guard.Enter()
	if c == nil {
		return ErrClosed
	}
	err := f(t.handle)
	c.Leave()
	runtime.KeepAlive(t)
	return err
}
