package tollbar

import (
	"io/fs"
	"net/netip"
	"runtime"
	"syscall"

	"github.com/tollbar/tollbar/bindings/go/internal/guard"
)

// OnFull says what the table does with a new key if no slot is free for it.
type OnFull uint32

const (
	// OnFullEvictNearest: the table admits the new key as a fresh one, in the slot that would have
	// expired first, and forgets the key that had the slot.
	OnFullEvictNearest OnFull = iota
	// OnFullInherit: the new key takes over the slot that would have expired first, together with
	// its debt.
	OnFullInherit
	// OnFullAllow: the table admits the new key as a fresh one, and does not store it.
	OnFullAllow
	// OnFullDeny: the table refuses the new key. It evicts no key, and admits no key without a
	// count. Use it only for keys that a stranger cannot invent, because a stranger with invented
	// keys can fill the table and shut out all new keys.
	OnFullDeny
)

// MissingKey says how the table decides on a request with an empty key.
type MissingKey uint32

const (
	// MissingDeny: the table refuses the request.
	MissingDeny MissingKey = iota
	// MissingAllow: the table admits the request, and charges no key.
	MissingAllow
	// MissingReport: the call returns [ErrMissingKey].
	MissingReport
)

// TableOptions are the options of a new table. All fields but Capacity may be zero.
type TableOptions struct {
	// Capacity is the number of keys that can have a debt at one time, about 20 bytes each. A table
	// never grows.
	Capacity   uint64
	OnFull     OnFull
	MissingKey MissingKey
	// Clock of the calls without a time.
	Clock Clock
	// Mode is the permissions of a new file; 0 means 0600.
	Mode fs.FileMode
	// Seed is the seed of the hash; nil means a random one. A client that knows the seed can choose
	// keys that collide. Without the library it is always random.
	Seed *uint64
	// SmallPages: the library does not advise the system to use huge pages.
	SmallPages bool
	// TrustAnyone opens a file whatever its owner and permissions are. Every user who may write the
	// file can admit or refuse keys, and its owner can end this process by SIGBUS.
	TrustAnyone bool
	// HotKeys is the number of keys for which each thread of this process may take permits in
	// advance: the keys that it checks most often. 0 means none. It is for keys that many threads
	// check at once. Only gcra has credit. Without the library another number is [ErrNeedsLibrary].
	HotKeys uint32
	// Overrides is the number of keys that may have a policy of their own at one time
	// ([Keys.SetOverride]), 32 bytes each. 0 means 1,024.
	Overrides uint32
	// Room is the most segments of a sliding window, or permits of a sliding log, for which each
	// slot has room. With room the table may have any policies, and each may change to any other
	// ([Table.SetPolicy]). 0 means none, and a sliding window or log must be the only policy.
	// Without the library another number is [ErrNeedsLibrary].
	Room uint32
	// Waiters is the most goroutines that wait for the table's keys at one time ([Keys.WaitN]). 0
	// means 1,024.
	Waiters uint32
}

// Table has a state for each of millions of keys, in one block of memory that never grows and that
// processes may share.
//
// A key is bytes, in a string: an address, a user, a token. A request names a policy by its number:
// its index, from 0, when the table was made. The policy is part of a key's identity. [Table.Allow]
// and [Table.AllowN] use policy 0, and [Table.Under] has the calls under any policy. The zero value is
// a closed table.
type Table struct {
	handle  tableHandle
	path    string
	guard   *guard.Guard
	cleanup runtime.Cleanup
	queues  queues
}

// NewTable makes a table in this process's own memory, of 1 to 128 policies such as "5/min burst
// 3". The error is a [*PolicyError] or a [*TableError].
func NewTable(options TableOptions, policies ...string) (*Table, error) {
	return newTable("", options, policies)
}

