//go:build (cgo || tollbar_purego) && linux && (amd64 || arm64)

package tollbar_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/internal/shared"
)

const (
	// killedBoard is the file in which a child counts: for each key the requests begun, those admitted and those refused.
	killedBoard = "TOLLBAR_TEST_BOARD"
	killedTable = "TOLLBAR_TEST_KILLED_TABLE"
	killedKeys  = 30
)

// boardOf maps a board.
func boardOf(t *testing.T, path string) *[killedKeys][3]atomic.Uint64 {
	t.Helper()
	const bytes = killedKeys * 3 * 8
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(bytes); err != nil {
		t.Fatal(err)
	}
	data, err := syscall.Mmap(int(file.Fd()), 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	return (*[killedKeys][3]atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(data)))
}

// Processes decide in Go, and are killed at any instruction, while C changes the policy so that keys move to other
// slots. With a clock that stands still no key gets more than both bursts, each permit is counted but for one call of
// each killed process, every key still has answers, and no key has two slots.
func TestKilledAmidMoves(t *testing.T) {
	const now = uint64(1e17)
	if path := os.Getenv(killedTable); path != "" {
		g, wrong := shared.Open(path, false)
		if wrong != nil {
			t.Fatalf("%+v", wrong)
		}
		board := boardOf(t, os.Getenv(killedBoard))
		for {
			key := rand.IntN(killedKeys)
			board[key][0].Add(1)
			place, _, found, code := g.Find(0, fmt.Sprint("key ", key))
			if !found {
				t.Fatal(code)
			}
			verdict, code := place.Take(now, 1)
			if code != 0 {
				t.Fatal(code)
			}
			board[key][1+verdict].Add(1)
		}
	}
	kills := 40
	if testing.Short() {
		kills = 12
	}
	policies := [2]string{"50000/day", "30000/s"}
	directory := t.TempDir()
	path := filepath.Join(directory, "table")
	c, err := tollbar.OpenTable(path, tollbar.TableOptions{Capacity: 1000}, policies[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var boards []*[killedKeys][3]atomic.Uint64
	begin := func() *exec.Cmd {
		name := filepath.Join(directory, fmt.Sprint("board ", len(boards)))
		boards = append(boards, boardOf(t, name))
		child := exec.Command(os.Args[0], "-test.run=^TestKilledAmidMoves$")
		child.Env = append(os.Environ(), killedTable+"="+path, killedBoard+"="+name)
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		return child
	}
	random := rand.New(rand.NewPCG(61, 62))
	children := []*exec.Cmd{begin(), begin(), begin()}
	changes := 0
	for n := range kills {
		for until := time.Now().Add(time.Duration(5+random.IntN(30)) * time.Millisecond); time.Now().Before(until); changes++ {
			if err := c.SetPolicy(0, policies[(changes+1)%2]); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(random.IntN(300)) * time.Microsecond)
		}
		victim := &children[random.IntN(len(children))]
		if err := (*victim).Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := (*victim).Wait(); err == nil || (*victim).ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("a child had ended by itself: %v", err)
		}
		if n < kills-1 {
			*victim = begin()
		}
	}
	for _, child := range children {
		child.Process.Kill()
		child.Wait()
	}
	asked, admitted, lost := uint64(0), uint64(0), uint64(0)
	for key := range killedKeys {
		own := [3]uint64{}
		for _, board := range boards {
			for i := range own {
				own[i] += board[key][i].Load()
			}
		}
		asked, admitted, lost = asked+own[0], admitted+own[1], lost+own[0]-own[1]-own[2]
		if own[1] > 50_000+30_000 {
			t.Errorf("key %d got %d permits", key, own[1])
		}
		// The key has an answer, and it has slots again when its debt is paid.
		name := fmt.Sprint("key ", key)
		if _, err := c.Under(0).CheckAt(name, now, 1); err != nil {
			t.Error(err)
		}
		if d, err := c.Under(0).CheckAt(name, now+uint64(48*time.Hour), 20_000); err != nil || d.Verdict != tollbar.Allowed {
			t.Errorf("%+v (%v)", d, err)
		}
	}
	health, err := c.Validate()
	if err != nil || health.Duplicate != 0 || health.Unknown != 0 || health.Claimed != 0 || health.Live > killedKeys {
		t.Errorf("%+v (%v)", health, err)
	}
	counts, err := c.Under(0).Counts()
	if stats, wrong := c.Stats(); err != nil || wrong != nil || lost > uint64(len(boards)) || admitted == 0 || stats.Vacated < killedKeys {
		t.Errorf("%d calls had no answer, %d permits, %+v (%v, %v)", lost, admitted, stats, err, wrong)
	}
	t.Logf("%d kills, %d changes, %d requests, %d permits, %d without an answer, %+v, %+v", kills, changes, asked, admitted, lost, counts, health)
}
