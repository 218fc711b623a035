//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

func TestHTTPFieldsInEveryDialect(t *testing.T) {
	limiter := mustLimiter(t, "2/min")
	if d, err := limiter.CheckAt(0, 2); err != nil || !d.Allowed() {
		t.Fatal(d, err)
	}
	refused, err := limiter.CheckAt(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := tollbar.ParsePolicy("2/min")
	if err != nil {
		t.Fatal(err)
	}
	limit := tollbar.HTTPLimit{Name: `a "b"`, Policy: policy, Decision: refused, MoreAfter: tollbar.Forever, Partition: "k"}
	now := time.Unix(1000, 0)
	for fields, want := range map[tollbar.HTTPFields]string{
		0:                         "",
		tollbar.FieldRetryAfter:   "Retry-After: 30\r\n",
		tollbar.FieldsLegacy:      "X-RateLimit-Limit: 2\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 60\r\n",
		tollbar.FieldsLegacyEpoch: "X-RateLimit-Limit: 2\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1060\r\n",
		tollbar.FieldsDraft06:     "RateLimit-Limit: 2\r\nRateLimit-Remaining: 0\r\nRateLimit-Reset: 30\r\nRateLimit-Policy: 2;w=60\r\n",
		tollbar.FieldsDraft07:     "RateLimit-Policy: 2;w=60\r\nRateLimit: limit=2, remaining=0, reset=30\r\n",
		tollbar.FieldsDraft11: "RateLimit-Policy: \"a \\\"b\\\"\";q=2;w=60;pk=:aw==:\r\n" +
			"RateLimit: \"a \\\"b\\\"\";r=0;t=30;pk=:aw==:\r\n",
	} {
		lines, err := tollbar.AppendHTTPFields([]byte("before "), fields, now, limit)
		if err != nil || string(lines) != "before "+want {
			t.Errorf("%d: %q, %v; want %q", fields, lines, err, want)
		}
		seen := tollbar.ReadHTTPFields(lines[len("before "):], now)
		if fields >= tollbar.FieldsDraft06 &&
			seen != (tollbar.HTTPSeen{Limit: 2, HasLimit: true, HasRemaining: true, Window: time.Minute, MoreAfter: 30 * time.Second, RetryAfter: tollbar.Forever}) {
			t.Errorf("%d: read as %+v", fields, seen)
		}
	}
	body, err := tollbar.AppendHTTPProblem(nil, 429, limit)
	if err != nil || !strings.HasSuffix(string(body), `"status":429,"violated-policies":["a \"b\""]}`) {
		t.Errorf("%s, %v", body, err)
	}
	if _, err := tollbar.AppendHTTPFields(nil, tollbar.FieldsDraft07|tollbar.FieldsDraft11, now, limit); !errors.Is(err, tollbar.ErrOutOfRange) {
		t.Error(err)
	}
	if _, err := tollbar.AppendHTTPFields(nil, tollbar.FieldsDraft11, now); !errors.Is(err, tollbar.ErrLimits) {
		t.Error(err)
	}
	if _, err := tollbar.AppendHTTPFields(nil, tollbar.FieldsDraft11, now, make([]tollbar.HTTPLimit, 17)...); !errors.Is(err, tollbar.ErrLimits) {
		t.Error(err)
	}
	if _, err := tollbar.AppendHTTPProblem(nil, -1, limit); !errors.Is(err, tollbar.ErrOutOfRange) {
		t.Error(err)
	}
}

func TestMoreAfter(t *testing.T) {
	limiter := mustLimiter(t, "6/h")
	if more, err := limiter.MoreAfter(1, tollbar.Decision{Remaining: 6}); err != nil || more != tollbar.Forever {
		t.Error("all permits are there:", more, err)
	}
	d, err := limiter.Check(4)
	if err != nil {
		t.Fatal(err)
	}
	if more, err := limiter.MoreAfter(4, d); err != nil || more <= 0 || more > 10*time.Minute {
		t.Error(more, err)
	}
	limiter.Close()
	if _, err := limiter.MoreAfter(4, d); !errors.Is(err, tollbar.ErrClosed) {
		t.Error(err)
	}
	table := mustTable(t, tollbar.TableOptions{Capacity: 10}, "6/h")
	refused, err := table.Check("k", 7)
	if err != nil {
		t.Fatal(err)
	}
	if more, err := table.Under(0).MoreAfter("k", 7, refused); err != nil || more != tollbar.Forever {
		t.Error("a full bucket does not become more:", more, err)
	}
	if _, err := table.Under(9).MoreAfter("k", 7, tollbar.Decision{ResetAfter: 1}); !errors.Is(err, tollbar.ErrNoSuchPolicy) {
		t.Error(err)
	}
}
