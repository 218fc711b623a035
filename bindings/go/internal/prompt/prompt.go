// Package prompt runs tests whose expectations hold for a limited time, such as `Retry-After: 30`,
// which is 29 a second later. Only tests import it.
package prompt

import (
	"fmt"
	"testing"
	"time"
)

// attempt keeps what one run of a test finds wrong.
type attempt struct {
	testing.TB
	faults []string
}

func (a *attempt) Error(of ...any) { a.faults = append(a.faults, fmt.Sprintln(of...)) }

func (a *attempt) Errorf(format string, of ...any) {
	a.faults = append(a.faults, fmt.Sprintf(format, of...))
}

// Within runs a test, and runs it again if it has failed and took longer than its expectations
// hold. A test that fails in time has failed, and so has one that fails 20 times.
func Within(t testing.TB, valid time.Duration, test func(t testing.TB)) {
	t.Helper()
	for tries := 1; ; tries++ {
		one, began := &attempt{TB: t}, time.Now()
		test(one)
		took := time.Since(began)
		if len(one.faults) == 0 {
			return
		}
		if took < valid || tries == 20 {
			for _, fault := range one.faults {
				t.Errorf("%s (try %d, which took %v)", fault, tries, took)
			}
			return
		}
	}
}
