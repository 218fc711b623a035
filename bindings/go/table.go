//go:build cgo

package tollbar

import (
	"io/fs"
	"net/netip"
	"runtime"

	"github.com/tollbar/tollbar/bindings/go/internal/guard"
)

// OnFull is what a newcomer gets when a table has no place for it.
type OnFull uint32

const (
	// OnFullEvictNearest: the newcomer is admitted as a fresh key would be, in the slot that would have expired first; the
	// key that had the slot is forgotten.
	OnFullEvictNearest OnFull = iota
	// OnFullInherit: it takes over the slot that would have expired first, together with its debt.
	OnFullInherit
	// OnFullAllow: it is admitted as a fresh key would be, and not remembered.
	OnFullAllow
	// OnFullDeny: it is refused. No key is forgotten, none gets in uncounted. For keys that a stranger cannot invent:
	// whoever can invent keys can fill the table and shut out all newcomers.
	OnFullDeny
)

// MissingKey is what a request with an empty key gets.
type MissingKey uint32

const (
	// MissingDeny: it is refused.
	MissingDeny MissingKey = iota
	// MissingAllow: it is admitted and charged to nobody.
	MissingAllow
	// MissingReport: it gets [ErrMissingKey].
	MissingReport
)

// TableOptions say how a table is made. All but Capacity may be left at zero.
type TableOptions struct {
	// Capacity is how many keys are to have a place at one time, about 20 bytes each. It never grows.
	Capacity   uint64
	OnFull     OnFull
	MissingKey MissingKey
	// Clock of the calls without a time.
	Clock Clock
	// Mode is the permissions of a file that is made; 0 is 0600.
	Mode fs.FileMode
	// Seed is what the hash is keyed with; nil is random. Whoever knows it can choose keys that meet.
	Seed *uint64
	// SmallPages: the system is not advised to use huge pages.
	SmallPages bool
	// TrustAnyone opens a file whatever its owner and permissions are. Every user who may write the file can admit or refuse
	// keys, and its owner can end this process by SIGBUS.
	TrustAnyone bool
	// HotKeys is for how many keys each thread of this process may take permits in advance: those that it checks most often. 0 is
	// none. It is for keys that many threads check at once; only gcra has credit.
	HotKeys uint32
}

// Table has a state for each of millions of keys, in one block of memory that never grows and that processes may share.
//
// A key is bytes, in a string: an address, a user, a token. A request names a policy by its number: the place that the
// policy had when the table was made, from 0. The policy is part of a key's identity. [Table.Allow] and [Table.AllowN] are
// by policy 0, and [Table.Under] has the calls by any.
type Table struct {
	handle  uintptr
	path    string
	guard   *guard.Guard
	cleanup runtime.Cleanup
	lines   lines
}

// NewTable makes a table in this process's own memory, of 1 to 128 policies such as "5/min burst 3". The error is a
// [*PolicyError] or a [*TableError].
func NewTable(options TableOptions, policies ...string) (*Table, error) {
	return newTable("", options, policies)
}

// OpenTable opens the table in a file, or makes it if there is none. Any number of processes, of any language, may use
// it at once. With neither a capacity nor policies the table must be there, and may be any.
//
// In /run and /dev/shm a table lasts as long as the machine runs; on a disk it survives that too. A file that is not this very
// table is refused with a [*TableError] that says why, and stays as it is. Give it a directory of the service's own, such as
// /run/SERVICE: a file that another user than this one and root made, or that others may write or replace, is refused too
// ([ErrOwner]), unless TrustAnyone is set.
func OpenTable(path string, options TableOptions, policies ...string) (*Table, error) {
	if path == "" {
		return nil, &TableError{Path: path, Code: ErrOpen, Errno: noSuchFile}
	}
	return newTable(path, options, policies)
}

func newTable(path string, options TableOptions, policies []string) (*Table, error) {
	handle, err := openTable(path, &options, policies)
	if err != nil {
		return nil, err
	}
	t := &Table{handle: handle, path: path, guard: new(guard.Guard)}
	t.cleanup = runtime.AddCleanup(t, freeTable, handle)
	return t, nil
}

// Close ends this process's view of the table and gives back its memory when the calls under way, which take
// microseconds, are over. Later calls get [ErrClosed]. What is in a file stays. It returns nil, a second time too.
func (t *Table) Close() error {
	if t.guard.Close() {
		t.cleanup.Stop()
		freeTable(t.handle)
	}
	return nil
}

// Allow takes a permit of the key under policy 0. False: refused.
func (t *Table) Allow(key string) bool { return t.Under(0).Allow(key) }

// AllowN takes n permits of the key under policy 0, or none.
func (t *Table) AllowN(key string, n uint64) bool { return t.Under(0).AllowN(key, n) }

// Check takes n permits of the key under policy 0 and answers in full. n of 0 asks without charging.
func (t *Table) Check(key string, n uint64) (Decision, error) { return t.Under(0).Check(key, n) }

// Under is the table's keys under the policy of that number.
func (t *Table) Under(policy uint32) Keys { return Keys{table: t, policy: policy} }

// Keys is a table's keys under one of its policies. It is small and may be copied. A number that no policy has gets
// [ErrNoSuchPolicy].
type Keys struct {
	table  *Table
	policy uint32
}

// Allow takes a permit of the key. False: refused, or an error.
func (k Keys) Allow(key string) bool { return k.AllowN(key, 1) }

