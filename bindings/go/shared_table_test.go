//go:build cgo && linux && (amd64 || arm64)

package tollbar_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/internal/core"
	"github.com/tollbar/tollbar/bindings/go/internal/shared"
)

// Tables in Go (internal/shared), which a build without cgo uses, beside the C library: on the same requests, and in the same file.

// Parts of a table's file (docs/table.md).
const (
	versionsAt, countersAt, bucketsAt = 4 << 10, 68 << 10, 219 << 10
	// The header's fixed words and their checksum.
	fixedEnd = 13 * 8
	// The words of bookings, and then the current versions of all policies.
	bookedAt, bookedEnd, currentAt, currentEnd = 160 + 8, 160 + 8 + 16, 200, 200 + 128*8
)

// twins are two tables of the same options, policies and seed, each in a file: requests for one are made in C, and those for the other in Go. admin is
// C's view of Go's table, for calls that only C has.
type twins struct {
	c, admin *tollbar.Table
	g        *shared.Table
	files    [2]string
	// Charges that a request may give back.
	charged []charged
	// The number of permits that came back.
	back uint64
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
		Capacity: options.Capacity, OnFull: uint32(options.OnFull), Missing: uint32(options.MissingKey), Clock: uint32(options.Clock), Seed: &seed, Overrides: 1024,
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
}

