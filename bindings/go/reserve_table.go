package tollbar

import (
	"context"
	"sync"
	"time"

	"github.com/tollbar/tollbar/bindings/go/internal/waiting"
)

// Reserve takes n permits of the key ahead of time. Without an error the caller must act after the
// reservation's Wait, not earlier. The error is [ErrDenied] if that would be longer than patience
// ([Forever] is any time) or if the algorithm cannot book ahead (as windows and logs), and
// [ErrNever] if n is above the burst. Then nothing has been charged.
func (k Keys) Reserve(key string, n uint64, patience time.Duration) (Reservation, error) {
	return k.reserve(func(table tableHandle) (Reservation, Code) { return tableReserve(table, k.policy, key, n, patience) })
}

// ReserveAt is [Keys.Reserve] at the caller's time.
func (k Keys) ReserveAt(key string, now, n uint64, patience time.Duration) (Reservation, error) {
	return k.reserve(func(table tableHandle) (Reservation, Code) {
		return tableReserveAt(table, k.policy, key, now, n, patience)
	})
}

func (k Keys) reserve(f func(table tableHandle) (Reservation, Code)) (booked Reservation, err error) {
	code := Code(0)
	err = k.call(func(table tableHandle) Code {
		booked, code = f(table)
		return code
	})
	if err == nil {
		err = asError(code)
	}
	return booked, err
}

// Cancel gives back the permits of a reservation of the key, and returns the number that came back.
// Cancel a reservation once only.
//
// Under gcra without borrow and ban the latest reservation comes back whole. An earlier one usually
// gives back nothing, because the later callers keep the departures that they have. Pacer, warm-up,
// interval and borrow give no permits of keys back.
func (k Keys) Cancel(key string, booked Reservation) (back uint64, err error) {
	err = k.call(func(table tableHandle) (code Code) {
		back, code = tableCancel(table, k.policy, key, booked)
		return code
	})
	return back, err
}

// CancelAt is [Keys.Cancel] at the caller's time, which must not be earlier than that of any call
// for this key that has returned.
func (k Keys) CancelAt(key string, now uint64, booked Reservation) (back uint64, err error) {
	err = k.call(func(table tableHandle) (code Code) {
		back, code = tableCancelAt(table, k.policy, key, now, booked)
		return code
	})
	return back, err
}

// Wait takes a permit of the key, and waits for it if necessary. See [Keys.WaitN].
func (k Keys) Wait(ctx context.Context, key string) error { return k.WaitN(ctx, key, 1) }

// WaitN takes n permits of the key, and waits for them if necessary. It waits on a timer of Go and
// blocks no thread.
//
// If the permits would come after the context's deadline, the call refuses at once and charges
// nothing. The error then is both [ErrDenied] and [context.DeadlineExceeded]. It is [ErrNever] if n
// is above the burst, and [ErrQueueFull] if as many goroutines wait for keys of the table as
// [TableOptions] allows. If the context ends during the wait, the error is the context's.
//
// The goroutines that wait for a key form a queue, as in [Limiter.WaitN]. The first ones of
// processes that share the table wake in the order of their bookings.
func (k Keys) WaitN(ctx context.Context, key string, n uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if k.table == nil {
		return ErrClosed
	}
	if k.table.queues.places.Nobody() {
		if taken, err := k.takeNow(key, n); taken || err != nil {
			return err
		}
	}
	of := queueKey{k.policy, key}
	queue := k.table.queues.enter(of)
	defer k.table.queues.leave(of)
	return waitError(ctx, queue.Wait(ctx, n, permitsOfKey{k, key}, &k.table.queues.places, nil))
}

// takeNow takes permits that are there. It counts no decision if they are not.
func (k Keys) takeNow(key string, n uint64) (bool, error) {
	return k.ask(func(table tableHandle) Code { return tableTakeNow(table, k.policy, key, n) })
}

// permitsOfKey are the permits of a key.
type permitsOfKey struct {
	Keys
	key string
}

func (k permitsOfKey) Ask(n uint64, patience time.Duration) (waiting.Turn[Reservation], error) {
	policy, err := k.table.Policy(k.policy)
	if err != nil {
		return waiting.Turn[Reservation]{}, err
	}
	if !policy.booksAhead() {
		decision, err := k.Check(k.key, n)
		return turnAfter(decision, err, patience)
	}
	booked, err := k.Reserve(k.key, n, patience)
	return turnOf(booked, err)
}

func (k permitsOfKey) Cancel(booked Reservation) { _, _ = k.Keys.Cancel(k.key, booked) }

func (k permitsOfKey) Alone(n uint64) (time.Duration, error) {
	decision, err := k.Peek(k.key, n)
	return aloneAfter(decision, err)
}

func (k permitsOfKey) Behind(head waiting.Head, n uint64) time.Duration {
	policy, err := k.table.Policy(k.policy)
	if err != nil {
		return head.Wait
	}
	return policy.behind(head, n)
}

type queueKey struct {
	policy uint32
	key    string
}

// queues has the queues of a table's keys. A key has one only while a goroutine waits for it.
type queues struct {
	places waiting.Places
	mu     sync.Mutex
	queues map[queueKey]*usedQueue
}

type usedQueue struct {
	waiting.Queue[Reservation]
	// The number of goroutines that wait in the queue, or are about to.
	users int
}

func (q *queues) enter(of queueKey) *waiting.Queue[Reservation] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queues == nil {
		q.queues = make(map[queueKey]*usedQueue)
	}
	found := q.queues[of]
	if found == nil {
		found = new(usedQueue)
		q.queues[of] = found
	}
	found.users++
	return &found.Queue
}

func (q *queues) leave(of queueKey) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if found := q.queues[of]; found != nil {
		if found.users--; found.users == 0 {
			delete(q.queues, of)
		}
	}
}
