package tollbar

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/tollbar/tollbar/bindings/go/internal/library"
)

// ErrClosed is returned by calls on a limiter, a table or a lease after its Close.
var ErrClosed = errors.New("tollbar: closed")

// ErrNeedsLibrary is the error of a call that only the C library can make, in a program that was
// built without cgo. With
// -tags tollbar_purego it is the error of all calls if the library cannot be loaded; its text has the reason.
var ErrNeedsLibrary = library.ErrNeeded

// Code is the C library's number of a result. It is an error: errors.Is finds the Err constants of
// this package in the errors of its calls.
type Code int32

// Results of waiting and reserving.
const (
	// ErrDenied: the request is refused now, or its permits would come too late. Nothing has been
	// charged.
	ErrDenied Code = 1
	// ErrNever: the request can never pass, because its cost is more than the policy can have at
	// once. Nothing has been charged.
	ErrNever Code = 2
)

// [lists: errors] written by cargo xtask lists

// Errors of arguments.
const (
	// ErrNull: a pointer is NULL that must not be.
	ErrNull Code = -1
	// ErrMisaligned: a pointer is not aligned for what it should point to.
	ErrMisaligned Code = -2
	// ErrStructSize: the size of a struct is smaller than any version of the struct, or absurdly
	// large.
	ErrStructSize Code = -3
	// ErrReserved: a field or flag that this version does not know is not zero.
	ErrReserved Code = -4
	// ErrOutOfRange: a number that stands for a choice (algorithm, clock, mode, anchor, unit) is
	// out of range.
	ErrOutOfRange Code = -5
	// ErrLimits: a call has no limits or too many, or a limit that does not name exactly one
	// limiter or one table.
	ErrLimits Code = -6
	// ErrQueueClosed: the queue was closed. A call that takes returns it once the queue is empty,
	// too.
	ErrQueueClosed Code = -7
)

// Errors of policies. An error in a text has a column.
const (
	// ErrSyntax: the policy's text does not follow the grammar.
	ErrSyntax Code = -10
	// ErrNumberTooLarge: a number in the policy's text does not fit 64 bits.
	ErrNumberTooLarge Code = -11
	// ErrAlgorithm: there is no algorithm of that name.
	ErrAlgorithm Code = -12
	// ErrDuplicateOption: an option is given twice.
	ErrDuplicateOption Code = -13
	// ErrPeriodZero: the period is 0.
	ErrPeriodZero Code = -20
	// ErrBurstZero: the burst is 0. (To deny every request, set the limit to 0.)
	ErrBurstZero Code = -21
	// ErrRateTooHigh: the rate is higher than the algorithm can count exactly.
	ErrRateTooHigh Code = -22
	// ErrBurstTooLarge: the burst takes longer to refill than a state word can hold.
	ErrBurstTooLarge Code = -23
	// ErrInitAboveBurst: `init` is above the burst.
	ErrInitAboveBurst Code = -24
	// ErrOptionMismatch: the algorithm does not have this option.
	ErrOptionMismatch Code = -25
	// ErrSegments: the number of segments is not from 1 to 1024, or a segment would not be a whole
	// number of nanoseconds.
	ErrSegments Code = -26
	// ErrWarmUp: a warm-up has no time, or a cold factor that is not 1 to 1000.
	ErrWarmUp Code = -27
	// ErrLogTooLarge: a sliding log has more than 2^24 entries, or in a table more than its key's
	// word can count in the period.
	ErrLogTooLarge Code = -28
	// ErrNotOneWord: the algorithm needs more than one state word: use a limiter, not a cell; a
	// [cell.Cell] has token buckets only.
	ErrNotOneWord Code = -29
	// ErrBan: a ban has no time, or a time that a state word cannot hold; or `after` is above
	// 1000, or given without `ban`.
	ErrBan Code = -30
	// ErrList: the policies of a list do not fit one state word together. Two of gcra without
	// init, borrow and ban do, unless one is much faster than the other.
	ErrList Code = -31
	// ErrQuota: a quota has another period than TOLLBAR_FOREVER, or the text gives `forever` to
	// another algorithm.
	ErrQuota Code = -32
	// ErrClasses: a policy has more than four classes, two of one name, a name that is not a
	// letter followed by letters, digits, `-` and `_`, or a reserve that is not below the burst.
	// Or the policy lends, or threads of the limiter would have credit.
	ErrClasses Code = -33
	// ErrNoSuchClass: the policy has no class of that name or number.
	ErrNoSuchClass Code = -34
	// ErrKnots: knots of a curve that fall, or do not rise to 100 % of the limit; or bands of a
	// level-refill that are more than 4, whose levels do not rise from 0, or whose rates are not 1
	// % to 100 %.
	ErrKnots Code = -35
	// ErrCalendar: a calendar's period is not TOLLBAR_DAY, _WEEK, _MONTH or _YEAR, its first day
	// is not one of that period, its zone is none; or the text gives `month` or `year` to another
	// algorithm.
	ErrCalendar Code = -36
	// ErrWallClock: a calendar with a clock other than TOLLBAR_CLOCK_WALL.
	ErrWallClock Code = -37
)

