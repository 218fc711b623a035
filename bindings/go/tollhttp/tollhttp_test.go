package tollhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"tollbar"
	"tollbar/tollhttp"
)

func table(t testing.TB, policies ...string) *tollbar.Table {
	t.Helper()
	table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 100}, policies...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })

// get asks a handler once, from an address.
func get(t *testing.T, options tollhttp.Options, edit ...func(*http.Request)) func(from string) *http.Response {
	t.Helper()
	limiter, err := tollhttp.New(options)
	if err != nil {
		t.Fatal(err)
	}
	handler := limiter.Handler(hello)
	return func(from string) *http.Response {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = from
		for _, f := range edit {
			f(r)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Result()
	}
}

func expect(t *testing.T, r *http.Response, status int, fields ...string) {
	t.Helper()
	if r.StatusCode != status {
		t.Errorf("status %d, want %d", r.StatusCode, status)
	}
	for i := 0; i < len(fields); i += 2 {
		if got := r.Header.Get(fields[i]); got != fields[i+1] {
			t.Errorf("%s: %s, want %s", fields[i], got, fields[i+1])
		}
	}
	body, _ := io.ReadAll(r.Body)
	if (string(body) == "hello") != (status == 200) {
		t.Errorf("status %d with %q", r.StatusCode, body)
	}
}

func TestFields(t *testing.T) {
	ask := get(t, tollhttp.Options{Limits: []tollhttp.Limit{{Name: "client", Table: table(t, "2/min")}}})
	const policy = `"client";q=2;w=60`
	expect(t, ask("192.0.2.1:1"), 200, "RateLimit-Policy", policy, "RateLimit", `"client";r=1;t=30`, "Retry-After", "")
	expect(t, ask("192.0.2.1:2"), 200, "RateLimit-Policy", policy, "RateLimit", `"client";r=0;t=60`)
	expect(t, ask("192.0.2.1:3"), 429, "RateLimit-Policy", policy, "RateLimit", `"client";r=0;t=60`, "Retry-After", "30")
	expect(t, ask("192.0.2.2:1"), 200, "RateLimit", `"client";r=1;t=30`)
}

func TestQuotas(t *testing.T) {
	for policy, want := range map[string]string{
		"10/100ms":                  `"a\\\"b";q=100;w=1`,
		"3/1500ms":                  `"a\\\"b";q=4;w=2`,
		"5/day burst 9":             `"a\\\"b";q=5;w=86400`,
		"1/100000d":                 `"a\\\"b";q=1;w=8640000000`,
		"0/s":                       `"a\\\"b";q=0;w=1`,
		"10000000000/s burst 1":     `"a\\\"b";q=10000000000;w=1`,
		"9999999999/999999999ns":    `"a\\\"b";q=10000000009;w=1`,
		"100/100s algo sliding-log": `"a\\\"b";q=100;w=100`,
	} {
		ask := get(t, tollhttp.Options{Limits: []tollhttp.Limit{{Name: `a\"b`, Table: table(t, policy)}}})
		if got := ask("192.0.2.1:1").Header.Get("RateLimit-Policy"); got != want {
			t.Errorf("%s: %s, want %s", policy, got, want)
		}
	}
}

func TestRetryAfterIsEnough(t *testing.T) {
	ask := get(t, tollhttp.Options{Limits: []tollhttp.Limit{{Name: "client", Table: table(t, "1/s")}}, NoHeaders: true})
	expect(t, ask("192.0.2.1:1"), 200, "RateLimit-Policy", "", "RateLimit", "")
	r := ask("192.0.2.1:1")
	expect(t, r, 429, "RateLimit-Policy", "", "RateLimit", "")
	wait, err := strconv.Atoi(r.Header.Get("Retry-After"))
	if err != nil || wait != 1 {
		t.Fatal(wait, err)
	}
	time.Sleep(time.Duration(wait) * time.Second)
	expect(t, ask("192.0.2.1:1"), 200)
	// Where waiting does not help there is none.
	ask = get(t, tollhttp.Options{Limits: []tollhttp.Limit{{Name: "client", Table: table(t, "2/s"), Cost: func(*http.Request) uint64 { return 3 }}}})
	expect(t, ask("192.0.2.1:1"), 429, "Retry-After", "")
}

func TestWhoseRequestItIs(t *testing.T) {
	ask := get(t, tollhttp.Options{Limits: []tollhttp.Limit{{Name: "client", Table: table(t, "1/day")}}})
	for _, c := range []struct {
		from   string
		status int
	}{
		{"192.0.2.1:1", 200}, {"[::ffff:192.0.2.1]:1", 429}, {"192.0.2.2:1", 200}, {"[2001:db8::1]:1", 200},
		{"[2001:db8::2]:1", 429}, {"[2001:db8:0:1::2]:1", 200}, {"@", 429}, {"", 429},
	} {
		expect(t, ask(c.from), c.status)
	}

	forwarded := ""
	ask = get(t, tollhttp.Options{Limits: []tollhttp.Limit{{Name: "client", Table: table(t, "1/day"), Key: tollhttp.Header("X-Forwarded-For")}}},
		func(r *http.Request) {
			if forwarded != "" {
				r.Header.Set("X-Forwarded-For", forwarded)
			}
		})
	for _, c := range []struct {
		forwarded string
		status    int
	}{{"192.0.2.1", 200}, {"made up, 192.0.2.1 ", 429}, {"192.0.2.1, 192.0.2.9", 200}, {"unknown", 429}, {"", 429}, {"192.0.2.1,", 429}} {
		forwarded = c.forwarded
		expect(t, ask("198.51.100.1:1"), c.status)
	}

	user := func(r *http.Request) (string, bool) { return r.RemoteAddr, r.RemoteAddr != "guest" }
	ask = get(t, tollhttp.Options{Limits: []tollhttp.Limit{{Name: "user", Table: table(t, "1/day"), Key: user}}})
	for _, c := range []struct {
		from   string
		status int
	}{{"guest", 200}, {"guest", 200}, {"anna", 200}, {"anna", 429}} {
		expect(t, ask(c.from), c.status)
	}
	if fields := ask("guest").Header; fields.Get("RateLimit") != "" {
		t.Error("a field for one who is not counted")
	}
}

func TestSeveralLimits(t *testing.T) {
	both := table(t, "2/day", "3/day")
	all := func(*http.Request) (string, bool) { return "all", true }
	ask := get(t, tollhttp.Options{Limits: []tollhttp.Limit{{Name: "client", Table: both}, {Name: "all", Table: both, Policy: 1, Key: all}}})
	expect(t, ask("192.0.2.1:1"), 200, "RateLimit-Policy", `"client";q=2;w=86400, "all";q=3;w=86400`,
		"RateLimit", `"client";r=1;t=43200, "all";r=2;t=28800`)
	expect(t, ask("192.0.2.1:1"), 200)
	// The first refuses, and the second is not charged.
	expect(t, ask("192.0.2.1:1"), 429, "RateLimit-Policy", `"client";q=2;w=86400`, "RateLimit", `"client";r=0;t=86400`)
	expect(t, ask("192.0.2.2:1"), 200)
	expect(t, ask("192.0.2.3:1"), 429)
}

func TestExemptRefusedAndFailed(t *testing.T) {
	states := table(t, "1/day")
	options := tollhttp.Options{
		Limits:  []tollhttp.Limit{{Name: "client", Table: states}},
		Exempt:  func(r *http.Request) bool { return r.RemoteAddr == "192.0.2.7:1" },
		Refused: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }),
	}
	ask := get(t, options)
	for range 3 {
		expect(t, ask("192.0.2.7:1"), 200, "RateLimit", "")
	}
	expect(t, ask("192.0.2.1:1"), 200)
	expect(t, ask("192.0.2.1:1"), 503, "Retry-After", "86400")
	states.Close()
	expect(t, ask("192.0.2.1:1"), 500)
	options.Limits[0].Table = table(t, "1/day")
	var failed error
	options.Failed = func(w http.ResponseWriter, _ *http.Request, err error) { failed = err; w.WriteHeader(418) }
	ask = get(t, options)
	options.Limits[0].Table.Close()
	expect(t, ask("192.0.2.1:1"), 418)
	if !errors.Is(failed, tollbar.ErrClosed) {
		t.Error(failed)
	}
}

