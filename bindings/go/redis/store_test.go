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
	"sync"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/redis"
)

// twenty are limits of 20 whose permits do not come back during a test.
var twenty = map[string]string{
	"gcra":            "20/day burst 20",
	"interval":        "20/day burst 20 algo interval",
	"fixed window":    "20/day algo fixed-window",
	"weighted window": "20/day algo weighted-window",
	"sliding window":  "20/day algo sliding-window",
	"sliding log":     "20/day algo sliding-log",
}

// machine is a Redis client with a connection of its own, for one goroutine.
type machine struct {
	connection net.Conn
	in         *bufio.Reader
}

func (r *server) machine() *machine {
	r.t.Helper()
	connection, err := net.Dial("unix", r.socket())
	if err != nil {
		r.t.Fatal(err)
	}
	_ = connection.SetDeadline(time.Now().Add(time.Minute))
	r.t.Cleanup(func() { connection.Close() })
	return &machine{connection, bufio.NewReader(connection)}
}

// run is a [redis.RunScript], with the reply that go-redis returns.
func (m *machine) run(_ context.Context, script, key string, args ...any) (any, error) {
	words := []string{"EVAL", script, "1", key}
	for _, arg := range args {
		words = append(words, strconv.FormatInt(arg.(int64), 10))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(m.connection, out.String()); err != nil {
		return nil, err
	}
	count, err := m.number('*')
	reply := []any{}
	for ; err == nil && count > 0; count-- {
		var number int64
		number, err = m.number(':')
		reply = append(reply, number)
	}
	return reply, err
}

// number reads a line of that kind.
func (m *machine) number(kind byte) (int64, error) {
	line, err := m.in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, storeError(strings.TrimRight(line[1:], "\r\n"))
	}
	return strconv.ParseInt(strings.TrimRight(line[1:], "\r\n"), 10, 64)
}

func storeLimit(t *testing.T, name, policy string, run redis.RunScript) *redis.StoreLimit {
	t.Helper()
	limit, err := redis.NewStoreLimit(name, policy, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { limit.Close() })
	return limit
}

// atOnce returns how many requests of two machines passed and were refused, of so many of each.
func atOnce(t *testing.T, machines [2]*redis.StoreLimit, key string, tries int) (passed, refused int) {
	t.Helper()
	var counts [2]int
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i, limit := range machines {
		all.Add(1)
		go func() {
			defer all.Done()
			<-begin
			for range tries {
				allowed, err := limit.Allow(context.Background(), key)
				if err != nil {
					t.Error(err)
				}
				if allowed {
					counts[i]++
				}
			}
		}()
	}
	close(begin)
	all.Wait()
	passed = counts[0] + counts[1]
	return passed, 2*tries - passed
}

func TestStoreLimitsAreExactOverMachines(t *testing.T) {
	r := startRedis(t)
	for name, policy := range twenty {
		t.Run(name, func(t *testing.T) {
			limit := strings.ReplaceAll(name, " ", "-")
			machines := [2]*redis.StoreLimit{
				storeLimit(t, limit, policy, r.machine().run), storeLimit(t, limit, policy, r.machine().run),
			}
			if passed, refused := atOnce(t, machines, "rush", 50); passed != 20 || refused != 80 {
				t.Errorf("of 100 requests %d passed and %d were refused", passed, refused)
			}
			if passed, refused := atOnce(t, machines, "half", 10); passed != 20 || refused != 0 {
				t.Errorf("of 20 requests %d passed and %d were refused", passed, refused)
			}
			if passed, refused := atOnce(t, machines, "half", 10); passed != 0 || refused != 20 {
				t.Errorf("of 20 requests above the limit %d passed and %d were refused", passed, refused)
			}
		})
	}
}