// Errors of memory.
const (
	// ErrNoMemory: out of memory.
	ErrNoMemory Code = -40
	// ErrBufferTooSmall: the buffer is too small.
	ErrBufferTooSmall Code = -41
	// ErrPolicyChanges: the limiter has been changed to 4,096 different policies, as many as it
	// keeps. Change it to one of those, or make another limiter.
	ErrPolicyChanges Code = -42
)

// Errors of hierarchies.
const (
	// ErrClassNumber: the hierarchy has no class of that number, or the class has children and
	// takes no requests.
	ErrClassNumber Code = -44
	// ErrClassRate: a rate is not LIMIT/PERIOD, from 1 in 9 minutes to 1,000,000 a second.
	ErrClassRate Code = -45
	// ErrGuarantee: the guaranteed rate is above the ceiling, or the guaranteed rates of a class's
	// children are together above its own.
	ErrGuarantee Code = -46
	// ErrClassTree: the class would be below seven others or below a class with keys, or its name
	// is empty or that of another child of its parent.
	ErrClassTree Code = -47
)

// Errors of tables.
const (
	// ErrCapacity: the capacity is 0, or more keys than a table can hold.
	ErrCapacity Code = -50
	// ErrPolicyCount: the number of policies is not 1 to 128.
	ErrPolicyCount Code = -51
	// ErrNoSuchPolicy: the table has no policy of that number.
	ErrNoSuchPolicy Code = -52
	// ErrMixedPolicies: in a table without room (tollbar_table_options.room) a sliding window or a
	// sliding log must be the only policy.
	ErrMixedPolicies Code = -53
	// ErrPolicyVersions: all 255 versions of the table's policies are in use: each policy has one,
	// and so has each override that differs from the others. Give several keys the same override,
	// end some, or let tollbar_table_repair free those that killed processes left unfinished.
	ErrPolicyVersions Code = -54
	// ErrExemptionsFull: the set of exempt keys is full.
	ErrExemptionsFull Code = -55
	// ErrMissingKey: the request has no key, and the table reports such requests.
	ErrMissingKey Code = -56
	// ErrUnsupported: the processor has no 16-byte compare-and-swap.
	ErrUnsupported Code = -57
	// ErrAddress: the argument is not a network address.
	ErrAddress Code = -58
	// ErrReceipt: the receipt is not one of this table, or the estimate is more than a receipt can
	// hold.
	ErrReceipt Code = -59
	// ErrNotATable: the file or memory is not a table.
	ErrNotATable Code = -60
	// ErrTableVersion: another version of this library made the table.
	ErrTableVersion Code = -61
	// ErrTruncated: the file or memory is shorter or longer than its table.
	ErrTruncated Code = -62
	// ErrCorrupt: the table's header is damaged.
	ErrCorrupt Code = -63
	// ErrOtherCapacity: the file has a table of another capacity.
	ErrOtherCapacity Code = -64
	// ErrOtherPolicies: the file has a table with other policies.
	ErrOtherPolicies Code = -65
	// ErrOtherOptions: the file has a table with other options.
	ErrOtherOptions Code = -66
	// ErrBootID: nothing that this process can read tells whether the file's content is of this
	// boot of the machine: /proc/sys/kernel/random/boot_id cannot be read, and the file is not in
	// tmpfs (/dev/shm, /run).
	ErrBootID Code = -67
	// ErrSlotsInvalid: slots of the table name an unknown version of a policy, or two slots hold
	// one key: [Table.Repair].
	ErrSlotsInvalid Code = -68
	// ErrOverridesFull: as many keys have a policy of their own as the table's options allow, or
	// the options ask for more than 524,288.
	ErrOverridesFull Code = -69
	// ErrOwner: the file belongs to another user than the caller and root, or other users may
	// write or replace it (TableOptions.TrustAnyone takes it).
	ErrOwner Code = -78
	// ErrUnsealed: the memory behind the descriptor is not sealed against shrinking.
	ErrUnsealed Code = -79
)

