package tollhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/internal/prompt"
	"github.com/tollbar/tollbar/bindings/go/tollhttp"
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
func get(t testing.TB, options tollhttp.Options, edit ...func(*http.Request)) func(from string) *http.Response {
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

func expect(t testing.TB, r *http.Response, status int, fields ...string) {
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
	prompt.Within(t, time.Second, func(t testing.TB) {
		ask := get(t, tollhttp.Options{Limits: []tollhttp.Limit{{Name: "client", Table: table(t, "2/min")}}})
		const policy = `"client";q=2;w=60`
		expect(t, ask("192.0.2.1:1"), 200, "RateLimit-Policy", policy, "RateLimit", `"client";r=1;t=30`, "Retry-After", "")
		expect(t, ask("192.0.2.1:2"), 200, "RateLimit-Policy", policy, "RateLimit", `"client";r=0;t=30`)
		expect(t, ask("192.0.2.1:3"), 429, "RateLimit-Policy", policy, "RateLimit", `"client";r=0;t=30`, "Retry-After", "30")
		expect(t, ask("192.0.2.2:1"), 200, "RateLimit", `"client";r=1;t=30`)
	})
}

func TestQuotas(t *testing.T) {
	for policy, want := range map[string]string{
		"10/100ms":               `"a\\\"b";q=100;w=1`,
		"3/1500ms":               `"a\\\"b";q=4;w=2`,
		"5/day burst 9":          `"a\\\"b";q=5;w=86400`,
		"1/100000d":              `"a\\\"b";q=1;w=8640000000`,
		"0/s":                    `"a\\\"b";q=0;w=1`,
		"10000000000/s burst 1":  `"a\\\"b";q=10000000000;w=1`,
		"9999999999/999999999ns": `"a\\\"b";q=10000000009;w=1`,
	} {
		ask := get(t, tollhttp.Options{Limits: []tollhttp.Limit{{Name: `a\"b`, Table: table(t, policy)}}})
		if got := ask("192.0.2.1:1").Header.Get("RateLimit-Policy"); got != want {
			t.Errorf("%s: %s, want %s", policy, got, want)
		}
	}
}

func TestRetryAfterIsEnough(t *testing.T) {
	var ask func(from string) *http.Response
	prompt.Within(t, time.Second, func(t testing.TB) {
		ask = get(t, tollhttp.Options{Limits: []tollhttp.Limit{{Name: "client", Table: table(t, "1/s")}}, NoHeaders: true})
		expect(t, ask("192.0.2.1:1"), 200, "RateLimit-Policy", "", "RateLimit", "")
		expect(t, ask("192.0.2.1:1"), 429, "RateLimit-Policy", "", "RateLimit", "", "Retry-After", "1")
	})
	time.Sleep(time.Second)
	expect(t, ask("192.0.2.1:1"), 200)
	// If waiting does not help, the answer has no Retry-After.
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
		{"[2001:db8::2]:1", 429}, {"[2001:db8:0:1::2]:1", 200}, {"@", 403}, {"", 403},
		// A5: chi's RealIP and gorilla's ProxyHeaders set an address without a port.
		{"192.0.2.1", 429}, {"192.0.2.3", 200}, {"192.0.2.3:1", 429}, {"2001:db8::3", 429}, {"[2001:db8::4]", 429},
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
	}{{"192.0.2.1", 200}, {"made up, 192.0.2.1 ", 429}, {"192.0.2.1, 192.0.2.9", 200}, {"unknown", 403}, {"", 403}, {"192.0.2.1,", 403},
		// A5: some proxies add a port.
		{"192.0.2.1:4711", 429}, {"192.0.2.4:4711", 200}, {"1.1.1.1, 192.0.2.4", 429}, {"[2001:db8::1]:443", 200}, {"2001:db8::2", 429}} {
		forwarded = c.forwarded
		expect(t, ask("198.51.100.1:1"), c.status)
	}

	client, err := tollhttp.Client("198.51.100.0/24", "unix:")
	if err != nil {
		t.Fatal(err)
	}
	ask = get(t, tollhttp.Options{Limits: []tollhttp.Limit{{Name: "client", Table: table(t, "1/day"), Key: client}}},
		func(r *http.Request) { r.Header.Set("X-Forwarded-For", forwarded) })
	for _, c := range []struct {
		from, forwarded string
		status          int
	}{
		{"198.51.100.1:1", "192.0.2.1:80, 198.51.100.2", 200}, {"@", "192.0.2.9, 192.0.2.1", 429}, {"192.0.2.1:1", "192.0.2.9", 429}, {"192.0.2.2:1", "192.0.2.9", 200},
		{"198.51.100.1:1", "192.0.2.9", 200}, {"@", "unknown", 403},
	} {
		forwarded = c.forwarded
		expect(t, ask(c.from), c.status)
	}
	if _, err := tollhttp.Client("10.0.0.1/8"); !errors.Is(err, tollbar.ErrAddress) {
		t.Error(err)
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

// t is the time until one more permit is left, not until all are: a client that waits for t=13
// beside `Retry-After: 1` waits 13 times too long.
func TestTIsUntilThereIsMore(t *testing.T) {
	prompt.Within(t, time.Second, func(t testing.TB) {
		limits := func(policy string, cost uint64) tollhttp.Options {
			return tollhttp.Options{Limits: []tollhttp.Limit{{Name: "c", Table: table(t, policy), Cost: func(*http.Request) uint64 { return cost }}}}
		}
		ask := get(t, limits("12/min burst 13", 1))
		for left := 12; left >= 0; left-- {
			expect(t, ask("192.0.2.1:1"), 200, "RateLimit", fmt.Sprintf(`"c";r=%d;t=5`, left), "Retry-After", "")
		}
		for range 2 {
			expect(t, ask("192.0.2.1:1"), 429, "RateLimit", `"c";r=0;t=5`, "Retry-After", "5")
		}
		// A request with a larger cost waits longer than t, after which one permit is left.
		ask = get(t, limits("12/min burst 13", 4))
		for _, left := range []string{"9", "5", "1"} {
			expect(t, ask("192.0.2.1:1"), 200, "RateLimit", `"c";r=`+left+`;t=5`)
		}
		expect(t, ask("192.0.2.1:1"), 429, "RateLimit", `"c";r=1;t=5`, "Retry-After", "15")
		for _, c := range []struct {
			policy string
			cost   uint64
			status int
			fields []string
		}{
			// A full bucket has no t, and neither has a limit of 0 or a cost above the burst.
			{"2/min", 0, 200, []string{"RateLimit", `"c";r=2`}},
			{"0/min", 1, 429, []string{"RateLimit", `"c";r=0`, "Retry-After", ""}},
			{"2/min", 3, 429, []string{"RateLimit", `"c";r=2`, "Retry-After", ""}},
			{"12/min borrow", 1, 200, []string{"RateLimit", `"c";r=0;t=5`}},
			{"12/min algo pacer", 1, 200, []string{"RateLimit", `"c";r=0;t=5`}},
			{"2/min algo fixed-window anchor first", 2, 200, []string{"RateLimit", `"c";r=0;t=60`}},
		} {
			expect(t, get(t, limits(c.policy, c.cost))("192.0.2.1:1"), c.status, c.fields...)
		}
	})
}

func TestRequestsWithoutAKey(t *testing.T) {
	prompt.Within(t, time.Second, func(t testing.TB) {
		nobody := func(*http.Request) (string, bool) { return "", true }
		for _, missing := range []tollbar.MissingKey{tollbar.MissingDeny, tollbar.MissingReport} {
			states, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 10, MissingKey: missing}, "1/day")
			if err != nil {
				t.Fatal(err)
			}
			defer states.Close()
			options := tollhttp.Options{Limits: []tollhttp.Limit{{Name: "c", Table: states, Key: nobody}}}
			r := get(t, options)("192.0.2.1:1")
			body, _ := io.ReadAll(r.Body)
			if want := "Forbidden: the request has no key that it could be counted by\n"; string(body) != want {
				t.Errorf("%q", body)
			}
			expect(t, r, 403, "RateLimit", "", "RateLimit-Policy", "", "Retry-After", "")
			options.Missing = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) })
			options.Failed = func(_ http.ResponseWriter, _ *http.Request, err error) { t.Error(err) }
			expect(t, get(t, options)("192.0.2.1:1"), 401)
		}
		passes, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 10, MissingKey: tollbar.MissingAllow}, "1/day")
		if err != nil {
			t.Fatal(err)
		}
		defer passes.Close()
		ask := get(t, tollhttp.Options{Limits: []tollhttp.Limit{
			{Name: "none", Table: passes, Key: nobody}, {Name: "client", Table: table(t, "1/day")},
		}})
		expect(t, ask("192.0.2.1:1"), 200, "RateLimit", `"client";r=0;t=86400`)
		expect(t, ask("192.0.2.1:1"), 429, "RateLimit", `"client";r=0;t=86400`)
	})
}