func TestALease(t *testing.T) {
	// Without a store a machine has its share: of a burst of 64 among 4 an eighth of 16.
	lease, err := tollbar.NewLease("x", "60/min burst 64", tollbar.LeaseOptions{Nodes: 4, URL: "redis://127.0.0.1:1"})
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

func TestWrongOptions(t *testing.T) {
	good := table(t, "1/s")
	for i, c := range []struct {
		limits []tollhttp.Limit
		want   error
	}{
		{nil, tollhttp.ErrNoLimit},
		{[]tollhttp.Limit{{Name: "a"}}, tollhttp.ErrNoLimit},
		{[]tollhttp.Limit{{Table: good}}, tollhttp.ErrName},
		{[]tollhttp.Limit{{Name: "naïve", Table: good}}, tollhttp.ErrName},
		{[]tollhttp.Limit{{Name: "a\n", Table: good}}, tollhttp.ErrName},
		{[]tollhttp.Limit{{Name: "a", Table: good, Policy: 3}}, tollbar.ErrNoSuchPolicy},
	} {
		if l, err := tollhttp.New(tollhttp.Options{Limits: c.limits}); !errors.Is(err, c.want) || l != nil {
			t.Errorf("case %d: %v", i, err)
		}
	}
}

func ExampleLimiter_Handler() {
	table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 1000}, "2/min")
	if err != nil {
		panic(err)
	}
	defer table.Close()
	limit, err := tollhttp.New(tollhttp.Options{Limits: []tollhttp.Limit{{Name: "client", Table: table}}})
	if err != nil {
		panic(err)
	}
	handler := limit.Handler(http.NotFoundHandler())
	for range 3 {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
		fmt.Println(answer.Code, answer.Header()["Ratelimit"], answer.Header()["Retry-After"])
	}
	// Output:
	// 404 ["client";r=1;t=30] []
	// 404 ["client";r=0;t=60] []
	// 429 ["client";r=0;t=60] [30]
}