// The policies of twins: all that Go steps, with short and long times.
var twinPolicies = []string{
	"10/s", "3/s burst 5", "7/333333333ns burst 9", "10/s burst 6 init 0", "5/s burst 4 ban 2s after 2", "5/s borrow", "100/s burst 4 algo pacer slack 2",
	"3/s burst 5 algo interval", "5/s algo interval anchor first", "10/s algo fixed-window", "6/s algo fixed-window count rejected", "9/s algo weighted-window",
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
		w.g.CountDecided(number, decided.Verdict)
		return
	}
	name := ""
	var c, g any
	var err error
	switch random.IntN(10) {
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
	}
	if err != nil || code != 0 || c != g {
		t.Fatalf("%s(%d, %q, %d, %d) = %+v, in C %+v (%v, %v)", name, number, key, now, n, g, c, err, code)
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

// A million random requests for keys of twins, in tables that are full and in one with room, while policies change, and keys are exempt or have policies
// of their own: each decision is C's, and so is each byte of all slots.
func TestGoTablesAreCsToTheByte(t *testing.T) {
	operations := 1_000_000
	if testing.Short() {
		operations = 100_000
	}
	for i, onFull := range []tollbar.OnFull{tollbar.OnFullEvictNearest, tollbar.OnFullInherit, tollbar.OnFullAllow, tollbar.OnFullDeny} {
		for _, names := range []int{40, 12_000} {
			// One of them begins at time 0, at which words are small.
			now := []uint64{1e17, 0}[i%2]
			t.Run(fmt.Sprint(onFull, " with ", names, " keys a policy"), func(t *testing.T) {
				random := rand.New(rand.NewPCG(uint64(i), uint64(names)))
				w := newTwins(t, tollbar.TableOptions{Capacity: 3000, OnFull: onFull}, twinPolicies...)
				w.same(t, "new tables")
				for i := range operations / 8 {
					now += random.Uint64N(2 * uint64(time.Second) / uint64(names))
					at := now - min(now, random.Uint64N(3)*random.Uint64N(100_000_000))
					number := uint32(random.IntN(len(twinPolicies)))
					key := fmt.Sprint([]string{"key ", "a key of more than sixteen bytes "}[random.IntN(2)], random.IntN(names))
					if len(w.overridden) != 0 && random.IntN(10) == 0 {
						own := w.overridden[random.IntN(len(w.overridden))]
						number, key = own.number, own.key
					}
					w.step(t, random, number, key, at)
					if len(w.charged) != 0 && random.IntN(2) == 0 {
						w.giveBack(t, now)
					}
					if i%(operations/80) == 0 {
						w.same(t, fmt.Sprint("request ", i))
					}
					if random.IntN(operations/800) == 0 {
						w.change(t, random, number, key)
					}
				}
				w.same(t, "the end")
				if w.back < uint64(operations/1000) {
					t.Errorf("%d permits came back", w.back)
				}
				for number := range twinPolicies {
					c, _ := w.c.Under(uint32(number)).Counts()
					g, err := w.admin.Under(uint32(number)).Counts()
					if err != nil || c != g {
						t.Errorf("policy %d: %+v decisions, in C %+v (%v)", number, g, c, err)
					}
				}
				health, err := w.admin.Validate()
				if err != nil {
					t.Errorf("%+v (%v)", health, err)
				}
				t.Logf("%+v", health)
			})
		}
	}
}

// change changes a policy, an override or an exemption in both tables, by C.
func (w *twins) change(t *testing.T, random *rand.Rand, number uint32, key string) {
	t.Helper()
	policy := twinPolicies[random.IntN(len(twinPolicies))]
	if random.IntN(4) == 0 {
		policy = []string{"0/s", "40/forever", "60/forever", "1000/s burst 900", "1/h burst 7", "5/s burst 4 ban 20s after 3", "12/s algo fixed-window", "5/s algo fixed-window anchor first",
			"4/s algo weighted-window", "8/s algo interval anchor first", "3/s burst 9 algo interval", "9/s burst 2 borrow init 1"}[random.IntN(12)]
	}
	keep := []tollbar.Keep{tollbar.KeepCount, tollbar.KeepCount, tollbar.KeepTime, tollbar.KeepTime, tollbar.KeepReset}[random.IntN(5)]
	// A receipt of a former policy gives nothing back, and the call that C has only for receipts is the one that Go makes for any charge.
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

// Keys of all lengths hash as in C: both tables have the same slots.
func TestGoHashesKeysAsC(t *testing.T) {
	w := newTwins(t, tollbar.TableOptions{Capacity: 3000}, "10/s", "5/s")
	random := rand.New(rand.NewPCG(3, 4))
	for length := range 700 {
		key := make([]byte, length+1)
		for i := range key {
			key[i] = byte(random.Uint32())
		}
		for number := range uint32(2) {
			place := placeOf(t, w.g, number, string(key))
			if verdict, code := place.Take(1e17, 1); code != 0 || verdict != core.Allowed {
				t.Fatal(verdict, code)
			}
			if d, err := w.c.Under(number).CheckAt(string(key), 1e17, 1); err != nil || !d.Allowed() {
				t.Fatal(d, err)
			}
		}
		w.same(t, fmt.Sprint("length ", length+1))
	}
}

// one is a table in one file, in C and in Go.
func one(t *testing.T, options tollbar.TableOptions, texts ...string) (*tollbar.Table, *shared.Table, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "table")
	c, err := tollbar.OpenTable(path, options, texts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	g, wrong := shared.Open(path, false)
	if wrong != nil {
		t.Fatalf("%+v", wrong)
	}
	t.Cleanup(g.Free)
	return c, g, path
}

// hammer takes permits of all keys in C and in Go at the same time, with a clock that stands still, and returns the number of permits of each key. It
// calls meanwhile again and again until the end, 50 times at least.
func hammer(t *testing.T, c *tollbar.Table, g *shared.Table, keys, requests int, meanwhile func(n int)) []uint64 {
	t.Helper()
	const now = uint64(1e17)
	admitted := make([]atomic.Uint64, keys)
	var rounds atomic.Int64
	if meanwhile == nil {
		rounds.Store(50)
	}
	var all, changing sync.WaitGroup
	for worker := range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			random := rand.New(rand.NewPCG(uint64(worker), 5))
			for n := 0; n < requests || rounds.Load() < 50; n++ {
				number := random.IntN(keys)
				key := fmt.Sprint("key ", number)
				if worker%2 == 0 {
					d, err := c.Under(0).CheckAt(key, now, 1)
					if err != nil {
						t.Error(err)
						return
					}
					if d.Allowed() {
						admitted[number].Add(1)
					}
					continue
				}
				place, _, found, code := g.Find(0, key)
				if !found {
					t.Error(code)
					return
				}
				verdict, code := place.Take(now, 1)
				if code != 0 {
					t.Error(code)
					return
				}
				if verdict == core.Allowed {
					admitted[number].Add(1)
				}
			}
		}()
	}
	var end atomic.Bool
	if meanwhile != nil {
		changing.Add(1)
		go func() {
			defer changing.Done()
			for n := 0; !end.Load(); n++ {
				meanwhile(n)
				rounds.Add(1)
			}
		}()
	}
	all.Wait()
	end.Store(true)
	changing.Wait()
	permits := make([]uint64, keys)
	for i := range permits {
		permits[i] = admitted[i].Load()
	}
	return permits
}