// OpenTable opens the table in a file, or makes it if there is none. Any number of processes, of
// any language, may use it at once. With neither a capacity nor policies the call makes no file and
// opens any table.
//
// In /run and /dev/shm a table lasts as long as the machine runs; on a disk it survives that too.
// If the file has another table, the call returns a [*TableError] that says why, and the file stays
// as it is. Give it a directory of the service's own, such as /run/SERVICE: a file that another
// user than this one and root made, or that others may write or replace, is refused too
// ([ErrOwner]), unless TrustAnyone is set. Without the library, which a program without cgo loads
// by tollpurego, it returns [ErrNeedsLibrary].
func OpenTable(path string, options TableOptions, policies ...string) (*Table, error) {
	if path == "" {
		return nil, &TableError{Path: path, Code: ErrOpen, Errno: syscall.ENOENT}
	}
	return newTable(path, options, policies)
}

func newTable(path string, options TableOptions, policies []string) (*Table, error) {
	handle, err := openTable(path, &options, policies)
	if err != nil {
		return nil, err
	}
	t := &Table{handle: handle, path: path, guard: new(guard.Guard)}
	t.queues.places.Most = waiters(options.Waiters)
	t.cleanup = runtime.AddCleanup(t, freeTable, handle)
	return t, nil
}

// Close ends this process's view of the table, and frees its memory when the running calls, which
// take microseconds, are over. Later calls return [ErrClosed]. A file stays as it is. Close returns
// nil, a second time too.
func (t *Table) Close() error {
	if t.guard.Close() {
		t.cleanup.Stop()
		freeTable(t.handle)
	}
	return nil
}

// enter counts a call, or returns nil if the table is closed, the zero value or nil.
func (t *Table) enter() *guard.Count {
	if t == nil {
		return nil
	}
	return t.guard.Enter()
}

// Allow takes a permit of the key under policy 0. False: refused.
func (t *Table) Allow(key string) bool { return t.Under(0).Allow(key) }

// AllowN takes n permits of the key under policy 0, or none.
func (t *Table) AllowN(key string, n uint64) bool { return t.Under(0).AllowN(key, n) }

// Check takes n permits of the key under policy 0 and returns the full decision. An n of 0 charges
// nothing.
func (t *Table) Check(key string, n uint64) (Decision, error) { return t.Under(0).Check(key, n) }

// Now returns the time that calls without a time use: nanoseconds of the table's clock.
func (t *Table) Now() (now uint64, err error) {
	_, err = t.ask(func(table tableHandle) (code Code) {
		now, code = tableNow(table)
		return code
	})
	return now, err
}

// Policy returns the current policy of that number.
func (t *Table) Policy(number uint32) (policy Policy, err error) {
	_, err = t.ask(func(table tableHandle) (code Code) {
		policy, code = tableGetPolicy(table, number)
		return code
	})
	return policy, err
}

// String describes the table for people and logs.
func (t *Table) String() string {
	text := "tollbar.Table("
	if t.path != "" {
		text += t.path + ": "
	}
	for number := uint32(0); ; number++ {
		policy, err := t.Policy(number)
		switch {
		case err == ErrNoSuchPolicy && number > 0:
			return text + ")"
		case err != nil:
			return "tollbar.Table(closed)"
		case number > 0:
			text += ", "
		}
		text += policy.String()
	}
}

// Under returns the table's keys under the policy of that number.
func (t *Table) Under(policy uint32) Keys { return Keys{table: t, policy: policy} }

// Keys has the calls for a table's keys under one of its policies. It is small and may be copied.
// Its calls return [ErrNoSuchPolicy] if no policy has that number.
type Keys struct {
	table  *Table
	policy uint32
}

// Allow takes a permit of the key. False: refused, or an error.
func (k Keys) Allow(key string) bool { return k.AllowN(key, 1) }

// AllowN takes n permits of the key, or none. False: refused, or an error.
func (k Keys) AllowN(key string, n uint64) bool {
	c := k.table.enter()
	if c == nil {
		return false
	}
	code := tableCheck(k.table.handle, k.policy, key, n, nil)
	c.Leave()
	runtime.KeepAlive(k.table)
	return code == 0
}

// Check takes n permits of the key and returns the full decision. An n of 0 charges nothing. With
// an error the verdict is [Denied].
func (k Keys) Check(key string, n uint64) (Decision, error) {
	d := Decision{Verdict: Denied, Reason: ReasonFault}
	err := k.call(func(table tableHandle) Code { return tableCheck(table, k.policy, key, n, &d) })
	return d, err
}