// AllowN takes n permits of the key, or none. False: refused, or an error.
func (k Keys) AllowN(key string, n uint64) bool {
	c := k.table.guard.Enter()
	if c == nil {
		return false
	}
	code := tableCheck(k.table.handle, k.policy, key, n, nil)
	c.Leave()
	runtime.KeepAlive(k.table)
	return code == 0
}

// Check takes n permits of the key and answers in full. n of 0 asks without charging. With an error the verdict is
// [Denied].
func (k Keys) Check(key string, n uint64) (Decision, error) {
	d := Decision{Verdict: Denied, Reason: ReasonFault}
	err := k.call(func(table uintptr) Code { return tableCheck(table, k.policy, key, n, &d) })
	return d, err
}

// CheckAt is [Keys.Check] at the caller's time, in nanoseconds on the scale of [Table.Now], or on another that all callers
// of this table share.
func (k Keys) CheckAt(key string, now, n uint64) (Decision, error) {
	d := Decision{Verdict: Denied, Reason: ReasonFault}
	err := k.call(func(table uintptr) Code { return tableCheckAt(table, k.policy, key, now, n, &d) })
	return d, err
}

// Peek is what [Keys.Check] would answer; it takes nothing, and puts no key into the table.
func (k Keys) Peek(key string, n uint64) (Decision, error) {
	d := Decision{Verdict: Denied, Reason: ReasonFault}
	err := k.call(func(table uintptr) Code { return tablePeek(table, k.policy, key, n, &d) })
	return d, err
}

// PeekAt is [Keys.Peek] at the caller's time.
func (k Keys) PeekAt(key string, now, n uint64) (Decision, error) {
	d := Decision{Verdict: Denied, Reason: ReasonFault}
	err := k.call(func(table uintptr) Code { return tablePeekAt(table, k.policy, key, now, n, &d) })
	return d, err
}

// Charge charges n permits of the key without asking, for what has been admitted already and whose cost, or failure, is known only
// now. Later requests are refused until the debt is paid. It returns the rest that the key's state has no room for: a token bucket holds a
// debt of one burst, windows and logs hold none. Under a policy with Ban the charge that leaves no permit counts as a refusal.
func (k Keys) Charge(key string, n uint64) (rest uint64, err error) {
	err = k.call(func(table uintptr) (code Code) {
		rest, code = tableCharge(table, k.policy, key, n)
		return code
	})
	return rest, err
}

// ChargeAt is [Keys.Charge] at the caller's time.
func (k Keys) ChargeAt(key string, now, n uint64) (rest uint64, err error) {
	err = k.call(func(table uintptr) (code Code) {
		rest, code = tableChargeAt(table, k.policy, key, now, n)
		return code
	})
	return rest, err
}

// TakeUpTo takes as many permits of the key as there are, up to most, and says how many.
func (k Keys) TakeUpTo(key string, most uint64) (taken uint64, err error) {
	err = k.call(func(table uintptr) (code Code) {
		taken, code = tableTakeUpTo(table, k.policy, key, most)
		return code
	})
	return taken, err
}

// Reset lets a key begin again, which ends a ban, too. False: all of the key's other places are taken, and nothing has changed.
func (k Keys) Reset(key string) (bool, error) {
	return k.ask(func(table uintptr) Code { return tableReset(table, k.policy, key) })
}

// Exempt lets a key pass always, and charges it nothing. Some 1,600 keys of a table may be so at a time; then it is
// [ErrExemptionsFull].
func (k Keys) Exempt(key string) error {
	return k.call(func(table uintptr) Code { return tableExempt(table, k.policy, key) })
}

// Unexempt takes that back. False: the key was not exempt.
func (k Keys) Unexempt(key string) (bool, error) {
	return k.ask(func(table uintptr) Code { return tableUnexempt(table, k.policy, key) })
}

// Hash is what the table knows a key by: what [Table.Entries] shows.
func (k Keys) Hash(key string) (hash uint64, err error) {
	err = k.call(func(table uintptr) (code Code) {
		hash, code = tableHash(table, k.policy, key)
		return code
	})
	return hash, err
}

// call runs f unless the table is closed. A verdict is no error.
func (k Keys) call(f func(table uintptr) Code) error {
	_, err := k.ask(f)
	return err
}

// ask is call for those that answer 0 for yes.
func (k Keys) ask(f func(table uintptr) Code) (bool, error) { return k.table.ask(f) }

func (t *Table) ask(f func(table uintptr) Code) (bool, error) {
	c := t.guard.Enter()
	if c == nil {
		return false, ErrClosed
	}
	code := f(t.handle)
	c.Leave()
	runtime.KeepAlive(t)
	if code < 0 {
		return false, code
	}
	return code == 0, nil
}

// AddrKey is a key of a network address, of which the first ipv4Bits or ipv6Bits count. A limit by IPv6 address is none,
// since a host can change its address with every request: 32 and 64 are usual. An IPv4-mapped IPv6 address is
// treated as IPv4; a zone does not count. [ErrAddress] for the zero Addr, [ErrOutOfRange] for more bits than there are.
func AddrKey(addr netip.Addr, ipv4Bits, ipv6Bits int) (string, error) {
	if ipv4Bits < 0 || ipv6Bits < 0 {
		return "", ErrOutOfRange
	}
	key, length, code := prefix(addr.AsSlice(), uint32(ipv4Bits), uint32(ipv6Bits))
	if code != 0 {
		return "", code
	}
	return string(key[:length]), nil
}