func TestStorePeekUpToAndReset(t *testing.T) {
	r := startRedis(t)
	ctx := context.Background()
	for name, policy := range twenty {
		t.Run(name, func(t *testing.T) {
			limit := storeLimit(t, strings.ReplaceAll(name, " ", "-"), policy, r.machine().run)
			decides := func(d tollbar.Decision, err error, verdict tollbar.Verdict, remaining uint64) {
				t.Helper()
				if err != nil || d.Verdict != verdict || d.Remaining != remaining {
					t.Errorf("%+v, %v", d, err)
				}
			}
			d, err := limit.Check(ctx, "ann", 3)
			decides(d, err, tollbar.Allowed, 17)
			if d.ResetAfter <= 0 || d.RetryAfter != 0 || d.Reason != tollbar.ReasonAdmitted {
				t.Errorf("%+v", d)
			}
			for range 3 {
				d, err = limit.Peek(ctx, "ann", 17)
				decides(d, err, tollbar.Allowed, 17)
			}
			d, err = limit.Peek(ctx, "ann", 18)
			decides(d, err, tollbar.Denied, 17)
			if d.RetryAfter <= 0 || d.RetryAfter == tollbar.Forever {
				t.Error(d.RetryAfter)
			}
			d, err = limit.Check(ctx, "ann", 21)
			decides(d, err, tollbar.Never, 17)
			for _, rest := range []uint64{17, 0} {
				if taken, err := limit.TakeUpTo(ctx, "ann", 1<<60); taken != rest || err != nil {
					t.Errorf("%d of %d, %v", taken, rest, err)
				}
			}
			d, err = limit.Check(ctx, "ann", 1)
			decides(d, err, tollbar.Denied, 0)
			if err := limit.Reset(ctx, "ann"); err != nil {
				t.Error(err)
			}
			d, err = limit.Check(ctx, "ann", 20)
			decides(d, err, tollbar.Allowed, 0)
			// Any bytes make a key, up to 512 of them.
			for _, key := range []string{"\x00\r\n \xff", strings.Repeat("k", 512)} {
				d, err = limit.Check(ctx, key, 1)
				decides(d, err, tollbar.Allowed, 19)
			}
		})
	}
}

