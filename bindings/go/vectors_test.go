//go:build cgo

package tollbar_test

import (
	"testing"

	"github.com/tollbar/tollbar/bindings/go"
)

// The golden vectors: tables give the decisions of the oracle (crates/tollbar/tests/vectors.rs describes the file).
func TestTablesGiveTheOraclesDecisions(t *testing.T) {
	var all []struct {
		Policy string
		// Each is the time, the cost, the verdict, the permits left and the nanoseconds until the request would be admitted.
		Steps [][5]uint64
	}
	vectors(t, "decisions.json", &all)
	if len(all) < 35 {
		t.Fatalf("%d vectors", len(all))
	}
	for _, vector := range all {
		table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 100, Clock: tollbar.ClockWall}, vector.Policy)
		if err != nil {
			t.Fatal(err)
		}
		for n, step := range vector.Steps {
			now, cost := step[0], step[1]
			byTable, err := table.Under(0).CheckAt("key", now, cost)
			if got := answer(byTable); err != nil || got != [3]uint64(step[2:]) {
				t.Errorf("%s, step %d: %v by the table, not %v (%v)", vector.Policy, n, got, step[2:], err)
			}
		}
		table.Close()
	}
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
