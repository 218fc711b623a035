package prompt

import (
	"testing"
	"time"
)

// A fault in time is reported at once, a late one only after 20 tries, and a late one that does not
// come again never.
func TestWithin(t *testing.T) {
	for _, want := range []struct {
		valid         time.Duration
		failures      int
		tries, faults int
	}{{time.Hour, 0, 1, 0}, {time.Hour, 99, 1, 1}, {0, 99, 20, 1}, {0, 3, 4, 0}} {
		tries, outer := 0, &attempt{TB: t}
		Within(outer, want.valid, func(t testing.TB) {
			if tries++; tries <= want.failures {
				t.Error("a fault")
			}
		})
		if tries != want.tries || len(outer.faults) != want.faults {
			t.Errorf("%+v: %d tries, %v", want, tries, outer.faults)
		}
	}
}
