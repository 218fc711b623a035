//go:build cgo || tollbar_purego

package tollbar_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

func TestBookingsOfAKeyDepartInTurnAndComeBack(t *testing.T) {
	keys := mustTable(t, tollbar.TableOptions{Capacity: 10}, "1/h", "1/h burst 2").Under(1)
	begun, _ := mustNow(keys)
	reserve := func(n uint64, patience time.Duration) tollbar.Reservation {
		t.Helper()
		booked, err := keys.Reserve("key", n, patience)
		if err != nil {
			t.Fatal(err)
		}
		return booked
	}
	if both := reserve(2, 0); both.Wait != 0 || both.Cost != 2 || both.Departs < begun {
		t.Errorf("%+v after %d", both, begun)
	}
	third, fourth := reserve(1, tollbar.Forever), reserve(1, 2*time.Hour)
	if third.Wait > time.Hour || fourth.Wait > 2*time.Hour || fourth.Departs-third.Departs < uint64(time.Hour)-10 {
		t.Errorf("%+v %+v", third, fourth)
	}
	if _, err := keys.Reserve("key", 1, time.Hour); !errors.Is(err, tollbar.ErrDenied) {
		t.Error(err)
	}
	if _, err := keys.Reserve("key", 3, tollbar.Forever); !errors.Is(err, tollbar.ErrNever) {
		t.Error(err)
	}
	// Behind the third there is the fourth.
	for _, cancelled := range []struct {
		booked tollbar.Reservation
		want   uint64
	}{{third, 0}, {fourth, 1}} {
		if back, err := keys.Cancel("key", cancelled.booked); back != cancelled.want || err != nil {
			t.Errorf("%d, %v of %+v", back, err, cancelled.booked)
		}
	}
	if again := reserve(1, tollbar.Forever); again.Departs != fourth.Departs {
		t.Errorf("%+v, and was %+v", again, fourth)
	}
	if back, err := keys.Cancel("nobody", fourth); back != 0 || err != nil {
		t.Errorf("%d, %v", back, err)
	}
}

func mustNow(keys tollbar.Keys) (uint64, error) {
	// A booking of nothing departs now.
	booked, err := keys.Reserve("nobody", 0, 0)
	return booked.Departs, err
}

func TestReservationsOfOddKeys(t *testing.T) {
	table := mustTable(t, tollbar.TableOptions{Capacity: 10, MissingKey: tollbar.MissingReport}, "1/h", "5/s algo fixed-window")
	if err := table.Under(0).Exempt("vip"); err != nil {
		t.Fatal(err)
	}
	if booked, err := table.Under(0).Reserve("vip", 1, 0); booked.Cost != 0 || err != nil {
		t.Errorf("%+v, %v", booked, err)
	}
	for name, got := range map[string]struct{ err, want error }{
		"missing":   {errOf(table.Under(0).Reserve("", 1, 0)), tollbar.ErrMissingKey},
		"no policy": {errOf(table.Under(7).Reserve("a", 1, 0)), tollbar.ErrNoSuchPolicy},
		"a window":  {errOf(table.Under(1).Reserve("a", 1, tollbar.Forever)), tollbar.ErrDenied},
		"wait":      {table.Under(7).Wait(context.Background(), "a"), tollbar.ErrNoSuchPolicy},
	} {
		if !errors.Is(got.err, got.want) {
			t.Errorf("%s: %v", name, got.err)
		}
	}
	table.Close()
	if err := table.Under(0).Wait(context.Background(), "a"); !errors.Is(err, tollbar.ErrClosed) {
		t.Error(err)
	}
	if _, err := table.Under(0).Cancel("a", tollbar.Reservation{}); !errors.Is(err, tollbar.ErrClosed) {
		t.Error(err)
	}
}

func errOf(_ tollbar.Reservation, err error) error { return err }

// Each of a hundred that wait for one key is decided on once where bookings are possible, and about
// twice in a line.
func TestAHundredWaitForAKey(t *testing.T) {
	for policy, most := range map[string]uint64{"500/s burst 1": 100, "20/40ms algo fixed-window": 230} {
		keys := mustTable(t, tollbar.TableOptions{Capacity: 10}, policy).Under(0)
		start := time.Now()
		var all sync.WaitGroup
		for range 100 {
			all.Add(1)
			go func() {
				defer all.Done()
				if err := keys.Wait(context.Background(), "key"); err != nil {
					t.Error(err)
				}
			}()
		}
		all.Wait()
		if waited := time.Since(start); policy[0] == '5' && waited < 197*time.Millisecond {
			t.Errorf("%s: a hundred in %v", policy, waited)
		}
		counts, err := keys.Counts()
		if err != nil || counts.Allowed != 100 || counts.Allowed+counts.Denied > most {
			t.Errorf("%s: %+v, %v", policy, counts, err)
		}
	}
}

func TestAHopelessWaitForAKeyIsRefusedAtOnce(t *testing.T) {
	for _, policy := range []string{"1/min", "1/min algo fixed-window anchor first"} {
		keys := mustTable(t, tollbar.TableOptions{Capacity: 10}, policy).Under(0)
		keys.Allow("key")
		before, _ := keys.Peek("key", 1)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := keys.Wait(ctx, "key")
		if !errors.Is(err, tollbar.ErrDenied) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", policy, err)
		}
		if after, _ := keys.Peek("key", 1); after.RetryAfter > before.RetryAfter {
			t.Errorf("%s: it has cost something: %v, before %v", policy, after.RetryAfter, before.RetryAfter)
		}
		if err := keys.WaitN(ctx, "key", 2); !errors.Is(err, tollbar.ErrNever) {
			t.Errorf("%s: %v", policy, err)
		}
		cancel()
		if err := keys.Wait(ctx, "other"); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", policy, err)
		}
	}
}

// A wait whose context ends gives back what it has booked.
func TestACancelledWaitGivesBack(t *testing.T) {
	limiter := mustLimiter(t, "1/h")
	keys := mustTable(t, tollbar.TableOptions{Capacity: 10}, "1/h").Under(0)
	for name, of := range map[string]struct {
		wait func(context.Context) error
		peek func() (tollbar.Decision, error)
	}{
		"limiter": {limiter.Wait, func() (tollbar.Decision, error) { return limiter.Peek(1) }},
		"key": {
			func(ctx context.Context) error { return keys.Wait(ctx, "key") },
			func() (tollbar.Decision, error) { return keys.Peek("key", 1) },
		},
	} {
		if err := of.wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		before, _ := of.peek()
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- of.wait(ctx) }()
		for booked, _ := of.peek(); booked.RetryAfter <= time.Hour; booked, _ = of.peek() {
			time.Sleep(time.Millisecond)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := of.peek(); after.RetryAfter > before.RetryAfter {
			t.Errorf("%s: %v, before %v", name, after.RetryAfter, before.RetryAfter)
		}
	}
}

func ExampleKeys_Reserve() {
	table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 10_000}, "1/h burst 1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer table.Close()
	mails := table.Under(0)
	// A job that would rather wait than fail: a timer may run it after the reservation's Wait.
	for range 2 {
		mail, err := mails.Reserve("acme", 1, 2*time.Hour)
		fmt.Println(mail.Wait.Round(time.Minute), err)
	}
	_, err = mails.Reserve("acme", 1, time.Hour)
	fmt.Println(errors.Is(err, tollbar.ErrDenied))
	// Output:
	// 0s <nil>
	// 1h0m0s <nil>
	// true
}
