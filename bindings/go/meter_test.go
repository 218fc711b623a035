//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	tollbar "github.com/tollbar/tollbar/bindings/go"
)

const meterHour = uint64(time.Hour)

func singleRate() tollbar.MeterOptions {
	return tollbar.MeterOptions{CommittedBytes: 1000, CommittedBurst: 3000, ExcessBurst: 1500}
}

func meterOf(t *testing.T, options tollbar.MeterOptions) *tollbar.Meter {
	t.Helper()
	meter, err := tollbar.NewMeter(options)
	if err != nil {
		t.Fatal(err)
	}
	return meter
}

// RFC 2697: tokens fill the committed bucket first, and then the excess bucket.
func TestOneRateAndTwoBursts(t *testing.T) {
	meter := meterOf(t, singleRate())
	for _, packet := range []struct {
		after, bytes uint64
		want         tollbar.Color
	}{
		{0, 3000, tollbar.Green}, {0, 1500, tollbar.Yellow}, {0, 1, tollbar.Red},
		{4, 3000, tollbar.Green}, {4, 1001, tollbar.Red}, {4, 1000, tollbar.Yellow},
	} {
		now := meterHour + packet.after*uint64(time.Second)
		if got := meter.ColorAt(now, tollbar.Green, packet.bytes); got != packet.want {
			t.Errorf("%+v: %v", packet, got)
		}
	}
}

func TestColorsOfAnEarlierMeter(t *testing.T) {
	meter := meterOf(t, singleRate())
	for i, colors := range [][2]tollbar.Color{
		{tollbar.Red, tollbar.Red}, {tollbar.Yellow, tollbar.Yellow},
		{tollbar.Yellow, tollbar.Red}, {tollbar.Green, tollbar.Green},
	} {
		if got := meter.ColorAt(meterHour, colors[0], 1000); got != colors[1] {
			t.Errorf("packet %d: %v, not %v", i, got, colors[1])
		}
	}
	// By the library's clock. Other meters, because the hour may be in the future of a machine that
	// has just started.
	if got := meterOf(t, singleRate()).Color(3000); got != tollbar.Green {
		t.Error(got)
	}
	if got := meterOf(t, singleRate()).Color(3001); got != tollbar.Red {
		t.Error(got)
	}
	if got := meterOf(t, singleRate()).ColorAfter(tollbar.Yellow, 1500); got != tollbar.Yellow {
		t.Error(got)
	}
	if got := tollbar.Green.String() + tollbar.Yellow.String() + tollbar.Red.String(); got != "greenyellowred" {
		t.Error(got)
	}
}

// RFC 2698, token by token: a millisecond adds 1 token at 1000/s, and 3 at 3000/s.
func TestTwoRatesBesideTheTextOfTheRFC(t *testing.T) {
	meter := meterOf(
		t,
		tollbar.MeterOptions{CommittedBytes: 1000, CommittedBurst: 40, PeakBytes: 3000, PeakBurst: 60},
	)
	rng := rand.New(rand.NewPCG(0, 2698))
	now, committed, peak := meterHour, uint64(40), uint64(60)
	var seen [3]int
	for step := range 20_000 {
		bytes, passed := rng.Uint64N(50), rng.Uint64N(12)
		now, committed, peak = now+passed*1_000_000, min(40, committed+passed), min(60, peak+3*passed)
		want := tollbar.Green
		switch {
		case peak < bytes:
			want = tollbar.Red
		case committed < bytes:
			want, peak = tollbar.Yellow, peak-bytes
		default:
			committed, peak = committed-bytes, peak-bytes
		}
		if got := meter.ColorAt(now, tollbar.Green, bytes); got != want {
			t.Fatalf("step %d: %v, not %v", step, got, want)
		}
		seen[want]++
	}
	if min(seen[0], seen[1], seen[2]) < 1_000 {
		t.Error(seen)
	}
}

// A meter keeps its buckets while the stack of its goroutine grows and moves, and while garbage is
// collected.
func TestTheBucketsOfAMeterStayWhereTheyAre(t *testing.T) {
	done := make(chan [3]tollbar.Color)
	for range 64 {
		go func() {
			meter, err := tollbar.NewMeter(singleRate())
			if err != nil {
				t.Error(err)
			}
			var colors [3]tollbar.Color
			colors[0] = meter.ColorAt(meterHour, tollbar.Green, 3000)
			growStack(200)
			colors[1] = meter.ColorAt(meterHour, tollbar.Green, 1500)
			growStack(2000)
			colors[2] = meter.ColorAt(meterHour, tollbar.Green, 1)
			done <- colors
		}()
	}
	for range 64 {
		if got := <-done; got != [3]tollbar.Color{tollbar.Green, tollbar.Yellow, tollbar.Red} {
			t.Error(got)
		}
	}
}

//go:noinline
func growStack(depth int) byte {
	var room [256]byte
	if depth > 0 {
		room[depth%256] = growStack(depth - 1)
	}
	return room[0]
}

func TestWrongMeters(t *testing.T) {
	for _, wrong := range []struct {
		change func(*tollbar.MeterOptions)
		want   tollbar.Code
	}{
		{func(o *tollbar.MeterOptions) { o.Period = -1 }, tollbar.ErrPeriodZero},
		{func(o *tollbar.MeterOptions) { o.CommittedBytes = 16e9 }, tollbar.ErrRateTooHigh},
		{func(o *tollbar.MeterOptions) { o.CommittedBurst, o.ExcessBurst = 0, 0 }, tollbar.ErrBurstZero},
		{func(o *tollbar.MeterOptions) { o.ExcessBurst = 1<<64 - 1 }, tollbar.ErrBurstTooLarge},
		{func(o *tollbar.MeterOptions) { o.ExcessBurst, o.PeakBytes, o.PeakBurst = 0, 999, 1 }, tollbar.ErrRateTooHigh},
		{func(o *tollbar.MeterOptions) { o.ExcessBurst, o.PeakBurst = 0, 1 }, tollbar.ErrRateTooHigh},
		{func(o *tollbar.MeterOptions) { o.PeakBytes = 2000 }, tollbar.ErrOutOfRange},
	} {
		options := singleRate()
		wrong.change(&options)
		if _, err := tollbar.NewMeter(options); !errors.Is(err, wrong.want) {
			t.Errorf("%+v: %v, not %v", options, err, wrong.want)
		}
	}
	if got := meterOf(t, singleRate()).ColorAfter(3, 1); got != tollbar.Red {
		t.Error(got)
	}
	if got := new(tollbar.Meter).Color(0); got != tollbar.Red {
		t.Error(got)
	}
}

func ExampleMeter() {
	uploads, err := tollbar.NewMeter(tollbar.MeterOptions{CommittedBytes: 1, CommittedBurst: 3000, ExcessBurst: 1500})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 4 {
		fmt.Println(uploads.Color(1500))
	}
	// Output:
	// green
	// green
	// yellow
	// red
}
