package core

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// Bookings that are cancelled at random, some last first: in no window more departs than the burst
// and the rate allow, and whatever the last booking was, it comes back whole.
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
			// A caller that has taken a gap departs before others that booked earlier.
			latest := 0
			for i := range taken {
				if taken[i].At >= taken[latest].At {
					latest = i
				}
			}
			i := latest
			if random.IntN(2) == 0 {
				i = random.IntN(len(taken))
			}
			if taken[i].At < now {
				continue
			}
			before := l.Word()
			back := l.GiveBack(taken[i], func() uint64 { return now })
			if i == latest && taken[i].At > now {
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
				// A pacer's next departure is a whole cost later, and an interval's permits come at
				// its end.
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
	// If a charge of a booking's part has gone back, the word may be below the highest one, and
	// then the booking is not known to be the last.
	t.Logf("%d windows were full; %d of %d last bookings came back whole", full, whole, cancelled)
	if full == 0 || whole < cancelled*95/100 {
		t.Error("too few")
	}
}

// Twenty callers book and leave, in random orders: afterwards the next permits come as early as if
// the callers had never come (A2).
func TestWhenAllHaveLeftAllPermitsAreBack(t *testing.T) {
	const now = 1_000 * 1_000_000_000
	random := rand.New(rand.NewPCG(0xa2, 0))
	for _, text := range []string{
		"10/s burst 1", "10/s burst 5", "10/s burst 20 borrow", "11/s burst 1", "7/s burst 3", "7/min burst 4", "10/s algo pacer", "7/s algo pacer burst 4", "10/s algo interval",
		"7/s burst 20 algo interval",
	} {
		_, algorithm, wrong := Parse(text)
		if wrong != nil {
			t.Fatalf("%s: %+v", text, wrong)
		}
		book := func(l *Limiter) (at [20]uint64) {
			for i := range at {
				at[i], _ = l.Reserve(now, 1, NoTime-1)
			}
			return at
		}
		drained := func() *Limiter {
			l := NewLimiter(algorithm)
			for l.TakeUpTo(now, 100) != 0 {
			}
			return l
		}
		alone := book(drained())
		for order := range 800 {
			l := drained()
			booked := book(l)
			random.Shuffle(len(booked), func(i, j int) {
				if order > 1 || order == 1 && i+j == len(booked)-1 {
					booked[i], booked[j] = booked[j], booked[i]
				}
			})
			for _, at := range booked {
				l.GiveBack(Charge{at, 1}, func() uint64 { return now })
			}
			if after := book(l); after != alone {
				t.Fatalf("%s, order %d: %v, alone %v", text, order, after, alone)
			}
		}
	}
}

// A gap goes to the next caller of as many permits, if it is neither past nor too late. A reset
// forgets it.
func TestAGapGoesToTheNextCaller(t *testing.T) {
	const now = 1_000 * 1_000_000_000
	_, algorithm, _ := Parse("10/s burst 5")
	l := NewLimiter(algorithm)
	l.Take(now, 5)
	book := func(now, cost, latest uint64) uint64 {
		at, verdict := l.Reserve(now, cost, latest)
		if verdict != Allowed {
			return NoTime
		}
		return at
	}
	var booked [5]Charge
	for i, cost := range []uint64{1, 2, 1, 3, 1} {
		booked[i] = Charge{book(now, cost, NoTime-1), cost}
	}
	for _, i := range []int{2, 1} {
		if back := l.GiveBack(booked[i], func() uint64 { return now }); back != 0 {
			t.Errorf("%d permits came back amid others", back)
		}
	}
	if at := book(now, 1, NoTime-1); at != booked[2].At {
		t.Errorf("%d, not the gap at %d", at, booked[2].At)
	}
	if at := book(now, 1, NoTime-1); at <= booked[4].At || at == NoTime {
		t.Errorf("%d, before others", at)
	}
	if at := book(now, 2, booked[1].At-1); at != NoTime {
		t.Errorf("%d, after the latest time", at)
	}
	if at := book(booked[1].At+1, 2, NoTime-1); at <= booked[4].At || at == NoTime {
		t.Errorf("%d of a gap that has passed", at)
	}
	l.Reset()
	l.Take(now, 5)
	if at := book(now, 2, NoTime-1); at != now+200_000_000 {
		t.Errorf("%d after a reset", at-now)
	}
}

