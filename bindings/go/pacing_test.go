//go:build cgo || tollbar_purego

package tollbar_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	tollbar "github.com/tollbar/tollbar/bindings/go"
)

func pacingOf(t *testing.T, options tollbar.PacingOptions) *tollbar.Pacing {
	t.Helper()
	pace, err := tollbar.NewPacing(options)
	if err != nil {
		t.Fatal(err)
	}
	return pace
}

func TestPacingObeysRetryAfter(t *testing.T) {
	pace := pacingOf(t, tollbar.PacingOptions{PauseMost: time.Minute})
	if _, known := pace.State("a"); known {
		t.Error("a host before its first request")
	}
	ticket, err := pace.Acquire(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	pace.Respond(ticket, 429, http.Header{"Retry-After": {"7"}, "Content-Type": {"text/plain"}})
	state, _ := pace.State("a")
	// A busy machine takes some of the seven seconds for the call.
	if state.Paused > 7*time.Second || state.Paused < time.Second || state.Rate >= 1e6 {
		t.Error(state)
	}
	pace.Respond(ticket, 403, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"999999"}})
	if state, _ = pace.State("a"); state.Paused > time.Minute || state.Paused < 30*time.Second {
		t.Error(state)
	}
	if other := pace.Wait(pace.Turn("b")); other != 0 {
		t.Error(other)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := pace.Acquire(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if state, _ = pace.State("a"); state.Waiting != 0 {
		t.Error("the turn of a caller whose context has ended still waits", state)
	}
}

func TestPacingSpacesRequests(t *testing.T) {
	pace := pacingOf(t, tollbar.PacingOptions{Most: 50, Burst: 2, Increase: 5})
	begin := time.Now()
	for range 6 {
		if _, err := pace.Acquire(context.Background(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	// Two at once, and four more 20 ms after each other. No upper bound: a busy machine may wake a
	// goroutine late.
	if took := time.Since(begin); took < 80*time.Millisecond {
		t.Error(took)
	}
}

func TestPacingRefusesWrongOptions(t *testing.T) {
	for _, options := range []tollbar.PacingOptions{{Least: -1}, {Least: 2, Most: 1}, {Most: 1e10}} {
		if _, err := tollbar.NewPacing(options); !errors.Is(err, tollbar.ErrOutOfRange) {
			t.Error(options, err)
		}
	}
	for _, hosts := range []int{-1, 4097} {
		if _, err := tollbar.NewPacing(tollbar.PacingOptions{Hosts: hosts}); !errors.Is(err, tollbar.ErrCapacity) {
			t.Error(hosts, err)
		}
	}
}