// Errors of the system. They wrap the system's reason.
const (
	// ErrOpen: the file cannot be opened.
	ErrOpen Code = -70
	// ErrRead: the file cannot be read.
	ErrRead Code = -71
	// ErrNoSpace: there is no room for the file.
	ErrNoSpace Code = -72
	// ErrMap: the memory cannot be mapped.
	ErrMap Code = -73
	// ErrLink: the new file cannot be given its name.
	ErrLink Code = -74
	// ErrLock: the file cannot be locked.
	ErrLock Code = -75
	// ErrRandom: the system gives no random numbers.
	ErrRandom Code = -76
	// ErrSync: the file cannot be written to the disk.
	ErrSync Code = -77
)

// Errors of leases, which libtollbar-redis makes.
const (
	// ErrLeaseAlgorithm: only a single gcra can be leased, without `borrow`, `ban`, `init` and
	// `reserve`.
	ErrLeaseAlgorithm Code = -80
	// ErrLeaseNodes: the number of machines is not 1 to 65,535.
	ErrLeaseNodes Code = -81
	// ErrLeaseLife: the life of a lease is not 1 ms to 10 min.
	ErrLeaseLife Code = -82
	// ErrLeaseBurst: the overdrafts of all machines leave nothing of the burst.
	ErrLeaseBurst Code = -83
	// ErrLeaseTooLarge: burst and period are too large for the store to count exactly.
	ErrLeaseTooLarge Code = -84
	// ErrLeaseName: the name is not 1 to 64 visible ASCII characters without braces.
	ErrLeaseName Code = -85
	// ErrNotALease: the memory holds no node of this version.
	ErrNotALease Code = -86
	// ErrURL: the store's URL does not follow the grammar, or asks for a feature that the client
	// lacks (TLS, Sentinel, Cluster).
	ErrURL Code = -87
	// ErrRunning: a thread drives this client.
	ErrRunning Code = -88
	// ErrUnreported: the client ended before it had reported all admissions to the store.
	ErrUnreported Code = -89
	// ErrClientLeases: the client has 128 leases, or one of this limit, or not this lease.
	ErrClientLeases Code = -91
	// ErrStoreAlgorithm: the scripts of a store have gcra, interval, fixed-window,
	// weighted-window, sliding-window and sliding-log, without `borrow`, `ban`, `init`, `reserve`
	// and a second rate. Their windows of segments do not begin with a key's first request.
	ErrStoreAlgorithm Code = -92
	// ErrStoreNumbers: the policy's numbers exceed 2^53, or its period is no whole number of
	// microseconds: the store could not count exactly.
	ErrStoreNumbers Code = -93
	// ErrStoreValue: the key in the store has a value that the limit's script did not write:
	// another algorithm's under the same name, or another program's.
	ErrStoreValue Code = -94
	// ErrStoreReply: the reply of the store is not one of the script's.
	ErrStoreReply Code = -95
	// ErrStoreKey: a key in a store has 1 to 512 bytes.
	ErrStoreKey Code = -96
)

// Errors of permits in flight.
const (
	// ErrTicket: not a ticket that this view of the table can release.
	ErrTicket Code = -100
	// ErrInFlightFull: no slot of the in-flight table is free for the key: its capacity is too
	// small.
	ErrInFlightFull Code = -101
	// ErrOwnersFull: the in-flight table has 1,024 owners.
	ErrOwnersFull Code = -102
	// ErrPIDNamespace: processes of another PID namespace use the in-flight table, or the system
	// does not say in which one this process is.
	ErrPIDNamespace Code = -103
	// ErrTimeNamespace: the system does not say in which time namespace this process is, or the
	// process that made the table was.
	ErrTimeNamespace Code = -104
	// ErrOtherBoot: the in-flight table's file is in use by processes whose system gives another
	// boot id: in a container that has one of its own, or on another machine.
	ErrOtherBoot Code = -105
	// ErrSlotRoom: the window has more segments, or the log more permits, than the table's slots
	// have room for (tollbar_table_options.room).
	ErrSlotRoom Code = -106
)