// CheckAt is [Keys.Check] at the caller's time, in nanoseconds on the scale of [Table.Now], or on
// another that all callers of this table share.
func (k Keys) CheckAt(key string, now, n uint64) (Decision, error) {
	d := Decision{Verdict: Denied, Reason: ReasonFault}
	err := k.call(func(table tableHandle) Code { return tableCheckAt(table, k.policy, key, now, n, &d) })
	return d, err
}

// Peek returns what [Keys.Check] would return. It takes no permits and stores no key.
func (k Keys) Peek(key string, n uint64) (Decision, error) {
	d := Decision{Verdict: Denied, Reason: ReasonFault}
	err := k.call(func(table tableHandle) Code { return tablePeek(table, k.policy, key, n, &d) })
	return d, err
}

// PeekAt is [Keys.Peek] at the caller's time.
func (k Keys) PeekAt(key string, now, n uint64) (Decision, error) {
	d := Decision{Verdict: Denied, Reason: ReasonFault}
	err := k.call(func(table tableHandle) Code { return tablePeekAt(table, k.policy, key, now, n, &d) })
	return d, err
}

// Charge charges n permits of the key without a decision, after the work, when the cost or the
// failure is known. Later requests are refused until the debt is paid. It returns the rest that the
// key's state has no room for: a token bucket holds a debt of one burst, and windows and logs hold
// none. Under a policy with Ban a charge that leaves no permit counts as a refusal.
func (k Keys) Charge(key string, n uint64) (rest uint64, err error) {
	err = k.call(func(table tableHandle) (code Code) {
		rest, code = tableCharge(table, k.policy, key, n)
		return code
	})
	return rest, err
}

// ChargeAt is [Keys.Charge] at the caller's time.
func (k Keys) ChargeAt(key string, now, n uint64) (rest uint64, err error) {
	err = k.call(func(table tableHandle) (code Code) {
		rest, code = tableChargeAt(table, k.policy, key, now, n)
		return code
	})
	return rest, err
}

// TakeUpTo takes all permits that the key has left, most at the most, and returns their number.
func (k Keys) TakeUpTo(key string, most uint64) (taken uint64, err error) {
	err = k.call(func(table tableHandle) (code Code) {
		taken, code = tableTakeUpTo(table, k.policy, key, most)
		return code
	})
	return taken, err
}

// Reset gives a key a fresh state, which also ends a ban. If all of the key's other slots are
// taken, a key under gcra without borrow and ban begins again in its slot. Under other algorithms,
// except quotas, the call then changes nothing and returns false.
func (k Keys) Reset(key string) (bool, error) {
	return k.ask(func(table tableHandle) Code { return tableReset(table, k.policy, key) })
}

// ResetAt is [Keys.Reset] at the caller's time.
func (k Keys) ResetAt(key string, now uint64) (bool, error) {
	return k.ask(func(table tableHandle) Code { return tableResetAt(table, k.policy, key, now) })
}

// call runs f unless the table is closed. A verdict is no error.
func (k Keys) call(f func(table tableHandle) Code) error {
	_, err := k.ask(f)
	return err
}

// ask is call for a C function that returns TOLLBAR_YES or TOLLBAR_NO.
func (k Keys) ask(f func(table tableHandle) Code) (bool, error) { return k.table.ask(f) }

func (t *Table) ask(f func(table tableHandle) Code) (bool, error) {
	c := t.enter()
	if c == nil {
		return false, ErrClosed
	}
	code := f(t.handle)
	c.Leave()
	runtime.KeepAlive(t)
	if code < 0 {
		return false, asError(code)
	}
	return code == 0, nil
}

// AddrKey returns a key with the first ipv4Bits or ipv6Bits bits of a network address. The usual
// numbers are 32 and 64: a limit for each IPv6 address limits nothing, since a host can use another
// one for every request. IPv6 addresses that stand for an IPv4 address are treated as IPv4:
// ::ffff:a.b.c.d, and 64:ff9b::a.b.c.d, which a translator (NAT64) makes. A zone is ignored.
// [ParseAddr] reads addresses in text. The error is [ErrAddress] for the zero Addr, and
// [ErrOutOfRange] for more bits than the address has.
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
