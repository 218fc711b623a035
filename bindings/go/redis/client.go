//go:build cgo || tollbar_purego

package redis

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

// client asks the store of one URL for the leases of this process: over one connection, from one
// goroutine. A process has one for each URL, and another one for the 129th lease and for a second lease
// of the same limit.
//
// The goroutine is in C nearly all of the time, where it waits for the socket, so it occupies a
// thread and reads each answer at once. A goroutine that ticks by a timer would read an answer up
// to a millisecond late, and call C a thousand times a second.
type client struct {
	handle uintptr
	url    string
	// members are the leases of the client. joining are those of them that the goroutine has still to
	// give to C's client, and leaving those that it has still to take away. The lock of clients guards
	// all three.
	members, joining []*member
	leaving          []departure
}

// clients has those that further leases may join.
var clients struct {
	sync.Mutex
	open []*client
}

// member is a lease's place in a client. It does not refer to the [Lease], which the garbage collector
// can so end.
type member struct {
	fault
	lease    uintptr
	name     string
	client   *client
	onChange func(Circuit)
	// The goroutine of the client uses these two: whether C's client has the lease, and the circuit
	// that onChange was last called with.
	added   bool
	circuit Circuit
}

// departure is an order to the client's goroutine: to report to the store what the member has admitted,
// until the given time at most, then to forget the member, and to send the result to code.
type departure struct {
	member *member
	until  time.Time
	code   chan tollbar.Code
}

// join gives the lease to a client of the URL. The client's goroutine adds the lease within some 10 ms.
// Only a new client's URL may be wrong, at the column.
func join(lease uintptr, name, url string, onChange func(Circuit)) (m *member, code tollbar.Code, column uintptr) {
	m = &member{lease: lease, name: name, onChange: onChange}
	clients.Lock()
	defer clients.Unlock()
	for _, c := range clients.open {
		if c.url == url && c.hasRoom(name) {
			m.client = c
			c.members = append(c.members, m)
			c.joining = append(c.joining, m)
			stopClient(c.handle)
			return m, 0, 0
		}
	}
	handle, code, column := newClient(lease, url)
	if code != 0 {
		return nil, code, column
	}
	m.added = true
	m.client = &client{handle: handle, url: url, members: []*member{m}}
	clients.open = append(clients.open, m.client)
	go m.client.run()
	return m, 0, 0
}

// hasRoom reports whether a limit of that name may join.
func (c *client) hasRoom(name string) bool {
	return len(c.members) < tollbar_lease_client_most &&
		!slices.ContainsFunc(c.members, func(m *member) bool { return m.name == name })
}

// run drives the client until its last member has left.
func (c *client) run() {
	var leaving []departure
	for {
		if len(leaving) == 0 {
			// A stop that comes between two runs is lost, or ends the next run at once. In both cases the
			// lists have what it is about.
			runClient(c.handle)
		}
		clients.Lock()
		joining := c.joining
		leaving = append(leaving, c.leaving...)
		c.joining, c.leaving = nil, nil
		clients.Unlock()
		for _, m := range joining {
			code := addLease(c.handle, m.lease)
			m.added = code == 0
			if code != 0 {
				m.set(code.Error())
			}
		}
		leaving = slices.DeleteFunc(leaving, c.part)
		if c.handle == 0 {
			return
		}
		c.tell()
	}
}

// slice is for how long a member that leaves may keep the goroutine from others that join or leave. The
// client asks for the others' permits meanwhile.
const slice = 10 * time.Millisecond

// part reports to the store what it does not know of a member. It returns whether the member has left. The
// last one ends the client.
func (c *client) part(d departure) bool {
	left := time.Until(d.until)
	code := tollbar.Code(0)
	if d.member.added {
		code = reportLease(c.handle, d.member.lease, milliseconds(min(left, slice)))
	}
	if code != 0 && left > 0 {
		return false
	}
	clients.Lock()
	c.members = slices.DeleteFunc(c.members, func(m *member) bool { return m == d.member })
	last := len(c.members) == 0
	if last {
		clients.open = slices.DeleteFunc(clients.open, func(other *client) bool { return other == c })
	}
	clients.Unlock()
	if last {
		closeClient(c.handle, 0)
		c.handle = 0
	} else if d.member.added {
		removeLease(c.handle, d.member.lease, 0)
	}
	d.code <- code
	return true
}

// tell calls onChange of the members whose circuit has changed.
func (c *client) tell() {
	clients.Lock()
	members := slices.Clone(c.members)
	clients.Unlock()
	for _, m := range members {
		stats, _ := leaseStats(m.lease)
		if stats.Circuit == m.circuit {
			continue
		}
		m.circuit = stats.Circuit
		if m.added {
			m.set(clientLeaseError(c.handle, m.lease))
		}
		if m.onChange != nil {
			m.onChange(m.circuit)
		}
	}
}

// end makes the lease leave its client, and frees it. It is called once.
func (m *member) end(patience time.Duration) tollbar.Code {
	d := departure{m, time.Now().Add(patience), make(chan tollbar.Code, 1)}
	clients.Lock()
	m.client.leaving = append(m.client.leaving, d)
	stopClient(m.client.handle)
	clients.Unlock()
	code := <-d.code
	freeLease(m.lease)
	return code
}

func milliseconds(patience time.Duration) uint32 {
	return uint32(min(max(patience.Milliseconds(), 0), math.MaxUint32))
}
