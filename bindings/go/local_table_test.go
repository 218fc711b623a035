//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/internal/core"
	"github.com/tollbar/tollbar/bindings/go/internal/local"
)

// Tables in Go alone (internal/local), which a program without the library uses, beside the C
// library.

// localTable is a table in Go.
func localTable(t testing.TB, options local.Options, texts ...string) *local.Table {
	t.Helper()
	compiled := make([]local.Policy, len(texts))
	for i, text := range texts {
		policy, algorithm, wrong := core.Parse(text)
		if wrong != nil {
			t.Fatalf("%s: %+v", text, wrong)
		}
		compiled[i] = local.Policy{Policy: policy, Algorithm: algorithm}
	}
	table, code := local.New(options, compiled)
	if code != 0 {
		t.Fatal(code)
	}
	return table
}

// localKey is a key of a table in Go.
func localKey(t testing.TB, table *local.Table, number uint32, key string) local.Key {
	t.Helper()
	found, decided, ok, code := table.Find(number, key)
	if !ok {
		t.Fatalf("policy %d, %q: %+v (%v)", number, key, decided, code)
	}
	return found
}

// twinPolicies are all that Go steps, with short and long times.
var twinPolicies = []string{
	"10/s", "3/s burst 5", "7/333333333ns burst 9", "10/s burst 6 init 0", "5/s burst 4 ban 2s after 2", "5/s borrow",
	"100/s burst 4 algo pacer slack 2", "3/s burst 5 algo interval", "5/s algo interval anchor first",
	"10/s algo fixed-window", "6/s algo fixed-window count rejected", "9/s algo weighted-window", "7/s burst 4",
	"2/min burst 30", "0/s", "40/forever", "1000/s burst 900", "4/s algo weighted-window",
	"5/s algo fixed-window anchor first", "9/s burst 2 borrow init 1",
}

// twins are two tables of the same policies, with room for all keys: requests for one are made in
// C, and the same requests for the other in Go.
type twins struct {
	c *tollbar.Table
	g *local.Table
	// Charges and reservations that a request may give back.
	charged []twinCharge
	// The numbers of decisions by verdict, of permits that came back, and of reservations.
	verdicts       [3]int
	back, bookings uint64
}

// twinCharge is a charge of both tables: a receipt, or a reservation.
type twinCharge struct {
	number  uint32
	key     string
	at, n   uint64
	receipt tollbar.Receipt
	booked  *tollbar.Reservation
}

// step makes one random request in C and in Go, and compares the results.
func (w *twins) step(t *testing.T, random *rand.Rand, number uint32, key string, now uint64) {
	t.Helper()
	n := []uint64{0, 1, 1, 1, 2, 3, 9, math.MaxUint64}[random.IntN(8)]
	keys, of := w.c.Under(number), localKey(t, w.g, number, key)
	name := ""
	var c, g any
	var err error
	switch random.IntN(13) {
	default:
		name = "Check"
		d := of.Check(now, n)
		w.verdicts[d.Verdict]++
		g = decision(d)
		c, err = keys.CheckAt(key, now, n)
	case 4:
		name = "Take"
		d := core.Answer{Verdict: of.Take(now, n)}
		g = tollbar.Verdict(d.Verdict)
		var full tollbar.Decision
		full, err = keys.CheckAt(key, now, n)
		c = full.Verdict
	case 5:
		name, g = "Peek", decision(of.Peek(now, n))
		c, err = keys.PeekAt(key, now, n)
	case 6:
		name, g = "Charge", of.Charge(now, n)
		c, err = keys.ChargeAt(key, now, n)
	case 7:
		// C has no receipts of so much as the largest number.
		name, n = "a receipt", min(n, 9)
		d := of.Check(now, n)
		g = decision(d)
		var receipt tollbar.Receipt
		receipt, c, err = keys.TakeAt(key, now, n)
		if d.Verdict == core.Allowed && n != 0 {
			w.charged = append(w.charged, twinCharge{number: number, key: key, at: now, n: n, receipt: receipt})
		}
	case 8, 9:
		name = "Reserve"
		g, c, err = w.reserve(random, of, number, key, now, n)
	case 10:
		if name = "Reset"; random.IntN(4) != 0 {
			return
		}
		// C resets no key that finds no other slot; the slots of keys that were reset wait for
		// their time.
		var began bool
		if began, err = keys.ResetAt(key, now); began {
			of.Reset(now)
		}
		c, g = began, began
	}
	if err != nil || c != g {
		t.Fatalf("%s(%s, %q, %d, %d) = %+v, in C %+v (%v)", name, twinPolicies[number], key, now, n, g, c, err)
	}
}

