//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"testing"
	"time"

	tollbar "github.com/tollbar/tollbar/bindings/go"
)

func TestAdaptive(t *testing.T) {
	limit, err := tollbar.NewAdaptive(tollbar.AdaptiveOptions{Timeout: time.Millisecond, Initial: 2, Window: -1})
	if err != nil {
		t.Fatal(err)
	}
	first, ok := limit.Acquire()
	second, also := limit.Acquire()
	if _, more := limit.Acquire(); !ok || !also || more || limit.Read().InFlight != 2 {
		t.Error(ok, also, more)
	}
	if !first.Release(tollbar.Answered, time.Millisecond) || limit.Read().Limit != 3 {
		t.Error(limit.Read())
	}
	if !second.Release(tollbar.Dropped, 0) || limit.Read().Limit != 2 || second.Release(tollbar.Ignored, 0) {
		t.Error(limit.Read())
	}
	if (tollbar.AdaptiveTicket{}).Release(tollbar.Answered, 0) ||
		(tollbar.AdaptiveKeyTicket{}).Release(tollbar.Answered, 0) {
		t.Error("no ticket was released")
	}

	table, err := tollbar.NewInFlight(tollbar.InFlightOptions{Capacity: 10})
	if err != nil {
		t.Fatal(err)
	}
	a, ok, err := limit.AcquireKey(table, "k")
	b, also, _ := limit.AcquireKey(table, "k")
	if _, more, _ := limit.AcquireKey(table, "k"); !ok || !also || more || err != nil {
		t.Error(ok, also, more, err)
	}
	if !a.Release(tollbar.Answered, time.Microsecond) || limit.Read().Limit != 3 {
		t.Error(limit.Read())
	}
	table.Close()
	if _, _, err := limit.AcquireKey(table, "k"); !errors.Is(err, tollbar.ErrClosed) ||
		b.Release(tollbar.Answered, 0) {
		t.Error(err)
	}
}

// The published trace: 10 ms, 40 ms for 40 samples, 10 ms, with the limit in flight.
func TestAdaptiveHasThePublishedTrace(t *testing.T) {
	limit, err := tollbar.NewAdaptive(tollbar.AdaptiveOptions{Least: 20, Most: 200, Window: -1})
	if err != nil {
		t.Fatal(err)
	}
	published := map[int]uint32{
		0: 20, 9: 28, 19: 36, 20: 33, 21: 30, 25: 22, 30: 20, 40: 20, 59: 20, 60: 20, 70: 28, 99: 52,
	}
	for n := range 100 {
		latency := 10 * time.Millisecond
		if n >= 20 && n < 60 {
			latency *= 4
		}
		var tickets []tollbar.AdaptiveTicket
		for ticket, ok := limit.Acquire(); ok; ticket, ok = limit.Acquire() {
			tickets = append(tickets, ticket)
		}
		tickets[len(tickets)-1].Release(tollbar.Answered, latency)
		for _, ticket := range tickets[:len(tickets)-1] {
			ticket.Release(tollbar.Ignored, 0)
		}
		if want, ok := published[n]; ok && limit.Read().Limit != want {
			t.Error(n, limit.Read(), want)
		}
	}
	if _, err := tollbar.NewAdaptive(tollbar.AdaptiveOptions{Most: 10}); !errors.Is(err, tollbar.ErrOutOfRange) {
		t.Error(err)
	}
}

func TestARateAndALearnedLimitInOneDecision(t *testing.T) {
	server, err := tollbar.NewAdaptive(tollbar.AdaptiveOptions{Timeout: time.Second, Initial: 1, Window: -1})
	if err != nil {
		t.Fatal(err)
	}
	open := inFlight(t, 10)
	rate, err := tollbar.NewLimiter("2/h")
	if err != nil {
		t.Fatal(err)
	}
	defer rate.Close()
	take := func(ticket *tollbar.AdaptiveKeyTicket) tollbar.Taken {
		taken, err := tollbar.TakeMany(rate.Limit(1), server.Limit(open, "k", ticket))
		if err != nil {
			t.Fatal(err)
		}
		return taken
	}
	var first, second tollbar.AdaptiveKeyTicket
	if !take(&first).Allowed() || held(t, open) != 1 {
		t.Fatal("the first was refused")
	}
	if taken := take(&second); taken.Allowed() || taken.Bound != 1 || second.Release(tollbar.Answered, 0) {
		t.Fatal("a second under a limit of 1", taken)
	}
	if !first.Release(tollbar.Answered, time.Millisecond) || server.Read().Limit != 2 {
		t.Fatal("the limit has not learned", server.Read())
	}
	// The rate has one permit left. Then it refuses, and nothing is opened.
	if !take(&first).Allowed() {
		t.Fatal("the refusal was charged")
	}
	if taken := take(&second); taken.Allowed() || taken.Bound != 0 || held(t, open) != 1 {
		t.Fatal("a third of 2/h", taken)
	}
}

// A caller that asks again with the ticket of a request that still runs keeps that ticket: a refusal
// of the rate, a refusal of the limit and an error all leave it, and its permit comes back.
func TestARefusalLeavesTheTicketOfARequestThatRuns(t *testing.T) {
	server, err := tollbar.NewAdaptive(tollbar.AdaptiveOptions{Timeout: time.Second, Initial: 1, Window: -1})
	if err != nil {
		t.Fatal(err)
	}
	open := inFlight(t, 10)
	rate, err := tollbar.NewLimiter("1/h")
	if err != nil {
		t.Fatal(err)
	}
	defer rate.Close()
	ended, err := tollbar.NewLimiter("1/h")
	if err != nil {
		t.Fatal(err)
	}
	ended.Close()
	other, err := tollbar.NewLimiter("9/h")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()

	var learned tollbar.AdaptiveKeyTicket
	if taken, err := tollbar.TakeMany(rate.Limit(1), server.Limit(open, "k", &learned)); !taken.Allowed() {
		t.Fatal("the first was refused", taken, err)
	}
	for name, of := range map[string]*tollbar.Limiter{"rate": rate, "limit": other, "closed": ended} {
		if taken, _ := tollbar.TakeMany(of.Limit(1), server.Limit(open, "k", &learned)); taken.Allowed() {
			t.Fatal(name, "a second under a limit of 1", taken)
		}
	}
	if held(t, open) != 1 || !learned.Release(tollbar.Answered, time.Millisecond) || held(t, open) != 0 {
		t.Fatal("the permit of the request that ran has not come back:", held(t, open))
	}

	var plain tollbar.Ticket
	if taken, err := tollbar.TakeMany(other.Limit(1), open.Limit("k", 1, &plain)); !taken.Allowed() {
		t.Fatal("refused", taken, err)
	}
	if taken, _ := tollbar.TakeMany(other.Limit(1), open.Limit("k", 1, &plain)); taken.Allowed() {
		t.Fatal("a second of at most 1", taken)
	}
	if !plain.Release() || held(t, open) != 0 {
		t.Fatal("the permit of the request that ran has not come back:", held(t, open))
	}
}
