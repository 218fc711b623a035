package tollhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

// C1: in each order of the handlers the fields describe all limits (draft 11) or the one that
// binds, each once, and a handler that refuses gives back what those around it were charged.
func TestStackedLimitsAreOneAnswer(t *testing.T) {
	policies := map[string]string{"wide": "100/day", "tight": "2/day", "large": "1000/day"}
	full := map[string]uint64{"wide": 100, "tight": 2, "large": 1000}
	for _, order := range [][]string{
		{"wide", "tight", "large"}, {"wide", "large", "tight"}, {"tight", "wide", "large"}, {"tight", "large", "wide"}, {"large", "wide", "tight"}, {"large", "tight", "wide"},
		{"wide", "tight"}, {"tight", "wide"},
	} {
		for _, fields := range []tollbar.HTTPFields{tollbar.FieldsDraft11, tollbar.FieldsDraft07, tollbar.FieldsDraft06, tollbar.FieldsLegacy, tollbar.FieldsLegacy | tollbar.FieldsDraft11} {
			var handler http.Handler = hello
			tables := map[string]*tollbar.Table{}
			// The first is the outermost.
			for i := len(order) - 1; i >= 0; i-- {
				tables[order[i]] = table(t, policies[order[i]])
				limiter, err := tollhttp.New(tollhttp.Options{
					Limits: []tollhttp.Limit{{Name: order[i], Table: tables[order[i]]}}, Fields: tollbar.FieldRetryAfter | fields,
				})
				if err != nil {
					t.Fatal(err)
				}
				handler = limiter.Handler(handler)
			}
			for call := range 4 {
				r := httptest.NewRequest("GET", "/", nil)
				r.RemoteAddr = "192.0.2.1:1"
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				at := fmt.Sprintf("%v, %v, call %d: %v", order, fields, call, w.Header())
				admitted := min(uint64(call)+1, 2)
				if (w.Code == 200) != (call < 2) || (w.Header().Get("Retry-After") != "") != (call >= 2) {
					t.Fatal(at, w.Code)
				}
				reached := order
				for i, name := range order {
					decision, err := tables[name].Under(0).Peek(tollhttp.AddressKey("192.0.2.1"), 1)
					if err != nil || decision.Remaining != full[name]-admitted {
						t.Errorf("%s: %s has %d left (%v)", at, name, decision.Remaining, err)
					}
					if name == "tight" && call >= 2 {
						reached = order[:i+1]
					}
				}
				for name, values := range w.Header() {
					if len(values) != 1 {
						t.Errorf("%s: %s comes %d times", at, name, len(values))
					}
				}
				if fields&tollbar.FieldsDraft11 != 0 {
					for _, name := range reached {
						if part := fmt.Sprintf("%q;r=%d", name, full[name]-admitted); !strings.Contains(w.Header().Get("RateLimit"), part) {
							t.Errorf("%s: no %s", at, part)
						}
					}
				}
				if fields&tollbar.FieldsLegacy != 0 && (w.Header().Get("X-RateLimit-Limit") != "2" || w.Header().Get("X-RateLimit-Remaining") != fmt.Sprint(2-admitted)) {
					t.Error(at)
				}
				if fields == tollbar.FieldsDraft07 && !strings.HasPrefix(w.Header().Get("RateLimit"), fmt.Sprintf("limit=2, remaining=%d, reset=", 2-admitted)) {
					t.Error(at)
				}
				if fields == tollbar.FieldsDraft06 && w.Header().Get("RateLimit-Remaining") != fmt.Sprint(2-admitted) {
					t.Error(at)
				}
			}
		}
	}
}

// C1: of an upstream behind a reverse proxy a client gets no second set of fields, or, by
// NoHeaders, only the upstream's.
func TestFieldsOfAnUpstream(t *testing.T) {
	for _, fields := range []tollbar.HTTPFields{tollbar.FieldsDraft11, tollbar.FieldsDraft07, tollbar.FieldsDraft06, tollbar.FieldsLegacy} {
		serve := func(policy, name string, noHeaders bool, next http.Handler) http.Handler {
			limiter, err := tollhttp.New(tollhttp.Options{
				Limits: []tollhttp.Limit{{Name: name, Table: table(t, policy)}}, Fields: tollbar.FieldRetryAfter | fields, NoHeaders: noHeaders,
			})
			if err != nil {
				t.Fatal(err)
			}
			return limiter.Handler(next)
		}
		upstream := httptest.NewServer(serve("5/day", "up", false, hello))
		defer upstream.Close()
		at, err := url.Parse(upstream.URL)
		if err != nil {
			t.Fatal(err)
		}
		for _, hides := range []bool{true, false} {
			proxy := httputil.NewSingleHostReverseProxy(at)
			if hides {
				proxy.ModifyResponse = tollhttp.HideFields
			}
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = "192.0.2.1:1"
			serve("90/day", "front", !hides, proxy).ServeHTTP(w, r)
			found := 0
			for name, values := range w.Header() {
				if !strings.Contains(name, "Ratelimit") {
					continue
				}
				found++
				if of := strings.Join(values, " "); len(values) != 1 || strings.Contains(of, "front") && !hides || strings.Contains(of, "up") && hides ||
					strings.HasSuffix(name, "Limit-Limit") && (of == "90") != hides {
					t.Errorf("hides %v: %s: %v", hides, name, values)
				}
			}
			if found == 0 || w.Code != http.StatusOK {
				t.Errorf("%d, %v", w.Code, w.Header())
			}
		}
	}
}
