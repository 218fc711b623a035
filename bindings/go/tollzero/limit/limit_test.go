package limit

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// The scripts decide as tollbar's own client does, since they are the same.
func TestScripts(t *testing.T) {
	for name, source := range map[string]string{"bucket.lua": bucketSource, "window.lua": windowSource} {
		original, err := os.ReadFile("../../../../crates/tollbar-redis/src/store/scripts/" + name)
		if err != nil || string(original) != source {
			t.Errorf("%s is another than that of crates/tollbar-redis/src/store/scripts: copy it (%v)", name, err)
		}
	}
}

// awayFromEdges waits until no period of that many seconds ends within ten seconds, by a clock that
// is ahead of UTC by so many seconds.
func awayFromEdges(period, ahead int64) {
	for period-(time.Now().Unix()+ahead)%period <= 10 {
		time.Sleep(50 * time.Millisecond)
	}
}

func TestTokensHere(t *testing.T) {
	limiter := NewTokenLimiter(1, 5, nil, "logins")
	if !limiter.AllowN(time.Now(), 4) || !limiter.AllowCtx(context.Background()) {
		t.Error("a full bucket refuses")
	}
	if limiter.AllowN(time.Now(), 5) || limiter.AllowN(time.Now(), 6) || limiter.AllowN(time.Now(), -1) {
		t.Error("an empty bucket admits")
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if NewTokenLimiter(1, 5, nil, "logins").AllowCtx(ended) {
		t.Error("a request whose context has ended passes")
	}
	if NewTokenLimiter(1, 0, nil, "").Allow() || NewTokenLimiter(1, -1, nil, "").Allow() {
		t.Error("a bucket without room admits")
	}
}

func TestPeriodsHere(t *testing.T) {
	const year = 365 * 24 * 3600
	for _, options := range [][]PeriodOption{nil, {Align()}} {
		_, ahead := time.Now().Zone()
		awayFromEdges(year, int64(ahead))
		limit := NewPeriodLimit(year, 3, nil, "login:", options...)
		for i, want := range []int{Allowed, Allowed, HitQuota, OverQuota, OverQuota} {
			if code, err := limit.Take("ann"); code != want || err != nil {
				t.Errorf("request %d: %d (%v)", i, code, err)
			}
		}
		if code, err := limit.Take("bob"); code != Allowed || err != nil {
			t.Errorf("another key: %d (%v)", code, err)
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if code, err := limit.TakeCtx(ended, "bob"); code != Unknown || !errors.Is(err, context.Canceled) {
			t.Errorf("%d (%v)", code, err)
		}
	}
	if code, err := NewPeriodLimit(1, 0, nil, "").Take("ann"); code != OverQuota || err != nil {
		t.Errorf("%d of a quota of 0 (%v)", code, err)
	}
}

// The largest arguments decide, and larger ones are refused when the limit is made.
func TestArguments(t *testing.T) {
	r := startRedis(t)
	for _, rate := range []int{1, rateMost} {
		limiter := NewTokenLimiter(rate, burstMost, r.store(), "large")
		if !limiter.AllowN(time.Now(), burstMost) || limiter.server.down.Load() != nil {
			t.Errorf("the largest burst at %d a second is refused", rate)
		}
		r.ask("DEL", "tollbar:token:{large}")
	}
	most := 1<<31 - 1
	if code, err := NewPeriodLimit(periodMost, most, r.store(), "large:").Take("k"); code != Allowed || err != nil {
		t.Errorf("%d (%v)", code, err)
	}
	for i, make := range []func(){
		func() { NewTokenLimiter(0, 1, nil, "") },
		func() { NewTokenLimiter(rateMost+1, 1, nil, "") },
		func() { NewTokenLimiter(1, burstMost+1, nil, "") },
		func() { NewPeriodLimit(0, 1, nil, "") },
		func() { NewPeriodLimit(periodMost+1, 1, nil, "") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("the limit %d is made", i)
				}
			}()
			make()
		}()
	}
}
