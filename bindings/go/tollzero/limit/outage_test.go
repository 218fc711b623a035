package limit

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/zeromicro/go-zero/core/breaker"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

// slow is what no call takes that does not wait for Redis in vain, on a busy machine too.
const slow = 500 * time.Millisecond

// A Redis that stops without a word costs each goroutine one call of a second, and decides again
// when it goes on.
func TestStopped(t *testing.T) {
	r := startRedis(t)
	tokens, periods := NewTokenLimiter(1000, 1000, r.store(), "stop"), NewPeriodLimit(month, 1000, r.store(), "stop:")
	if code, err := periods.Take("k"); !tokens.Allow() || code != Allowed || err != nil {
		t.Fatalf("%d (%v)", code, err)
	}
	r.signal(syscall.SIGSTOP)
	var group sync.WaitGroup
	for goroutine := range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			waits, denials := 0, 0
			for range 50 {
				start := time.Now()
				if goroutine%2 == 0 {
					if !tokens.Allow() {
						denials++
					}
				} else if code, err := periods.Take("k"); code != Unknown || err == nil {
					t.Errorf("%d of a Redis that does not answer", code)
				}
				if time.Since(start) > slow {
					waits++
				}
			}
			if waits > 1 || denials > 0 {
				t.Errorf("%d slow calls, %d denials", waits, denials)
			}
		}()
	}
	group.Wait()
	r.signal(syscall.SIGCONT)
	back(t, periods)
}

// back waits until Redis decides, and expects it within two intervals of the prober. Two seconds
// are for a busy machine: go-zero's breaker, or a connection that go-redis waits for, takes longer.
func back(t *testing.T, periods *PeriodLimit) {
	t.Helper()
	start := time.Now()
	until(t, func() bool {
		_, err := periods.Take("back")
		return err == nil
	})
	if took := time.Since(start); took > 2*probeInterval+2*time.Second {
		t.Errorf("Redis decides again after %v", took)
	}
}

// A process admits one burst while Redis is away, and Redis learns of it.
func TestKilled(t *testing.T) {
	r := startRedis(t)
	tokens, periods := NewTokenLimiter(1, 60, r.store(), "kill"), NewPeriodLimit(month, 1000, r.store(), "kill:")
	start := time.Now()
	take := func(most int) (admitted int) {
		for range most {
			if tokens.Allow() {
				admitted++
			}
		}
		return admitted
	}
	if n := take(20); n != 20 {
		t.Fatalf("%d of 20 pass", n)
	}
	r.kill()
	admitted := 20 + take(30)
	if admitted != 50 {
		t.Errorf("%d of 50 pass", admitted)
	}
	if _, err := periods.Take("k"); err == nil {
		t.Error("a limit of Redis decides without it")
	}
	r.start()
	back(t, periods)
	// Redis has forgotten the first 20, and knows the 30.
	admitted = take(100)
	if fill := int(time.Since(start).Seconds()) + 1; admitted < 30 || admitted > 30+fill {
		t.Errorf("%d pass after an empty Redis has come back, which lacks 30 of 60 tokens", admitted)
	}
}

// While Redis does not answer, the requests that it admitted before count too.
func TestNoSecondBurst(t *testing.T) {
	r := startRedis(t)
	tokens := NewTokenLimiter(1, 10, r.store(), "again")
	if !tokens.AllowN(time.Now(), 10) {
		t.Fatal("a full bucket refuses")
	}
	r.kill()
	if tokens.AllowN(time.Now(), 9) {
		t.Error("a burst passes again without Redis")
	}
}

// A context that ends gives false at once, and is no failure of Redis.
func TestContexts(t *testing.T) {
	r := startRedis(t)
	tokens, periods := NewTokenLimiter(1, 10, r.store(), "ctx"), NewPeriodLimit(month, 10, r.store(), "ctx:")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if code, err := periods.TakeCtx(ended, "k"); tokens.AllowCtx(ended) || code != Unknown ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("%d (%v)", code, err)
	}
	r.signal(syscall.SIGSTOP)
	soon, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	start := time.Now()
	code, err := periods.TakeCtx(soon, "k")
	soon, cancel = context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if tokens.AllowCtx(soon) || code != Unknown || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > slow {
		t.Errorf("%d after %v (%v)", code, time.Since(start), err)
	}
	if periods.server.down.Load() != nil {
		t.Error("a context that ends counts as a failure")
	}
	r.signal(syscall.SIGCONT)
	if code, err := periods.Take("k"); !tokens.Allow() || code != Allowed || err != nil {
		t.Errorf("%d (%v)", code, err)
	}
}

