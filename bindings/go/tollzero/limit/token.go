package limit

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	tollbar "github.com/tollbar/tollbar/bindings/go"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

const (
	// tokenUnits is the number of a bucket's units in a token: the bucket gets `rate` units each
	// microsecond.
	tokenUnits = 1_000_000
	// The largest rate and burst with which all numbers of the script are exact, and an empty
	// bucket fills within 71 years.
	rateMost, burstMost = 1_000_000_000, 2_000_000_000
)

// TokenLimiter is a token bucket.
type TokenLimiter struct {
	server      *server
	key         string
	rate, burst int64
	// local is the bucket of this process. It decides while Redis does not answer, or if there is
	// no Redis. While Redis decides, what Redis admits is charged to it too, so that it does not
	// begin full.
	local *tollbar.Limiter
	// localBurst is the burst of local.
	localBurst int64
	// owed is the number of tokens that local has given and Redis does not know.
	owed atomic.Int64
}

// TokenOption changes a TokenLimiter. go-zero has none.
type TokenOption func(*tokenOptions)

type tokenOptions struct{ processes int64 }

// Processes says how many processes share the limit. While Redis does not answer, each gives its
// part of the rate, and of the burst, but at least one token: a request for more tokens than that
// part is refused then. Without this option each process gives the whole rate then, as in go-zero.
func Processes(n int) TokenOption { return func(o *tokenOptions) { o.processes = max(int64(n), 1) } }

// NewTokenLimiter makes a bucket that gets rate tokens a second and holds at most burst. Limiters
// of one Redis and key share the bucket. With a nil store the bucket is this limiter's own. It
// panics if the rate is not 1 to 10^9, or the burst above 2·10^9. A burst of 0 or less admits
// nothing.
func NewTokenLimiter(rate, burst int, store *redis.Redis, key string, options ...TokenOption) *TokenLimiter {
	chosen := tokenOptions{processes: 1}
	for _, option := range options {
		option(&chosen)
	}
	l := &TokenLimiter{server: serverOf(store), key: "tollbar:token:{" + key + "}", rate: int64(rate), burst: int64(burst)}
	if l.rate < 1 || l.rate > rateMost || l.burst > burstMost {
		panic(fmt.Errorf("limit %q: rate %d, burst %d; expected a rate of 1 to %d and a burst of at most %d", key, rate, burst, rateMost, burstMost))
	}
	l.localBurst = max(l.burst/chosen.processes, 1)
	var err error
	if l.local, err = tollbar.NewLimiter(fmt.Sprintf("%d/%ds burst %d", rate, chosen.processes, l.localBurst)); err != nil {
		panic(fmt.Errorf("limit %q: %w", key, err))
	}
	return l
}

// Allow is AllowN(time.Now(), 1).
func (l *TokenLimiter) Allow() bool { return l.AllowN(time.Now(), 1) }

// AllowCtx is AllowNCtx(ctx, time.Now(), 1).
func (l *TokenLimiter) AllowCtx(ctx context.Context) bool { return l.AllowNCtx(ctx, time.Now(), 1) }

// AllowN reports whether n events may happen now, and takes their tokens. The time is that of the
// Redis server, whatever now says.
func (l *TokenLimiter) AllowN(now time.Time, n int) bool {
	return l.AllowNCtx(context.Background(), now, n)
}

// AllowNCtx is AllowN, and false if the context ends before the answer comes. A request that was
// under way then may have taken its tokens.
func (l *TokenLimiter) AllowNCtx(ctx context.Context, _ time.Time, n int) bool {
	cost := int64(n)
	switch {
	case ctx.Err() != nil || cost < 0 || cost > max(l.burst, 0):
		return false
	case cost == 0:
		return true
	case l.server == nil:
		return l.local.AllowN(uint64(cost))
	}
	var reply []int64
	// While Redis does not know what the process has given, it would give too much.
	err := l.settle(ctx)
	if err == nil {
		reply, err = l.run(ctx, whole, cost)
	}
	switch {
	case err == nil && reply[0] == 0:
		l.local.AllowN(uint64(cost))
		return true
	case err == nil || ctx.Err() != nil:
		return false
	case l.server.down.Load() == nil:
		// The others are logged once for all limiters.
		logx.Errorf("limit %s: %v; the limit of this process decides", l.key, err)
	}
	if !l.local.AllowN(uint64(cost)) {
		return false
	}
	l.owed.Add(cost)
	return true
}

// run runs the script that decides.
func (l *TokenLimiter) run(ctx context.Context, mode int, cost int64) ([]int64, error) {
	return l.server.run(ctx, bucketScript, l.key, mode, cost, 1, l.rate, tokenUnits, l.burst*tokenUnits)
}

// settle charges Redis what local has given without it, as far as the tokens have not come back
// since. An error means that Redis does not know it yet.
func (l *TokenLimiter) settle(ctx context.Context) error {
	// Without Redis the caller's own request gets the error.
	if l.owed.Load() == 0 || l.server.down.Load() != nil {
		return nil
	}
	owed := l.owed.Swap(0)
	state, err := l.local.Peek(0)
	cost := min(owed, l.localBurst-int64(state.Remaining))
	if err != nil || cost <= 0 {
		return nil
	}
	if _, err := l.run(ctx, upTo, cost); err != nil {
		l.owed.Add(owed)
		return err
	}
	return nil
}
