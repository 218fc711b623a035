package limit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

// A month: a period that does not end during a test, and a year of half seconds.
const month = 30 * 24 * 3600

func TestMain(m *testing.M) {
	logx.Disable()
	if socket := os.Getenv("TOLLZERO_CLIENT"); socket != "" {
		client(socket)
		return
	}
	os.Exit(m.Run())
}

// server is a redis-server on a unix socket in a directory of its own, which ends with the test.
type realRedis struct {
	t       *testing.T
	path    string
	process *exec.Cmd
}

func startRedis(t *testing.T) *realRedis {
	t.Helper()
	// Short, since a socket's path may have 107 bytes.
	directory, err := os.MkdirTemp("", "tollbar")
	if err != nil {
		t.Fatal(err)
	}
	r := &realRedis{t: t, path: filepath.Join(directory, "s")}
	r.start()
	t.Cleanup(func() {
		r.kill()
		os.RemoveAll(directory)
	})
	return r
}

func (r *realRedis) start() {
	r.t.Helper()
	os.Remove(r.path)
	directory := filepath.Dir(r.path)
	r.process = exec.Command("redis-server", "--port", "0", "--unixsocket", r.path,
		"--dir", directory, "--save", "", "--logfile", "log")
	// Should the test be killed. (The signal comes when the thread ends that has started it; Go
	// keeps those of tests.)
	r.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	if err := r.process.Start(); err != nil {
		r.t.Fatalf("%v; as root: apt-get install redis-server", err)
	}
	until(r.t, func() bool { return r.ask("PING") == "PONG" })
}

func (r *realRedis) store() *redis.Redis { return redis.New(r.path) }

func (r *realRedis) signal(s os.Signal) { _ = r.process.Process.Signal(s) }

func (r *realRedis) kill() {
	r.signal(os.Kill)
	_ = r.process.Wait()
}

// ask asks by redis-cli, and so with another client than go-zero's.
func (r *realRedis) ask(words ...string) string {
	out, _ := exec.Command("redis-cli", append([]string{"-s", r.path}, words...)...).Output()
	return strings.TrimSpace(string(out))
}

func until(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}

// client is a second process of TestTwoClients: 8 goroutines ask a thousand times each, and it
// prints what was admitted.
func client(socket string) {
	// A machine that is busy with other tests must not look like an outage.
	patience = 30 * time.Second
	store := redis.New(socket)
	tokens, periods := NewTokenLimiter(1, 1000, store, "shared"), NewPeriodLimit(month, 1000, store, "shared:")
	counts := make(chan [3]int)
	for range 8 {
		go func() {
			var count [3]int
			for range 500 {
				if tokens.Allow() {
					count[0]++
				}
				switch result, _ := periods.Take("key"); result {
				case HitQuota:
					count[2]++
					fallthrough
				case Allowed:
					count[1]++
				}
			}
			counts <- count
		}()
	}
	var sum [3]int
	for range 8 {
		for i, n := range <-counts {
			sum[i] += n
		}
	}
	fmt.Println(sum[0], sum[1], sum[2])
}