// A key with another value is an error, and keeps its value.
func TestStoreValuesOfOthers(t *testing.T) {
	r := startRedis(t)
	ctx := context.Background()
	for name, policy := range twenty {
		limit := storeLimit(t, "values", policy, r.machine().run)
		r.ask("DEL tollbar:{values}:ann")
		if pushed := r.ask("LPUSH tollbar:{values}:ann other"); pushed != ":1" {
			t.Fatal(pushed)
		}
		d, err := limit.Check(ctx, "ann", 1)
		if !errors.Is(err, tollbar.ErrStoreValue) || d.Allowed() || d.Reason != tollbar.ReasonFault {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		if taken, err := limit.TakeUpTo(ctx, "ann", 1); taken != 0 || !errors.Is(err, tollbar.ErrStoreValue) {
			t.Errorf("%s: %d, %v", name, taken, err)
		}
		if length := r.ask("LLEN tollbar:{values}:ann"); length != ":1" {
			t.Errorf("%s: %s", name, length)
		}
	}
}

func TestStoreLimitsThatCannotBe(t *testing.T) {
	never := func(context.Context, string, string, ...any) (any, error) { return nil, nil }
	for _, wrong := range []struct {
		name, policy string
		code         tollbar.Code
	}{
		{"test", "10/s algo pacer", tollbar.ErrStoreAlgorithm},
		{"test", "10/s ban 1min", tollbar.ErrStoreAlgorithm},
		{"test", "100000000/day algo weighted-window", tollbar.ErrStoreNumbers},
		{"test", "many", tollbar.ErrSyntax},
		{"two words", "10/s", tollbar.ErrLeaseName},
		{"", "10/s", tollbar.ErrLeaseName},
	} {
		if limit, err := redis.NewStoreLimit(wrong.name, wrong.policy, never); limit != nil || !errors.Is(err, wrong.code) {
			t.Errorf("%q, %q: %v", wrong.name, wrong.policy, err)
		}
	}
	if _, err := redis.NewStoreLimit("test", "10/s", nil); err == nil {
		t.Error("a limit without a client")
	}
}

func TestStoreErrorsNeverAdmit(t *testing.T) {
	r := startRedis(t)
	ctx := context.Background()
	limit := storeLimit(t, "errors", "10/s", r.machine().run)
	for _, key := range []string{"", strings.Repeat("k", 513)} {
		if allowed, err := limit.Allow(ctx, key); allowed || !errors.Is(err, tollbar.ErrStoreKey) {
			t.Errorf("%d bytes: %v, %v", len(key), allowed, err)
		}
	}
	var reply any
	var fault error
	broken := storeLimit(t, "errors", "10/s", func(context.Context, string, string, ...any) (any, error) {
		return reply, fault
	})
	// The reply of an allowed request, which the client's error overrides.
	reply = []any{int64(0), int64(1), int64(1), int64(0)}
	for _, fault = range []error{io.ErrUnexpectedEOF, storeError("OOM no room"), context.Canceled} {
		allowed, err := broken.Allow(ctx, "ann")
		if allowed || !errors.Is(err, fault) {
			t.Errorf("%v, %v", allowed, err)
		}
		if taken, err := broken.TakeUpTo(ctx, "ann", 5); taken != 0 || !errors.Is(err, fault) {
			t.Errorf("%d, %v", taken, err)
		}
		if err := broken.Reset(ctx, "ann"); !errors.Is(err, fault) {
			t.Error(err)
		}
	}
	var server storeError
	fault = storeError("OOM no room")
	if _, err := broken.Peek(ctx, "ann", 1); !errors.As(err, &server) {
		t.Error(err)
	}
	fault = nil
	for _, reply = range []any{
		nil, 1, "0", []any{}, []any{int64(0)}, []any{"none", "1", "1"}, []any{int64(0), 1, 1.5}, []any{int64(-1), 1, 1, 0},
		[]any{7, 0, 1, 0}, []any{0, 1, 1}, []any{0, 1, 1, -5}, []any{0, 2, 1, 0},
	} {
		if allowed, err := broken.Allow(ctx, "ann"); allowed || !errors.Is(err, tollbar.ErrStoreReply) {
			t.Errorf("%v: %v, %v", reply, allowed, err)
		}
	}
	// Clients may return numbers as text.
	reply = []any{"0", 1, int64(1), "0"}
	if allowed, err := broken.Allow(ctx, "ann"); !allowed || err != nil {
		t.Errorf("%v, %v", allowed, err)
	}
}

func TestStoreLimitOfNothingNeedsNoCall(t *testing.T) {
	ctx := context.Background()
	limit := storeLimit(t, "nothing", "0/s", func(context.Context, string, string, ...any) (any, error) {
		return nil, errors.New("called")
	})
	if d, err := limit.Check(ctx, "ann", 1); err != nil || d.Allowed() || d.Reason == tollbar.ReasonFault {
		t.Errorf("%+v, %v", d, err)
	}
	if taken, err := limit.TakeUpTo(ctx, "ann", 1); taken != 0 || err != nil {
		t.Errorf("%d, %v", taken, err)
	}
}

func TestStoreLimitCloses(t *testing.T) {
	ctx := context.Background()
	running, answer := make(chan struct{}), make(chan struct{})
	limit := storeLimit(t, "closed", "10/s", func(context.Context, string, string, ...any) (any, error) {
		close(running)
		<-answer
		return []any{int64(0), int64(1), int64(1), int64(0), int64(0), int64(0)}, nil
	})
	during := make(chan error)
	go func() {
		allowed, err := limit.Allow(ctx, "ann")
		if allowed {
			err = errors.New("admitted")
		}
		during <- err
	}()
	<-running
	// Close does not wait for the store.
	if err := errors.Join(limit.Close(), limit.Close()); err != nil {
		t.Error(err)
	}
	close(answer)
	if err := <-during; !errors.Is(err, tollbar.ErrClosed) {
		t.Error(err)
	}
	_, check := limit.Check(ctx, "ann", 1)
	_, peek := limit.Peek(ctx, "ann", 1)
	_, upTo := limit.TakeUpTo(ctx, "ann", 1)
	for _, err := range []error{check, peek, upTo, limit.Reset(ctx, "ann")} {
		if !errors.Is(err, tollbar.ErrClosed) {
			t.Error(err)
		}
	}
}

// Any number of goroutines may call a limit while another one closes it.
func TestStoreLimitClosesAmongCalls(t *testing.T) {
	for range 50 {
		limit := storeLimit(t, "race", "10/s", func(context.Context, string, string, ...any) (any, error) {
			return []any{int64(0), int64(1), int64(1), int64(0)}, nil
		})
		var all sync.WaitGroup
		for range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				for {
					if allowed, err := limit.Allow(context.Background(), "ann"); err != nil {
						if allowed || !errors.Is(err, tollbar.ErrClosed) {
							t.Error(allowed, err)
						}
						return
					}
				}
			}()
		}
		limit.Close()
		all.Wait()
	}
}
