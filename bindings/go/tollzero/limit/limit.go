// Package limit has the limiters of go-zero's package core/limit, with its names, arguments and
// results. A program changes the import path:
//
//	import "github.com/tollbar/tollbar/bindings/go/tollzero/limit" // was "github.com/zeromicro/go-zero/core/limit"
//
//	limiter := limit.NewTokenLimiter(100, 20, store, "logins")
//	if limiter.AllowCtx(ctx) { ... }
//
//	quota := limit.NewPeriodLimit(60, 5, store, "login:")
//	switch code, err := quota.Take(user); code { case limit.OverQuota: ... }
//
// One script of the Redis server decides on each request by the server's clock, in microseconds. So
// the clocks of the clients do not matter, and any number of processes together admit what one
// limiter would. With a nil store the limits are those of this process.
//
// While Redis does not answer, a [TokenLimiter] decides by a bucket of this process, and a
// [PeriodLimit] returns an error without asking Redis. One goroutine for each Redis asks every 100
// ms whether it answers again. Any number of goroutines may make any call at once.
package limit

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zeromicro/go-zero/core/breaker"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

// ErrUnknownCode is the error of an answer that no script of this package gives: the key holds a
// value of another program.
var ErrUnknownCode = errors.New("unknown status code")

// The scripts are those of tollbar's own client. A test compares the copies.
var (
	//go:embed bucket.lua
	bucketSource string
	//go:embed window.lua
	windowSource string
	scripts      = [...]script{
		{bucketSource, redis.NewScript(bucketSource).Hash()},
		{windowSource, redis.NewScript(windowSource).Hash()},
	}
)

type script struct{ source, hash string }

// The indices of scripts.
const (
	bucketScript = iota
	windowScript
)

// The first argument of a script: charge the whole cost or nothing, or as much of it as there is
// room for.
const (
	whole = 0
	upTo  = 2
)

const (
	// probeInterval is the time between two questions to a Redis that does not answer.
	probeInterval = 100 * time.Millisecond
	// blindly is the number of intervals after which the prober asks go-zero's client although
	// nothing listens at the address. A program may have given the client another way to connect.
	blindly = 10
)

// patience is the longest wait for an answer of Redis. After it Redis counts as one that does not
// answer. A test changes it.
var patience = time.Second

var errLate = fmt.Errorf("no answer within %v", patience)

// servers has a *server for each kind and address of Redis. go-zero also has one client for each.
var servers sync.Map

// server is a Redis, and whether it answers.
type server struct {
	store *redis.Redis
	// down is the error with which calls end while Redis does not answer, and nil while it does.
	down atomic.Pointer[error]
	// loaded says which scripts Redis has. A call by the hash of a script that Redis lacks fails,
	// and go-zero's breaker counts that.
	loaded  [len(scripts)]atomic.Bool
	lock    sync.Mutex
	probing bool
}

func serverOf(store *redis.Redis) *server {
	if store == nil {
		return nil
	}
	s, _ := servers.LoadOrStore(store.Type+" "+store.Addr, &server{store: store})
	return s.(*server)
}

type answer struct {
	value any
	err   error
}

// run runs a script, and returns the numbers of its reply. If the context ends, it returns the
// context's error at once, and the script's end still tells whether Redis answers. If Redis does
// not answer, the call ends after patience, and later ones at once.
func (s *server) run(ctx context.Context, script int, key string, args ...any) ([]int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.down.Load(); err != nil {
		return nil, *err
	}
	answers := make(chan answer, 2)
	go func() {
		// The script is not sent again after patience, or it would charge a request that this
		// process has already decided.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		late := time.AfterFunc(patience, func() {
			s.lost(errLate)
			answers <- answer{err: errLate}
		})
		value, err := s.eval(ctx, script, key, args)
		// The breaker's refusal says nothing about Redis, and what comes late says nothing about
		// Redis now.
		if late.Stop() && err != nil && !errors.Is(err, breaker.ErrServiceUnavailable) {
			s.lost(err)
		}
		answers <- answer{value, err}
	}()
	select {
	case got := <-answers:
		if got.err != nil {
			return nil, got.err
		}
		return numbers(got.value, key)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// eval runs a script by its hash, or by its source if Redis may not have it.
func (s *server) eval(ctx context.Context, number int, key string, args []any) (any, error) {
	script, loaded, keys := &scripts[number], &s.loaded[number], []string{key}
	if loaded.Load() {
		value, err := s.store.EvalShaCtx(ctx, script.hash, keys, args...)
		if err == nil || !strings.HasPrefix(err.Error(), "NOSCRIPT") {
			return value, err
		}
	}
	value, err := s.store.EvalCtx(ctx, script.source, keys, args...)
	loaded.Store(err == nil)
	return value, err
}

// numbers returns the numbers of a reply, which are at least the verdict and the permits taken.
func numbers(value any, key string) ([]int64, error) {
	list, _ := value.([]any)
	reply := make([]int64, len(list))
	for i, item := range list {
		number, ok := item.(int64)
		if !ok {
			return nil, ErrUnknownCode
		}
		reply[i] = number
	}
	if len(reply) < 4 {
		return nil, fmt.Errorf("the value at %s is not a limit's: %w", key, ErrUnknownCode)
	}
	return reply, nil
}

// lost notes that Redis does not answer, and starts the prober.
func (s *server) lost(cause error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	err := fmt.Errorf("rate limits in Redis at %s: %w", s.store.Addr, cause)
	s.down.Store(&err)
	for i := range s.loaded {
		s.loaded[i].Store(false)
	}
	if !s.probing {
		s.probing = true
		logx.Errorf("%v; until it answers, limits of this process decide", err)
		go s.probe()
	}
}

// probe ends when Redis answers again.
func (s *server) probe() {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	ask := func() {
		if s.store.Ping() {
			s.down.Store(nil)
		}
	}
	var blind atomic.Bool
	for tries := 1; s.isDown(); tries++ {
		<-ticker.C
		switch {
		// A call that fails counts in go-zero's breaker, which would then refuse calls for seconds
		// after Redis is back.
		case listens(s.store.Addr):
			ask()
		// go-redis may wait for seconds for a connection that does not come. Meanwhile the prober
		// looks who listens.
		case tries%blindly == 0 && blind.CompareAndSwap(false, true):
			go func() {
				defer blind.Store(false)
				ask()
			}()
		}
	}
	logx.Infof("rate limits in Redis at %s: it answers again", s.store.Addr)
}

// isDown also notes that the prober ends if Redis answers.
func (s *server) isDown() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.probing = s.down.Load() != nil
	return s.probing
}

// listens reports whether one of the addresses, separated by commas, takes connections.
func listens(addresses string) bool {
	for address := range strings.SplitSeq(addresses, ",") {
		network := "tcp"
		if strings.HasPrefix(address, "/") {
			network = "unix"
		}
		if connection, err := net.DialTimeout(network, address, probeInterval); err == nil {
			connection.Close()
			return true
		}
	}
	return false
}