// Limiters of one Redis have one prober, however often and from wherever they fail.
func TestOneProber(t *testing.T) {
	r := startRedis(t)
	a, b := NewTokenLimiter(1, 10, r.store(), "a"), NewPeriodLimit(month, 10, r.store(), "b")
	if a.server != b.server {
		t.Fatal("two limiters of one Redis do not share what they know of it")
	}
	admitted := 0
	r.kill()
	for range 20 {
		a.server.lost(errLate)
	}
	start := time.Now()
	for time.Since(start) < 10*probeInterval {
		if a.Allow() {
			admitted++
		}
		time.Sleep(time.Millisecond)
	}
	if fill := int(time.Since(start).Seconds()) + 2; admitted < 10 || admitted > 10+fill {
		t.Errorf("%d of a burst of 10 pass, and %d that came back", admitted, fill)
	}
	// The goroutines of the test's own program: one prober, however many calls have failed.
	stacks := make([]byte, 1<<20)
	if n := strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "(*server).probe("); n != 1+elsewhere(a.server) {
		t.Errorf("%d probers", n)
	}
	r.start()
	back(t, b)
	until(t, func() bool { return !a.server.isDown() })
}

// unroutable is a network that takes go-redis's connections and does nothing with them.
type unroutable struct {
	on atomic.Bool
	// to is another address, if not empty.
	to string
}

func (u *unroutable) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if u.on.Load() {
			time.Sleep(5 * time.Second)
		}
		if u.to != "" {
			address = u.to
		}
		return next(ctx, network, address)
	}
}

func (u *unroutable) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (u *unroutable) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The prober notices that Redis is back while go-redis still waits for the connections of a caller
// and of a ping that the prober sent blindly.
func TestUnroutable(t *testing.T) {
	r, network := startRedis(t), &unroutable{}
	periods := NewPeriodLimit(month, 10, redis.New(r.path, redis.WithHook(network)), "u:")
	if _, err := periods.Take("k"); err != nil {
		t.Fatal(err)
	}
	r.kill()
	network.on.Store(true)
	if _, err := periods.Take("k"); err == nil {
		t.Fatal("a killed Redis decides")
	}
	time.Sleep((blindly + 2) * probeInterval)
	// The network is mended first: the prober asks as soon as somebody listens.
	network.on.Store(false)
	r.start()
	back(t, periods)
}

// A Redis behind a tunnel of go-redis, at whose address nothing listens, is asked once in ten
// intervals.
func TestTunnel(t *testing.T) {
	r := startRedis(t)
	periods := NewPeriodLimit(month, 10, redis.New(r.path+"-tunnel", redis.WithHook(&unroutable{to: r.path})), "t:")
	if _, err := periods.Take("k"); err != nil {
		t.Fatal(err)
	}
	periods.server.lost(errLate)
	if _, err := periods.Take("k"); err == nil {
		t.Error("a lost Redis decides")
	}
	until(t, func() bool {
		_, err := periods.Take("k")
		return err == nil
	})
}

// elsewhere counts the probers of other tests, whose Redis does not come back.
func elsewhere(s *server) (n int) {
	servers.Range(func(_, other any) bool {
		if other != s && other.(*server).isDown() {
			n++
		}
		return true
	})
	return n
}

// The processes share the rate while Redis does not answer.
func TestProcesses(t *testing.T) {
	tokens := NewTokenLimiter(4, 8, redis.New("/nowhere/redis"), "parts", Processes(4))
	admitted := 0
	for range 20 {
		if tokens.Allow() {
			admitted++
		}
	}
	// A fourth of the burst, and at most one token of the time that the first call waits.
	if admitted < 2 || admitted > 3 {
		t.Errorf("%d requests pass of a fourth of 8", admitted)
	}
}

// go-zero's breaker refuses calls of a Redis whose other commands fail. Then the limit of this
// process decides, and nothing waits for a prober.
func TestBreaker(t *testing.T) {
	r := startRedis(t)
	store := r.store()
	for range 300 {
		_, _ = store.Eval("return redis.call('NOCOMMAND')", nil)
	}
	tokens, periods := NewTokenLimiter(1, 100, store, "breaker"), NewPeriodLimit(month, 1000, store, "breaker:")
	refused := 0
	for i := range 100 {
		if !tokens.Allow() {
			t.Errorf("request %d is refused", i)
		}
		if _, err := periods.Take("k"); errors.Is(err, breaker.ErrServiceUnavailable) {
			refused++
		}
	}
	// Now and then the breaker lets a request through whose settlement it has refused.
	for start := time.Now(); time.Since(start) < 2*time.Second; {
		if tokens.AllowN(time.Now(), 5) {
			t.Fatal("more than a burst passes")
		}
	}
	if tokens.server.down.Load() != nil || refused == 0 {
		t.Errorf("of %d refusals of the breaker one counts as a failure of Redis", refused)
	}
}
