//go:build cgo || tollbar_purego

package tollbar

import (
	"io/fs"
	"runtime"
	"syscall"

	"github.com/tollbar/tollbar/bindings/go/internal/guard"
)

// InFlightOptions say how an in-flight table is made. All but Capacity may be left at zero.
type InFlightOptions struct {
	// Capacity is the number of keys that can have permits in flight at one time. A key with
	// permits of several processes counts once for each.
	Capacity uint64
	// Processes is the number of processes that have permits of one key at one time. 0 is 8.
	Processes uint32
	// Mode is the permissions of a file that is made; 0 is 0600.
	Mode fs.FileMode
	// TrustAnyone opens a file whatever its owner and permissions are, as
	// [TableOptions.TrustAnyone] does.
	TrustAnyone bool
}

// InFlight limits how many requests, connections or uploads a key has open at one time, in memory
// that processes may share.
//
// If a process is killed, its permits of a key stay in flight until the key refuses a request of
// another process. That request asks the system which processes with permits of the key have ended,
// at most once a millisecond for each, frees their permits and tries again. No call waits. The zero
// value is a closed table.
type InFlight struct {
	handle  uintptr
	path    string
	guard   *guard.Guard
	cleanup runtime.Cleanup
}

// Ticket is a permit in flight. Any goroutine may release it. The zero Ticket is none.
type Ticket struct {
	table *InFlight
	bits  uint64
}

// NewInFlight makes a table in this process's memory. The error is a [*TableError].
func NewInFlight(options InFlightOptions) (*InFlight, error) { return newInFlight("", options) }

// OpenInFlight opens the table in a file, or makes it if there is none. Any number of processes of
// one PID namespace, of any language, may use it at once. With a Capacity of 0 the table must be
// there. Whom it trusts: [OpenTable].
func OpenInFlight(path string, options InFlightOptions) (*InFlight, error) {
	if path == "" {
		return nil, &TableError{Path: path, Code: ErrOpen, Errno: syscall.ENOENT}
	}
	return newInFlight(path, options)
}

func newInFlight(path string, options InFlightOptions) (*InFlight, error) {
	handle, err := openInFlight(path, &options)
	if err != nil {
		return nil, err
	}
	t := &InFlight{handle: handle, path: path, guard: new(guard.Guard)}
	t.cleanup = runtime.AddCleanup(t, freeInFlight, handle)
	return t, nil
}

// Close waits for the calls under way, ends this process's view of the table, and releases all
// permits that this process still has. Later calls get [ErrClosed]. Close always returns nil.
func (t *InFlight) Close() error {
	if t.guard.Close() {
		t.cleanup.Stop()
		freeInFlight(t.handle)
	}
	return nil
}

// Acquire takes a permit of the key, unless limit permits of the key are in flight. Each call may
// give another limit.
//
//	ticket, ok, err := uploads.Acquire(user, 4)
//	if !ok {
//		return tooMany(err)
//	}
//	defer ticket.Release()
//
// With an error ok is false: [ErrInFlightFull], [ErrOwnersFull], [ErrClosed].
func (t *InFlight) Acquire(key string, limit uint32) (ticket Ticket, ok bool, err error) {
	c := t.guard.Enter()
	if c == nil {
		return Ticket{}, false, ErrClosed
	}
	bits, code := inFlightAcquire(t.handle, key, limit)
	c.Leave()
	runtime.KeepAlive(t)
	if code == 0 {
		return Ticket{t, bits}, true, nil
	}
	if code < 0 {
		err = code
	}
	return Ticket{}, false, err
}

// Release releases the permit. False: the ticket was released before, or the table is closed. If
// the process has another permit of the same key, a second Release of a copy may release that one.
func (ticket Ticket) Release() bool {
	if ticket.table == nil {
		return false
	}
	c := ticket.table.guard.Enter()
	if c == nil {
		return false
	}
	code := inFlightRelease(ticket.table.handle, ticket.bits)
	c.Leave()
	runtime.KeepAlive(ticket.table)
	return code == 0
}

// Count is the number of the key's permits in flight. It includes permits of a killed process until
// the key refuses a request of another process.
func (t *InFlight) Count(key string) (uint64, error) {
	c := t.guard.Enter()
	if c == nil {
		return 0, ErrClosed
	}
	count := inFlightCount(t.handle, key)
	c.Leave()
	runtime.KeepAlive(t)
	return count, nil
}

// Limit is a permit of the key as one of several limits. At most `most` permits of the key are in
// flight. If the request is admitted, *ticket is the permit's ticket, which the caller releases.
// Otherwise *ticket stays as it is. "10 a second, and at most 4 at one time":
//
//	var ticket tollbar.Ticket
//	taken, err := tollbar.TakeMany(users.Limit(name, 1), uploads.Limit(name, 4, &ticket))
//	if !taken.Allowed() {
//		return tooMany(err)
//	}
//	defer ticket.Release()
func (t *InFlight) Limit(key string, most uint32, ticket *Ticket) Limit {
	return Limit{other: otherLimit{inFlight: t, ticket: ticket, most: most}, key: key, cost: 1}
}
