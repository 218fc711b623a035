//go:build cgo || tollbar_purego

package tollbar

import (
	"errors"
	"iter"
	"runtime"
	"time"
)

// sweepStep is the number of slots that a sweep examines before Close may run.
const sweepStep = 1 << 16

// Exempt exempts a key: it always passes and is charged nothing. A table has room for some 1,600
// exempt keys. When it is full, the error is [ErrExemptionsFull].
func (k Keys) Exempt(key string) error {
	return k.call(func(table uintptr) Code { return tableExempt(table, k.policy, key) })
}

// Unexempt ends a key's exemption. False: the key was not exempt.
func (k Keys) Unexempt(key string) (bool, error) {
	return k.ask(func(table uintptr) Code { return tableUnexempt(table, k.policy, key) })
}

// SetOverride gives a key a policy of its own, in all processes at once, until
// [Keys.ClearOverride]. Requests still name the table's policy, and count under it. keep says what
// the key keeps of its debt when the override begins and when it ends. The error is
// [ErrOverridesFull] if as many keys have one as [TableOptions.Overrides] says.
func (k Keys) SetOverride(key, policy string, keep Keep) error {
	return k.table.with(func(table uintptr) error { return tableSetOverride(table, k.policy, key, policy, keep) })
}

// ClearOverride puts a key back under its policy. False: it had no policy of its own.
func (k Keys) ClearOverride(key string) (bool, error) {
	return k.ask(func(table uintptr) Code { return tableClearOverride(table, k.policy, key) })
}

// Override returns the policy that a key has of its own. False: it has none.
func (k Keys) Override(key string) (own Policy, has bool, err error) {
	has, err = k.ask(func(table uintptr) (code Code) {
		own, code = tableGetOverride(table, k.policy, key)
		return code
	})
	return own, has, err
}

// Hash returns the hash by which the table knows a key. [Table.Entries] shows it.
func (k Keys) Hash(key string) (hash uint64, err error) {
	err = k.call(func(table uintptr) (code Code) {
		hash, code = tableHash(table, k.policy, key)
		return code
	})
	return hash, err
}

// Entry is one key of a table.
type Entry struct {
	// Policy is the number of its policy.
	Policy uint32
	// Hash is the key's hash ([Keys.Hash]). The table stores nothing else of the key.
	Hash uint64
	// State is its state word.
	State uint64
	// Remaining permits that could be taken.
	Remaining uint64
	// ResetAfter is the time until the state is as good as fresh. 0: the key has expired.
	ResetAfter time.Duration
}

// Swept is the result of a sweep.
type Swept struct {
	// Live is the number of keys that have a debt.
	Live uint64
	// Vacated is the number of slots that the sweep made vacant.
	Vacated uint64
}

// TableStats has the counters and sizes of a table. The counters count since the table was made,
// for all processes. If a process is killed, its last count may be missing.
type TableStats struct {
	// Policies is the number of policies.
	Policies int
	// Capacity is the capacity that the table was made with, Slots its number of slots, and Bytes
	// its size.
	Capacity, Slots, Bytes uint64
	// Keys is the number of slots that hold a key, expired or not.
	Keys uint64
	// Inserted counts keys inserted into an empty or vacant slot.
	Inserted uint64
	// Reclaimed counts keys inserted into the slot of an expired key.
	Reclaimed uint64
	// Vacated counts slots that a sweep or a reset made vacant.
	Vacated uint64
	// Resets counts resets of keys.
	Resets uint64
	// Refused counts new keys that were refused because no slot was free, or because of the debt
	// that they would have inherited.
	Refused uint64
	// Inherited counts new keys that inherited a slot with its debt.
	Inherited uint64
	// Untracked counts new keys that were admitted and not stored.
	Untracked uint64
	// Evicted counts keys with a debt whose slot a new key took.
	Evicted uint64
	// Retries counts swaps that failed and were tried again, because another thread had changed the
	// slot.
	Retries uint64
	// BackwardSteps counts requests whose time was a microsecond or more older than that of an
	// earlier request.
	BackwardSteps uint64
	// Allowed, Denied and Never count decisions by verdict, over all policies, threads and
	// processes. Peeks and errors do not count.
	Allowed, Denied, Never uint64
	// Overrides is the number of keys with a policy of their own. A process that was killed in a
	// change may leave it one too high, until [Table.Repair].
	Overrides uint64
	// Room is the most segments of a sliding window, or permits of a sliding log, for which each
	// slot has room, as the table was made ([TableOptions.Room]).
	Room uint64
}

