package tollhttp

import (
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/redis"
)

// untilMore where others come between the decision and the peek, and where a peek does not say.
func TestUntilMore(t *testing.T) {
	allowed := tollbar.Decision{Verdict: tollbar.Allowed, Remaining: 1, ResetAfter: 30 * time.Second}
	denied := tollbar.Decision{Verdict: tollbar.Denied, Remaining: 1, RetryAfter: 3 * time.Second, ResetAfter: 30 * time.Second}
	full := tollbar.Decision{Verdict: tollbar.Allowed, Remaining: 1}
	never := tollbar.Decision{Verdict: tollbar.Never, Remaining: 1, RetryAfter: tollbar.Forever, ResetAfter: 30 * time.Second}
	for name, c := range map[string]struct {
		limit    limit
		cost     uint64
		decision tollbar.Decision
		want     time.Duration
	}{
		"admitted":                 {limit{}, 1, allowed, 9 * time.Second},
		"never later than a retry": {limit{}, 5, denied, 3 * time.Second},
		"what never passes":        {limit{}, 9, never, 9 * time.Second},
		"one is missing":           {limit{}, 2, denied, 3 * time.Second},
		"full":                     {limit{}, 1, full, tollbar.Forever},
		"lends":                    {limit{lends: true}, 1, allowed, tollbar.Forever},
		"a lease":                  {limit{Limit: Limit{Lease: new(redis.Lease)}}, 1, allowed, tollbar.Forever},
		"a lease that refuses":     {limit{Limit: Limit{Lease: new(redis.Lease)}}, 5, denied, 3 * time.Second},
	} {
		c.limit.peek = func(key string, permits uint64) (tollbar.Decision, error) {
			if key != "key" || permits != 2 {
				t.Errorf("%s: peeked for %d of %q", name, permits, key)
			}
			return tollbar.Decision{Verdict: tollbar.Denied, Remaining: 1, RetryAfter: 9 * time.Second}, nil
		}
		if got := c.limit.untilMore("key", c.cost, c.decision); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
