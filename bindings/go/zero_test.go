//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"testing"

	"github.com/tollbar/tollbar/bindings/go"
)

// Zero values of what only the library has refuse, and say that they are closed.
func TestZeroValuesOfTheLibrary(t *testing.T) {
	var limiter tollbar.Limiter
	var table tollbar.Table
	var inFlight tollbar.InFlight
	for name, call := range map[string]func() error{
		"InFlight.Acquire":   func() error { _, _, err := inFlight.Acquire("k", 1); return err },
		"InFlight.Count":     func() error { _, err := inFlight.Count("k"); return err },
		"Limiter.CheckClass": func() error { _, err := limiter.CheckClass("low", 1); return err },
		"Table.CheckClass":   func() error { _, err := table.CheckClass("k", "low", 1); return err },
		"Table.Stats":        func() error { _, err := table.Stats(); return err },
		"Table.SetPolicy":    func() error { return table.SetPolicy(0, "1/s") },
		"Keys.Take":          func() error { _, _, err := table.Under(0).Take("k", 1); return err },
		"AppendMetrics": func() error {
			_, err := tollbar.AppendMetrics(nil, tollbar.Prometheus, table.Metrics("t"), limiter.Metrics("l"))
			return err
		},
	} {
		if err := call(); !errors.Is(err, tollbar.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if (tollbar.Ticket{}).Release() || inFlight.Close() != nil {
		t.Error("a zero value works")
	}
}