func TestTwoClients(t *testing.T) {
	r := startRedis(t)
	start := time.Now()
	var clients [2]*exec.Cmd
	var outputs [2]strings.Builder
	for i := range clients {
		clients[i] = exec.Command(os.Args[0])
		clients[i].Env = append(os.Environ(), "TOLLZERO_CLIENT="+r.path)
		clients[i].Stdout, clients[i].Stderr = &outputs[i], os.Stderr
		if err := clients[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	var sum [3]int
	for i := range clients {
		if err := clients[i].Wait(); err != nil {
			t.Fatal(err)
		}
		var each [3]int
		if _, err := fmt.Sscan(outputs[i].String(), &each[0], &each[1], &each[2]); err != nil || each[1] == 0 {
			t.Fatalf("client %d: %q (%v)", i, outputs[i].String(), err)
		}
		for j, n := range each {
			sum[j] += n
		}
	}
	back := int(time.Since(start).Seconds())
	if sum[0] < 1000 || sum[0] > 1000+back {
		t.Errorf("two clients got %d tokens of 1000, and of %d that came back", sum[0], back)
	}
	if sum[1] != 1000 || sum[2] != 1 {
		t.Errorf("two clients got %d permits of 1000, of which %d were called the last", sum[1], sum[2])
	}
}

// The time that the caller passes changes nothing. In go-zero a time that is a second later fills
// the bucket.
func TestClocks(t *testing.T) {
	limiter := NewTokenLimiter(1, 3, startRedis(t).store(), "clock")
	start, admitted := time.Now(), 0
	for i := range 60 {
		if limiter.AllowN(time.Now().Add(time.Duration(i*i*(i%3-1))*time.Hour), 1) {
			admitted++
		}
	}
	if back := int(time.Since(start).Seconds()); admitted < 3 || admitted > 3+back {
		t.Errorf("%d requests pass of a burst of 3, and of %d that came back", admitted, back)
	}
}

// A token comes back after its fraction of a second, and a burst below half of the rate works.
// Neither holds in go-zero.
func TestFractions(t *testing.T) {
	r := startRedis(t)
	limiter := NewTokenLimiter(5, 1, r.store(), "part 0")
	// The test must tell a late token from a machine that stopped the test. So it tries again after
	// a late one.
	for attempt := 1; ; attempt++ {
		start := time.Now()
		taken, again := limiter.Allow(), limiter.Allow()
		life, _ := strconv.Atoi(r.ask("PTTL", fmt.Sprintf("tollbar:token:{part %d}", attempt-1)))
		elapsed := int(time.Since(start).Milliseconds())
		if life > 203 || !taken || again && elapsed < 190 || life < 190-elapsed {
			t.Errorf("a burst of 1: %v, %v; the key of a bucket that is full in 200 ms lives %d ms after %d ms",
				taken, again, life, elapsed)
		}
		until(t, limiter.Allow)
		waited := time.Since(start)
		if waited < 190*time.Millisecond {
			t.Errorf("the next token came after %v", waited)
		}
		if waited < 600*time.Millisecond {
			break
		}
		if attempt == 20 {
			t.Fatalf("the next token came after %v, in each of %d attempts", waited, attempt)
		}
		limiter = NewTokenLimiter(5, 1, r.store(), fmt.Sprint("part ", attempt))
	}
	if limiter.AllowN(time.Now(), 2) || limiter.AllowN(time.Now(), -1) || !limiter.AllowN(time.Now(), 0) {
		t.Error("more than the burst passes, or less than nothing, or nothing does not")
	}
}

// The window begins at the zone's midnight by the server's clock. Align takes the process's zone.
func TestAlign(t *testing.T) {
	for name, seconds := range map[string]int64{"India": 5*3600 + 1800, "Chile": -4 * 3600} {
		inZone := func(l *PeriodLimit) { l.zone = time.FixedZone(name, int(seconds)) }
		const day = 24 * 3600
		r := startRedis(t)
		awayFromEdges(day, seconds)
		if code, err := NewPeriodLimit(day, 2, r.store(), "sms:", inZone).Take(name); code != Allowed || err != nil {
			t.Errorf("%d (%v)", code, err)
		}
		value := strings.Fields(r.ask("GET", "tollbar:period:{sms:"+name+"}"))
		start, _ := strconv.ParseInt(value[0], 10, 64)
		if (start/1_000_000+seconds)%day != 0 || start == 0 {
			t.Errorf("%s: a day begins at %v", name, time.UnixMicro(start))
		}
		if NewPeriodLimit(day, 2, nil, "", Align()).zone != time.Local {
			t.Error("Align takes another zone")
		}
		// The same without Redis.
		here := NewPeriodLimit(day, 2, nil, "sms:", inZone)
		if _, err := here.Take(name); err != nil {
			t.Error(err)
		}
		before := time.Now()
		now, _ := here.table.Now()
		state, err := here.table.Under(0).PeekAt("sms:"+name, now+uint64(seconds)*uint64(time.Second), 0)
		wait := (day - (time.Now().Unix()+seconds)%day) % day
		differs := state.ResetAfter - time.Duration(wait)*time.Second
		if most := 2*time.Second + time.Since(before); err != nil || differs.Abs() > most {
			t.Errorf("%s: the next day begins in %v; expected %d s (%v)", name, state.ResetAfter, wait, err)
		}
	}
}

// A value of another program is an error of that key, and no reason to think that Redis does not
// answer.
func TestForeignValues(t *testing.T) {
	r := startRedis(t)
	r.ask("SET", "tollbar:period:{p:k}", "hello")
	r.ask("LPUSH", "tollbar:token:{k}", "hello")
	tokens, periods := NewTokenLimiter(1, 2, r.store(), "k"), NewPeriodLimit(month, 2, r.store(), "p:")
	if code, err := periods.Take("k"); code != Unknown || !errors.Is(err, ErrUnknownCode) {
		t.Errorf("%d (%v)", code, err)
	}
	start := time.Now()
	all, more := tokens.AllowN(time.Now(), 2), tokens.Allow()
	if !all || more && time.Since(start) < time.Second {
		t.Error("not the limit of this process decides")
	}
	if code, err := periods.Take("other"); code != Allowed || err != nil {
		t.Errorf("%d (%v)", code, err)
	}
}

// A Redis that forgets its scripts gets them again with the call that notices.
func TestScriptFlush(t *testing.T) {
	r := startRedis(t)
	tokens := NewTokenLimiter(1, 3, r.store(), "flush")
	for i := range 3 {
		if !tokens.Allow() || tokens.server.down.Load() != nil {
			t.Errorf("request %d is refused", i)
		}
		r.ask("SCRIPT", "FLUSH")
	}
	if tokens.owed.Load() != 0 {
		t.Error("Redis has not decided")
	}
}
