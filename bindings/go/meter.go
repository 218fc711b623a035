//go:build cgo || tollbar_purego

package tollbar

import (
	"runtime"
	"time"
	"unsafe"
)

// Color is the colour of a packet. A later one is worse.
type Color uint32

const (
	// Green: within the committed rate and burst. Also the colour of a packet that no meter has
	// coloured.
	Green Color = iota
	// Yellow: above the committed burst, and within the excess burst or the peak rate.
	Yellow
	// Red: above both.
	Red
)

// String returns "green", "yellow" or "red".
func (c Color) String() string { return [...]string{"green", "yellow", "red"}[min(c, Red)] }

// MeterOptions say what a [Meter] measures. With PeakBytes 0 it is RFC 2697's: one rate with a
// committed and an excess burst. Otherwise it is RFC 2698's: a committed and a peak rate.
type MeterOptions struct {
	// CommittedBytes is the committed rate (CIR) in bytes per Period, below 16 a nanosecond.
	CommittedBytes uint64
	// CommittedBurst is the committed burst (CBS) in bytes, up to 2^62.
	CommittedBurst uint64
	// ExcessBurst is the excess burst (EBS) in bytes, up to 2^62.
	ExcessBurst uint64
	// PeakBytes is the peak rate (PIR) in bytes per Period, at least CommittedBytes.
	PeakBytes uint64
	// PeakBurst is the peak burst (PBS) in bytes, up to 2^62.
	PeakBurst uint64
	// Period is the period of the rates; 0 is a second.
	Period time.Duration
}

// Meter gives each packet of a flow a colour by RFC 2697 or RFC 2698. All buckets are full at
// first. Each flow has a Meter of its own.
//
//	uploads, err := tollbar.NewMeter(tollbar.MeterOptions{CommittedBytes: 1e6, CommittedBurst: 1e5, ExcessBurst: 5e4})
//	...
//	if uploads.Color(uint64(len(packet))) == tollbar.Red {
//		return errDropped
//	}
//
// Any number of goroutines may use it at once. A copy has the same buckets. The zero Meter says
// Red.
type Meter struct {
	options tollbar_meter
	// The buckets. Their address must not change, so they are never on a goroutine's stack.
	state *tollbar_meter_state
}

// NewMeter makes a meter. Its errors are [ErrRateTooHigh], also if the peak rate is below the
// committed one, [ErrBurstZero] if no packet could be green or yellow, [ErrBurstTooLarge],
// [ErrPeriodZero] if the period is negative, and [ErrOutOfRange] for an excess burst beside a peak
// rate or burst.
//
// It is not inlined, so that what it makes is on the heap.
//
//go:noinline
func NewMeter(options MeterOptions) (*Meter, error) {
	if options.ExcessBurst != 0 && (options.PeakBytes != 0 || options.PeakBurst != 0) {
		return nil, ErrOutOfRange
	}
	if options.PeakBytes == 0 && options.PeakBurst != 0 {
		return nil, ErrRateTooHigh
	}
	period := options.Period
	if period == 0 {
		period = time.Second
	}
	m := &Meter{state: new(tollbar_meter_state), options: tollbar_meter{
		struct_size:     uint32(unsafe.Sizeof(tollbar_meter{})),
		committed_bytes: options.CommittedBytes,
		period_ns:       uint64(max(period, 0)),
		committed_burst: options.CommittedBurst,
		peak_bytes:      options.PeakBytes,
		second_burst:    options.ExcessBurst + options.PeakBurst,
	}}
	if code := Code(cMeterValidate(&m.options)); code != 0 {
		return nil, code
	}
	return m, nil
}

// Color returns the colour of a packet, and charges its bytes to the buckets of that colour. A red
// packet charges nothing.
func (m *Meter) Color(bytes uint64) Color { return m.ColorAfter(Green, bytes) }

// ColorAfter is [Meter.Color] for a packet to which an earlier meter gave the colour before. The
// answer is never better than that.
func (m *Meter) ColorAfter(before Color, bytes uint64) Color {
	code := cMeterColor(&m.options, m.state, bytes, uint32(before))
	runtime.KeepAlive(m)
	return colorOf(code)
}

// ColorAt is [Meter.ColorAfter] at the caller's time, in nanoseconds of one clock.
func (m *Meter) ColorAt(now uint64, before Color, bytes uint64) Color {
	code := cMeterColorAt(&m.options, m.state, bytes, uint32(before), now)
	runtime.KeepAlive(m)
	return colorOf(code)
}

// colorOf is Red after an error, so that a wrong colour or the zero Meter passes nothing.
func colorOf(code int32) Color {
	if code < 0 {
		return Red
	}
	return Color(code)
}
