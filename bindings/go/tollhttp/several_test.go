package tollhttp_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/internal/prompt"
	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

func everybody(*http.Request) (string, bool) { return "all", true }

// left returns the permits that the key has left.
func left(t testing.TB, table *tollbar.Table, key string) uint64 {
	t.Helper()
	decision, err := table.Check(key, 0)
	if err != nil {
		t.Fatal(err)
	}
	return decision.Remaining
}

// Many requests come at once. The slow limit is charged for those that pass, and for no other.
func TestAtOnceNoneIsChargedThatIsRefused(t *testing.T) {
	slow, fast := table(t, "1/h burst 100000"), table(t, "2000/s burst 1")
	limiter, err := tollhttp.New(tollhttp.Options{NoHeaders: true, Limits: []tollhttp.Limit{
		{Name: "slow", Table: slow, Key: everybody}, {Name: "fast", Table: fast, Key: everybody},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var passed atomic.Uint64
	handler := limiter.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed.Add(1) }))
	var all sync.WaitGroup
	for range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 20_000 {
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			}
		}()
	}
	all.Wait()
	charged, admitted := 100_000-left(t, slow, "all"), passed.Load()
	// A request that loses a race leaves a charge of microseconds, because the permit refills in an
	// hour.
	if charged != admitted && charged != admitted+1 {
		t.Errorf("%d were charged, and %d have passed", charged, admitted)
	}
	if admitted == 0 || admitted == 160_000 {
		t.Errorf("%d have passed", admitted)
	}
}

// A limit that is charged after the response refuses before the other limits are charged. If
// another limit refuses, it is not charged either.
func TestAChargeBesideOtherLimits(t *testing.T) {
	prompt.Within(t, time.Second, func(t testing.TB) {
		logins, requests := table(t, "1/day"), table(t, "3/day")
		always := func(*http.Request, tollhttp.Response) uint64 { return 1 }
		ask := get(t, tollhttp.Options{Limits: []tollhttp.Limit{
			{Name: "requests", Table: requests, Key: everybody}, {Name: "logins", Table: logins, Key: everybody, Charge: always},
		}})
		expect(t, ask("192.0.2.1:1"), 200)
		expect(t, ask("192.0.2.1:1"), 429, "RateLimit", `"logins";r=0;t=86400`)
		if n := left(t, requests, "all"); n != 2 {
			t.Errorf("%d are left", n)
		}
	})
}

// The handler that answers a refused request gets the limit that refused it.
func TestWhyARequestIsRefused(t *testing.T) {
	both := table(t, "5/day", "1/h ban 24h after 2")
	var told []tollhttp.Refusal
	ask := get(t, tollhttp.Options{
		Limits: []tollhttp.Limit{{Name: "day", Table: both, Key: everybody}, {Name: "hour", Table: both, Policy: 1, Key: everybody}},
		Refused: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			refusal, ok := tollhttp.RefusalOf(r)
			if !ok {
				t.Error("no refusal")
			}
			told = append(told, refusal)
			w.WriteHeader(http.StatusTooManyRequests)
		}),
	})
	expect(t, ask("192.0.2.1:1"), 200)
	expect(t, ask("192.0.2.1:1"), 429)
	expect(t, ask("192.0.2.1:1"), 429)
	for i, reason := range []tollbar.Reason{tollbar.ReasonRate, tollbar.ReasonBanned} {
		if told[i].Limit != "hour" || told[i].Decision.Reason != reason {
			t.Errorf("refusal %d: %+v", i, told[i])
		}
	}
	if _, ok := tollhttp.RefusalOf(httptest.NewRequest("GET", "/", nil)); ok {
		t.Error("a request that was not refused has a refusal")
	}
}

func TestTooManyLimits(t *testing.T) {
	one := tollhttp.Limit{Name: "one", Table: table(t, "1/s")}
	limits := make([]tollhttp.Limit, tollbar.LimitsMost+1)
	for i := range limits {
		limits[i] = one
	}
	if _, err := tollhttp.New(tollhttp.Options{Limits: limits}); !errors.Is(err, tollbar.ErrLimits) {
		t.Error(err)
	}
	if _, err := tollhttp.New(tollhttp.Options{Limits: limits[1:]}); err != nil {
		t.Error(err)
	}
}
