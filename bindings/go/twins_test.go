//go:build (cgo || tollbar_purego) && linux && (amd64 || arm64)

package tollbar_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/internal/core"
	"github.com/tollbar/tollbar/bindings/go/internal/shared"
)

// Parts of a table's file (docs/table.md).
const (
	versionsAt, countersAt, bucketsAt = 4 << 10, 68 << 10, 219 << 10
	// The header's fixed words and their checksum.
	fixedEnd = 13 * 8
	// The words of bookings, and then the current versions of all policies.
	bookedAt, bookedEnd, currentAt, currentEnd = 160 + 8, 160 + 8 + 16, 200, 200 + 128*8
)

// twins are two tables of the same options, policies and seed, each in a file: requests for one are made in C, and
// those for the other in Go. admin is C's view of Go's table, for calls that only C has.
type twins struct {
	c, admin *tollbar.Table
	g        *shared.Table
	files    [2]string
	// Charges that a request may give back.
	charged []charged
	// Reservations that a request may cancel, of any policy that their keys have had.
	booked []booked
	// The number of permits that came back, and of reservations, of those that came back whole and of keys that began
	// again.
	back, bookings, whole, began uint64
	// Keys that have had a policy of their own.
	overridden []charged
}

// charged is a charge of both tables.
type charged struct {
	number  uint32
	key     string
	at, n   uint64
	receipt tollbar.Receipt
}

// booked is a reservation of both tables.
type booked struct {
	number uint32
	key    string
	of     tollbar.Reservation
}

func newTwins(t testing.TB, options tollbar.TableOptions, texts ...string) *twins {
	t.Helper()
	directory := t.TempDir()
	w := &twins{files: [2]string{filepath.Join(directory, "c"), filepath.Join(directory, "go")}}
	seed := uint64(77)
	options.Seed = &seed
	var err error
	if w.c, err = tollbar.OpenTable(w.files[0], options, texts...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.c.Close() })
	of := shared.Options{
		Capacity: options.Capacity, OnFull: uint32(options.OnFull), Missing: uint32(options.MissingKey),
		Clock: uint32(options.Clock), Seed: &seed, Overrides: 1024,
	}
	var wrong *shared.Error
	if w.g, wrong = shared.OpenOrMake(w.files[1], shared.Access{Mode: 0o600}, &of, goPolicies(t, texts...)); wrong != nil {
		t.Fatalf("%+v", wrong)
	}
	t.Cleanup(w.g.Free)
	// C takes Go's file for its own.
	if w.admin, err = tollbar.OpenTable(w.files[1], options, texts...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.admin.Close() })
	return w
}