// C and Go take permits of the same keys in one table at the same time: each key gets exactly its burst.
func TestCAndGoShareKeysExactly(t *testing.T) {
	for _, policy := range []string{"100/day burst 50", "50/day algo fixed-window", "50/day algo weighted-window", "50/forever"} {
		c, g, _ := one(t, tollbar.TableOptions{Capacity: 1000}, policy)
		const keys = 40
		for key, permits := range hammer(t, c, g, keys, 30_000, nil) {
			if permits != 50 {
				t.Errorf("%s: key %d got %d permits", policy, key, permits)
			}
		}
		health, err := c.Validate()
		if err != nil || health.Live != keys || health.Duplicate != 0 || health.Unknown != 0 {
			t.Errorf("%s: %+v (%v)", policy, health, err)
		}
		counts, err := c.Under(0).Counts()
		if err != nil || counts.Allowed != 50*keys || counts.Allowed+counts.Denied != 4*30_000 {
			t.Errorf("%s: %+v (%v)", policy, counts, err)
		}
	}
}

// While C changes a table's policy, to one under which keys move to other slots among them, no key gets more than the bursts of both policies together,
// and none is in two slots.
func TestCChangesPoliciesWhileGoDecides(t *testing.T) {
	changes, moves, admitted := 0, uint64(0), uint64(0)
	for _, policies := range [][2]string{
		{"500/day", "300/s"}, {"500/s", "300/day algo fixed-window"}, {"500/h ban 1h after 90", "300/s ban 1s after 90"}, {"500/day", "0/s"},
		{"500/day algo interval", "300/min algo weighted-window"}, {"500/forever", "300/min"},
	} {
		c, g, _ := one(t, tollbar.TableOptions{Capacity: 1000}, policies[0])
		const keys = 60
		permits := hammer(t, c, g, keys, 40_000, func(n int) {
			if err := c.SetPolicy(0, policies[(n+1)%2]); err != nil {
				t.Error(err)
			}
			changes++
			runtime.Gosched()
		})
		for key, permits := range permits {
			admitted += permits
			if permits > 500+300 {
				t.Errorf("%v: key %d got %d permits", policies, key, permits)
			}
		}
		health, err := c.Validate()
		if err != nil || health.Duplicate != 0 || health.Unknown != 0 || health.Live > keys {
			t.Errorf("%v: %+v (%v)", policies, health, err)
		}
		stats, err := c.Stats()
		if err != nil {
			t.Error(err)
		}
		moves += stats.Vacated
	}
	if changes < 300 || moves < 100 || admitted < 1000 {
		t.Errorf("%d changes, %d keys left their slots, %d permits", changes, moves, admitted)
	}
	t.Logf("%d changes, %d keys left their slots, %d permits", changes, moves, admitted)
}