// Errors of the library itself.
const (
	// ErrInternal: the library itself has a fault. It was stopped before it reached the caller.
	ErrInternal Code = -90
)

// The errors that wrap the system's reason.
const systemFirst, systemLast = ErrOpen, ErrSync

// [lists: end]

// Error is one line in English.
func (c Code) Error() string { return "tollbar: " + describeCode(c) }

// Is reports whether the code stands for [ErrNeedsLibrary].
func (c Code) Is(target error) bool { return c == needsLibraryCode && target == ErrNeedsLibrary }

// PolicyError is the error for a refused policy.
type PolicyError struct {
	// Text is the policy.
	Text string
	// Code is one of the errors of policies; errors.Is finds it.
	Code Code
	// Column is the column, from 1, at which the wrong part of the text begins: a word, a number,
	// or an option with its value. If the text ends too early, it is the column after its last
	// byte. 0 if the text can be read, but a limiter or a table refuses the policy.
	Column int
	// Expected is the text that was expected there, or the reason of the refusal.
	Expected string
}

// refused returns the error for a policy that can be read but is refused.
func refused(policy string, code Code) error {
	return &PolicyError{Text: policy, Code: code, Expected: describeCode(code)}
}

// tooLong returns the error for a policy with a time that a time.Duration cannot hold.
func tooLong(policy string) error {
	return &PolicyError{Text: policy, Code: ErrNumberTooLarge, Expected: "periods and times of at most 292 years"}
}

// Error is one line with the column.
func (e *PolicyError) Error() string {
	switch {
	case e.Column == 0:
		return fmt.Sprintf("tollbar: policy %q: %s", e.Text, e.Expected)
	case e.Code <= ErrPeriodZero:
		return fmt.Sprintf("tollbar: policy %q: column %d: %s", e.Text, e.Column, e.Expected)
	}
	return fmt.Sprintf("tollbar: policy %q: column %d: expected %s", e.Text, e.Column, e.Expected)
}

// Unwrap is the code.
func (e *PolicyError) Unwrap() error { return e.Code }

// TableError is the error of a call that makes, opens or syncs a table.
type TableError struct {
	// Path is the file, or empty.
	Path string
	// Code is one of the errors of tables; errors.Is finds it.
	Code Code
	// Errno is the system's error, or 0. errors.Is finds it, and the error of package fs that it
	// stands for (fs.ErrPermission).
	Errno syscall.Errno
}

// Error is one line with the path and the system's reason.
func (e *TableError) Error() string {
	text := e.Code.Error()
	if e.Path != "" {
		text = fmt.Sprintf("tollbar: %s: %s", e.Path, describeCode(e.Code))
	}
	if e.Errno != 0 {
		text += ": " + e.Errno.Error()
	}
	return text
}

// Unwrap is the code and the system's error.
func (e *TableError) Unwrap() []error {
	if e.Errno == 0 {
		return []error{e.Code}
	}
	return []error{e.Code, e.Errno}
}

// LeaseError is the error of a limit that could not be leased.
type LeaseError struct {
	// Name is the limit's name.
	Name string
	// Code is one of the errors of leases, or [ErrCapacity]; errors.Is finds it.
	Code Code
	// Column is the column, from 1, at which the wrong part of the store's URL begins. 0 for other
	// errors. The error does not have the URL itself, which may contain a password.
	Column int
}

// Error is one line with the limit's name.
func (e *LeaseError) Error() string {
	if e.Column != 0 {
		return fmt.Sprintf("tollbar: lease %q: column %d: %s", e.Name, e.Column, describeCode(e.Code))
	}
	return fmt.Sprintf("tollbar: lease %q: %s", e.Name, describeCode(e.Code))
}

// Unwrap is the code.
func (e *LeaseError) Unwrap() error { return e.Code }
