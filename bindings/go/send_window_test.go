package tollbar_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	tollbar "github.com/tollbar/tollbar/bindings/go"
)

func windowOf(t *testing.T, limit uint32) *tollbar.SendWindow {
	t.Helper()
	window, err := tollbar.NewSendWindow(limit)
	if err != nil {
		t.Fatal(err)
	}
	return window
}

func refuses(t *testing.T, window *tollbar.SendWindow) {
	t.Helper()
	if number, ok := window.Acquire(1); ok {
		t.Errorf("acquired %d of %+v", number, window.Read())
	}
}

func acquires(t *testing.T, window *tollbar.SendWindow, want uint32) {
	t.Helper()
	if number, ok := window.Acquire(1); !ok || number != want {
		t.Errorf("%d, %v, not %d, of %+v", number, ok, want, window.Read())
	}
}

func TestAWindowOfFour(t *testing.T) {
	window := windowOf(t, 4)
	for n := range uint32(4) {
		acquires(t, window, n+1)
	}
	refuses(t, window)
	// A cumulative acknowledgement of two frees two.
	if !window.Acknowledge(2) || window.Read().Usable != 2 || window.Acknowledge(2) || window.Acknowledge(5) {
		t.Error(window.Read())
	}
	acquires(t, window, 5)
	// With 3 in flight a limit of 2 refuses until two of them are acknowledged.
	if err := window.Resize(2); err != nil {
		t.Fatal(err)
	}
	refuses(t, window)
	if !window.Acknowledge(3) {
		t.Error(window.Read())
	}
	refuses(t, window)
	if !window.Acknowledge(4) || window.Release(2) {
		t.Error(window.Read())
	}
	want := tollbar.SendWindowState{Limit: 2, Sent: 5, Acknowledged: 4, InFlight: 1, Usable: 1}
	if got := window.Read(); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
	acquires(t, window, 6)
}

// windowModel is the definition: the numbers in flight, the oldest first.
type windowModel struct {
	limit, sent, acknowledged uint32
	flying                    []uint32
}

func (m *windowModel) usable() uint32 { return uint32(max(int(m.limit)-len(m.flying), 0)) }

func (m *windowModel) acquire(n uint32) (uint32, bool) {
	if n > m.usable() {
		return 0, false
	}
	for range n {
		m.sent = (m.sent + 1) % (1 << 22)
		m.flying = append(m.flying, m.sent)
	}
	return m.sent, true
}

func (m *windowModel) release(n uint32) bool {
	if int(n) > len(m.flying) {
		return false
	}
	for range n {
		m.acknowledged, m.flying = m.flying[0], m.flying[1:]
	}
	return true
}

func (m *windowModel) acknowledge(number uint32) bool {
	place := slices.Index(m.flying, number)
	return place >= 0 && m.release(uint32(place+1))
}

func TestRandomOperationsOfAWindowEqualASequentialModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(0, 5))
	below := func(n uint32) uint32 { return rng.Uint32N(n) }
	// The numbers begin again after 2^22: the window starts just before that.
	window := windowOf(t, tollbar.SendWindowMost)
	for range 4 {
		if _, ok := window.Acquire(tollbar.SendWindowMost); !ok || !window.Release(tollbar.SendWindowMost) {
			t.Fatal(window.Read())
		}
	}
	model := windowModel{limit: tollbar.SendWindowMost, sent: 1<<22 - 4, acknowledged: 1<<22 - 4}
	var admitted, refused, late int
	for step := range 100_000 {
		kind := below(10)
		if step == 0 {
			kind = 9
		}
		var got, want bool
		var number, wanted uint32
		switch {
		case kind < 5:
			n := below(4)
			number, got = window.Acquire(n)
			wanted, want = model.acquire(n)
			if want {
				admitted++
			} else {
				refused++
			}
		case kind < 7:
			number = (model.acknowledged + below(12)) % (1 << 22)
			wanted = number
			got, want = window.Acknowledge(number), model.acknowledge(number)
			if !want {
				late++
			}
		case kind < 9:
			n := below(4)
			got, want = window.Release(n), model.release(n)
		default:
			model.limit = below(12)
			got, want = window.Resize(model.limit) == nil, true
		}
		state := tollbar.SendWindowState{
			Limit: model.limit, Sent: model.sent, Acknowledged: model.acknowledged,
			InFlight: uint32(len(model.flying)), Usable: model.usable(),
		}
		if got != want || number != wanted || window.Read() != state {
			t.Fatalf("step %d: %d, %v, not %d, %v; %+v, not %+v", step, number, got, wanted, want, window.Read(), state)
		}
	}
	if admitted < 10_000 || refused < 10_000 || late < 1_000 {
		t.Error(admitted, refused, late)
	}
}

// No more than the limit at one time, and each permit comes back.
func TestGoroutinesShareAWindow(t *testing.T) {
	window := windowOf(t, 3)
	var inside, most atomic.Int32
	var group sync.WaitGroup
	for range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for done := 0; done < 20_000; {
				if _, ok := window.Acquire(1); !ok {
					continue
				}
				at := inside.Add(1)
				for seen := most.Load(); at > seen && !most.CompareAndSwap(seen, at); seen = most.Load() {
				}
				inside.Add(-1)
				if !window.Release(1) {
					t.Error("nothing to release")
				}
				done++
			}
		}()
	}
	group.Wait()
	if s := window.Read(); most.Load() > 3 || s.InFlight != 0 || s.Sent != 80_000 || s.Usable != 3 {
		t.Errorf("%d at one time; %+v", most.Load(), s)
	}
}

func TestALimitOfAWindowOutOfRange(t *testing.T) {
	var window tollbar.SendWindow
	refuses(t, &window)
	if _, err := tollbar.NewSendWindow(tollbar.SendWindowMost + 1); !errors.Is(err, tollbar.ErrOutOfRange) {
		t.Error(err)
	}
	if err := window.Resize(1 << 20); !errors.Is(err, tollbar.ErrOutOfRange) {
		t.Error(err)
	}
	_, ok := window.Acquire(1<<32 - 1)
	if ok || window.Release(1) || window.Acknowledge(1<<32-1) ||
		window.Read() != (tollbar.SendWindowState{}) {
		t.Errorf("%+v", window.Read())
	}
}

func ExampleSendWindow() {
	window, err := tollbar.NewSendWindow(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		fmt.Println(window.Acquire(1))
	}
	// The receiver has both messages.
	fmt.Println(window.Acknowledge(2), window.Read().Usable)
	// Output:
	// 1 true
	// 2 true
	// 0 false
	// true 2
}
