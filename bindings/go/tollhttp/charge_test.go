package tollhttp_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

func failed(_ *http.Request, response tollhttp.Response) uint64 {
	if response.Status == http.StatusUnauthorized {
		return 1
	}
	return 0
}

// login answers 401 unless the password is right.
var login = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if _, password, _ := r.BasicAuth(); password != "secret" {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	_, _ = io.WriteString(w, "hello")
})

func handler(t *testing.T, options tollhttp.Options, next http.Handler) func(edit ...func(*http.Request)) *http.Response {
	t.Helper()
	limiter, err := tollhttp.New(options)
	if err != nil {
		t.Fatal(err)
	}
	handler := limiter.Handler(next)
	return func(edit ...func(*http.Request)) *http.Response {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "192.0.2.1:5"
		for _, f := range edit {
			f(r)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Result()
	}
}

func with(password string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth("ann", password) }
}

// Five wrong passwords ban, and right ones cost nothing.
func TestWrongPasswordsBan(t *testing.T) {
	logins := table(t, "5/min ban 1h")
	ask := handler(t, tollhttp.Options{Limits: []tollhttp.Limit{{Name: "logins", Table: logins, Charge: failed}}}, login)
	for range 20 {
		if r := ask(with("secret")); r.StatusCode != 200 {
			t.Fatal(r.StatusCode)
		}
	}
	for n := range 8 {
		want := 401
		if n >= 5 {
			want = 429
		}
		if r := ask(with("guess")); r.StatusCode != want {
			t.Errorf("try %d: %d, want %d", n, r.StatusCode, want)
		}
	}
	r := ask(with("secret"))
	if after, _ := strconv.Atoi(r.Header.Get("Retry-After")); r.StatusCode != 429 || after < 3000 || after > 3600 {
		t.Errorf("%d, %v", r.StatusCode, r.Header)
	}
}

func TestRefusalsCountForABan(t *testing.T) {
	limits := []tollhttp.Limit{{Name: "logins", Table: table(t, "1/h ban 24h after 3"), Charge: failed}}
	ask := handler(t, tollhttp.Options{Limits: limits}, login)
	// The failure that takes the last permit is the first refusal, the second request's is the
	// second.
	for n, banned := range []bool{false, false, true, true} {
		after, _ := strconv.Atoi(ask(with("guess")).Header.Get("Retry-After"))
		if (after > 80_000) != banned {
			t.Errorf("request %d: Retry-After %d", n, after)
		}
	}
}

func TestWhatAResponseCosts(t *testing.T) {
	bytes := table(t, "8/h")
	var seen []tollhttp.Response
	limits := []tollhttp.Limit{{Name: "bytes", Table: bytes, Charge: func(_ *http.Request, response tollhttp.Response) uint64 {
		seen = append(seen, response)
		return uint64(response.Written)
	}}}
	ask := handler(t, tollhttp.Options{Limits: limits}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Cost", "3")
		_, _ = io.WriteString(w, "hel")
		w.(http.Flusher).Flush()
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, "lo")
	}))
	for _, want := range []int{200, 200, 429} {
		if r := ask(); r.StatusCode != want {
			t.Errorf("%d, want %d", r.StatusCode, want)
		}
	}
	if len(seen) != 2 || seen[0].Status != 200 || seen[0].Written != 5 || seen[0].Header.Get("X-Cost") != "3" {
		t.Errorf("%+v", seen)
	}
}

func TestAHandlerThatPanicsHasFailed(t *testing.T) {
	for _, begins := range []bool{false, true} {
		var status int
		limits := []tollhttp.Limit{{Name: "faults", Table: table(t, "1/h"), Charge: func(_ *http.Request, response tollhttp.Response) uint64 {
			status = response.Status
			return 1
		}}}
		ask := handler(t, tollhttp.Options{Limits: limits}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if begins {
				w.WriteHeader(http.StatusTeapot)
			}
			panic(http.ErrAbortHandler)
		}))
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was caught")
				}
			}()
			ask()
		}()
		if want := map[bool]int{false: 500, true: 418}[begins]; status != want {
			t.Errorf("status %d, want %d", status, want)
		}
		if r := ask(); r.StatusCode != 429 {
			t.Error(r.StatusCode)
		}
	}
}

func TestCharge(t *testing.T) {
	second := uint64(time.Second)
	limiter, err := tollbar.NewLimiter("1/s burst 5")
	if err != nil {
		t.Fatal(err)
	}
	keys := table(t, "1/s burst 5").Under(0)
	for _, charge := range []func(now, n uint64) (uint64, error){
		limiter.ChargeAt,
		func(now, n uint64) (uint64, error) { return keys.ChargeAt("k", now, n) },
	} {
		for _, c := range [][2]uint64{{7, 0}, {7, 4}, {1, 1}, {0, 0}} {
			if rest, err := charge(second, c[0]); rest != c[1] || err != nil {
				t.Errorf("charged %d: rest %d, %v", c[0], rest, err)
			}
		}
	}
	if d, err := keys.PeekAt("k", second, 1); d.RetryAfter != 6*time.Second || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := limiter.PeekAt(second, 1); d.RetryAfter != 6*time.Second || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
	limiter.Reset()
	for _, want := range []uint64{0, 0, 1} {
		if rest, err := limiter.Charge(5); rest > 5*want || err != nil {
			t.Error(rest, err)
		}
		if rest, err := keys.Charge("l", 5); rest > 5*want || err != nil {
			t.Error(rest, err)
		}
	}
	policy, err := tollbar.ParsePolicy("2/min ban 1h after 7")
	if err != nil || policy.Ban != time.Hour || policy.BanAfter != 7 || policy.String() != "2/min ban 1h after 7" {
		t.Errorf("%+v, %v", policy, err)
	}
	if _, err := policy.Cell(); !errors.Is(err, tollbar.ErrNotOneWord) {
		t.Error(err)
	}
}
