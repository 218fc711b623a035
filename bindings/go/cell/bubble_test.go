//go:build go1.25

package cell_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollbar/tollbar/bindings/go/cell"
)

// A6: in a bubble of testing/synctest a cell goes by the bubble's time.
func TestNowInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := cell.Now()
		time.Sleep(time.Minute)
		if passed := cell.Now() - before; passed != uint64(time.Minute) {
			t.Error(passed)
		}
	})
}
