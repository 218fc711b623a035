package core

import (
	"math/rand/v2"
	"testing"
)

// Bookings that are cancelled at random, some last first: in no window more departs than the burst and the rate allow, and whatever the last booking was, it
// comes back whole.
func TestTheLastBookingWasNeverMade(t *testing.T) {
	const second = 1_000_000_000
	random := rand.New(rand.NewPCG(2, 2))
	full, whole, cancelled := 0, 0, 0
	for trial := range 20_000 {
		_, algorithm, wrong := Parse([]string{"1/s burst 6", "1/s burst 1", "1/s algo interval burst 3", "1/s algo pacer"}[trial%4])
		if wrong != nil {
			t.Fatal(wrong)
		}
		burst := []uint64{6, 1, 3, 1}[trial%4]
		l := NewLimiter(algorithm)
		now := uint64(100 * second)
		var taken []Charge
		for range 30 {
			now += []uint64{0, 0, 0, second / 2, second, 1}[random.IntN(6)]
			if random.IntN(5) < 3 {
				cost := 1 + random.Uint64N(burst)
				if at, verdict := l.Reserve(now, cost, now+30*second); verdict == Allowed {
					taken = append(taken, Charge{at, cost})
				}
				continue
			}
			if len(taken) == 0 {
				continue
			}
			i := len(taken) - 1
			if random.IntN(2) == 0 {
				i = random.IntN(len(taken))
			}
			if taken[i].At < now {
				continue
			}
			before := l.Word()
			back := l.GiveBack(taken[i], func() uint64 { return now })
			if i == len(taken)-1 && taken[i].At > now {
				if cancelled++; back == taken[i].Cost {
					whole++
				}
			}
			if back > taken[i].Cost || back != 0 && l.Word() > before {
				t.Fatalf("trial %d: %d of %d came back", trial, back, taken[i].Cost)
			}
			taken = append(taken[:i], taken[i+1:]...)
		}
		for _, from := range taken {
			for _, to := range taken {
				sum := uint64(0)
				for _, one := range taken {
					if from.At <= one.At && one.At <= to.At {
						sum += one.Cost
					}
				}
				if to.At < from.At {
					continue
				}
				// A pacer's next departure is a whole cost later, and an interval's permits come at its end.
				most := burst + (to.At-from.At)/second
				if trial%4 == 2 {
					most = burst + to.At/second - from.At/second
				}
				if sum > most {
					t.Fatalf("trial %d: %d depart in %d ns, at most %d may: %v", trial, sum, to.At-from.At, most, taken)
				}
				if sum == most {
					full++
				}
			}
		}
	}
	// One that was booked after another was cancelled amid others may be below the highest word, and then it is not known to be the last.
	t.Logf("%d windows were full; %d of %d last bookings came back whole", full, whole, cancelled)
	if full == 0 || whole < cancelled*95/100 {
		t.Error("too few")
	}
}