// A limiter keeps 64 gaps. Of the bookings beyond them the limiter gives back what is safe at once,
// and gaps that have passed make room.
func TestGapsBeyondTheMost(t *testing.T) {
	const now, second = 1_000 * 1_000_000_000, 1_000_000_000
	_, algorithm, _ := Parse("1/s burst 1")
	l := NewLimiter(algorithm)
	l.Take(now, 1)
	var booked [80]Charge
	for i := range booked {
		at, _ := l.Reserve(now, 1, NoTime-1)
		booked[i] = Charge{at, 1}
	}
	cancel := func(now uint64, i int) {
		if back := l.GiveBack(booked[i], func() uint64 { return now }); back != 0 {
			t.Errorf("%d permits of booking %d came back amid others", back, i)
		}
	}
	for i := range 70 {
		cancel(now, i)
	}
	for i := range 64 {
		if at, _ := l.Reserve(now, 1, NoTime-1); at != booked[i].At {
			t.Errorf("%d, not gap %d", at, i)
		}
	}
	if at, _ := l.Reserve(now, 1, NoTime-1); at != now+81*second {
		t.Errorf("%d after the gaps", at-now)
	}
	for i := range 64 {
		cancel(now, i)
	}
	// 10 gaps have passed.
	cancel(now+10*second+1, 70)
	if at, _ := l.Reserve(booked[70].At, 1, NoTime-1); at != booked[70].At {
		t.Errorf("%d, not the gap at %d", at, booked[70].At)
	}
}

// Goroutines book, and give back, at the same time: no two have one departure.
func TestGapsOfManyGoroutines(t *testing.T) {
	const now = 1_000 * 1_000_000_000
	_, algorithm, _ := Parse("1000/s burst 1")
	l := NewLimiter(algorithm)
	l.Take(now, 1)
	var mu sync.Mutex
	held := map[uint64]bool{}
	most := uint64(0)
	var all sync.WaitGroup
	for worker := range uint64(4) {
		all.Add(1)
		go func() {
			defer all.Done()
			random := rand.New(rand.NewPCG(worker, 3))
			var mine []uint64
			leave := func(i int) {
				mu.Lock()
				delete(held, mine[i])
				mu.Unlock()
				l.GiveBack(Charge{mine[i], 1}, func() uint64 { return now })
				mine[i] = mine[len(mine)-1]
				mine = mine[:len(mine)-1]
			}
			for range 20_000 {
				if len(mine) < 8 && random.IntN(2) == 0 {
					at, verdict := l.Reserve(now, 1, NoTime-1)
					mu.Lock()
					if most = max(most, at); verdict != Allowed || held[at] {
						t.Errorf("two depart at %d (%v)", at-now, verdict)
					}
					held[at] = true
					mu.Unlock()
					mine = append(mine, at)
				} else if len(mine) != 0 {
					leave(random.IntN(len(mine)))
				}
			}
			for len(mine) != 0 {
				leave(0)
			}
		}()
	}
	all.Wait()
	// All have left, so the next one departs first of all.
	if at, _ := l.Reserve(now, 1, NoTime-1); at != now+1_000_000 {
		t.Errorf("the first departs after %d ns", at-now)
	}
	t.Logf("at most %d ahead", (most-now)/1_000_000)
}

// E10: between the read and the swap of one return, another return and a later request would bring
// the word back to the value that was read, and four permits would pass at one instant. The other
// return waits, so the test gives it up after a while.
func TestAWordThatCameBackGivesNothingTwice(t *testing.T) {
	const now, second = 1_000 * 1_000_000_000, 1_000_000_000
	_, algorithm, _ := Parse("1/s burst 3")
	l := NewLimiter(algorithm)
	taken := l.TakeUpTo(now, 2) + l.TakeUpTo(now, 1)
	later := make(chan uint64, 1)
	l.GiveBack(Charge{now, 2}, func() uint64 {
		go func() {
			l.GiveBack(Charge{now, 1}, func() uint64 { return now })
			later <- l.TakeUpTo(now+second, 1)
		}()
		select {
		case n := <-later:
			later <- n
		case <-time.After(50 * time.Millisecond):
		}
		return now
	})
	atOnce := <-later + l.TakeUpTo(now+second, 9)
	if taken != 3 || atOnce != 3 {
		t.Errorf("%d permits at one instant, after %d", atOnce, taken)
	}
}
