//go:build go1.25

package tollbar_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

// In a bubble calls with the bubble's time and calls without a time count on one scale.
func TestAllowAtInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, options := range [][]tollbar.LimiterOption{nil, {tollbar.WithTime(time.Now)}} {
			limiter, err := tollbar.NewLimiter("2/min burst 2", options...)
			if err != nil {
				t.Fatal(err)
			}
			if !limiter.AllowAt(time.Now(), 1) || !limiter.Allow() || limiter.Allow() ||
				limiter.AllowAt(time.Now(), 1) {
				t.Error("not two permits at first")
			}
			time.Sleep(30 * time.Second)
			if s, err := limiter.State(); err != nil || s.Remaining != 1 {
				t.Errorf("%+v, %v", s, err)
			}
			if !limiter.AllowAt(time.Now(), 1) || limiter.Allow() {
				t.Error("not one permit after half a minute")
			}
			before := time.Now()
			if err := limiter.Wait(t.Context()); err != nil || time.Since(before) != 30*time.Second {
				t.Errorf("waited %v, %v", time.Since(before), err)
			}
		}
	})
}
