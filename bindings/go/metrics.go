//go:build cgo || tollbar_purego

package tollbar

import (
	"fmt"
	"runtime"

	"github.com/tollbar/tollbar/bindings/go/internal/guard"
)

// MetricsMost is the largest number of sources of [AppendMetrics].
const MetricsMost = 1024

// MetricsFormat is a format of [AppendMetrics].
type MetricsFormat uint32

const (
	// Prometheus is Prometheus' text format, of the media type "text/plain; version=0.0.4".
	Prometheus MetricsFormat = 0
	// OpenMetrics is OpenMetrics 1.0, of the media type "application/openmetrics-text;
	// version=1.0.0; charset=utf-8". The text ends with the line "# EOF", after which the format
	// allows no further metrics.
	OpenMetrics MetricsFormat = 1
)

// Source is a limiter or a table, and the name of its series: [Limiter.Metrics], [Table.Metrics].
type Source struct {
	name    string
	limiter *Limiter
	table   *Table
}

// Metrics is the limiter as a source of [AppendMetrics]. name is the value of the label "limit" of
// its series. The sources of a call must have different names.
func (l *Limiter) Metrics(name string) Source { return Source{name: name, limiter: l} }

// Metrics is the table as a source of [AppendMetrics], with the decisions of all processes that
// share it. name is the value of the label "limit" of its series. The sources of a call must have
// different names.
func (t *Table) Metrics(name string) Source { return Source{name: name, table: t} }

// AppendMetrics appends counts and sizes as text: decisions by policy and verdict, keys, evictions,
// clock steps. No key is a label. The error is [ErrOutOfRange] for more than [MetricsMost] sources
// or a name that is not UTF-8, [ErrLimits] for a zero Source, and [ErrClosed] for a closed one.
func AppendMetrics(to []byte, format MetricsFormat, sources ...Source) ([]byte, error) {
	if len(sources) > MetricsMost {
		return to, ErrOutOfRange
	}
	var (
		items [MetricsMost]metricsItem
		names []byte
		// As in takeMany.
		entered []*guard.Count
		err     error
	)
	for i, source := range sources {
		names = append(names, source.name...)
		items[i].name = uint64(len(source.name))
		switch {
		case source.table != nil:
			count := source.table.enter()
			if count == nil {
				err = ErrClosed
				break
			}
			entered = append(entered, count)
			items[i].table = source.table.handle
		case source.limiter == nil:
			err = ErrLimits
		case source.limiter.ended():
			err = ErrClosed
		default:
			items[i].limiter = source.limiter.handle
		}
		if err != nil {
			err = fmt.Errorf("source %q: %w", source.name, err)
			break
		}
	}
	if err == nil {
		to, err = appendMetrics(to, format, items[:len(sources)], names)
	}
	for _, count := range entered {
		count.Leave()
	}
	runtime.KeepAlive(sources)
	return to, err
}

// metricsItem is a source, which C reads as go_metrics_source.
type metricsItem struct {
	limiter, table uintptr
	name           uint64
}
