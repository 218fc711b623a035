package tollbar_test

import (
	"context"
	"errors"
	"math"
	"math/rand"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

func newQueue[T any](
	t *testing.T, policy string, capacity uint64, options tollbar.QueueOptions,
) *tollbar.Queue[T] {
	t.Helper()
	queue, err := tollbar.NewQueueWith[T](policy, capacity, options)
	if err != nil {
		t.Fatal(err)
	}
	return queue
}

func TestTheSpareHoldsWhatOverflows(t *testing.T) {
	queue := newQueue[int](t, "1/h algo pacer", 2, tollbar.QueueOptions{Spare: 2})
	for n, spare := range []uint64{0, 0, 0, 1, 2} {
		ticket, err := queue.Offer(n)
		want := tollbar.QueueTicket{Number: uint64(n), Ahead: uint64(n), Spare: spare}
		if err != nil || ticket != want {
			t.Error(n, ticket, err)
		}
	}
	if _, err := queue.Offer(5); err != tollbar.ErrQueueFull || !errors.Is(err, tollbar.ErrDenied) {
		t.Error(err)
	}
	if item, ok := queue.Take(); !ok || item != 0 {
		t.Error(item, ok)
	}
	// The spare has fed the first queue, whose permit of this hour is spent.
	if _, err := queue.Offer(5); err != tollbar.ErrQueueFull {
		t.Error(err)
	}
	for n := 1; n < 5; n++ {
		if item, ok := queue.Drain(); !ok || item != n {
			t.Error(n, item, ok)
		}
	}
}

func TestACancelledItemComesBack(t *testing.T) {
	queue := newQueue[string](t, "1/h algo pacer", 2, tollbar.QueueOptions{})
	var tickets []tollbar.QueueTicket
	for _, item := range []string{"a", "b", "c"} {
		ticket, err := queue.Offer(item)
		if err != nil {
			t.Fatal(err)
		}
		tickets = append(tickets, ticket)
	}
	if item, ok := queue.Cancel(tickets[1]); !ok || item != "b" || queue.Len() != 3 {
		t.Error(item, ok, queue.Len())
	}
	if _, ok := queue.Cancel(tickets[1]); ok {
		t.Error("cancelled twice")
	}
	if item, ok := queue.Take(); !ok || item != "a" || queue.Len() != 1 {
		t.Error(item, ok, queue.Len())
	}
	if _, ok := queue.Cancel(tickets[0]); ok {
		t.Error("cancelled after it had left")
	}
	if _, ok := queue.Take(); ok {
		t.Error("two in one hour")
	}
	if wait, ok := queue.NextDeparture(); !ok || wait <= 0 || wait > time.Hour {
		t.Error(wait, ok)
	}
}

func TestAClosedQueueGivesWhatItHas(t *testing.T) {
	queue := newQueue[string](t, "1000000/s burst 9", 5, tollbar.QueueOptions{})
	if _, err := queue.Offer("a"); err != nil {
		t.Fatal(err)
	}
	queue.Close()
	if _, err := queue.OfferWithin(context.Background(), "b"); err != tollbar.ErrQueueClosed {
		t.Error(err)
	}
	for item := range queue.Items(context.Background()) {
		if item != "a" {
			t.Error(item)
		}
	}
	if _, err := queue.TakeWithin(context.Background()); err != tollbar.ErrQueueClosed {
		t.Error(err)
	}
}

func TestWhatCannotBeAQueue(t *testing.T) {
	for policy, expected := range map[string]error{
		"10/s algo sliding-log":                 tollbar.ErrNotOneWord,
		"10/s burst 1 ban 1h after 2":           tollbar.ErrOptionMismatch,
		"10/s algo fixed-window count rejected": tollbar.ErrOptionMismatch,
		"10/x":                                  tollbar.ErrSyntax,
	} {
		// Without the library some policies are refused for that.
		_, err := tollbar.NewQueue[int](policy, 5)
		if !errors.Is(err, expected) && !errors.Is(err, tollbar.ErrNeedsLibrary) {
			t.Error(policy, err)
		}
	}
	if _, err := tollbar.NewQueue[int]("10/s", 0); err != tollbar.ErrCapacity {
		t.Error(err)
	}
}

// Of ten goroutines three may wait. The others are refused at once.
func TestGoroutinesThatOfferAreBounded(t *testing.T) {
	queue := newQueue[int](t, "1/h algo pacer", 1, tollbar.QueueOptions{Waiters: 3})
	_, _ = queue.Offer(0)
	_, _ = queue.Offer(0)
	answers := make(chan error, 10)
	for range 10 {
		go func() {
			_, err := queue.OfferWithin(context.Background(), 1)
			answers <- err
		}()
	}
	for range 7 {
		if err := <-answers; err != tollbar.ErrQueueFull {
			t.Error(err)
		}
	}
	queue.Close()
	for range 3 {
		if err := <-answers; err != tollbar.ErrQueueClosed {
			t.Error(err)
		}
	}
}

// An item that left for a channel whose context ended is the next one to leave, and costs no second
// permit.
func TestAnItemThatNobodyReceivesGoesBack(t *testing.T) {
	queue := newQueue[int](t, "1/h algo pacer", 5, tollbar.QueueOptions{})
	for n := range 3 {
		_, _ = queue.Offer(n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	items := queue.Items(ctx)
	for queue.Len() != 2 {
		time.Sleep(100 * time.Microsecond)
	}
	cancel()
	for range items {
		t.Error("received")
	}
	if item, ok := queue.Take(); !ok || item != 0 || queue.Len() != 2 {
		t.Error(item, ok, queue.Len())
	}
	if item, ok := queue.Take(); ok {
		t.Error(item, "left before its hour")
	}
}

// span is a call: the steps of a common counter before and after it, and the item's number.
type span struct {
	begun, ended, number int64
}

// overtaken counts calls that ended before another began, and whose number is higher.
func overtaken(spans []span) (wrong int) {
	for _, a := range spans {
		for _, b := range spans {
			if a.ended < b.begun && a.number > b.number {
				wrong++
			}
		}
	}
	return wrong
}

// record holds the offers and takes of all goroutines.
type record struct {
	steps                     atomic.Int64
	mu                        sync.Mutex
	numbers                   map[int]int64
	offers, refusals, removed []span
	taken                     []span
	overflowed, cancelled     int
}

func (r *record) produce(t *testing.T, queue *tollbar.Queue[int], producer, each int) {
	random := rand.New(rand.NewSource(int64(producer)))
	for n := range each {
		item := producer*each + n
		patience := time.Duration(random.Intn(3)) * 100 * time.Microsecond
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		begun := r.steps.Add(1)
		ticket, err := queue.OfferWithin(ctx, item)
		call := span{begun, r.steps.Add(1), int64(ticket.Number)}
		cancel()
		if err != nil && !errors.Is(err, tollbar.ErrQueueFull) {
			t.Error(err)
		}
		begun, gone := r.steps.Load(), false
		if err == nil && n%16 == 0 {
			_, gone = queue.Cancel(ticket)
		}
		r.mu.Lock()
		if err != nil {
			r.refusals = append(r.refusals, call)
		} else {
			r.offers = append(r.offers, call)
			r.numbers[item] = call.number
			if ticket.Spare != 0 {
				r.overflowed++
			}
		}
		if gone {
			r.cancelled++
			r.removed = append(r.removed, span{begun, r.steps.Add(1), int64(item)})
		}
		r.mu.Unlock()
	}
}

func (r *record) took(begun int64, item int) {
	call := span{begun, r.steps.Add(1), int64(item)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removed = append(r.removed, call)
	r.taken = append(r.taken, call)
}

// Eight producers, whose patience ends, and eight takers. With channels, half of the takers receive
// from channels whose contexts end soon.
func runGoroutines(t *testing.T, channels bool) *record {
	const each = 150
	queue := newQueue[int](t, "1000000/s burst 1", 3, tollbar.QueueOptions{Spare: 3})
	r := &record{numbers: map[int]int64{}}
	var producers, takers sync.WaitGroup
	var done atomic.Bool
	for producer := range 8 {
		producers.Add(1)
		go func() {
			defer producers.Done()
			r.produce(t, queue, producer, each)
		}()
	}
	for taker := range 8 {
		takers.Add(1)
		go func() {
			defer takers.Done()
			for receives := channels && taker%2 == 1; !receives || !done.Load(); {
				ctx, cancel := context.WithTimeout(context.Background(), 200*time.Microsecond)
				begun := r.steps.Add(1)
				if receives {
					for item := range queue.Items(ctx) {
						r.took(begun, item)
					}
				} else if item, err := queue.TakeWithin(ctx); err == nil {
					r.took(begun, item)
				} else if err == tollbar.ErrQueueClosed {
					cancel()
					return
				}
				cancel()
			}
		}()
	}
	producers.Wait()
	done.Store(true)
	queue.Close()
	takers.Wait()
	for item, ok := queue.Drain(); ok; item, ok = queue.Drain() {
		r.took(r.steps.Add(1), item)
	}
	times := map[int64]int{}
	for _, call := range r.removed {
		times[call.number]++
	}
	for item := range r.numbers {
		if times[int64(item)] != 1 {
			t.Error(item, "left", times[int64(item)], "times")
		}
	}
	if len(r.removed) != len(r.offers) {
		t.Error(len(r.removed), "left of", len(r.offers))
	}
	if len(r.refusals) == 0 || r.overflowed == 0 || r.cancelled == 0 {
		t.Error(len(r.refusals), r.overflowed, r.cancelled)
	}
	return r
}

// Each item is taken or cancelled once, in the order of its acceptance. No offer is refused while
// there is room.
func TestGoroutinesLoseNothing(t *testing.T) {
	r := runGoroutines(t, false)
	for n := range r.taken {
		r.taken[n].number = r.numbers[int(r.taken[n].number)]
	}
	if offers, takes := overtaken(r.offers), overtaken(r.taken); offers != 0 || takes != 0 {
		t.Error(offers, "offers and", takes, "takes were overtaken")
	}
	withRoom := 0
	for _, refusal := range r.refusals {
		held := 0
		for _, offer := range r.offers {
			if offer.begun < refusal.ended {
				held++
			}
		}
		for _, call := range r.removed {
			// A cancelled item counts as long as an older one is there: the test grants each of
			// the six places to one.
			if call.ended < refusal.begun {
				held--
			}
		}
		if held+r.cancelledBefore(refusal) < 6 {
			withRoom++
		}
	}
	t.Log(len(r.offers), "accepted,", r.overflowed, "of them into the spare,", r.cancelled, "cancelled,",
		len(r.refusals), "refused;", withRoom, "refused with room")
	if withRoom != 0 {
		t.Error(withRoom, "refused with room")
	}
}

// cancelledBefore is how many items were cancelled before a call, and had an older item in the
// queue when the call began.
func (r *record) cancelledBefore(call span) (held int) {
	var oldest int64 = math.MaxInt64
	gone := map[int64]int64{}
	for _, one := range r.removed {
		gone[r.numbers[int(one.number)]] = one.ended
	}
	for number, ended := range gone {
		if ended >= call.begun {
			oldest = min(oldest, number)
		}
	}
	for number, ended := range gone {
		if ended < call.begun && number > oldest {
			held++
		}
	}
	return held
}

func TestChannelsThatEndLoseNothing(t *testing.T) { runGoroutines(t, true) }
