//go:build cgo || tollbar_purego

package redis_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/redis"
)

const nowhere = "unix:/no-such-directory/redis.sock"

// slow is a limit that refills almost nothing during a test.
const slow = "60/min burst 600"

// server is a redis-server on a unix socket in a directory of its own, which ends with the test.
type server struct {
	t         *testing.T
	directory string
	process   *exec.Cmd
}

func startRedis(t *testing.T) *server {
	t.Helper()
	// Short, since a socket's path may have 107 bytes.
	directory, err := os.MkdirTemp("", "tollbar")
	if err != nil {
		t.Fatal(err)
	}
	r := &server{t: t, directory: directory}
	r.start()
	t.Cleanup(func() {
		r.kill()
		os.RemoveAll(directory)
	})
	return r
}

func (r *server) socket() string { return filepath.Join(r.directory, "s") }
func (r *server) url() string    { return "unix:" + r.socket() }

func (r *server) start() {
	r.t.Helper()
	os.Remove(r.socket())
	r.process = exec.Command("redis-server", "--port", "0", "--unixsocket", r.socket(), "--dir", r.directory, "--save", "",
		"--appendonly", "no", "--logfile", "log")
	// Should the test be killed. (The signal comes when the thread ends that has started it; Go
	// keeps those of tests.)
	r.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	if err := r.process.Start(); err != nil {
		r.t.Fatalf("%v; as root: apt-get install redis-server", err)
	}
	until(r.t, func() bool { return r.ask("PING") == "+PONG" })
}

func (r *server) kill() {
	_ = r.process.Process.Kill()
	_ = r.process.Wait()
}

// ask is the answer's text; empty if there is no server.
func (r *server) ask(command string) string {
	connection, err := net.Dial("unix", r.socket())
	if err != nil {
		return ""
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(connection, command+"\r\n")
	in := bufio.NewReader(connection)
	line, _ := in.ReadString('\n')
	line = strings.TrimRight(line, "\r\n")
	if strings.HasPrefix(line, "$") {
		n, _ := strconv.Atoi(line[1:])
		text := make([]byte, max(n, 0))
		_, _ = io.ReadFull(in, text)
		return string(text)
	}
	return line
}

func (r *server) charged(key string) bool { return r.ask("EXISTS tollbar:{test}:k:"+key) == ":1" }

// until waits for what takes milliseconds; half a minute is for a machine that is busy with other
// things.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}

func mustLease(t *testing.T, policy string, options redis.LeaseOptions) *redis.Lease {
	t.Helper()
	if options.Nodes == 0 {
		options.Nodes = 4
	}
	if options.URL == "" {
		options.URL = nowhere
	}
	lease, err := redis.NewLease("test", policy, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeIn(lease, 0) })
	return lease
}

func closeIn(lease *redis.Lease, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return lease.Close(ctx)
}

func taken(lease *redis.Lease, key string, tries int) (n int) {
	for range tries {
		if lease.Allow(key) {
			n++
		}
	}
	return n
}

func TestLeaseWithoutAStore(t *testing.T) {
	five := uint64(5)
	for _, c := range []struct {
		options redis.LeaseOptions
		want    int
	}{
		// The overdraft that the library chooses.
		{redis.LeaseOptions{}, 8},
		{redis.LeaseOptions{Fallback: redis.FallbackDeny}, 0},
		{redis.LeaseOptions{Fallback: redis.FallbackAllow}, 50},
		{redis.LeaseOptions{Overdraft: &five}, 5},
		{redis.LeaseOptions{Overdraft: &none}, 0},
		{redis.LeaseOptions{Nodes: 400}, 0},
		{redis.LeaseOptions{Nodes: 400, Inexact: true, Life: 5 * time.Millisecond, Capacity: 10, Refill: true}, 8},
	} {
		lease := mustLease(t, slow, c.options)
		if a, b := taken(lease, "a", 50), taken(lease, "", 50); a != c.want || b != c.want {
			t.Errorf("%+v: %d and %d, not %d", c.options, a, b, c.want)
		}
	}
}

