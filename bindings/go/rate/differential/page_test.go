//go:build go1.25

package differential

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tollbar "github.com/tollbar/tollbar/bindings/go"
	"golang.org/x/time/rate"
)

const page = "../../../../docs/from-x-time-rate.md"

// The calls of docs/from-x-time-rate.md, as the page writes them. Both limiters go by the bubble's
// clock, and answer alike.
func TestTheCallsOfThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		same := func(what string, theirs, ours any) {
			t.Helper()
			if theirs != ours {
				t.Errorf("%s: %v, theirs %v", what, ours, theirs)
			}
		}
		theirs := func() *rate.Limiter {
			return rate.NewLimiter(10, 20)
		}
		for _, make := range []func() (*tollbar.Limiter, error){
			func() (*tollbar.Limiter, error) { return tollbar.NewLimiter("10/s burst 20") },
			func() (*tollbar.Limiter, error) {
				return tollbar.NewLimiterOf(tollbar.Policy{Limit: 10, Period: time.Second, Burst: 20})
			},
		} {
			ours, err := make()
			if err != nil {
				t.Fatal(err)
			}
			compare(t, same, theirs(), ours)
			_ = ours.Close()
		}
		slow, err := tollbar.NewLimiter("1/min")
		if err != nil {
			t.Fatal(err)
		}
		theirSlow := rate.NewLimiter(rate.Every(time.Minute), 1)
		for range 3 {
			same("Every", theirSlow.Allow(), slow.Allow())
			time.Sleep(40 * time.Second)
		}
	})
}

// compare makes each call of both limiters. Each block has the names that the page uses.
func compare(t *testing.T, same func(string, any, any), theirs *rate.Limiter, ours *tollbar.Limiter) {
	ctx, n := context.Background(), 3
	{
		limiter := theirs
		a, b := limiter.Allow(), limiter.AllowN(time.Now(), n)
		limiter2 := ours
		{
			limiter := limiter2
			same("Allow", a, limiter.Allow())
			same("AllowN", b, limiter.AllowN(uint64(n)))
		}
	}
	at := time.Now()
	{
		t := at
		limiter := theirs
		a := limiter.AllowN(t, n)
		limiter2 := ours
		{
			limiter := limiter2
			same("AllowAt", a, limiter.AllowAt(t, n))
		}
	}
	tokens := func() (float64, uint64) {
		limiter := theirs
		left := limiter.Tokens()
		{
			limiter := ours
			state, err := limiter.State()
			if err != nil {
				t.Fatal(err)
			}
			return left, state.Remaining
		}
	}
	left, remaining := tokens()
	same("Tokens", uint64(left), remaining)
	var delay time.Duration
	{
		limiter, n := theirs, 20
		r := limiter.ReserveN(time.Now(), n)
		same("OK", r.OK(), true)
		delay = r.Delay()
		r.Cancel()
	}
	{
		limiter, n := ours, uint64(20)
		r, err := limiter.Reserve(n, tollbar.Forever)
		if err != nil {
			t.Fatal(err)
		}
		same("Delay", delay, r.Wait)
		if _, err := limiter.Cancel(r); err != nil {
			t.Error(err)
		}
	}
	waited := func(wait func() error) time.Duration {
		began := time.Now()
		if err := wait(); err != nil {
			t.Error(err)
		}
		return time.Since(began)
	}
	// Fresh again.
	time.Sleep(time.Minute)
	var a, b [2]time.Duration
	{
		limiter := theirs
		limiter.AllowN(time.Now(), 20)
		a[0] = waited(func() error { return limiter.Wait(ctx) })
		a[1] = waited(func() error { return limiter.WaitN(ctx, n) })
	}
	{
		limiter := ours
		limiter.AllowN(20)
		b[0] = waited(func() error { return limiter.Wait(ctx) })
		b[1] = waited(func() error { return limiter.WaitN(ctx, uint64(n)) })
	}
	for i := range a {
		if early := a[i] - b[i]; early > time.Microsecond || early < -time.Microsecond {
			t.Errorf("waits %v, theirs %v", b, a)
		}
	}
	{
		limiter := theirs
		limiter.SetLimit(20)
		limiter.SetBurst(40)
		same("Limit", float64(limiter.Limit()), 20.0)
		same("Burst", limiter.Burst(), 40)
	}
	{
		limiter := ours
		if err := limiter.SetPolicy("20/s burst 40", tollbar.KeepCount); err != nil {
			t.Fatal(err)
		}
		policy := limiter.Policy()
		same("Policy", policy.Limit, uint64(20))
		same("Burst", policy.Burst, uint64(40))
	}
	time.Sleep(time.Minute)
	left, remaining = tokens()
	same("Tokens of the new burst", uint64(left), remaining)
}

// Each cell of the page's table that is a call stands in this file.
func TestTheCallsOfThePageAreHere(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("page_test.go")
	if err != nil {
		t.Fatal(err)
	}
	code := strings.ReplaceAll(string(source), "uint64(n)", "n")
	cells := 0
	for _, row := range regexp.MustCompile("(?m)^\\| `.*$").FindAllString(string(text), -1) {
		if strings.Contains(row, "those of the replacement") {
			continue
		}
		for _, cell := range regexp.MustCompile("`([^`]*\\([^`]*)`").FindAllStringSubmatch(row, -1) {
			cells++
			if !strings.Contains(code, cell[1]) && !strings.Contains(cell[1], "table.") {
				t.Errorf("%s: no test makes this call", cell[1])
			}
		}
	}
	if cells < 20 {
		t.Errorf("%d calls", cells)
	}
}
