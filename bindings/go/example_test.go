//go:build cgo || tollbar_purego

package tollbar_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/cell"
)

func ExampleNewLimiter() {
	limiter, err := tollbar.NewLimiter("3/min")
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 4 {
		fmt.Println(limiter.Allow())
	}
	_, err = tollbar.NewLimiter("3/mn")
	var wrong *tollbar.PolicyError
	fmt.Println(errors.As(err, &wrong), wrong.Column)
	// Output:
	// true
	// true
	// true
	// false
	// true 3
}

func ExampleLimiter_CheckAt() {
	limiter, _ := tollbar.NewLimiter("10/s burst 1")
	now := uint64(time.Hour)
	for range 2 {
		decision, _ := limiter.CheckAt(now, 1)
		fmt.Println(decision.Verdict, decision.Remaining, decision.RetryAfter)
	}
	// Output:
	// allowed 0 0s
	// denied 0 100ms
}

func ExampleLimiter_Wait() {
	limiter, _ := tollbar.NewLimiter("1/min")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(limiter.Wait(ctx))
	// The next is a minute away: that is known at once.
	fmt.Println(errors.Is(limiter.Wait(ctx), context.DeadlineExceeded))
	// Output:
	// <nil>
	// true
}

func ExampleNewTable() {
	logins, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 1_000_000}, "5/min burst 1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer logins.Close()
	fmt.Println(logins.Allow("anna"), logins.Allow("anna"), logins.Allow("bert"))
	// Output: true false true
}

func ExampleTable_CheckMany() {
	table, _ := tollbar.NewTable(tollbar.TableOptions{Capacity: 1000}, "2/min")
	defer table.Close()
	var batch tollbar.Batch
	for _, key := range []string{"a", "a", "b", "a"} {
		batch.Add(key)
	}
	err := table.CheckMany(&batch)
	fmt.Println(batch.Verdicts(), err)
	// Output: [allowed allowed allowed denied] <nil>
}

func ExampleTakeMany() {
	users, _ := tollbar.NewTable(tollbar.TableOptions{Capacity: 1000}, "2/s", "5/day")
	defer users.Close()
	all, _ := tollbar.NewLimiter("1000/s")
	now := uint64(time.Hour)
	for range 3 {
		taken, err := tollbar.TakeManyAt(now, nil, all.Limit(1), users.Limit("ann", 1), users.Under(1).Limit("ann", 1))
		fmt.Println(taken.Verdict, taken.Bound, taken.RetryAfter, err)
	}
	day, _ := users.Under(1).PeekAt("ann", now, 1)
	fmt.Println(day.Remaining) // which the refusal left alone
	// Output:
	// allowed 1 0s <nil>
	// allowed 1 0s <nil>
	// denied 1 500ms <nil>
	// 3
}

func ExamplePolicy_Cell() {
	policy, _ := tollbar.ParsePolicy("100/s burst 2")
	bucket, _ := policy.Cell()
	var state cell.Cell
	fmt.Println(state.Allow(bucket, 0), state.Allow(bucket, 0), state.Allow(bucket, 0))
	// Output: true true false
}
