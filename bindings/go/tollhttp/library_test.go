//go:build cgo || tollbar_purego

package tollhttp_test

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/internal/prompt"
	"github.com/tollbar/tollbar/bindings/go/redis"
	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

func TestOtherDialects(t *testing.T) {
	prompt.Within(t, time.Second, func(t testing.TB) {
		limits := []tollhttp.Limit{{Name: "client", Table: table(t, "2/h")}}
		ask := get(t, tollhttp.Options{Limits: limits, Fields: tollbar.FieldRetryAfter | tollbar.FieldsLegacy | tollbar.FieldsDraft07})
		first := ask("192.0.2.1:1")
		expect(t, first, 200, "RateLimit-Policy", "2;w=3600", "RateLimit", "limit=2, remaining=1, reset=1800", "X-RateLimit-Remaining", "1")
		seen := tollhttp.Seen(first.Header)
		if !seen.HasLimit || seen.Limit != 2 || seen.Remaining != 1 || seen.Window != time.Hour || seen.MoreAfter != 30*time.Minute ||
			seen.RetryAfter != tollbar.Forever {
			t.Errorf("%+v", seen)
		}
		_, _ = ask("192.0.2.1:1"), ask("192.0.2.1:1")
		if seen := tollhttp.Seen(ask("192.0.2.1:1").Header); seen.RetryAfter != 30*time.Minute {
			t.Errorf("%+v", seen)
		}
		if seen := tollhttp.Seen(http.Header{"Server": {"x\r\nRetry-After: 9"}}); seen.RetryAfter != tollbar.Forever {
			t.Errorf("%+v", seen)
		}
	})
}

func TestALease(t *testing.T) {
	// Without a store a machine has its overdraft: an eighth of its share of the burst, which is 16
	// of 64 for one of 4 machines.
	lease, err := redis.NewLease("x", "60/min burst 64", redis.LeaseOptions{Nodes: 4, URL: "redis://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close(context.Background())
	ask := get(t, tollhttp.Options{Limits: []tollhttp.Limit{{Name: "x", Lease: lease}}})
	expect(t, ask("192.0.2.1:5"), 200, "RateLimit-Policy", `"x";q=60;w=60`, "RateLimit", `"x";r=1`)
	expect(t, ask("192.0.2.1:6"), 200, "RateLimit", `"x";r=0`)
	if refused := ask("192.0.2.1:5"); refused.StatusCode != 429 || refused.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v", refused.StatusCode, refused.Header)
	}
	expect(t, ask("192.0.2.2:5"), 200)
	for _, both := range []tollhttp.Limit{{Name: "x"}, {Name: "x", Lease: lease, Table: table(t, "1/s")}} {
		if _, err := tollhttp.New(tollhttp.Options{Limits: []tollhttp.Limit{both}}); !errors.Is(err, tollhttp.ErrNoLimit) {
			t.Error(err)
		}
	}
}

// A lease is charged last, and the tables get back what they were charged.
func TestALeaseRefusesBesideTables(t *testing.T) {
	lease, err := redis.NewLease("x", "60/min burst 64", redis.LeaseOptions{Nodes: 4, URL: "redis://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close(context.Background())
	bucket, window := table(t, "1/h burst 100"), table(t, "100/8760h algo fixed-window anchor first")
	for _, tables := range [][]*tollbar.Table{{bucket}, {window}, {bucket, window}} {
		limits := []tollhttp.Limit{{Name: "shared", Lease: lease, Key: everybody}}
		before := make([]uint64, len(tables))
		for i, one := range tables {
			before[i] = left(t, one, "all")
			limits = append(limits, tollhttp.Limit{Name: "own", Table: one, Key: everybody})
		}
		ask := get(t, tollhttp.Options{Limits: limits, NoHeaders: true})
		passed := uint64(0)
		for range 10 {
			if ask("192.0.2.1:1").StatusCode == 200 {
				passed++
			}
		}
		if passed == 10 {
			t.Error("the lease has refused none")
		}
		for i, one := range tables {
			// The permits that a limit refilled while a refused request held its charge stay
			// charged.
			if charged := before[i] - left(t, one, "all"); charged != passed && charged != passed+1 {
				t.Errorf("limit %d: %d were charged, and %d have passed", i, charged, passed)
			}
		}
	}
}

func TestChargeOfALeaseAndOfAClosedTable(t *testing.T) {
	_, err := tollhttp.New(tollhttp.Options{Limits: []tollhttp.Limit{{Name: "all", Lease: new(redis.Lease), Charge: failed}}})
	if !errors.Is(err, tollhttp.ErrCharge) {
		t.Error(err)
	}
	closing := table(t, "5/h")
	var failure error
	options := tollhttp.Options{
		Limits:       []tollhttp.Limit{{Name: "logins", Table: closing, Charge: func(*http.Request, tollhttp.Response) uint64 { return 1 }}},
		ChargeFailed: func(_ *http.Request, err error) { failure = err },
	}
	ask := handler(t, options, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { closing.Close() }))
	if r := ask(); r.StatusCode != 200 || !errors.Is(failure, tollbar.ErrClosed) {
		t.Error(r.StatusCode, failure)
	}
	if r := ask(); r.StatusCode != 500 {
		t.Error(r.StatusCode)
	}
}

// The table counts a refusal that the middleware finds by a peek.
func TestRefusalsBeforeACharge(t *testing.T) {
	logins := table(t, "2/min ban 1h")
	ask := handler(t, tollhttp.Options{Limits: []tollhttp.Limit{{Name: "logins", Table: logins, Charge: failed}}}, login)
	for range 5 {
		ask(with("guess"))
	}
	counts, err := logins.Under(0).Counts()
	if err != nil || counts.Denied != 3 {
		t.Errorf("%+v, %v", counts, err)
	}
}

// A request of an exempt key has no t, and a sliding log has the time at which its first entry
// ends.
func TestFieldsOfAnExemptKeyAndOfALog(t *testing.T) {
	log := tollhttp.Limit{Name: "c", Table: table(t, "2/min algo sliding-log")}
	expect(t, get(t, tollhttp.Options{Limits: []tollhttp.Limit{log}})("192.0.2.1:1"), 200, "RateLimit", `"c";r=1;t=60`)
	exempt := table(t, "2/min")
	address := netip.MustParseAddr("192.0.2.7")
	key, err := tollbar.AddrKey(address, 32, 64)
	if err == nil {
		err = exempt.Under(0).Exempt(key)
	}
	if err != nil {
		t.Fatal(err)
	}
	ask := get(t, tollhttp.Options{Limits: []tollhttp.Limit{{Name: "c", Table: exempt}}})
	for range 3 {
		expect(t, ask("192.0.2.7:1"), 200, "RateLimit", `"c";r=999999999999999`)
	}
}
