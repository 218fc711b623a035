// Package tollzero has the limiters of go-zero's package core/limit, with its names and results, in this process's memory or in a table that processes
// of one machine share. A program changes the import, and the argument that was a *redis.Redis.
//
//	limiter := tollzero.NewTokenLimiter(100, 20, nil, "logins")
//	if limiter.AllowCtx(ctx) { ... }
//
//	limit := tollzero.NewPeriodLimit(60, 5, nil, "login:")
//	switch code, err := limit.Take(user); code { case tollzero.OverQuota: ... }
//
// It asks no Redis, so it neither waits for one nor fails with one, and counts in nanoseconds where go-zero counts whole seconds. For one limit over
// many machines use package redis of tollbar.
package tollzero

import (
	"context"
	"errors"
	"fmt"
	"time"

	tollbar "github.com/tollbar/tollbar/bindings/go"
)

// The results of [PeriodLimit.Take], with go-zero's numbers.
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

// ErrUnknownCode is go-zero's error of a store that answers with an unknown code. No call here returns it.
var ErrUnknownCode = errors.New("unknown status code")

// Store is a table for limiters, in place of go-zero's *redis.Redis: a table in memory, or in a file that processes share. A nil Store is a table in
// this process's memory. Each limiter adds its policy to the table of a Store.
type Store struct {
	// Open makes or opens the table for one limiter with that policy.
	Open func(policy string) (*tollbar.Table, error)
}

// open makes the table of a limiter.
func (s *Store) open(policy string) *tollbar.Table {
	open := func(policy string) (*tollbar.Table, error) {
		return tollbar.NewTable(tollbar.TableOptions{Capacity: capacity, MissingKey: tollbar.MissingReport}, policy)
	}
	if s != nil {
		open = s.Open
	}
	table, err := open(policy)
	if err != nil {
		// go-zero's constructors return no error. The arguments are constants of the program for the most part.
		panic(fmt.Errorf("tollzero: %s: %w", policy, err))
	}
	return table
}

// capacity is the number of keys of a table in memory that can have a debt at one time.
const capacity = 100_000

// TokenLimiter is a token bucket.
type TokenLimiter struct {
	table *tollbar.Table
	key   string
}

// NewTokenLimiter makes a bucket that gets rate tokens a second and holds burst at most. Limiters of one store and key share the bucket. It panics if
// the rate or the burst is not positive.
func NewTokenLimiter(rate, burst int, store *Store, key string) *TokenLimiter {
	return &TokenLimiter{store.open(fmt.Sprintf("%d/s burst %d", rate, burst)), "token:" + key}
}

// Allow is AllowN(time.Now(), 1).
func (l *TokenLimiter) Allow() bool { return l.AllowN(time.Now(), 1) }

// AllowCtx is AllowNCtx(ctx, time.Now(), 1).
func (l *TokenLimiter) AllowCtx(ctx context.Context) bool { return l.AllowNCtx(ctx, time.Now(), 1) }

// AllowN reports whether n events may happen now, and takes their tokens. The time must be now, as all callers of go-zero's method pass it: the bucket
// counts by a clock that does not go back.
func (l *TokenLimiter) AllowN(now time.Time, n int) bool {
	return l.AllowNCtx(context.Background(), now, n)
}

// AllowNCtx is AllowN, and false if the context has ended, as in go-zero.
func (l *TokenLimiter) AllowNCtx(ctx context.Context, _ time.Time, n int) bool {
	return ctx.Err() == nil && n >= 0 && l.table.AllowN(l.key, uint64(n))
}

// PeriodOption changes a PeriodLimit.
type PeriodOption func(*PeriodLimit)

// Align aligns periods to the local zone's clock: a period of a day begins at local midnight. The zone's present offset holds for the process.
func Align() PeriodOption { return func(l *PeriodLimit) { l.align = true } }

// PeriodLimit admits a quota of requests of each key in each period. A key's period begins with its first request, or with Align at a multiple of the
// period.
type PeriodLimit struct {
	table  *tollbar.Table
	prefix string
	align  bool
	offset time.Duration
}

// NewPeriodLimit makes a limit of quota requests in each period, in seconds. It panics if the period or the quota is not positive.
func NewPeriodLimit(period, quota int, store *Store, keyPrefix string, options ...PeriodOption) *PeriodLimit {
	l := &PeriodLimit{prefix: keyPrefix}
	for _, option := range options {
		option(l)
	}
	policy := fmt.Sprintf("%d/%ds algo fixed-window anchor first", quota, period)
	if l.align {
		policy = fmt.Sprintf("%d/%ds algo fixed-window", quota, period)
		_, seconds := time.Now().Zone()
		l.offset = time.Duration(seconds) * time.Second
	}
	l.table = store.open(policy)
	return l
}

// Take takes a permit of the key, and returns Allowed, HitQuota or OverQuota. With an error it returns Unknown.
func (l *PeriodLimit) Take(key string) (int, error) { return l.TakeCtx(context.Background(), key) }

// TakeCtx is Take, and the context's error if it has ended.
func (l *PeriodLimit) TakeCtx(ctx context.Context, key string) (int, error) {
	if err := ctx.Err(); err != nil {
		return Unknown, err
	}
	now, err := l.table.Now()
	if err != nil {
		return Unknown, err
	}
	decision, err := l.table.Under(0).CheckAt(l.prefix+key, uint64(time.Duration(now)+l.offset), 1)
	switch {
	case err != nil:
		return Unknown, err
	case !decision.Allowed():
		return OverQuota, nil
	case decision.Remaining == 0:
		return HitQuota, nil
	}
	return Allowed, nil
}
