package limit

import (
	"context"
	"fmt"
	"time"

	tollbar "github.com/tollbar/tollbar/bindings/go"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

// The results of [PeriodLimit.Take].
const (
	// Unknown: the call failed.
	Unknown = iota
	// Allowed: the request passes.
	Allowed
	// HitQuota: the request passes, and is the last one of the period.
	HitQuota
	// OverQuota: the request is refused.
	OverQuota
)

const (
	// periodMost is 31 years, in seconds. Twice as many microseconds are exact in the script, on
	// top of the server's time.
	periodMost = 1_000_000_000
	// quotaMost is the largest quota that the script takes.
	quotaMost = 1 << 51
	// localKeys is the number of keys that can have used permits at one time, in a limit without
	// Redis.
	localKeys = 100_000
)

// PeriodLimit admits a quota of requests of each key in each period.
type PeriodLimit struct {
	server *server
	// table has the keys if there is no Redis.
	table         *tollbar.Table
	prefix        string
	period, quota int64
	// zone is the zone of aligned periods; nil: a key's period begins with its first request.
	zone *time.Location
}

// PeriodOption changes a PeriodLimit.
type PeriodOption func(*PeriodLimit)

// Align aligns periods to the local zone's clock: a period of a day begins at local midnight.
// Without it a key's period begins with its first request. The zone and its summer time are those
// of this process; the time is the Redis server's. A period that has begun keeps its length when
// the zone's offset changes.
func Align() PeriodOption { return func(l *PeriodLimit) { l.zone = time.Local } }

// NewPeriodLimit makes a limit of quota requests of a key in each period, in seconds. Limits of one
// Redis and prefix share their keys. With a nil store the keys are this limit's own, at most
// 100,000 that have used permits at one time. It panics if the period is not 1 to 10^9. A quota of
// 0 or less admits nothing.
func NewPeriodLimit(period, quota int, store *redis.Redis, keyPrefix string, options ...PeriodOption) *PeriodLimit {
	l := &PeriodLimit{server: serverOf(store), prefix: keyPrefix, period: int64(period), quota: max(min(int64(quota), quotaMost), 0)}
	for _, option := range options {
		option(l)
	}
	if l.period < 1 || l.period > periodMost {
		panic(fmt.Errorf("limit %q: a period of %d s; expected 1 to %d", keyPrefix, period, periodMost))
	}
	if store == nil && l.quota > 0 {
		policy := fmt.Sprintf("%d/%ds algo fixed-window", l.quota, l.period)
		if l.zone == nil {
			policy += " anchor first"
		}
		var err error
		if l.table, err = tollbar.NewTable(tollbar.TableOptions{Capacity: localKeys, MissingKey: tollbar.MissingReport}, policy); err != nil {
			panic(fmt.Errorf("limit %q: %w", keyPrefix, err))
		}
	}
	return l
}

// Take takes a permit of the key, and returns Allowed, HitQuota or OverQuota. With an error it
// returns Unknown. While Redis does not answer, that error comes at once.
func (l *PeriodLimit) Take(key string) (int, error) { return l.TakeCtx(context.Background(), key) }

// TakeCtx is Take, and the context's error if the context ends before the answer comes. A request
// that was under way then may have taken its permit.
func (l *PeriodLimit) TakeCtx(ctx context.Context, key string) (int, error) {
	if err := ctx.Err(); err != nil {
		return Unknown, err
	}
	if l.quota == 0 {
		return OverQuota, nil
	}
	anchored, offset := 1, time.Duration(0)
	if l.zone != nil {
		_, seconds := time.Now().In(l.zone).Zone()
		anchored, offset = 0, time.Duration(seconds)*time.Second
	}
	if l.server == nil {
		return l.takeHere(key, offset)
	}
	name := "tollbar:period:{" + l.prefix + key + "}"
	reply, err := l.server.run(ctx, windowScript, name, whole, 1, l.period*1_000_000, l.quota, anchored, 0, offset.Microseconds())
	if err != nil {
		return Unknown, err
	}
	used := reply[len(reply)-1]
	return code(reply[0] == 0, used == l.quota), nil
}

// takeHere is Take without Redis.
func (l *PeriodLimit) takeHere(key string, offset time.Duration) (int, error) {
	now, err := l.table.Now()
	if err != nil {
		return Unknown, err
	}
	decision, err := l.table.Under(0).CheckAt(l.prefix+key, uint64(time.Duration(now)+offset), 1)
	if err != nil {
		return Unknown, err
	}
	return code(decision.Allowed(), decision.Remaining == 0), nil
}

func code(allowed, last bool) int {
	switch {
	case !allowed:
		return OverQuota
	case last:
		return HitQuota
	}
	return Allowed
}
