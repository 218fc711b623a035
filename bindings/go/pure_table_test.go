package tollbar_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

// These tests hold in all builds: with cgo, through purego and in Go alone.

func memory(t testing.TB, options tollbar.TableOptions, policies ...string) *tollbar.Table {
	t.Helper()
	if options.Capacity == 0 {
		options.Capacity = 1000
	}
	table, err := tollbar.NewTable(options, policies...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

// The golden vectors: keys of tables get the oracle's decisions.
func TestKeysGetTheOraclesDecisions(t *testing.T) {
	var all []struct {
		Policy string
		Steps  [][5]uint64
	}
	vectors(t, "decisions.json", &all)
	decided := 0
	for _, vector := range all {
		table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 100, Clock: tollbar.ClockWall}, vector.Policy)
		if errors.Is(err, tollbar.ErrNeedsLibrary) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		decided++
		for n, step := range vector.Steps {
			d, err := table.Under(0).CheckAt("key", step[0], step[1])
			if got := answer(d); err != nil || got != [3]uint64(step[2:]) {
				t.Errorf("%s, step %d: %v, not %v (%v)", vector.Policy, n, got, step[2:], err)
			}
		}
		table.Close()
	}
	if decided < 24 {
		t.Errorf("%d policies decided", decided)
	}
}

// Goroutines get exactly the limit of each key, and a policy's keys are not another's.
func TestGoroutinesShareKeysExactly(t *testing.T) {
	table := memory(t, tollbar.TableOptions{}, "100/day", "10/day")
	var admitted [2][20]atomic.Int64
	var all sync.WaitGroup
	const now = uint64(1e18)
	for range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range 20 * 30 * 2 {
				policy, key := i%2, i/2%20
				if d, err := table.Under(uint32(policy)).CheckAt(fmt.Sprint(key), now, 1); err == nil && d.Allowed() {
					admitted[policy][key].Add(1)
				}
			}
		}()
	}
	all.Wait()
	for policy, want := range []int64{100, 10} {
		for key := range admitted[policy] {
			if got := admitted[policy][key].Load(); got != want {
				t.Errorf("policy %d, key %d: %d admitted", policy, key, got)
			}
		}
	}
}

// A request without a key gets what the table's option says.
func TestTablesWithoutAKey(t *testing.T) {
	d, err := memory(t, tollbar.TableOptions{}, "1/day").Check("", 1)
	if err != nil || d.Verdict != tollbar.Denied || d.Reason != tollbar.ReasonMissingKey || d.RetryAfter != tollbar.Forever {
		t.Errorf("%+v (%v)", d, err)
	}
	passing := memory(t, tollbar.TableOptions{MissingKey: tollbar.MissingAllow}, "1/day")
	for range 3 {
		if d, err := passing.Check("", 1); err != nil || !d.Allowed() || d.Reason != tollbar.ReasonMissingKey {
			t.Errorf("%+v (%v)", d, err)
		}
	}
	if _, err := memory(t, tollbar.TableOptions{MissingKey: tollbar.MissingReport}, "1/day").Check("", 1); err != tollbar.ErrMissingKey {
		t.Error(err)
	}
}

// A request with several limits is charged to all of them or to none.
func TestSeveralLimitsAtOnce(t *testing.T) {
	table := memory(t, tollbar.TableOptions{}, "3/day", "2/day")
	everybody, err := tollbar.NewLimiter("4/day")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(user string) tollbar.Taken {
		t.Helper()
		each := make([]tollbar.Decision, 3)
		taken, err := tollbar.TakeManyEach(each, table.Limit(user, 1), table.Under(1).Limit(user, 1), everybody.Limit(1))
		if err != nil {
			t.Fatal(err)
		}
		return taken
	}
	for _, want := range []struct {
		user  string
		bound int
		ok    bool
	}{{"ann", 1, true}, {"ann", 1, true}, {"ann", 1, false}, {"bob", 1, true}, {"bob", 1, true}, {"eve", 2, false}} {
		if taken := ask(want.user); taken.Allowed() != want.ok || taken.Bound != want.bound {
			t.Errorf("%+v: %+v", want, taken)
		}
	}
	// The refusals have charged nothing.
	if d, err := table.Under(0).Peek("ann", 1); err != nil || d.Remaining != 1 {
		t.Errorf("%+v (%v)", d, err)
	}
	if d, err := table.Under(0).Peek("eve", 1); err != nil || d.Remaining != 3 {
		t.Errorf("%+v (%v)", d, err)
	}
	if _, err := tollbar.TakeMany(); !errors.Is(err, tollbar.ErrLimits) {
		t.Error(err)
	}
	if _, err := tollbar.TakeMany(tollbar.Limit{}); !errors.Is(err, tollbar.ErrLimits) {
		t.Error(err)
	}
	if _, err := tollbar.TakeMany(table.Under(2).Limit("ann", 1)); !errors.Is(err, tollbar.ErrNoSuchPolicy) {
		t.Error(err)
	}
	everybody.Close()
	if _, err := tollbar.TakeMany(everybody.Limit(1)); !errors.Is(err, tollbar.ErrClosed) {
		t.Error(err)
	}
}

