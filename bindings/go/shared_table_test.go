//go:build (cgo || tollbar_purego) && linux && (amd64 || arm64)

package tollbar_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/internal/core"
	"github.com/tollbar/tollbar/bindings/go/internal/shared"
)

// Tables in Go (internal/shared), which a build without cgo uses, beside the C library: on the same requests, and in
// the same file.

// A million random requests for keys of twins, in tables that are full and in one with room, while policies change,
// and keys are exempt or have policies of their own: each decision is C's, and so is each byte of all slots.
func TestGoTablesAreCsToTheByte(t *testing.T) {
	operations := 1_000_000
	if testing.Short() {
		operations = 100_000
	}
	choices := []tollbar.OnFull{tollbar.OnFullEvictNearest, tollbar.OnFullInherit, tollbar.OnFullAllow, tollbar.OnFullDeny}
	for i, onFull := range choices {
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
					if len(w.booked) != 0 && random.IntN(3) == 0 {
						w.cancel(t, random, now)
					}
					if i%(operations/80) == 0 {
						w.same(t, fmt.Sprint("request ", i))
					}
					if random.IntN(operations/800) == 0 {
						w.change(t, random, number, key)
					}
				}
				w.same(t, "the end")
				many := uint64(operations / 1000)
				if w.back < many || w.bookings < many || w.whole < many/50 || w.began < many {
					t.Errorf("%d permits came back, %d bookings, %d of them whole, %d keys began again",
						w.back, w.bookings, w.whole, w.began)
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
				t.Logf("%+v; %d permits came back, %d bookings, %d of them whole, %d keys began again",
					health, w.back, w.bookings, w.whole, w.began)
			})
		}
	}
}

// Keys of all lengths hash as in C: both tables have the same slots.
// Go and C count the same numbers of refusals by a ban, of requests without a key and of requests for an exempt key,
// whichever call decides.
func TestGoCountsReasonsAsC(t *testing.T) {
	w := newTwins(t, tollbar.TableOptions{Capacity: 100}, "5/s burst 4 ban 2s after 2")
	for _, table := range []*tollbar.Table{w.c, w.admin} {
		if err := table.Under(0).Exempt("exempt"); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(41, 42))
	now, refused := uint64(1e17), 0
	for i := range 2000 {
		now += random.Uint64N(40_000_000)
		key := []string{"ann", "bob", "exempt", ""}[random.IntN(4)]
		place, decided, found, _ := w.g.Find(0, key)
		c, err := w.c.Under(0).CheckAt(key, now, 1)
		if err != nil {
			t.Fatal(err)
		}
		switch way := random.IntN(3); {
		case !found:
			w.g.CountDecided(0, decided)
		case way == 0:
			place.Take(now, 1)
		case way == 1:
			place.TakeFull(now, 1)
		default:
			core.TakeAll([]core.Part{{Limit: place, Now: now, Cost: 1, Clock: func() uint64 { return now }}})
		}
		if c.Reason == tollbar.ReasonBanned {
			refused++
		}
		w.same(t, fmt.Sprint("request ", i))
	}
	if refused < 100 || strings.Count(reasons(t, w.admin), " 0\n") != 2 {
		t.Errorf("%d refusals of bans; %s", refused, reasons(t, w.admin))
	}
	// The key is banned. TakeUpTo and Reserve return no reason, and count the ban all the same.
	for place, _, _, _ := w.g.Find(0, "ann"); ; {
		if d, _ := place.TakeFull(now, 1); d.Reason == uint32(tollbar.ReasonBanned) {
			place.TakeUpTo(now, 1)
			place.Reserve(now, 1, now)
			break
		}
	}
	for {
		if d, _ := w.c.Under(0).CheckAt("ann", now, 1); d.Reason == tollbar.ReasonBanned {
			w.c.Under(0).ReserveAt("ann", now, 1, 0)
			w.c.Under(0).ReserveAt("ann", now, 1, 0)
			break
		}
	}
	w.same(t, "the end")
}

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

// hammer takes permits of all keys in C and in Go at the same time, with a clock that stands still, and returns the
// number of permits of each key. It calls meanwhile again and again until the end, 50 times at least.
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
	policies := []string{"100/day burst 50", "50/day algo fixed-window", "50/day algo weighted-window", "50/forever"}
	for _, policy := range policies {
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

// While C changes a table's policy, to one under which keys move to other slots among them, no key gets more than the
// bursts of both policies together, and none is in two slots.
func TestCChangesPoliciesWhileGoDecides(t *testing.T) {
	changes, moves, admitted := 0, uint64(0), uint64(0)
	for _, policies := range [][2]string{
		{"500/day", "300/s"}, {"500/s", "300/day algo fixed-window"},
		{"500/h ban 1h after 90", "300/s ban 1s after 90"}, {"500/day", "0/s"},
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

// While a thread of any process takes permits of a policy's keys in advance, no charge comes back to them, in Go as
// in C.
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
		back, code := place.Return(core.Charge{At: now, Cost: 5}, func() uint64 { return now })
		if code != 0 || back != want {
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
	for _, text := range []string{
		"10/s; 100/h", "6/s algo sliding-window", "10/s algo sliding-log", "100/min curve ln", "100/s reserve low 20",
		"100/s burst 20 algo warm-up warm 2s",
	} {
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

// Keys come from each policy to each other one with the words that C gives them, whatever the change keeps, in debt,
// in the middle of windows, banned, and after permits came back.
func TestGoConvertsAsC(t *testing.T) {
	policies := append([]string{
		"5/s algo fixed-window anchor first", "12/s algo fixed-window", "2/s algo weighted-window",
		"30/s algo weighted-window", "3/s algo interval", "8/s algo interval anchor first",
		"40/forever", "3/forever", "0/s", "9/s burst 2 borrow init 1", "5/s burst 4 ban 20s after 3", "1/h burst 7",
		"50/s burst 2 algo pacer",
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
						if len(w.booked) != 0 && random.IntN(2) == 0 {
							w.cancel(t, random, now)
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
