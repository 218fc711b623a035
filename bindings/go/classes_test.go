//go:build cgo || tollbar_purego

package tollbar

import (
	"errors"
	"testing"
	"time"
)

func TestAClassStopsExactlyAtItsReserve(t *testing.T) {
	const text, hour = "100/s reserve standard 20 urgent 0", uint64(time.Hour)
	limiter, err := NewLimiter(text)
	if err != nil {
		t.Fatal(err)
	}
	table, err := NewTable(TableOptions{Capacity: 10}, text)
	if err != nil {
		t.Fatal(err)
	}
	several, _ := NewLimiter(text)
	take := func(class string) [3]Decision {
		one, err := limiter.CheckClassAt(class, hour, 1)
		two, of := table.Under(0).CheckClassAt("key", class, hour, 1)
		taken, many := TakeManyAt(hour, nil, several.Limit(1).Class(class))
		if err != nil || of != nil || many != nil {
			t.Fatal(err, of, many)
		}
		return [3]Decision{one, two, {Verdict: taken.Verdict, Reason: taken.Reason, Remaining: taken.Remaining}}
	}
	for n := uint64(0); n < 80; n++ {
		for i, d := range take("standard") {
			if !d.Allowed() || d.Remaining != 99-n {
				t.Fatalf("call %d, request %d: %+v", i, n, d)
			}
		}
	}
	for _, class := range []string{"standard", "1"} {
		for i, d := range take(class) {
			if d.Allowed() || d.Remaining != 20 || d.Reason != ReasonReserve {
				t.Fatalf("call %d: %+v", i, d)
			}
		}
	}
	for n := 0; n < 20; n++ {
		for i, d := range take("urgent") {
			if !d.Allowed() {
				t.Fatalf("call %d: %+v", i, d)
			}
		}
	}
	if d, err := limiter.CheckClass("standard", 81); err != nil || d.Verdict != Never {
		t.Fatal(d, err)
	}
	if d, err := table.CheckClass("other", "standard", 80); err != nil || !d.Allowed() {
		t.Fatal(d, err)
	}
}

func TestAnUnknownClassIsAnError(t *testing.T) {
	limiter, _ := NewLimiter("10/s reserve low 2")
	table, _ := NewTable(TableOptions{Capacity: 10}, "10/s reserve low 2")
	for _, class := range []string{"", "lo", "lows", "Low", "2", "low\x00", "a-name-of-more-than-15-bytes"} {
		_, one := limiter.CheckClass(class, 1)
		_, two := table.CheckClass("key", class, 1)
		_, three := TakeMany(limiter.Limit(1).Class(class))
		_, four := TakeMany(table.Limit("key", 1).Class(class))
		for i, err := range []error{one, two, three, four} {
			if !errors.Is(err, ErrNoSuchClass) {
				t.Errorf("%q, call %d: %v", class, i, err)
			}
		}
	}
	if _, err := NewLimiterWith("1000000/s reserve low 2", LimiterOptions{Credit: true}); !errors.Is(err, ErrClasses) {
		t.Error(err)
	}
	limiter.Close()
	if _, err := limiter.CheckClass("low", 1); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestAPolicyHasItsClasses(t *testing.T) {
	const text = "10/s burst 20 reserve low 5 high 0"
	policy, err := ParsePolicy(text)
	if err != nil || policy.String() != text {
		t.Fatal(policy, err)
	}
	if policy.Classes != [ClassesMost]Class{{"low", 5}, {"high", 0}} {
		t.Fatal(policy.Classes)
	}
	for _, classes := range [][ClassesMost]Class{{{"low", 20}}, {{"a-name-of-16-byt", 1}}, {{}, {"low", 1}}, {{"l\x00w", 1}}, {{"", 1}}} {
		policy.Classes = classes
		if err := policy.Check(); !errors.Is(err, ErrClasses) {
			t.Error(classes, err)
		}
	}
}

func TestABatchHasClasses(t *testing.T) {
	table, err := NewTable(TableOptions{Capacity: 10}, "10/h reserve low 4 high 0")
	if err != nil {
		t.Fatal(err)
	}
	var batch Batch
	for range 10 {
		batch.AddClassN(0, "key", 1, 1)
	}
	for range 10 {
		batch.AddClassN(0, "key", 1, 2)
	}
	batch.AddClassN(0, "key", 1, 3)
	if err := table.CheckMany(&batch); err != nil {
		t.Fatal(err)
	}
	low, high := 0, 0
	for i := range 10 {
		if batch.Allowed(i) {
			low++
		}
		if batch.Allowed(10 + i) {
			high++
		}
	}
	if low != 6 || high != 4 || batch.Allowed(20) || batch.Verdicts()[20] >= 0 {
		t.Error(low, high, batch.Verdicts()[20])
	}
}
