//go:build cgo || tollbar_purego

package tollbar_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/internal/core"
	"github.com/tollbar/tollbar/bindings/go/internal/local"
)

// Random requests with several limits, of limiters and keys, some named twice: the common answer
// and each limit's are C's.
func TestCoreTakesManyAsC(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 32))
	texts := []string{"10/s", "3/s burst 5", "5/s burst 4 ban 2s after 2", "10/s burst 6 init 0", "6/s algo fixed-window", "9/s algo weighted-window", "7/s algo interval", "50/forever"}
	c, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 10_000}, texts...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	g := localTable(t, local.Options{Capacity: 10_000}, texts...)
	var limiters []*both
	for _, text := range texts {
		limiters = append(limiters, newBoth(t, text))
	}
	now := uint64(1e17)
	verdicts := [3]int{}
	for i := range 100_000 {
		now += random.Uint64N(300_000_000)
		var limits []tollbar.Limit
		var parts []core.Part
		of := []int{}
		names := []string{}
		for range 1 + random.IntN(4) {
			number, n := random.IntN(len(texts)), random.Uint64N(3)
			if random.IntN(50) == 0 {
				n = 100
			}
			name := fmt.Sprint("limiter ", number)
			one := core.Part{Index: len(limits), Cost: n, Now: now, Clock: func() uint64 { return now }}
			if random.IntN(2) == 0 {
				limits, one.Limit = append(limits, limiters[number].c.Limit(n)), core.Uncounted{Limiter: limiters[number].g}
			} else {
				key := fmt.Sprint("key ", random.IntN(3))
				name = fmt.Sprint(key, number)
				limits, one.Limit = append(limits, c.Under(uint32(number)).Limit(key, n)), localKey(t, g, uint32(number), key)
			}
			place := len(parts)
			for j := range names {
				if names[j] == name {
					place = of[j]
				}
			}
			names, of = append(names, name), append(of, place)
			if place < len(parts) {
				parts[place].Cost += n
			} else {
				parts = append(parts, one)
			}
		}
		each := make([]tollbar.Decision, len(limits))
		want, err := tollbar.TakeManyAt(now, each, limits...)
		if err != nil {
			t.Fatal(err)
		}
		taken := core.TakeAll(parts)
		d := decision(taken.Answer)
		got := tollbar.Taken{
			Verdict: d.Verdict, Reason: d.Reason, Bound: parts[taken.Bound].Index, Remaining: d.Remaining, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter,
		}
		verdicts[got.Verdict]++
		if got != want {
			t.Fatalf("request %d, %v: %+v, in C %+v", i, names, got, want)
		}
		for j := range each {
			if d := decision(parts[of[j]].Decided); d != each[j] {
				t.Fatalf("request %d, %v, limit %d: %+v, in C %+v", i, names, j, d, each[j])
			}
		}
	}
	if verdicts[0] < 1000 || verdicts[1] < 1000 || verdicts[2] < 1000 {
		t.Errorf("%v verdicts", verdicts)
	}
}

// Header fields and problems are C's, byte for byte.
func TestCoreWritesFieldsAsC(t *testing.T) {
	random := rand.New(rand.NewPCG(41, 42))
	pick := func(of ...uint64) uint64 { return of[random.IntN(len(of))] }
	for range 20_000 {
		var limits []tollbar.HTTPLimit
		var own []core.HTTPLimit
		for range 1 + random.IntN(3) {
			policy := tollbar.Policy{
				Limit: pick(1, 7, 100, 1<<50, 1<<63), Period: time.Duration(pick(1, 1e6, 1e9, 1500e6, 60e9, 86400e9, 1<<62)), Burst: pick(1, 20, 1<<60),
			}
			if random.IntN(8) == 0 {
				policy = tollbar.Policy{Algorithm: tollbar.Quota, Limit: 5, Period: tollbar.Forever, Burst: 5}
			}
			if policy.Check() != nil {
				continue
			}
			d := tollbar.Decision{
				Verdict: tollbar.Verdict(random.IntN(3)), Remaining: pick(0, 1, 19, 1<<62), RetryAfter: wait(pick(0, 1, 1e9, 1e9+1, 1<<63)),
				ResetAfter: wait(pick(0, 1, 5e9, 1<<63)),
			}
			more := pick(0, 1, 2e9, 1<<63)
			name, partition := []string{"a", `q"\`, "é"}[random.IntN(3)], []string{"", "k", "ab", "abc"}[random.IntN(4)]
			limits = append(limits, tollbar.HTTPLimit{Name: name, Policy: policy, Decision: d, MoreAfter: wait(more), Partition: partition})
			period := uint64(policy.Period)
			if policy.Algorithm == tollbar.Quota {
				period = core.Forever
			}
			ns := func(d time.Duration) uint64 {
				if d == tollbar.Forever {
					return core.NoTime
				}
				return uint64(d)
			}
			own = append(own, core.HTTPLimit{
				Name: name, Partition: partition, Limit: policy.Limit, Period: period, Burst: policy.Burst, Verdict: core.Verdict(d.Verdict),
				Remaining: d.Remaining, RetryAfter: ns(d.RetryAfter), ResetAfter: ns(d.ResetAfter), MoreAfter: ns(wait(more)),
			})
		}
		if len(limits) == 0 {
			continue
		}
		fields := tollbar.HTTPFields(random.IntN(70))
		at := time.Unix(int64(random.IntN(2e9)), 5)
		c, err := tollbar.AppendHTTPFields(nil, fields, at, limits...)
		if valid := core.ValidFields(uint32(fields)); valid != (err == nil) {
			t.Fatalf("fields %d: valid is %v, in C %v", fields, valid, err)
		}
		if err != nil || fields == 0 {
			continue
		}
		if got := core.AppendFields(nil, uint32(fields), uint64(at.UnixNano()), own); string(got) != string(c) {
			t.Fatalf("%d, %+v:\n%q, in C\n%q", fields, limits, got, c)
		}
		c, err = tollbar.AppendHTTPProblem(nil, 429, limits...)
		if got := core.AppendProblem(nil, 429, own); err != nil || string(got) != string(c) {
			t.Fatalf("%+v:\n%s, in C\n%s (%v)", limits, got, c, err)
		}
	}
	if _, err := tollbar.AppendHTTPFields(nil, 64, time.Now(), make([]tollbar.HTTPLimit, 1)...); !errors.Is(err, tollbar.ErrOutOfRange) && !errors.Is(err, tollbar.ErrReserved) {
		t.Error(err)
	}
}