// A booking of a key, its return, a wait that would take too long, and a charge after the work.
func TestKeysBookAndWait(t *testing.T) {
	keys := memory(t, tollbar.TableOptions{}, "1/min burst 1").Under(0)
	first, err := keys.Reserve("ann", 1, 0)
	if err != nil || first.Wait != 0 || first.Cost != 1 {
		t.Fatalf("%+v (%v)", first, err)
	}
	second, err := keys.Reserve("ann", 1, tollbar.Forever)
	if err != nil || second.Wait <= 50*time.Second || second.Wait > time.Minute {
		t.Fatalf("%+v (%v)", second, err)
	}
	if back, err := keys.Cancel("ann", second); err != nil || back != 1 {
		t.Errorf("%d (%v)", back, err)
	}
	soon, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := keys.Wait(soon, "ann"); !errors.Is(err, tollbar.ErrDenied) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := keys.Wait(soon, "bob"); err != nil {
		t.Error(err)
	}
	if rest, err := keys.Charge("eve", 3); err != nil || rest != 1 {
		t.Errorf("%d (%v)", rest, err)
	}
	d, err := keys.Check("eve", 1)
	if err != nil || d.Allowed() || d.RetryAfter < time.Minute {
		t.Errorf("%+v (%v)", d, err)
	}
	if more, err := keys.MoreAfter("eve", 1, d); err != nil || more != d.RetryAfter {
		t.Errorf("%s (%v)", more, err)
	}
	if had, err := keys.Reset("eve"); err != nil || !had {
		t.Errorf("%v (%v)", had, err)
	}
	if !keys.Allow("eve") || keys.Allow("eve") {
		t.Error("a key that was reset has not its burst")
	}
}

// A booking that another one was told to depart after gives nothing back.
func TestABookingInTheMiddleGivesNothingBack(t *testing.T) {
	keys := memory(t, tollbar.TableOptions{}, "1/min burst 2").Under(0)
	first, err := keys.Reserve("ann", 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Reserve("ann", 2, tollbar.Forever); err != nil {
		t.Fatal(err)
	}
	if back, err := keys.Cancel("ann", first); err != nil || back != 0 {
		t.Errorf("%d (%v)", back, err)
	}
}

// Close frees the memory: a call under way then would crash.
func TestCloseKeysAmidCalls(t *testing.T) {
	for range 50 {
		table := memory(t, tollbar.TableOptions{Capacity: 10}, "1000000000/s burst 1000000000")
		var calls, refused atomic.Int64
		var all sync.WaitGroup
		for i := range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				keys, key := table.Under(0), fmt.Sprint(i)
				for refused.Load() < 4 {
					calls.Add(1)
					if !keys.Allow(key) {
						refused.Add(1)
					}
					_, _ = tollbar.TakeMany(keys.Limit(key, 1))
					_, _ = keys.Peek(key, 1)
					_, _ = keys.TakeUpTo(key, 1)
					_, _ = keys.Charge(key, 1)
					booked, _ := keys.Reserve(key, 1, 0)
					_, _ = keys.Cancel(key, booked)
					_, _ = keys.Reset(key)
					_, _ = keys.MoreAfter(key, 1, tollbar.Decision{})
				}
			}()
		}
		for calls.Load() < 20 {
			time.Sleep(10 * time.Microsecond)
		}
		if err := table.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	}
}

// Wrong tables and closed tables have errors.
func TestTablesThatCannotBe(t *testing.T) {
	for want, make := range map[error]func() (*tollbar.Table, error){
		tollbar.ErrPolicyCount: func() (*tollbar.Table, error) { return tollbar.NewTable(tollbar.TableOptions{Capacity: 1}) },
		tollbar.ErrCapacity:    func() (*tollbar.Table, error) { return tollbar.NewTable(tollbar.TableOptions{}, "1/s") },
		tollbar.ErrSyntax:      func() (*tollbar.Table, error) { return tollbar.NewTable(tollbar.TableOptions{Capacity: 1}, "1/") },
		tollbar.ErrOutOfRange: func() (*tollbar.Table, error) {
			return tollbar.NewTable(tollbar.TableOptions{Capacity: 1, OnFull: 4}, "1/s")
		},
	} {
		if _, err := make(); !errors.Is(err, want) {
			t.Errorf("%v, not %v", err, want)
		}
	}
	table, err := tollbar.OpenTable(filepath.Join(t.TempDir(), "table"), tollbar.TableOptions{Capacity: 1}, "1/s")
	if err == nil {
		table.Close()
		if _, err := table.Check("ann", 1); err != tollbar.ErrClosed || table.Allow("ann") {
			t.Error(err)
		}
	} else if !errors.Is(err, tollbar.ErrNeedsLibrary) {
		t.Error(err)
	}
}

// An address's key has the bits that the caller asks for.
func TestAddressesAreKeys(t *testing.T) {
	key := func(text string, ipv4, ipv6 int) string {
		t.Helper()
		key, err := tollbar.AddrKey(netip.MustParseAddr(text), ipv4, ipv6)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	if got := key("192.0.2.1", 32, 64); got != "\x04\x20\xc0\x00\x02\x01" || got != key("::ffff:192.0.2.1", 32, 64) {
		t.Errorf("%q", got)
	}
	if got := key("192.0.2.255", 25, 64); got != "\x04\x19\xc0\x00\x02\x80" {
		t.Errorf("%q", got)
	}
	if got := key("2001:db8::9", 32, 64); got != "\x06\x40\x20\x01\x0d\xb8\x00\x00\x00\x00" || got != key("2001:db8::1%eth0", 32, 64) {
		t.Errorf("%q", got)
	}
	if _, err := tollbar.AddrKey(netip.Addr{}, 32, 64); err != tollbar.ErrAddress {
		t.Error(err)
	}
	// E9: the bits of the other family, too.
	if _, err := tollbar.AddrKey(netip.MustParseAddr("192.0.2.1"), 32, 129); err != tollbar.ErrOutOfRange {
		t.Error(err)
	}
	if _, err := tollbar.AddrKey(netip.MustParseAddr("192.0.2.1"), 33, 64); err != tollbar.ErrOutOfRange {
		t.Error(err)
	}
}