func TestSeveralLimits(t *testing.T) {
	prompt.Within(t, time.Second, func(t testing.TB) {
		both := table(t, "2/day", "3/day")
		all := func(*http.Request) (string, bool) { return "all", true }
		ask := get(t, tollhttp.Options{Limits: []tollhttp.Limit{{Name: "client", Table: both}, {Name: "all", Table: both, Policy: 1, Key: all}}})
		expect(t, ask("192.0.2.1:1"), 200, "RateLimit-Policy", `"client";q=2;w=86400, "all";q=3;w=86400`,
			"RateLimit", `"client";r=1;t=43200, "all";r=2;t=28800`)
		expect(t, ask("192.0.2.1:1"), 200)
		// The first refuses, and the second is not charged.
		expect(t, ask("192.0.2.1:1"), 429, "RateLimit-Policy", `"client";q=2;w=86400, "all";q=3;w=86400`,
			"RateLimit", `"client";r=0;t=43200, "all";r=1;t=28800`)
		expect(t, ask("192.0.2.2:1"), 200)
		// The second refuses, and the first is not charged.
		expect(t, ask("192.0.2.3:1"), 429, "RateLimit", `"client";r=2, "all";r=0;t=28800`)
	})
}

func TestExemptRefusedAndFailed(t *testing.T) {
	prompt.Within(t, time.Second, func(t testing.TB) {
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
	})
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
		// The header also has `RateLimit: "client";r=1;t=30` and, with a 429, `Retry-After: 30`.
		fmt.Println(answer.Code, answer.Header()["Ratelimit-Policy"])
	}
	// Output:
	// 404 ["client";q=2;w=60]
	// 404 ["client";q=2;w=60]
	// 429 ["client";q=2;w=60]
}
