//go:build cgo || tollbar_purego

package redis_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollbar/tollbar/bindings/go/redis"
)

// listens lets the server listen at a free port, too, and returns it.
func (r *server) listens() int {
	r.t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	r.does(`CONFIG SET bind "127.0.0.1 -::1"`)
	r.does(fmt.Sprint("CONFIG SET port ", port))
	return port
}

// does fails the test unless the server answers a command with OK.
func (r *server) does(command string) {
	r.t.Helper()
	if said := r.ask(command); said != "+OK" {
		r.t.Fatal(command, said)
	}
}

const user = "ACL SETUSER me on >first ~tollbar:* &* +@all"

// granted waits until the store has granted more than before.
func granted(t *testing.T, lease *redis.Lease, before uint64) (more uint64) {
	t.Helper()
	until(t, func() bool {
		lease.Allow("ann")
		stats, err := lease.Stats()
		more = stats.Granted
		return err == nil && more > before
	})
	return more
}

func TestWaysToTheStore(t *testing.T) {
	store := startRedis(t)
	port := store.listens()
	store.does(user)
	ways := []string{"127.0.0.1:%d", "localhost:%d/3", "me:first@127.0.0.1:%d", "127.0.0.1:1,localhost:%d"}
	addresses, _ := os.ReadFile("/proc/net/if_inet6")
	if strings.Contains(string(addresses), fmt.Sprintf("%032x", 1)) {
		ways = append(ways, "[::1]:%d")
	}
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			granted(t, mustLease(t, slow, redis.LeaseOptions{URL: "redis://" + fmt.Sprintf(way, port)}), 0)
		})
	}
}

// The server takes another password and ends the connection; the lease reads the file again.
func TestAPasswordThatRotates(t *testing.T) {
	store := startRedis(t)
	file := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	store.does(user)
	lease := mustLease(t, slow, redis.LeaseOptions{URL: store.url() + "?user=me&password_file=" + file})
	before := granted(t, lease, 0)
	write("second")
	store.does("ACL SETUSER me resetpass >second")
	if said := store.ask("CLIENT KILL USER me"); said == ":0" {
		t.Fatal(said)
	}
	granted(t, lease, before)
}