func TestLeaseAnswers(t *testing.T) {
	lease := mustLease(t, slow, redis.LeaseOptions{})
	if d, err := lease.Peek("k", 8); err != nil || !d.Allowed() || d.Remaining != 8 {
		t.Errorf("%+v, %v", d, err)
	}
	if !lease.AllowN("k", 8) || lease.AllowN("k", 1) {
		t.Error("AllowN")
	}
	d, err := lease.Check("k", 1)
	if err != nil || d.Verdict != tollbar.Denied || d.RetryAfter <= 0 || d.RetryAfter > 4100*time.Millisecond {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err = lease.Check("k", 601); err != nil || d.Verdict != tollbar.Never || d.RetryAfter != tollbar.Forever {
		t.Errorf("%+v, %v", d, err)
	}
	now, err := lease.Now()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []tollbar.Verdict{tollbar.Allowed, tollbar.Denied} {
		if d, err = lease.CheckAt("k", now+4_100_000_000, 1); err != nil || d.Verdict != want {
			t.Errorf("%d: %+v, %v", i, d, err)
		}
	}
	// Unknown until the goroutine that asks the store has found none.
	until(t, func() bool { return lease.Circuit() == redis.CircuitOpen })
	stats, err := lease.Stats()
	if err != nil || stats.FallbackPermits != 9 || stats.Granted != 0 || stats.Circuit != redis.CircuitOpen || stats.Opened != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
	if p := lease.Policy(); p.Limit != 60 || p.Burst != 600 || lease.Circuit().String() != "open" {
		t.Errorf("%+v, %v", p, lease.Circuit())
	}
}

func TestLeasesThatCannotBe(t *testing.T) {
	good, five, many := redis.LeaseOptions{Nodes: 4, URL: nowhere}, uint64(5), uint64(128)
	with := func(change func(*redis.LeaseOptions)) redis.LeaseOptions {
		o := good
		change(&o)
		return o
	}
	for _, c := range []struct {
		name, policy string
		options      redis.LeaseOptions
		want         tollbar.Code
	}{
		{"two words", slow, good, tollbar.ErrLeaseName},
		{"", slow, good, tollbar.ErrLeaseName},
		{"x", "10/s algo pacer", good, tollbar.ErrLeaseAlgorithm},
		{"x", "10/s burst 20", with(func(o *redis.LeaseOptions) { o.Overdraft = &five }), tollbar.ErrLeaseBurst},
		{"x", "10/s burst 2000", with(func(o *redis.LeaseOptions) { o.Overdraft = &many }), tollbar.ErrLeaseTooLarge},
		{"x", "7/day burst 1000000", good, tollbar.ErrLeaseTooLarge},
		{"x", slow, with(func(o *redis.LeaseOptions) { o.Nodes = 0 }), tollbar.ErrLeaseNodes},
		{"x", slow, with(func(o *redis.LeaseOptions) { o.Life = time.Microsecond }), tollbar.ErrLeaseLife},
		{"x", slow, with(func(o *redis.LeaseOptions) { o.Capacity = 1 << 40 }), tollbar.ErrCapacity},
		{"x", slow, with(func(o *redis.LeaseOptions) { o.Fallback = 3 }), tollbar.ErrOutOfRange},
		{"x", slow, with(func(o *redis.LeaseOptions) { o.URL = "redis://:secret@h:x" }), tollbar.ErrURL},
		{"x", slow, with(func(o *redis.LeaseOptions) { o.URL = "" }), tollbar.ErrURL},
	} {
		lease, err := redis.NewLease(c.name, c.policy, c.options)
		var why *tollbar.LeaseError
		if lease != nil || !errors.As(err, &why) || !errors.Is(err, c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q, %q: %v", c.name, c.policy, err)
		}
		if c.want == tollbar.ErrURL && (why.Column == 0 || !strings.Contains(err.Error(), "column")) {
			t.Errorf("%v, column %d", err, why.Column)
		}
	}
	var why *tollbar.PolicyError
	if _, err := redis.NewLease("x", "many", good); !errors.As(err, &why) {
		t.Error(err)
	}
}

func TestClosedLease(t *testing.T) {
	lease := mustLease(t, slow, redis.LeaseOptions{})
	if err := lease.Close(context.Background()); err != nil {
		t.Error(err)
	}
	_, stats := lease.Stats()
	_, check := lease.Check("k", 1)
	_, peek := lease.Peek("k", 1)
	_, now := lease.Now()
	wait := lease.Wait(context.Background(), "k")
	for _, err := range []error{stats, check, peek, now, wait} {
		if !errors.Is(err, tollbar.ErrClosed) {
			t.Error(err)
		}
	}
	if lease.Allow("k") || lease.Close(context.Background()) != nil || lease.Circuit().String() != "unknown" {
		t.Error("it is closed")
	}
	// There is no store, so the lease cannot report its debts.
	lease = mustLease(t, slow, redis.LeaseOptions{})
	lease.Allow("k")
	if err := closeIn(lease, 30*time.Millisecond); !errors.Is(err, tollbar.ErrUnreported) && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	lease = mustLease(t, slow, redis.LeaseOptions{})
	lease.Allow("k")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := lease.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestTheStoreComesAndGoes(t *testing.T) {
	store := startRedis(t)
	changes := make(chan redis.Circuit, 100)
	lease := mustLease(t, slow, redis.LeaseOptions{URL: store.url(), OnChange: func(c redis.Circuit) { changes <- c }})
	// A busy machine may see it go and come more often.
	becomes := func(want redis.Circuit) {
		t.Helper()
		until(t, func() bool { return len(changes) > 0 && <-changes == want })
	}
	becomes(redis.CircuitClosed)
	store.kill()
	becomes(redis.CircuitOpen)
	if stats, err := lease.Stats(); err != nil || stats.Opened == 0 || !lease.Allow("k") {
		t.Errorf("%+v, %v", stats, err)
	}
	store.start()
	becomes(redis.CircuitClosed)
	if !lease.AllowN("told", 3) {
		t.Error("an overdraft")
	}
	if err := closeIn(lease, 30*time.Second); err != nil || !store.charged("told") {
		t.Error(err)
	}
}

func TestTwoMachines(t *testing.T) {
	store := startRedis(t)
	start := time.Now()
	var admitted atomic.Uint64
	var group sync.WaitGroup
	for range 2 {
		lease := mustLease(t, "2000/s burst 400", redis.LeaseOptions{Nodes: 2, URL: store.url()})
		for range 2 {
			group.Add(1)
			go func() {
				defer group.Done()
				// Longer where a busy machine has lost time.
				for time.Since(start) < 1500*time.Millisecond || admitted.Load() < 500 && time.Since(start) < 30*time.Second {
					admitted.Add(uint64(taken(lease, "", 30)))
					time.Sleep(time.Millisecond)
				}
			}()
		}
	}
	group.Wait()
	most := 400 + uint64(time.Since(start)/(500*time.Microsecond)) + 1
	if n := admitted.Load(); n > most || n < 500 {
		t.Errorf("%d admitted of %d", n, most)
	}
}

func TestAForgottenLeaseEnds(t *testing.T) {
	store := startRedis(t)
	func() {
		lease, err := redis.NewLease("test", slow, redis.LeaseOptions{Nodes: 2, URL: store.url()})
		if err != nil {
			t.Fatal(err)
		}
		until(t, func() bool { return lease.Circuit() == redis.CircuitClosed })
	}()
	until(t, func() bool {
		runtime.GC()
		return !strings.Contains(store.ask("CLIENT LIST"), " cmd=eval")
	})
}

func ExampleNewLease() {
	limit, err := redis.NewLease("logins", "100/s burst 50", redis.LeaseOptions{Nodes: 4, URL: "redis://127.0.0.1:1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limit.Close(context.Background())
	// Without a store a machine lives on its share.
	fmt.Println(limit.Allow("192.0.2.1"))
	// Output: true
}
