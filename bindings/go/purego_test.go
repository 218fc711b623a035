//go:build tollbar_purego

package tollbar_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollbar/tollbar/bindings/go"
	// The tests run in that module: go test -tags tollbar_purego
	// github.com/tollbar/tollbar/bindings/go.
	_ "github.com/tollbar/tollbar/bindings/go/tollpurego"
)

// purego allocates memory for each call, and what a call returns is on the heap: a decision, two
// calls of a batch.
const allocationsMost, takeManyAllocationsMost = 3, 6

// A library that is missing, or is another one, is the error of all calls, and says what is
// expected.
func TestALibraryThatCannotBeLoaded(t *testing.T) {
	if os.Getenv("TOLLBAR_TEST_LIBRARY") != "" {
		says := os.Getenv("TOLLBAR_TEST_LIBRARY")
		_, limiter := tollbar.NewLimiter("1/s")
		_, table := tollbar.NewTable(tollbar.TableOptions{Capacity: 1}, "1/s")
		_, file := tollbar.OpenTable(filepath.Join(t.TempDir(), "table"), tollbar.TableOptions{})
		_, flight := tollbar.NewInFlight(tollbar.InFlightOptions{Capacity: 1})
		_, pacing := tollbar.NewPacing(tollbar.PacingOptions{})
		_, clock := tollbar.Now(tollbar.ClockWall)
		for i, err := range []error{limiter, table, file, flight, pacing, clock} {
			if !errors.Is(err, tollbar.ErrNeedsLibrary) || !strings.Contains(err.Error(), says) {
				t.Errorf("call %d: %v", i, err)
			}
		}
		if version := tollbar.Version(); version != "" {
			t.Error(version)
		}
		return
	}
	other, err := filepath.Glob("/lib*/*/libm.so.6")
	if err != nil || len(other) == 0 {
		other = []string{"libm.so.6"}
	}
	for library, says := range map[string]string{
		"/nonexistent/libtollbar.so": "expected: libtollbar.so.1 where the system finds libraries, or its file in TOLLBAR_LIBRARY",
		other[0]:                     "has another ABI, without tollbar_abi_1; expected: libtollbar.so.1 of version 0.1.0 or later",
	} {
		command := exec.Command(os.Args[0], "-test.run", "^TestALibraryThatCannotBeLoaded$")
		command.Env = append(os.Environ(), "TOLLBAR_LIBRARY="+library, "TOLLBAR_TEST_LIBRARY="+says)
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", library, err, output)
		}
	}
}
