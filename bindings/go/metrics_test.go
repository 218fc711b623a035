//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tollbar/tollbar/bindings/go"
)

func seriesOf(t *testing.T, sources ...tollbar.Source) map[string]string {
	t.Helper()
	text, err := tollbar.AppendMetrics(nil, tollbar.Prometheus, sources...)
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			at := strings.LastIndexByte(line, ' ')
			series[line[:at]] = strings.TrimSpace(line[at:])
		}
	}
	return series
}

func TestTenRefusalsRaiseOneSeriesByTen(t *testing.T) {
	logins, api := mustTable(t, tollbar.TableOptions{Capacity: 100}, "5/min", "7/h"), mustLimiter(t, "1/h")
	check := func(times int) {
		for range times {
			if _, err := logins.Check("k", 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	check(5)
	before := seriesOf(t, logins.Metrics("logins"), api.Metrics("api"))
	check(10)
	changed := 0
	for name, value := range seriesOf(t, logins.Metrics("logins"), api.Metrics("api")) {
		if before[name] == value {
			continue
		}
		changed++
		if name != `tollbar_decisions_total{limit="logins",policy="0",verdict="denied"}` || value != "10" {
			t.Errorf("%s is %s", name, value)
		}
	}
	if changed != 1 {
		t.Errorf("%d series have changed", changed)
	}
	var many []tollbar.Source
	for n := range tollbar.MetricsMost {
		many = append(many, logins.Metrics(fmt.Sprint("table ", n)))
	}
	text, err := tollbar.AppendMetrics([]byte("before "), tollbar.OpenMetrics, many...)
	if err != nil || len(text) < 20000 || !strings.HasPrefix(string(text), "before #") || !strings.HasSuffix(string(text), "\n# EOF\n") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	for want, sources := range map[error][]tollbar.Source{
		tollbar.ErrOutOfRange: append(many, many...), tollbar.ErrLimits: {{}},
	} {
		if _, err := tollbar.AppendMetrics(nil, tollbar.Prometheus, sources...); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if _, err := tollbar.AppendMetrics(nil, tollbar.Prometheus, api.Metrics("\xff")); !errors.Is(err, tollbar.ErrOutOfRange) {
		t.Error(err)
	}
	if err := logins.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := tollbar.AppendMetrics(nil, tollbar.Prometheus, logins.Metrics("logins")); !errors.Is(err, tollbar.ErrClosed) {
		t.Error(err)
	}
}
