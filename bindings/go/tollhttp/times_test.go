//go:build go1.25

package tollhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

// timed asks a handler n times. The bubble's time stands still but for the key's function, so each
// measured request takes exactly its time.
func timed(t testing.TB, times *tollhttp.Times, n int, took func(i int) time.Duration) {
	t.Helper()
	i := 0
	key := func(*http.Request) (string, bool) {
		time.Sleep(took(i))
		i++
		return "key", true
	}
	limiter, err := tollhttp.New(tollhttp.Options{
		Limits: []tollhttp.Limit{{Name: "a", Table: table(t, "5/s"), Key: key}}, Times: times,
	})
	if err != nil {
		t.Fatal(err)
	}
	handler := limiter.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Hour) }))
	for range n {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
}

func TestS52OneInTimesEveryRequestsIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := new(tollhttp.Times)
		// The requests 0, 1024, 2048 and 3072 are measured, and no other.
		lasts := map[int]time.Duration{0: 256, 1024: 257, 2048: 3 * time.Microsecond, 3072: time.Second}
		timed(t, times, 3*tollhttp.TimesEvery+2, func(i int) time.Duration { return lasts[i] })
		text := string(times.AppendMetrics([]byte("# before\n"), "a \"b\" é"))
		for _, line := range []string{
			"# before", "# TYPE tollbar_decision_nanoseconds histogram",
			`tollbar_decision_nanoseconds_bucket{limit="a \"b\" é",le="256"} 1`,
			`tollbar_decision_nanoseconds_bucket{limit="a \"b\" é",le="512"} 2`,
			`tollbar_decision_nanoseconds_bucket{limit="a \"b\" é",le="2048"} 2`,
			`tollbar_decision_nanoseconds_bucket{limit="a \"b\" é",le="4096"} 3`,
			`tollbar_decision_nanoseconds_bucket{limit="a \"b\" é",le="16777216"} 3`,
			`tollbar_decision_nanoseconds_bucket{limit="a \"b\" é",le="+Inf"} 4`,
			fmt.Sprintf(`tollbar_decision_nanoseconds_sum{limit="a \"b\" é"} %d`, 256+257+3000+int64(time.Second)),
			`tollbar_decision_nanoseconds_count{limit="a \"b\" é"} 4`,
		} {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("%q is missing in\n%s", line, text)
			}
		}
		if n := strings.Count(text, "_bucket{"); n != 18 {
			t.Errorf("%d buckets", n)
		}
	})
}

func BenchmarkHandler(b *testing.B) {
	for name, times := range map[string]*tollhttp.Times{"without times": nil, "with times": new(tollhttp.Times)} {
		b.Run(name, func(b *testing.B) {
			table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 100}, "1000000000/s")
			if err != nil {
				b.Fatal(err)
			}
			defer table.Close()
			limiter, err := tollhttp.New(
				tollhttp.Options{Limits: []tollhttp.Limit{{Name: "a", Table: table}}, Times: times},
			)
			if err != nil {
				b.Fatal(err)
			}
			handler := limiter.Handler(
				http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "") }),
			)
			r := httptest.NewRequest("GET", "/", nil)
			for b.Loop() {
				handler.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}
