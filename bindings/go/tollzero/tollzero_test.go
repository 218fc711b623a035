package tollzero_test

import (
	"context"
	"errors"
	"testing"
	"time"

	tollbar "github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/tollzero"
)

func TestTokens(t *testing.T) {
	// A rate so slow that no token comes back during the test would need a burst within it: one token in a second.
	limiter := tollzero.NewTokenLimiter(1, 5, nil, "logins")
	if !limiter.AllowN(time.Now(), 4) || !limiter.AllowCtx(context.Background()) {
		t.Error("a full bucket refuses")
	}
	if limiter.AllowN(time.Now(), 5) || limiter.AllowN(time.Now(), 6) || limiter.AllowN(time.Now(), -1) {
		t.Error("an empty bucket admits")
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if tollzero.NewTokenLimiter(1, 5, nil, "logins").AllowCtx(ended) {
		t.Error("a request whose context has ended passes")
	}
}

func TestPeriods(t *testing.T) {
	for _, options := range [][]tollzero.PeriodOption{nil, {tollzero.Align()}} {
		limit := tollzero.NewPeriodLimit(365*24*3600, 3, nil, "login:", options...)
		for i, want := range []int{tollzero.Allowed, tollzero.Allowed, tollzero.HitQuota, tollzero.OverQuota, tollzero.OverQuota} {
			if code, err := limit.Take("ann"); code != want || err != nil {
				t.Errorf("request %d: %d (%v)", i, code, err)
			}
		}
		if code, err := limit.Take("bob"); code != tollzero.Allowed || err != nil {
			t.Errorf("another key: %d (%v)", code, err)
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if code, err := limit.TakeCtx(ended, "bob"); code != tollzero.Unknown || !errors.Is(err, context.Canceled) {
			t.Errorf("%d (%v)", code, err)
		}
	}
}

// Limiters of one store share the states of its table, and a closed table is an error.
func TestStores(t *testing.T) {
	tables := map[string]*tollbar.Table{}
	store := &tollzero.Store{Open: func(policy string) (table *tollbar.Table, err error) {
		if tables[policy] == nil {
			tables[policy], err = tollbar.NewTable(tollbar.TableOptions{Capacity: 10}, policy)
		}
		return tables[policy], err
	}}
	a, b := tollzero.NewPeriodLimit(3600*24*365, 2, store, "x:"), tollzero.NewPeriodLimit(3600*24*365, 2, store, "x:")
	for i, limit := range []*tollzero.PeriodLimit{a, b, a} {
		if code, err := limit.Take("ann"); code != []int{tollzero.Allowed, tollzero.HitQuota, tollzero.OverQuota}[i] || err != nil {
			t.Errorf("request %d: %d (%v)", i, code, err)
		}
	}
	for _, table := range tables {
		table.Close()
	}
	if code, err := a.Take("ann"); code != tollzero.Unknown || !errors.Is(err, tollbar.ErrClosed) {
		t.Errorf("%d (%v)", code, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a limiter without a quota is made")
		}
	}()
	tollzero.NewPeriodLimit(0, 2, nil, "")
}
