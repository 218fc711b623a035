//go:build !cgo && go1.25

package tollbar_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

// A6: in a bubble of testing/synctest limiters and tables go by the bubble's time. They refused everything.
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
		for name, allow := range map[string]func() bool{"limiter": limiter.Allow, "table": func() bool { return table.Allow("k") }} {
			if !allow() || allow() {
				t.Error(name, "does not begin with one permit")
			}
			time.Sleep(time.Minute - 1)
			if allow() {
				t.Error(name, "admits too early")
			}
			time.Sleep(1)
			if !allow() {
				t.Error(name, "does not admit after a minute")
			}
		}
		limiter.Allow()
		began := time.Now()
		if err := limiter.Wait(context.Background()); err != nil || time.Since(began) > time.Minute || time.Since(began) == 0 {
			t.Error("waited", time.Since(began), err)
		}
	})
}
