package tollbar

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Queue is a leaky bucket as a queue: items wait, up to a bound, and leave in the order of their
// offers at the pace of a policy. For example text messages to a gateway that takes ten a second:
//
//	outbox, err := tollbar.NewQueue[string]("10/s algo pacer", 1000) // up to 1,000 messages wait
//	go func() {
//		for message := range outbox.Items(ctx) {
//			send(message)
//		}
//	}()
//	if _, err := outbox.Offer("hello"); err != nil {
//		return tryLater() // the queue is full
//	}
//
// The policy charges an item when it leaves, not when it is offered. Any number of goroutines may
// use a queue. It is in the memory of one process, and needs no library.
type Queue[T any] struct {
	pace           *Limiter
	capacity       uint64
	spare, waiters uint64

	mu sync.Mutex
	// The items by their numbers. A cancelled one stays until the older ones have left.
	items []queueItem[T]
	// The number of the next item.
	next uint64
	// Items that were given back. Their permits are charged already.
	paid   uint64
	closed bool
	// Goroutines that wait for room, and those that wait for an item.
	offering, taking sleepers
}

type queueItem[T any] struct {
	number    uint64
	cancelled bool
	item      T
}

// sleepers are goroutines that sleep until a channel is closed.
type sleepers struct {
	count   uint64
	changed chan struct{}
}

// QueueOptions are the options of a queue. The zero value has the defaults.
type QueueOptions struct {
	// Spare is how many items that overflow the capacity wait in the spare. An item in the spare
	// goes into the first queue when that has room, in the order of the offers, and no later offer
	// overtakes it.
	Spare uint64
	// Clock that the queue goes by.
	Clock Clock
	// Waiters is the most goroutines that wait for room at one time ([Queue.OfferWithin]). 0 means
	// 1,024.
	Waiters uint32
}

// QueueTicket is an item's place in a queue.
type QueueTicket struct {
	// Number of the item: the first item of a queue has number 0.
	Number uint64
	// Ahead is how many items were in the queue when this one was offered. It includes a cancelled
	// item while an older item that was not cancelled waits before it.
	Ahead uint64
	// Spare is the item's place in the spare when it was offered: 1 is the next to go into the
	// first queue. 0: the item was put into the first queue.
	Spare uint64
}

// NewQueue makes a queue in which up to capacity items wait. Items that may leave at once do not
// wait, so more items can be in the queue: a burst for a token bucket, and the slack and one more
// for a pacer.
//
// The policy must have a state of one word: sliding windows and logs are [ErrNotOneWord]. It must
// not count refusals: Ban and CountRejected are [ErrOptionMismatch]. A capacity of 0 is
// [ErrCapacity].
func NewQueue[T any](policy string, capacity uint64) (*Queue[T], error) {
	return NewQueueWith[T](policy, capacity, QueueOptions{})
}

// NewQueueWith is [NewQueue] with options.
func NewQueueWith[T any](policy string, capacity uint64, options QueueOptions) (*Queue[T], error) {
	pace, err := NewLimiterWith(policy, LimiterOptions{Clock: options.Clock})
	if err != nil {
		return nil, err
	}
	switch of := pace.Policy(); {
	case of.Algorithm == SlidingWindow || of.Algorithm == SlidingLog:
		return nil, fmt.Errorf("tollbar: a queue under %q: %w", policy, ErrNotOneWord)
	case of.Ban != 0 || of.CountRejected:
		return nil, fmt.Errorf("tollbar: a queue under %q: %w", policy, ErrOptionMismatch)
	case capacity == 0:
		return nil, ErrCapacity
	}
	q := &Queue[T]{pace: pace, capacity: capacity, spare: options.Spare}
	q.waiters = uint64(waiters(options.Waiters))
	q.offering.changed, q.taking.changed = make(chan struct{}), make(chan struct{})
	return q, nil
}

// Offer puts an item behind all others. The error is [ErrQueueFull] if there is no room, and
// [ErrQueueClosed] after Close.
func (q *Queue[T]) Offer(item T) (QueueTicket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.put(item)
}

// OfferWithin is Offer that waits for room until the context ends. The error then is both
// [ErrQueueFull] and the context's. It is [ErrQueueFull] at once if as many goroutines wait as the
// option Waiters allows.
func (q *Queue[T]) OfferWithin(ctx context.Context, item T) (QueueTicket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ticket, err := q.put(item)
	if err != ErrQueueFull || q.offering.count >= q.waiters {
		return ticket, err
	}
	for {
		// There may be room later without any call: when an item may leave, it no longer waits.
		wait := q.departure()
		if wait == 0 {
			wait = Forever
		}
		ended := q.sleep(ctx, &q.offering, wait)
		ticket, err = q.put(item)
		switch {
		case err != ErrQueueFull:
			return ticket, err
		case ended != nil:
			return ticket, fmt.Errorf("%w; %w", ErrQueueFull, ended)
		}
	}
}

// Take takes the oldest item if the policy lets it leave now.
func (q *Queue[T]) Take() (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	left, ok, _ := q.pop()
	return left.item, ok
}

// TakeWithin is Take that waits until an item may leave, or the context ends. The error is
// [ErrQueueClosed] if the queue is closed and empty, and else the context's.
func (q *Queue[T]) TakeWithin(ctx context.Context) (T, error) {
	left, err := q.takeWithin(ctx)
	return left.item, err
}