// same compares what both files say of policies and keys, byte by byte.
func (w *twins) same(t testing.TB, when string) {
	t.Helper()
	var content [2][]byte
	for i, name := range w.files {
		var err error
		if content[i], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	c, g := content[0], content[1]
	if len(c) != len(g) {
		t.Fatalf("%s: %d bytes, in C %d", when, len(g), len(c))
	}
	for _, part := range []struct {
		name     string
		from, to int
	}{
		{"fixed words", 0, fixedEnd}, {"bookings", bookedAt, bookedEnd}, {"current versions", currentAt, currentEnd},
		{"versions", versionsAt, countersAt}, {"slots", bucketsAt, len(c)},
	} {
		if !bytes.Equal(c[part.from:part.to], g[part.from:part.to]) {
			for at := part.from; at < part.to; at += 16 {
				if !bytes.Equal(c[at:at+16], g[at:at+16]) {
					t.Fatalf("%s: the %s differ at %d: %x, in C %x", when, part.name, at, g[at:at+16], c[at:at+16])
				}
			}
		}
	}
	if c, g := reasons(t, w.c), reasons(t, w.admin); c != g {
		t.Fatalf("%s: %s, in C %s", when, g, c)
	}
}

// reasons returns the lines of a table's metrics that count decisions by reason.
func reasons(t testing.TB, table *tollbar.Table) (lines string) {
	t.Helper()
	text, err := tollbar.AppendMetrics(nil, tollbar.Prometheus, table.Metrics("twin"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "tollbar_reasons_total{") {
			lines += line
		}
	}
	return lines
}

// The policies of twins: all that Go steps, with short and long times.
var twinPolicies = []string{
	"10/s", "3/s burst 5", "7/333333333ns burst 9", "10/s burst 6 init 0", "5/s burst 4 ban 2s after 2", "5/s borrow",
	"100/s burst 4 algo pacer slack 2",
	"3/s burst 5 algo interval", "5/s algo interval anchor first", "10/s algo fixed-window",
	"6/s algo fixed-window count rejected", "9/s algo weighted-window",
	"7/s burst 4", "2/min burst 30",
}

// step makes one random request in C and in Go, and compares the results.
func (w *twins) step(t *testing.T, random *rand.Rand, number uint32, key string, now uint64) {
	t.Helper()
	n := []uint64{0, 1, 1, 1, 2, 3, 9, math.MaxUint64}[random.IntN(8)]
	keys := w.c.Under(number)
	place, decided, found, code := w.g.Find(number, key)
	if code != 0 {
		t.Fatalf("%q: %v", key, code)
	}
	if !found {
		if c, err := keys.CheckAt(key, now, n); err != nil || decision(decided) != c {
			t.Fatalf("%q: %+v, in C %+v (%v)", key, decided, c, err)
		}
		w.g.CountDecided(number, decided)
		return
	}
	name := ""
	var c, g any
	var err error
	switch random.IntN(13) {
	default:
		name = "Check"
		var d core.Answer
		d, code = place.TakeFull(now, n)
		g = decision(d)
		c, err = keys.CheckAt(key, now, n)
	case 7:
		if name = "Take"; n > 9 {
			// C has no receipts of so much.
			n = 9
		}
		var d core.Answer
		d, code = place.TakeFull(now, n)
		g = decision(d)
		var receipt tollbar.Receipt
		receipt, c, err = keys.TakeAt(key, now, n)
		if d.Verdict == core.Allowed && n != 0 {
			w.charged = append(w.charged, charged{number, key, now, n, receipt})
		}
	case 5:
		name = "Peek"
		var d core.Answer
		d, code = place.PeekFull(now, n)
		g = decision(d)
		c, err = keys.PeekAt(key, now, n)
	case 6:
		name = "Charge"
		g, code = place.Charge(now, n)
		c, err = keys.ChargeAt(key, now, n)
	case 8, 9:
		name = "Reserve"
		g, c, err = w.reserve(random, place, booked{number: number, key: key}, now, n)
	case 10:
		if name = "Reset"; random.IntN(4) != 0 {
			return
		}
		var began bool
		began, code = w.g.Reset(number, key, now)
		g = began
		c, err = keys.ResetAt(key, now)
		if began {
			w.began++
		}
	}
	if err != nil || code != 0 || c != g {
		t.Fatalf("%s(%d, %q, %d, %d) = %+v, in C %+v (%v, %v)", name, number, key, now, n, g, c, err, code)
	}
}

// reserve makes a reservation in Go and in C. Of a refusal it returns the verdicts.
func (w *twins) reserve(random *rand.Rand, place shared.Place, of booked, now, n uint64) (g, c any, err error) {
	patience := random.Uint64N(20_000_000_000)
	at, cost, verdict, code := place.Reserve(now, n, now+patience)
	switch {
	case code != 0:
		g = tollbar.Code(code)
	case verdict != core.Allowed:
		g = tollbar.Code(verdict)
	default:
		g = tollbar.Reservation{Departs: at, Wait: wait(at - now), Cost: cost}
	}
	of.of, err = w.c.Under(of.number).ReserveAt(of.key, now, n, time.Duration(patience))
	refused := tollbar.Code(0)
	if errors.As(err, &refused) {
		return g, refused, nil
	}
	if of.of.Cost != 0 {
		w.booked = append(w.booked, of)
		w.bookings++
	}
	return g, of.of, err
}

// cancel cancels a reservation at a later time than any before.
func (w *twins) cancel(t *testing.T, random *rand.Rand, now uint64) {
	t.Helper()
	last := len(w.booked) - 1
	i := max(last-random.IntN(3), 0)
	of := w.booked[i]
	w.booked[i] = w.booked[last]
	w.booked = w.booked[:last]
	c, err := w.c.Under(of.number).CancelAt(of.key, now, of.of)
	if err != nil {
		t.Fatal(err)
	}
	place, _, found, code := w.g.Find(of.number, of.key)
	if !found {
		// An exempt key.
		if code != 0 || c != 0 {
			t.Fatal(c, code)
		}
		return
	}
	g, code := place.Return(core.Charge{At: of.of.Departs, Cost: of.of.Cost}, func() uint64 { return now })
	if code != 0 || c != g {
		t.Fatalf("Return(%+v) at %d = %d, in C %d (%v)", of, now, g, c, code)
	}
	w.back += g
	if g == of.of.Cost && of.of.Departs > now {
		w.whole++
	}
}

// giveBack gives a charge back at a later time than any before: giving back reads the clock.
func (w *twins) giveBack(t *testing.T, now uint64) {
	t.Helper()
	last := w.charged[len(w.charged)-1]
	w.charged = w.charged[:len(w.charged)-1]
	settled, err := w.c.SettleAt(last.receipt, now, 0)
	if err != nil {
		t.Fatal(err)
	}
	place, _, found, code := w.g.Find(last.number, last.key)
	if !found || code != 0 {
		t.Fatal(code)
	}
	back, code := place.Return(core.Charge{At: last.at, Cost: last.n}, func() uint64 { return now })
	if code != 0 || back != settled.GivenBack {
		t.Fatalf("Return(%+v) at %d = %d, in C %d", last, now, back, settled.GivenBack)
	}
	w.back += back
}

// change changes a policy, an override or an exemption in both tables, by C.
func (w *twins) change(t *testing.T, random *rand.Rand, number uint32, key string) {
	t.Helper()
	policy := twinPolicies[random.IntN(len(twinPolicies))]
	if random.IntN(4) == 0 {
		policy = []string{
			"0/s", "40/forever", "60/forever", "1000/s burst 900", "1/h burst 7", "5/s burst 4 ban 20s after 3",
			"12/s algo fixed-window", "5/s algo fixed-window anchor first", "4/s algo weighted-window",
			"8/s algo interval anchor first", "3/s burst 9 algo interval", "9/s burst 2 borrow init 1",
		}[random.IntN(12)]
	}
	keeps := []tollbar.Keep{tollbar.KeepCount, tollbar.KeepCount, tollbar.KeepTime, tollbar.KeepTime, tollbar.KeepReset}
	keep := keeps[random.IntN(len(keeps))]
	// A receipt of a former policy gives nothing back, and the call that C has only for receipts is the one that Go
	// makes for any charge.
	w.charged = nil
	what := random.IntN(10)
	former := charged{number: number, key: key}
	if what < 2 {
		w.overridden = append(w.overridden, former)
	} else if what == 2 && len(w.overridden) != 0 {
		former = w.overridden[random.IntN(len(w.overridden))]
	}
	for _, table := range []*tollbar.Table{w.c, w.admin} {
		var err error
		switch what {
		default:
			err = table.SetPolicyKeeping(number, policy, keep)
		case 0, 1:
			err = table.Under(number).SetOverride(key, policy, keep)
		case 2:
			_, err = table.Under(former.number).ClearOverride(former.key)
		case 3:
			err = table.Under(number).Exempt(key)
		case 4:
			_, err = table.Under(number).Unexempt(key)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
