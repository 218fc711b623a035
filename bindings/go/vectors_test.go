package tollbar_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

// The golden vectors: limiters and tables give the decisions of the oracle (crates/tollbar/tests/vectors.rs describes the file).
func TestTheOraclesDecisions(t *testing.T) {
	text, err := os.ReadFile("../../tests/vectors/decisions.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Policy string
		// Each is the time, the cost, the verdict, the permits left and the nanoseconds until the request would be admitted.
		Steps [][5]uint64
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 35 {
		t.Fatalf("%d vectors", len(vectors))
	}
	for _, vector := range vectors {
		limiter, err := tollbar.NewLimiterWith(vector.Policy, tollbar.LimiterOptions{Clock: tollbar.ClockWall})
		if err != nil {
			t.Fatal(err)
		}
		table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 100, Clock: tollbar.ClockWall}, vector.Policy)
		if err != nil {
			t.Fatal(err)
		}
		for n, step := range vector.Steps {
			now, cost := step[0], step[1]
			byLimiter, err := limiter.CheckAt(now, cost)
			if got := answer(byLimiter); err != nil || got != [3]uint64(step[2:]) {
				t.Errorf("%s, step %d: %v by the limiter, not %v (%v)", vector.Policy, n, got, step[2:], err)
			}
			byTable, err := table.Under(0).CheckAt("key", now, cost)
			if got := answer(byTable); err != nil || got != [3]uint64(step[2:]) {
				t.Errorf("%s, step %d: %v by the table, not %v (%v)", vector.Policy, n, got, step[2:], err)
			}
		}
		table.Close()
	}
}

func answer(d tollbar.Decision) [3]uint64 {
	retryAfter := uint64(d.RetryAfter / time.Nanosecond)
	if d.RetryAfter == tollbar.Forever {
		retryAfter = 1<<64 - 1
	}
	return [3]uint64{uint64(d.Verdict), d.Remaining, retryAfter}
}

// A quota's period has no number in Go, so a parsed quota is compared with one that is made.
func TestQuotaIsForever(t *testing.T) {
	read, err := tollbar.ParsePolicy("500/forever")
	made := tollbar.Policy{Algorithm: tollbar.Quota, Limit: 500, Period: tollbar.Forever, Burst: 500}
	if err != nil || read != made || made.String() != "500/forever" {
		t.Fatalf("%+v is not %+v (%v)", read, made, err)
	}
	limiter := mustLimiter(t, made.String())
	if got, err := limiter.CheckAt(1, 500); err != nil || !got.Allowed() {
		t.Fatalf("%v (%v)", got, err)
	}
	if got, err := limiter.CheckAt(1<<60, 1); err != nil || got.RetryAfter != tollbar.Forever {
		t.Fatalf("%v (%v)", got, err)
	}
}