// Items returns a channel of the items as they leave. It is closed when the queue is closed and
// empty, or when the context ends. An item that has left when the context ends, and that nobody
// receives, goes back to its place; the context must end if the receiver stops before the channel
// does.
func (q *Queue[T]) Items(ctx context.Context) <-chan T {
	items := make(chan T)
	go func() {
		defer close(items)
		for {
			left, err := q.takeWithin(ctx)
			if err != nil {
				return
			}
			select {
			case items <- left.item:
			case <-ctx.Done():
				q.giveBack(left)
				return
			}
		}
	}()
	return items
}

// NextDeparture returns the time until Take will next return an item: 0 if it does now, and
// [Forever] if it never will. It returns false if the queue is empty.
func (q *Queue[T]) NextDeparture() (time.Duration, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropCancelled()
	return q.departure(), len(q.items) != 0
}

// Cancel takes an item out of the queue before it leaves. It returns false if it has left. The
// items behind it move up.
func (q *Queue[T]) Cancel(ticket QueueTicket) (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	place, found := q.placeOf(ticket.Number)
	if !found || q.items[place].cancelled {
		return item, false
	}
	item = q.items[place].item
	q.items[place] = queueItem[T]{number: ticket.Number, cancelled: true}
	q.dropCancelled()
	q.removed()
	return item, true
}

// Drain takes the oldest item at once, without the policy. It returns false if the queue is empty.
func (q *Queue[T]) Drain() (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropCancelled()
	if len(q.items) == 0 {
		return item, false
	}
	return q.removeFirst().item, true
}

// Close refuses all offers from now on, and wakes all goroutines that wait. Items in the queue
// stay, and can be taken.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.offering.wake()
	q.taking.wake()
}

// Len returns the number of items. A cancelled item counts as long as an older item is in the
// queue.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

// takeWithin is TakeWithin, and returns the item with its number.
func (q *Queue[T]) takeWithin(ctx context.Context) (queueItem[T], error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for ended := error(nil); ; {
		left, ok, wait := q.pop()
		switch {
		case ok:
			return left, nil
		case q.closed && len(q.items) == 0:
			return left, ErrQueueClosed
		case ended != nil:
			return left, ended
		}
		ended = q.sleep(ctx, &q.taking, wait)
	}
}

// giveBack puts an item that has left back to its place. Its permit is for the next item to leave.
func (q *Queue[T]) giveBack(left queueItem[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	place, _ := q.placeOf(left.number)
	q.items = slices.Insert(q.items, place, left)
	q.paid++
	q.taking.wake()
}

// The functions below are called with the lock held.

func (q *Queue[T]) put(item T) (QueueTicket, error) {
	if q.closed {
		return QueueTicket{}, ErrQueueClosed
	}
	ticket := QueueTicket{Number: q.next, Ahead: uint64(len(q.items))}
	if ticket.Ahead >= q.capacity {
		// The items before this one that wait.
		if waiting := ticket.Ahead - min(ticket.Ahead, q.mayLeave()); waiting >= q.capacity {
			ticket.Spare = waiting - q.capacity + 1
		}
	}
	if ticket.Spare > q.spare {
		return QueueTicket{}, ErrQueueFull
	}
	q.items = append(q.items, queueItem[T]{number: q.next, item: item})
	q.next++
	q.taking.wake()
	return ticket, nil
}

// mayLeave is how many items may leave now.
func (q *Queue[T]) mayLeave() uint64 {
	state, _ := q.pace.State()
	return saturated(state.Remaining, q.paid)
}

// pop takes the oldest item if it may leave, and else returns the time until one may.
func (q *Queue[T]) pop() (left queueItem[T], ok bool, wait time.Duration) {
	q.dropCancelled()
	if len(q.items) == 0 {
		return left, false, Forever
	}
	if q.paid != 0 {
		q.paid--
	} else if decision, _ := q.pace.Check(1); decision.Verdict != Allowed {
		return left, false, max(decision.RetryAfter, 1)
	}
	return q.removeFirst(), true, 0
}

// departure is the time until the oldest item may leave.
func (q *Queue[T]) departure() time.Duration {
	if len(q.items) == 0 || q.paid != 0 {
		return 0
	}
	decision, _ := q.pace.Peek(1)
	return decision.RetryAfter
}

func (q *Queue[T]) placeOf(number uint64) (int, bool) {
	return slices.BinarySearchFunc(q.items, number, func(item queueItem[T], number uint64) int {
		if item.number < number {
			return -1
		}
		return int(min(item.number-number, 1))
	})
}

func (q *Queue[T]) removeFirst() queueItem[T] {
	first := q.items[0]
	q.items[0] = queueItem[T]{}
	q.items = q.items[1:]
	q.dropCancelled()
	q.removed()
	return first
}

func (q *Queue[T]) dropCancelled() {
	for len(q.items) != 0 && q.items[0].cancelled {
		q.items = q.items[1:]
	}
}

// removed wakes those that wait for room. In a closed queue it also wakes those that wait for an
// item, because the queue may be empty now.
func (q *Queue[T]) removed() {
	q.offering.wake()
	if q.closed {
		q.taking.wake()
	}
}

func (s *sleepers) wake() {
	if s.count != 0 {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// sleep lets the lock go until the queue changes or `wait` has passed. It returns the context's
// error if that has ended.
func (q *Queue[T]) sleep(ctx context.Context, among *sleepers, wait time.Duration) error {
	changed := among.changed
	among.count++
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		among.count--
	}()
	var rings <-chan time.Time
	if wait != Forever {
		timer := time.NewTimer(max(wait, 1))
		defer timer.Stop()
		rings = timer.C
	}
	select {
	case <-changed:
	case <-rings:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
