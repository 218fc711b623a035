//go:build cgo || tollbar_purego

package redis_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/redis"
)

// storeError is a server's error, as go-redis returns it.
type storeError string

func (e storeError) Error() string { return string(e) }
func (storeError) RedisError()     {}

// eval is a Redis client that connects for each call.
func (r *server) eval(ctx context.Context, keys []string, args ...any) (any, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", r.socket())
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = connection.SetDeadline(deadline)
	}
	words := append([]string{"EVAL", redis.Script(), strconv.Itoa(len(keys))}, keys...)
	for _, arg := range args {
		words = append(words, arg.(string))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(connection, out.String()); err != nil {
		return nil, err
	}
	in := bufio.NewReader(connection)
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if line[0] == '-' {
		return nil, storeError(strings.TrimRight(line[1:], "\r\n"))
	}
	if line, err = in.ReadString('\n'); err != nil {
		return nil, err
	}
	length, err := strconv.Atoi(strings.TrimRight(line[1:], "\r\n"))
	if err != nil {
		return nil, err
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(in, text); err != nil {
		return nil, err
	}
	return []any{string(text)}, nil
}

func leaseBy(t *testing.T, name, policy string, eval redis.Eval) *redis.Lease {
	t.Helper()
	lease, err := redis.NewLease(name, policy, redis.LeaseOptions{Nodes: 1, Eval: eval})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// spend returns how many of so many requests passed, each with what the store says.
func spend(t *testing.T, lease *redis.Lease, key string, tries int) (passed int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for range tries {
		switch err := lease.Wait(ctx, key); {
		case err == nil:
			passed++
		case !errors.Is(err, tollbar.ErrDenied):
			t.Fatal(err)
		}
	}
	return passed
}

// Exactness keeps back eight permits. A goroutine that gets no processor for 250 ms loses what the
// store has served it.
func TestTheProgramsOwnClientAsks(t *testing.T) {
	r := startRedis(t)
	lease := leaseBy(t, "own", "1000/day burst 400", r.eval)
	until(t, func() bool { return lease.Circuit() == redis.CircuitClosed })
	if passed := spend(t, lease, "ann", 450); passed < 300 || passed > 400 {
		t.Errorf("%d of 400 passed", passed)
	}
	lease.Allow("bob")
	if err := lease.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if found := r.ask("EXISTS tollbar:{own}:k:bob"); found != ":1" {
		t.Errorf("%q", found)
	}
}

func TestItsErrorsOpenTheCircuit(t *testing.T) {
	r := startRedis(t)
	var fault atomic.Pointer[error]
	changes := make(chan redis.Circuit, 16)
	options := redis.LeaseOptions{Nodes: 1, OnChange: func(to redis.Circuit) { changes <- to }}
	options.Eval = func(ctx context.Context, keys []string, args ...any) (any, error) {
		if err := fault.Load(); err != nil {
			return nil, *err
		}
		return r.eval(ctx, keys, args...)
	}
	lease, err := redis.NewLease("errors", "100/s burst 50", options)
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close(context.Background())
	become := func(circuit redis.Circuit) {
		t.Helper()
		until(t, func() bool { return lease.Circuit() == circuit })
	}
	become(redis.CircuitClosed)
	for _, err := range []error{io.ErrUnexpectedEOF, storeError("OOM no room"), context.Canceled} {
		fault.Store(&err)
		become(redis.CircuitOpen)
		until(t, func() bool { return lease.Err() != nil && strings.HasSuffix(lease.Err().Error(), err.Error()) })
		fault.Store(nil)
		become(redis.CircuitClosed)
		until(t, func() bool { return lease.Err() == nil })
	}
	if first := <-changes; first != redis.CircuitClosed || len(changes) < 6 {
		t.Errorf("%v, and %d more", first, len(changes))
	}
}

// A call that answers something else is no answer.
func TestRepliesOfAnotherKind(t *testing.T) {
	for _, reply := range []any{nil, 1, "", "nonsense", []any{}, []any{"+", "+"}, []byte("+")} {
		eval := func(context.Context, []string, ...any) (any, error) { return reply, nil }
		lease := leaseBy(t, "kinds", "100/s burst 50", eval)
		until(t, func() bool { return lease.Circuit() == redis.CircuitOpen })
		if err := lease.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// A call that does not return ends with its context.
func TestACloseEndsTheCall(t *testing.T) {
	asked := make(chan struct{}, 1)
	lease := leaseBy(t, "hangs", "100/s burst 50", func(ctx context.Context, _ []string, _ ...any) (any, error) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	<-asked
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	since := time.Now()
	_ = lease.Close(ctx)
	if took := time.Since(since); took > 20*time.Second {
		t.Error(took)
	}
	if lease.Allow("ann") {
		t.Error("a closed lease admits")
	}
}

func TestAURLAndEvalAreTooMuch(t *testing.T) {
	r := startRedis(t)
	if _, err := redis.NewLease("both", "1/s", redis.LeaseOptions{Nodes: 1, URL: r.url(), Eval: r.eval}); err == nil {
		t.Error("accepted")
	}
}

func TestAnErrorHasTheStoresWords(t *testing.T) {
	r := startRedis(t)
	options := redis.LeaseOptions{Nodes: 1, URL: r.url() + "?user=nobody&password=wrong"}
	lease, err := redis.NewLease("words", "100/s burst 50", options)
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close(context.Background())
	until(t, func() bool { return lease.Err() != nil && strings.Contains(lease.Err().Error(), "WRONGPASS") })
}
