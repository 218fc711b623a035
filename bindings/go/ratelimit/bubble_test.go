//go:build go1.25

package ratelimit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollbar/tollbar/bindings/go/ratelimit"
)

// In a bubble of testing/synctest the system's clock is the bubble's.
func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, before := ratelimit.New(2, ratelimit.Per(time.Minute)), time.Now()
		for range 3 {
			l.Take()
		}
		if passed := time.Since(before); passed != time.Minute {
			t.Errorf("three calls of 2 a minute took %v", passed)
		}
	})
}
