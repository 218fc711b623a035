//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

func mustTable(t testing.TB, options tollbar.TableOptions, policies ...string) *tollbar.Table {
	t.Helper()
	table, err := tollbar.NewTable(options, policies...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

// A hundred times the capacity in new keys. A limited key is decided as by a limiter of its own while
// the clock goes on, and while it stands still and new keys take places from each other.
func TestAFloodTakesNoPlaceOfALimitedKey(t *testing.T) {
	table := mustTable(t, tollbar.TableOptions{Capacity: 1000}, "20/h burst 50", "1/s burst 1")
	alone, err := tollbar.NewLimiter("20/h burst 50")
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	before, err := table.Stats()
	if err != nil {
		t.Fatal(err)
	}
	limited, others := table.Under(0), table.Under(1)
	now, taken := uint64(24*time.Hour), 0
	for key := range 200_000 {
		if d, err := others.CheckAt(strconv.Itoa(key), now, 1); err != nil || !d.Allowed() {
			t.Fatal(key, d, err)
		}
		if key < 100_000 {
			now += uint64(5 * time.Millisecond)
		}
		if key%100 == 0 {
			got, err := limited.CheckAt("limited", now, 1)
			want, err2 := alone.CheckAt(now, 1)
			if err != nil || err2 != nil || got.Allowed() != want.Allowed() {
				t.Fatal(key, got, want, err, err2)
			}
			if got.Allowed() {
				taken++
			}
		}
	}
	after, err := table.Stats()
	if err != nil || after.Bytes != before.Bytes || after.Evicted < 50_000 || taken != 50+500/180 {
		t.Errorf("%+v, %d taken, %v", after, taken, err)
	}
}

func TestTenRefusalsRaiseOneCountByTen(t *testing.T) {
	table := mustTable(t, tollbar.TableOptions{Capacity: 100}, "3/day")
	for range 13 {
		table.Allow("a")
	}
	if s, err := table.Stats(); err != nil || s.Allowed != 3 || s.Denied != 10 || s.Never != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestCountsAreByPolicy(t *testing.T) {
	table := mustTable(t, tollbar.TableOptions{Capacity: 100}, "3/day", "5/day")
	for range 13 {
		table.Allow("a")
	}
	for range 2 {
		table.Under(1).AllowN("a", 6)
	}
	for policy, want := range []tollbar.Counts{{Allowed: 3, Denied: 10}, {Never: 2}} {
		if got, err := table.Under(uint32(policy)).Counts(); err != nil || got != want {
			t.Errorf("policy %d: %+v, %v", policy, got, err)
		}
	}
	if _, err := table.Under(2).Counts(); !errors.Is(err, tollbar.ErrNoSuchPolicy) {
		t.Error(err)
	}
}

func TestEachKeyHasItsOwn(t *testing.T) {
	table := mustTable(t, tollbar.TableOptions{Capacity: 100}, "2/day", "1/day")
	for i, want := range []bool{true, true, false} {
		if a, b := table.Allow("a"), table.Allow("b\x00\xff"); a != want || b != want {
			t.Errorf("call %d: %v, %v", i, a, b)
		}
	}
	if !table.Under(1).Allow("a") || table.Under(1).Allow("a") {
		t.Error("the other policy")
	}
	if !table.AllowN("c", 2) || table.AllowN("c", 1) {
		t.Error("AllowN")
	}
	d, err := table.Check("d", 1)
	if err != nil || !d.Allowed() || d.Remaining != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err = table.Under(0).Peek("d", 3); err != nil || d.Verdict != tollbar.Never {
		t.Errorf("%+v, %v", d, err)
	}
	if taken, err := table.Under(0).TakeUpTo("d", 9); taken != 1 || err != nil {
		t.Errorf("%d, %v", taken, err)
	}
	if d, err := table.Under(7).Check("d", 1); d.Allowed() || !errors.Is(err, tollbar.ErrNoSuchPolicy) || table.Under(7).Allow("d") {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestTimesOfTheCaller(t *testing.T) {
	keys := mustTable(t, tollbar.TableOptions{Capacity: 10}, "10/s burst 1").Under(0)
	for _, c := range []struct {
		now     uint64
		verdict tollbar.Verdict
		retry   time.Duration
	}{{5e9, tollbar.Allowed, 0}, {5e9 + 1, tollbar.Denied, 99999999}, {5.1e9 - 1, tollbar.Denied, 1}, {5.1e9, tollbar.Allowed, 0}} {
		if d, err := keys.CheckAt("key", c.now, 1); err != nil || d.Verdict != c.verdict || d.RetryAfter != c.retry {
			t.Errorf("at %d: %+v, %v", c.now, d, err)
		}
	}
}

func TestEmptyKeys(t *testing.T) {
	for missing, want := range map[tollbar.MissingKey]bool{tollbar.MissingDeny: false, tollbar.MissingAllow: true, tollbar.MissingReport: false} {
		table := mustTable(t, tollbar.TableOptions{Capacity: 10, MissingKey: missing}, "1/day")
		for range 2 {
			if table.Allow("") != want {
				t.Errorf("%d: %v", missing, !want)
			}
		}
		if _, err := table.Check("", 1); errors.Is(err, tollbar.ErrMissingKey) != (missing == tollbar.MissingReport) {
			t.Errorf("%d: %v", missing, err)
		}
	}
}

func TestExemptKeysAndResets(t *testing.T) {
	keys := mustTable(t, tollbar.TableOptions{Capacity: 10}, "1/day").Under(0)
	if err := keys.Exempt("probe"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if !keys.Allow("probe") {
			t.Error("an exempt key is refused")
		}
	}
	if was, err := keys.Unexempt("probe"); !was || err != nil {
		t.Error(was, err)
	}
	if was, err := keys.Unexempt("probe"); was || err != nil {
		t.Error(was, err)
	}
	if !keys.Allow("probe") || keys.Allow("probe") {
		t.Error("exempt for ever")
	}
	if done, err := keys.Reset("probe"); !done || err != nil || !keys.Allow("probe") {
		t.Error(done, err)
	}
}

// A batch says what the same calls alone say, across the chunks in which C gets it.
func TestABatchIsItsRequestsInTurn(t *testing.T) {
	policies := []string{"3/day", "100/s burst 5", "10/s burst 2"}
	a, b := mustTable(t, tollbar.TableOptions{Capacity: 500}, policies...), mustTable(t, tollbar.TableOptions{Capacity: 500}, policies...)
	random := rand.New(rand.NewPCG(1, 1))
	var batch tollbar.Batch
	now := uint64(1e12)
	for _, size := range []int{0, 1, 64, 127, 128, 129, 500, 3} {
		batch.Clear()
		var want []tollbar.Verdict
		for range size {
			key := strings.Repeat("k", 20*random.IntN(2)) + fmt.Sprint(random.IntN(12))
			policy, n := uint32(random.IntN(4)), random.Uint64N(7)
			batch.AddN(policy, key, n)
			d, err := a.Under(policy).CheckAt(key, now, n)
			var code tollbar.Code
			if errors.As(err, &code) {
				d.Verdict = tollbar.Verdict(code)
			}
			want = append(want, d.Verdict)
		}
		if batch.Len() != size {
			t.Errorf("%d of %d", batch.Len(), size)
		}
		if err := b.CheckManyAt(now, &batch); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(batch.Verdicts()); got != fmt.Sprint(append([]tollbar.Verdict{}, want...)) {
			t.Errorf("%d: %s, alone %v", size, got, want)
		}
		now += 3e8
	}
	batch.Clear()
	batch.Add("by the clock")
	batch.Add("")
	if batch.Allowed(0) {
		t.Error("allowed before it is decided")
	}
	if err := b.CheckMany(&batch); err != nil || !batch.Allowed(0) || batch.Allowed(1) || batch.Allowed(2) {
		t.Errorf("%v, %v", batch.Verdicts(), err)
	}
}

func TestEntriesStatsAndHealth(t *testing.T) {
	table := mustTable(t, tollbar.TableOptions{Capacity: 1000}, "2/day", "1/10ms")
	want := map[uint64]string{}
	for i := range 300 {
		key := fmt.Sprint("key ", i)
		hash, err := table.Under(0).Hash(key)
		if err != nil || !table.Allow(key) {
			t.Fatal(key, err)
		}
		want[hash] = key
	}
	table.Under(1).Allow("soon over")
	seen := 0
	for e := range table.Entries() {
		if e.Policy == 1 {
			continue
		}
		if _, ok := want[e.Hash]; !ok || e.Remaining != 1 || e.ResetAfter < 11*time.Hour || e.State == 0 {
			t.Errorf("%+v", e)
		}
		seen++
		if seen == 300 {
			break
		}
	}
	if seen != 300 {
		t.Errorf("%d entries", seen)
	}
	stats, err := table.Stats()
	if err != nil || stats.Policies != 2 || stats.Capacity != 1000 || stats.Keys != 301 || stats.Inserted != 301 || stats.Bytes < 20000 {
		t.Errorf("%+v, %v", stats, err)
	}
	time.Sleep(30 * time.Millisecond)
	health, err := table.Validate()
	if err != nil || health.Live != 300 || health.Expired != 1 {
		t.Errorf("%+v, %v", health, err)
	}
	swept, err := table.Sweep()
	if err != nil || swept != (tollbar.Swept{Live: 300, Vacated: 1}) {
		t.Errorf("%+v, %v", swept, err)
	}
	if _, err := table.Repair(); err != nil {
		t.Error(err)
	}
}

func TestPoliciesOfATableInUse(t *testing.T) {
	table := mustTable(t, tollbar.TableOptions{Capacity: 10}, "1/day")
	number, err := table.AddPolicy("5/day")
	if err != nil || number != 1 || !table.Under(number).AllowN("key", 5) {
		t.Fatal(number, err)
	}
	for want, policy := range []string{"1/day", "5/day", "7/day", "7/day"} {
		if number, err := table.FindOrAddPolicy(policy); err != nil || number != uint32(min(want, 2)) {
			t.Error(policy, number, err)
		}
	}
	if err := table.SetPolicy(0, "10/day"); err != nil || !table.AllowN("key", 10) {
		t.Error(err)
	}
	if policy, err := table.Policy(0); err != nil || policy.String() != "10/day" {
		t.Error(policy, err)
	}
	if _, err := table.Policy(9); !errors.Is(err, tollbar.ErrNoSuchPolicy) {
		t.Error(err)
	}
	if err := table.SetPolicy(9, "10/day"); !errors.Is(err, tollbar.ErrNoSuchPolicy) {
		t.Error(err)
	}
	var refused *tollbar.PolicyError
	if _, err := table.AddPolicy("10/dy"); !errors.As(err, &refused) || refused.Column != 4 {
		t.Error(err)
	}
	if err := table.SetPolicy(0, "10"); !errors.As(err, &refused) || refused.Column != 3 {
		t.Error(err)
	}
}

func TestWhatCannotBeATable(t *testing.T) {
	for i, c := range []struct {
		options  tollbar.TableOptions
		policies []string
		code     tollbar.Code
	}{
		{tollbar.TableOptions{}, []string{"1/s"}, tollbar.ErrCapacity},
		{tollbar.TableOptions{Capacity: 1 << 60}, []string{"1/s"}, tollbar.ErrCapacity},
		{tollbar.TableOptions{Capacity: 1}, nil, tollbar.ErrPolicyCount},
		{tollbar.TableOptions{Capacity: 1}, make([]string, 129), tollbar.ErrSyntax},
		{tollbar.TableOptions{Capacity: 1}, strings.Split(strings.Repeat("1/s,", 128)+"1/s", ","), tollbar.ErrPolicyCount},
		{tollbar.TableOptions{Capacity: 1, OnFull: 9}, []string{"1/s"}, tollbar.ErrOutOfRange},
		{tollbar.TableOptions{Capacity: 1}, []string{"1/s", "9/s algo sliding-log"}, tollbar.ErrMixedPolicies},
	} {
		table, err := tollbar.NewTable(c.options, c.policies...)
		if !errors.Is(err, c.code) || table != nil {
			t.Errorf("case %d: %v", i, err)
		}
	}
}

func TestReasons(t *testing.T) {
	table := mustTable(t, tollbar.TableOptions{Capacity: 1, OnFull: tollbar.OnFullAllow}, "1/h")
	table.Under(0).Exempt("us")
	for i := range 40000 {
		table.Allow(strconv.Itoa(i))
	}
	for key, want := range map[string]tollbar.Reason{"us": tollbar.ReasonExempt, "them": tollbar.ReasonTableFull, "": tollbar.ReasonMissingKey} {
		if d, err := table.Check(key, 1); err != nil || d.Reason != want {
			t.Error(key, d, err)
		}
	}
	if tollbar.ReasonTableFull.String() != "table full" || tollbar.Reason(99).String() != "unknown reason" {
		t.Error(tollbar.ReasonTableFull)
	}
}

func TestCopyIntoALargerTable(t *testing.T) {
	seed := uint64(3)
	small := mustTable(t, tollbar.TableOptions{Capacity: 10, Seed: &seed}, "1/day")
	large := mustTable(t, tollbar.TableOptions{Capacity: 20000, Seed: &seed}, "1/day")
	small.Allow("key")
	if copied, lost, err := large.CopyFrom(small); copied != 1 || lost != 0 || err != nil || large.Allow("key") {
		t.Error(copied, lost, err)
	}
	other := mustTable(t, tollbar.TableOptions{Capacity: 10}, "1/day")
	if _, _, err := large.CopyFrom(other); !errors.Is(err, tollbar.ErrOtherOptions) {
		t.Error(err)
	}
	other.Close()
	if _, _, err := large.CopyFrom(other); !errors.Is(err, tollbar.ErrClosed) {
		t.Error(err)
	}
	if _, _, err := other.CopyFrom(large); !errors.Is(err, tollbar.ErrClosed) {
		t.Error(err)
	}
}

func TestAddressesAsKeys(t *testing.T) {
	key := func(address string) string {
		key, err := tollbar.AddrKey(netip.MustParseAddr(address), 32, 64)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	if key("2001:db8::1") != key("2001:db8::ffff:1%eth0") || key("2001:db8::1") == key("2001:db8:0:1::1") {
		t.Error("not by /64")
	}
	if key("192.0.2.1") != key("::ffff:192.0.2.1") || key("192.0.2.1") == key("192.0.2.2") {
		t.Error("not by the IPv4 address")
	}
	if _, err := tollbar.AddrKey(netip.Addr{}, 32, 64); !errors.Is(err, tollbar.ErrAddress) {
		t.Error(err)
	}
	for _, bits := range [][2]int{{33, 129}, {-1, -1}} {
		for _, address := range []string{"192.0.2.1", "2001:db8::1"} {
			if _, err := tollbar.AddrKey(netip.MustParseAddr(address), bits[0], bits[1]); !errors.Is(err, tollbar.ErrOutOfRange) {
				t.Error(address, bits, err)
			}
		}
	}
}

func TestTableAfterClose(t *testing.T) {
	table := mustTable(t, tollbar.TableOptions{Capacity: 10}, "1/s")
	for range 2 {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	}
	keys := table.Under(0)
	if table.Allow("key") || keys.AllowN("key", 1) {
		t.Error("allowed")
	}
	var batch tollbar.Batch
	batch.Add("key")
	for i, f := range []func() error{
		func() error { _, err := table.Check("key", 1); return err },
		func() error { _, err := keys.CheckAt("key", 1, 1); return err },
		func() error { _, err := keys.Peek("key", 1); return err },
		func() error { _, err := keys.TakeUpTo("key", 1); return err },
		func() error { _, err := keys.Reset("key"); return err },
		func() error { return keys.Exempt("key") },
		func() error { _, err := keys.Unexempt("key"); return err },
		func() error { _, err := keys.Hash("key"); return err },
		func() error { return table.CheckMany(&batch) },
		func() error { return table.CheckManyAt(1, &batch) },
		func() error { _, err := table.Now(); return err },
		func() error { _, err := table.Sweep(); return err },
		func() error { _, err := table.AddPolicy("1/s"); return err },
		func() error { _, err := table.FindOrAddPolicy("1/s"); return err },
		func() error { return table.SetPolicy(0, "1/s") },
		func() error { _, err := table.Policy(0); return err },
		func() error { _, err := table.Stats(); return err },
		func() error { return table.Sync() },
		func() error { _, err := table.Validate(); return err },
		func() error { _, err := table.Repair(); return err },
	} {
		if err := f(); !errors.Is(err, tollbar.ErrClosed) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	for range table.Entries() {
		t.Error("an entry")
	}
	if batch.Allowed(0) {
		t.Error("a batch that failed says allowed")
	}
}

// Close unmaps the memory: a call under way then would crash.
func TestCloseATableAmidCalls(t *testing.T) {
	for range 100 {
		table := mustTable(t, tollbar.TableOptions{Capacity: 10}, "1000000000/s burst 1000000000")
		var calls, refused atomic.Int64
		var all sync.WaitGroup
		for i := range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				key := fmt.Sprint(i)
				var batch tollbar.Batch
				for refused.Load() < 4 {
					batch.Clear()
					batch.Add(key)
					calls.Add(1)
					if !table.Allow(key) {
						refused.Add(1)
					}
					_ = table.CheckMany(&batch)
					for range table.Entries() {
					}
				}
			}()
		}
		for calls.Load() < 20 {
			runtime.Gosched()
		}
		table.Close()
		all.Wait()
	}
}

// A raised rate shortens the wait, unless the time is to be kept.
func TestAChangedPolicyKeepsPermitsOrTime(t *testing.T) {
	for keep, most := range map[tollbar.Keep]time.Duration{tollbar.KeepCount: time.Millisecond, tollbar.KeepTime: time.Minute} {
		table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 10}, "3/min")
		if err != nil {
			t.Fatal(err)
		}
		const now = uint64(1e12)
		keys := table.Under(0)
		for range 3 {
			if decision, err := keys.CheckAt("k", now, 1); err != nil || !decision.Allowed() {
				t.Fatalf("%+v, %v", decision, err)
			}
		}
		if err := table.SetPolicyKeeping(0, "1000/s burst 1000", keep); err != nil {
			t.Fatal(err)
		}
		decision, err := keys.CheckAt("k", now, 1)
		if err != nil || decision.Allowed() || decision.RetryAfter > most || decision.RetryAfter < most*9/10 {
			t.Fatalf("%d: %+v, %v", keep, decision, err)
		}
		table.Close()
	}
}
