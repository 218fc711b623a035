//go:build go1.25

package tollbar_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

// A6: in a bubble of testing/synctest limiters and tables go by the bubble's time. They refused
// everything.
func TestLimitsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, err := tollbar.NewLimiter("1/min")
		if err != nil {
			t.Fatal(err)
		}
		table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 10}, "1/min")
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		allows := map[string]func() bool{"limiter": limiter.Allow, "table": func() bool { return table.Allow("k") }}
		for name, allow := range allows {
			if !allow() || allow() {
				t.Error(name, "does not begin with one permit")
			}
			time.Sleep(time.Minute - 1)
			if allow() {
				t.Error(name, "admits too early")
			}
			time.Sleep(1 * time.Nanosecond)
			if !allow() {
				t.Error(name, "does not admit after a minute")
			}
		}
		limiter.Allow()
		table.Allow("k")
		verdicts := make([]tollbar.Verdict, 2)
		if err := limiter.CheckMany(nil, verdicts); err != nil || verdicts[0] != tollbar.Denied {
			t.Error("the batch goes by another time:", verdicts, err)
		}
		before, err := table.Now()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := table.Under(0).Wait(context.Background(), "k"); err != nil || time.Since(began) != time.Minute {
			t.Error("a key waited", time.Since(began), err)
		}
		if after, err := table.Now(); err != nil || after-before != uint64(time.Minute) {
			t.Error("the table's time went on by", after-before, err)
		}
		limiter.Allow()
		began = time.Now()
		err = limiter.Wait(context.Background())
		if err != nil || time.Since(began) > time.Minute || time.Since(began) == 0 {
			t.Error("waited", time.Since(began), err)
		}
	})
}
