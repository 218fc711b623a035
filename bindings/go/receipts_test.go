//go:build cgo || tollbar_purego

package tollbar_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

const second = uint64(time.Second)

// Five of ten, then seven two seconds later. The five cost nothing: five more do not pass.
func TestTimeIsNotGivenTwice(t *testing.T) {
	table := mustTable(t, tollbar.TableOptions{Capacity: 100}, "1/s burst 10")
	take := func(now, estimate uint64) (tollbar.Receipt, tollbar.Decision) {
		t.Helper()
		receipt, decision, err := table.Under(0).TakeAt("k", now, estimate)
		if err != nil {
			t.Fatal(err)
		}
		return receipt, decision
	}
	five, decision := take(10*second, 5)
	if !decision.Allowed() || decision.Remaining != 5 {
		t.Errorf("%+v", decision)
	}
	if _, seven := take(12*second, 7); !seven.Allowed() {
		t.Errorf("%+v", seven)
	}
	if got, err := table.SettleAt(five, 12*second, 0); got != (tollbar.Settled{First: true, GivenBack: 3}) || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if none, more := take(12*second, 5); more.Allowed() || more.RetryAfter != 2*time.Second || none != (tollbar.Receipt{}) {
		t.Errorf("%x %+v", none, more)
	}
	if got, err := table.SettleAt(five, 12*second, 0); got != (tollbar.Settled{}) || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if _, three := take(12*second, 3); !three.Allowed() {
		t.Errorf("%+v", three)
	}
}

// More than the estimate is a debt of one burst at most.
func TestTheRestOfAReceiptIsTold(t *testing.T) {
	table := mustTable(t, tollbar.TableOptions{Capacity: 100}, "1/s burst 10")
	keys := table.Under(0)
	two, _, err := keys.TakeAt("k", 10*second, 2)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := table.SettleAt(two, 10*second, 25); got != (tollbar.Settled{First: true, Rest: 5}) || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for now, want := range map[uint64]bool{20: false, 21: true} {
		if got, err := keys.PeekAt("k", now*second, 1); got.Allowed() != want || err != nil {
			t.Errorf("at %d: %+v, %v", now, got, err)
		}
	}
}

func TestReceiptsByTheTablesClock(t *testing.T) {
	table := mustTable(t, tollbar.TableOptions{Capacity: 100}, "5/day", "10/day")
	keys := table.Under(1)
	ten, decision, err := keys.Take("k", 10)
	if !decision.Allowed() || err != nil {
		t.Fatal(decision, err)
	}
	if got, err := table.SettleInFull(ten, 4); got.GivenBack != 6 || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	six, decision, err := keys.Take("k", 6)
	if !decision.Allowed() || err != nil {
		t.Fatal(decision, err)
	}
	if got, err := table.Settle(six, 0); !got.First || got.GivenBack < 5 || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if decision, err := keys.Check("k", 5); !decision.Allowed() || err != nil {
		t.Error(decision, err)
	}
}

// The test's own program again, as the other process.
func TestAnotherProcessSettles(t *testing.T) {
	if path := os.Getenv("TOLLBAR_TEST_TABLE"); path != "" {
		table, err := tollbar.OpenTable(path, tollbar.TableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		var receipt tollbar.Receipt
		if n, err := hex.Decode(receipt[:], []byte(os.Getenv("TOLLBAR_TEST_RECEIPT"))); n != len(receipt) || err != nil {
			t.Fatal(n, err)
		}
		// All six, or five if a moment has brought a part of one back.
		if got, err := table.Settle(receipt, 4); !got.First || got.GivenBack < 5 || err != nil {
			t.Fatalf("%+v, %v", got, err)
		}
		return
	}
	path := filepath.Join(t.TempDir(), "table")
	table, err := tollbar.OpenTable(path, thousand, "10/day")
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	receipt, _, err := table.Under(0).Take("k", 10)
	if err != nil || table.Allow("k") {
		t.Fatal(err)
	}
	other := exec.Command(os.Args[0], "-test.run=^TestAnotherProcessSettles$")
	other.Env = append(os.Environ(), "TOLLBAR_TEST_TABLE="+path, "TOLLBAR_TEST_RECEIPT="+hex.EncodeToString(receipt[:]))
	if out, err := other.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if decision, err := table.Under(0).Check("k", 5); !decision.Allowed() || err != nil {
		t.Error(decision, err)
	}
	if again, err := table.Settle(receipt, 0); again != (tollbar.Settled{}) || err != nil {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestWhatIsNoReceipt(t *testing.T) {
	table := mustTable(t, tollbar.TableOptions{Capacity: 100}, "1/h burst 10")
	stranger := mustTable(t, tollbar.TableOptions{Capacity: 100}, "1/h burst 10")
	keys := table.Under(0)
	if none, decision, err := keys.TakeAt("k", 10*second, 11); decision.Verdict != tollbar.Never || none != (tollbar.Receipt{}) || err != nil {
		t.Error(none, decision, err)
	}
	if _, _, err := keys.TakeAt("k", 10*second, 1<<56); !errors.Is(err, tollbar.ErrReceipt) {
		t.Error(err)
	}
	if _, _, err := table.Under(9).Take("k", 1); !errors.Is(err, tollbar.ErrNoSuchPolicy) {
		t.Error(err)
	}
	ten, _, err := keys.TakeAt("k", 10*second, 10)
	if err != nil {
		t.Fatal(err)
	}
	damaged := ten
	damaged[8] ^= 1
	for name, settle := range map[string]func() (tollbar.Settled, error){
		"damaged":    func() (tollbar.Settled, error) { return table.SettleAt(damaged, 10*second, 0) },
		"zero":       func() (tollbar.Settled, error) { return table.SettleInFull(tollbar.Receipt{}, 0) },
		"stranger's": func() (tollbar.Settled, error) { return stranger.Settle(ten, 0) },
	} {
		if got, err := settle(); got != (tollbar.Settled{}) || !errors.Is(err, tollbar.ErrReceipt) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if decision, err := keys.PeekAt("k", 10*second, 1); decision.Allowed() || err != nil {
		t.Error(decision, err)
	}
	if got, err := table.SettleAt(ten, 10*second, 0); got.GivenBack != 10 || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	table.Close()
	_, _, take := keys.Take("k", 1)
	_, _, takeAt := keys.TakeAt("k", 1, 1)
	_, settle := table.Settle(ten, 0)
	_, settleAt := table.SettleAt(ten, 1, 0)
	_, full := table.SettleInFull(ten, 0)
	for i, err := range []error{take, takeAt, settle, settleAt, full} {
		if !errors.Is(err, tollbar.ErrClosed) {
			t.Error(i, err)
		}
	}
}

func ExampleTable_Settle() {
	tokens, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 100_000}, "1000/day")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tokens.Close()
	receipt, decision, err := tokens.Under(0).Take("ann", 800)
	fmt.Println(decision.Allowed(), decision.Remaining, err)
	// The answer took 150 tokens. 650 come back, less what the day has brought back meanwhile.
	settled, err := tokens.Settle(receipt, 150)
	fmt.Println(settled.GivenBack >= 640, err)
	again, err := tokens.Settle(receipt, 0)
	fmt.Println(again.First, again.GivenBack, err)
	// Output:
	// true 200 <nil>
	// true <nil>
	// false 0 <nil>
}