// reserve makes a reservation in Go and in C. Of a refusal it returns the verdicts.
func (w *twins) reserve(random *rand.Rand, of local.Key, number uint32, key string, now, n uint64) (g, c any, err error) {
	patience := random.Uint64N(20_000_000_000)
	at, cost, verdict := of.Reserve(now, n, now+patience)
	g = tollbar.Reservation{Departs: at, Wait: wait(at - now), Cost: cost}
	if verdict != core.Allowed {
		g = tollbar.Code(verdict)
	}
	booked, err := w.c.Under(number).ReserveAt(key, now, n, time.Duration(patience))
	if refused := tollbar.Code(0); errors.As(err, &refused) {
		return g, refused, nil
	}
	if booked.Cost != 0 {
		w.charged = append(w.charged, twinCharge{number: number, key: key, booked: &booked})
		w.bookings++
	}
	return g, booked, err
}

// giveBack gives a charge back at a later time than any before: giving back reads the clock.
func (w *twins) giveBack(t *testing.T, random *rand.Rand, now uint64) {
	t.Helper()
	last := len(w.charged) - 1
	i := max(last-random.IntN(3), 0)
	of := w.charged[i]
	w.charged[i] = w.charged[last]
	w.charged = w.charged[:last]
	charge, c := core.Charge{At: of.at, Cost: of.n}, uint64(0)
	if of.booked != nil {
		charge = core.Charge{At: of.booked.Departs, Cost: of.booked.Cost}
		back, err := w.c.Under(of.number).CancelAt(of.key, now, *of.booked)
		if err != nil {
			t.Fatal(err)
		}
		c = back
	} else {
		settled, err := w.c.SettleAt(of.receipt, now, 0)
		if err != nil {
			t.Fatal(err)
		}
		c = settled.GivenBack
	}
	g := localKey(t, w.g, of.number, of.key).GiveBack(charge, func() uint64 { return now })
	if c != g {
		t.Fatalf("GiveBack(%s, %+v) at %d = %d, in C %d", twinPolicies[of.number], of, now, g, c)
	}
	w.back += g
}

// A million random requests for keys that both tables hold: each decision, reservation and return
// is C's.
func TestLocalTablesDecideAsC(t *testing.T) {
	operations := 1_000_000
	if testing.Short() {
		operations = 100_000
	}
	for i, names := range []int{3, 200} {
		// One of them begins at time 0, at which words are small.
		now := []uint64{1e17, 0}[i]
		t.Run(fmt.Sprint(names, " keys a policy"), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(i), uint64(names)))
			w := &twins{g: localTable(t, local.Options{Capacity: 100_000}, twinPolicies...)}
			var err error
			if w.c, err = tollbar.NewTable(tollbar.TableOptions{Capacity: 100_000}, twinPolicies...); err != nil {
				t.Fatal(err)
			}
			defer w.c.Close()
			for range operations / 2 {
				now += random.Uint64N(2 * uint64(time.Second) / uint64(names))
				at := now - min(now, random.Uint64N(3)*random.Uint64N(100_000_000))
				w.step(t, random, uint32(random.IntN(len(twinPolicies))), fmt.Sprint("key ", random.IntN(names)), at)
				if len(w.charged) != 0 && random.IntN(2) == 0 {
					w.giveBack(t, random, now)
				}
			}
			many := operations / 1000
			if min(w.verdicts[0], w.verdicts[1], w.verdicts[2]) < many || w.back < uint64(many) || w.bookings < uint64(many) {
				t.Errorf("%v verdicts, %d permits came back, %d bookings", w.verdicts, w.back, w.bookings)
			}
		})
	}
}