// While a thread of any process takes permits of a policy's keys in advance, no charge comes back to them, in Go as in C.
func TestNothingComesBackBesideCredit(t *testing.T) {
	_, g, path := one(t, tollbar.TableOptions{Capacity: 1000}, "100000/day", "100000/day")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	hot, err := tollbar.OpenTable(path, tollbar.TableOptions{HotKeys: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer hot.Close()
	for range 100 {
		if !hot.Allow("hot") {
			t.Fatal("refused")
		}
	}
	for number, want := range []uint64{0, 5} {
		place := placeOf(t, g, uint32(number), "ann")
		now := g.Now()
		if verdict, code := place.Take(now, 5); code != 0 || verdict != core.Allowed {
			t.Fatal(verdict, code)
		}
		if back, code := place.Return(core.Charge{At: now, Cost: 5}, func() uint64 { return now }); code != 0 || back != want {
			t.Errorf("policy %d: %d permits came back, not %d (%v)", number, back, want, code)
		}
	}
}

// The times of a table in C and in Go are one, and Go's is not ahead.
func TestGoReadsTheTimeAsC(t *testing.T) {
	for _, clock := range []tollbar.Clock{tollbar.ClockCounter, tollbar.ClockMonotonic, tollbar.ClockWall} {
		c, g, _ := one(t, tollbar.TableOptions{Capacity: 1000, Clock: clock}, "10/s")
		for range 1000 {
			before := g.Now()
			now, err := c.Now()
			after := g.Now()
			const most = uint64(time.Millisecond)
			if err != nil || now+most < before || after+most < now {
				t.Fatalf("clock %v: %d in C, between %d and %d (%v)", clock, now, before, after, err)
			}
		}
	}
}

// A file whose policy was changed to the one that the opener names is its table, whatever the change kept.
func TestAFileWithChangedPolicies(t *testing.T) {
	for _, keep := range []tollbar.Keep{tollbar.KeepCount, tollbar.KeepTime, tollbar.KeepReset} {
		w := newTwins(t, tollbar.TableOptions{Capacity: 1000}, "3/day")
		if err := w.admin.SetPolicyKeeping(0, "5/day", keep); err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]core.Code{"5/day": 0, "3/day": core.Code(tollbar.ErrOtherPolicies)} {
			seed := uint64(77)
			of := shared.Options{Capacity: 1000, Seed: &seed, Overrides: 1024}
			table, wrong := shared.OpenOrMake(w.files[1], shared.Access{Mode: 0o600}, &of, goPolicies(t, text))
			if wrong == nil {
				table.Free()
				wrong = &shared.Error{}
			}
			if wrong.Code != want {
				t.Errorf("%s: %+v", text, wrong)
			}
		}
	}
}

// A table with a policy that Go cannot step, or with one that C adds later.
func TestPoliciesOfCThatGoCannotStep(t *testing.T) {
	for _, text := range []string{"10/s; 100/h", "6/s algo sliding-window", "10/s algo sliding-log", "100/min curve ln", "100/s reserve low 20", "100/s burst 20 algo warm-up warm 2s"} {
		path := filepath.Join(t.TempDir(), "table")
		c, err := tollbar.OpenTable(path, tollbar.TableOptions{Capacity: 1000}, text)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if _, wrong := shared.Open(path, false); wrong == nil || wrong.Code != core.NeedsLibrary {
			t.Errorf("%s: %+v", text, wrong)
		}
	}
	c, g, _ := one(t, tollbar.TableOptions{Capacity: 1000}, "10/s")
	if number, err := c.AddPolicy("10/s; 100/h"); err != nil || number != 1 {
		t.Fatal(number, err)
	}
	for i := range 4000 {
		if _, err := c.Under(1).Check(fmt.Sprint(i), 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, found, code := g.Find(1, "ann"); found || code != core.NeedsLibrary {
		t.Error(found, code)
	}
	before, err := c.Stats()
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range 100 {
		place := placeOf(t, g, 0, fmt.Sprint("new ", i))
		switch verdict, code := place.Take(g.Now(), 1); {
		case code == core.NeedsLibrary && verdict == core.Denied:
			refused++
		case code != 0 || verdict != core.Allowed:
			t.Error(verdict, code)
		}
	}
	if stats, err := c.Stats(); err != nil || refused < 90 || stats.Inserted != before.Inserted+uint64(100-refused) {
		t.Errorf("%d refused, %+v (%v)", refused, stats, err)
	}
}

// Keys come from each policy to each other one with the words that C gives them, whatever the change keeps, in debt, in the middle of windows, banned, and
// after permits came back.
func TestGoConvertsAsC(t *testing.T) {
	policies := append([]string{
		"5/s algo fixed-window anchor first", "12/s algo fixed-window", "2/s algo weighted-window", "30/s algo weighted-window", "3/s algo interval", "8/s algo interval anchor first",
		"40/forever", "3/forever", "0/s", "9/s burst 2 borrow init 1", "5/s burst 4 ban 20s after 3", "1/h burst 7", "50/s burst 2 algo pacer",
	}, twinPolicies...)
	w := newTwins(t, tollbar.TableOptions{Capacity: 20_000}, "1/s")
	random := rand.New(rand.NewPCG(51, 52))
	now := uint64(1e17)
	set := func(text string, keep tollbar.Keep) {
		t.Helper()
		for _, table := range []*tollbar.Table{w.c, w.admin} {
			if err := table.SetPolicyKeeping(0, text, keep); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, old := range policies {
		for j, next := range policies {
			for keep := range tollbar.Keep(2) {
				set(old, tollbar.KeepCount)
				w.charged = nil
				pair := fmt.Sprint(old, " to ", next, " keeping ", keep)
				for range 8 {
					for key := range 4 {
						w.step(t, random, 0, fmt.Sprint(pair, key), now)
						if len(w.charged) != 0 && random.IntN(2) == 0 {
							w.giveBack(t, now)
						}
					}
					now += random.Uint64N(400_000_000)
				}
				set(next, keep)
				w.charged = nil
				for key := range 4 {
					w.step(t, random, 0, fmt.Sprint(pair, key), now)
				}
				if (i*len(policies)+j)%40 == 0 {
					w.same(t, pair)
				}
			}
		}
	}
	w.same(t, "the end")
}