// Override is a key with a policy of its own.
type Override struct {
	// Policy is the number of the policy that calls name.
	Policy uint32
	// Hash is the key's hash under that policy ([Keys.Hash]).
	Hash uint64
	// Own is the policy that decides.
	Own Policy
}

// Overrides returns all keys with a policy of their own.
func (t *Table) Overrides() (list []Override, err error) {
	err = t.with(func(table uintptr) error {
		list = tableOverrides(table)
		return nil
	})
	return list, err
}

// Counts are decisions by verdict.
type Counts struct {
	Allowed, Denied uint64
	// Never counts requests that cost more than the burst.
	Never uint64
}

// TableHealth is the content of a table's slots.
type TableHealth struct {
	// Claimed is the number of policy records that a killed process left unfinished.
	Claimed uint32
	// Vacant slots hold no key and may be taken. Waiting slots hold no key and may not be taken
	// yet.
	Vacant, Waiting uint64
	// Expired is the number of expired keys, and Live that of keys with a debt.
	Expired, Live uint64
	// Unknown slots name a version of a policy that the table does not have.
	Unknown uint64
	// Duplicate: slots whose key another slot holds, too.
	Duplicate uint64
}

// Entries returns the table's keys with their present states. It ends if the table is closed. A key
// that is inserted, moved or removed meanwhile may appear once, twice or not at all. The loop's
// body may use the table and close it.
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

// Sweep makes vacant the slots whose keys have expired. No table needs sweeps. They serve to count
// the keys with a debt.
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

// AddPolicy adds a policy, for all processes, while the table is in use. Requests name the policy
// by the returned number. The error is a [*PolicyError].
func (t *Table) AddPolicy(policy string) (number uint32, err error) {
	err = t.with(func(table uintptr) (err error) {
		number, err = tableAddPolicy(table, policy)
		return err
	})
	return number, err
}

// FindOrAddPolicy returns the number of the first policy that equals this one in every field, and
// adds it if there is none. All goroutines and processes that ask for one policy at once get the
// same number. The error is a [*PolicyError].
func (t *Table) FindOrAddPolicy(policy string) (number uint32, err error) {
	err = t.with(func(table uintptr) (err error) {
		number, err = tableFindOrAddPolicy(table, policy)
		return err
	})
	return number, err
}

// SetPolicy changes the policy of that number while the table is in use, in all processes at once.
// Each key keeps the permits that it has left, up to the new burst. The error is a [*PolicyError].
func (t *Table) SetPolicy(number uint32, policy string) error {
	return t.SetPolicyKeeping(number, policy, KeepCount)
}

// SetPolicyKeeping is SetPolicy, where keep says what keys keep of their state.
func (t *Table) SetPolicyKeeping(number uint32, policy string, keep Keep) error {
	return t.with(func(table uintptr) error { return tableSetPolicy(table, number, policy, keep) })
}

// Counts returns the counts of decisions under the policy, of all threads and processes since the
// table was made. [Table.Stats] has the sums of all policies.
func (k Keys) Counts() (counts Counts, err error) {
	err = k.call(func(table uintptr) (code Code) {
		counts, code = tableCounts(table, k.policy)
		return code
	})
	return counts, err
}

// Stats returns the table's counters and sizes.
func (t *Table) Stats() (stats TableStats, err error) {
	_, err = t.ask(func(table uintptr) (code Code) {
		stats, code = tableStats(table)
		return code
	})
	return stats, err
}

// Sync writes the table of a file to the disk, with the current time. After the machine's next
// start the table goes on from that time. As long as the machine runs, nothing is lost without it.
// It takes as long as the disk does, and Close waits for it.
func (t *Table) Sync() error {
	err := t.with(tableSync)
	var failed *TableError
	if errors.As(err, &failed) {
		failed.Path = t.path
	}
	return err
}

// Validate examines every slot. The error is [ErrSlotsInvalid] if it finds an Unknown or Duplicate
// slot. It returns the health in both cases.
func (t *Table) Validate() (TableHealth, error) { return t.health(false) }

// Repair empties invalid slots and frees policy records that a killed process left unfinished. Call
// it only while no other thread or process uses the table, because an emptied slot may have held a
// debt. It returns what Validate would have returned before the repair.
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

// CopyFrom copies the present debts and the exemptions of another table's keys into this one, for
// example to go on in a table of another size. The error is [ErrOtherOptions] if the tables have
// different seeds ([TableOptions].Seed) or clocks, and [ErrOtherPolicies] if this table lacks the
// number of a policy of the other. copied counts the keys that are in this table now, and lost
// those for which no slot was free.
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
	c := t.enter()
	if c == nil {
		return ErrClosed
	}
	err := f(t.handle)
	c.Leave()
	runtime.KeepAlive(t)
	return err
}
