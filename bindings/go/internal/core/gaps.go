package core

import "sync/atomic"

// gaps are departures that cancelled bookings have left between others. src/limiter/gaps.rs says
// what becomes of them. A place points to its gap, and a gap's pointer is new with each gap, so a
// swap that succeeds has found the gap that was read.
type gaps struct{ places atomic.Pointer[gapPlaces] }

// gapPlaces have room for the most gaps of one limiter (MOST).
type gapPlaces [64]atomic.Pointer[Charge]

// exist reports whether there has been a gap.
func (g *gaps) exist() bool { return g.places.Load() != nil }

// keep keeps a cancelled booking as a gap. false if there is no room. Gaps that have passed by now
// make room.
func (g *gaps) keep(gap Charge, now uint64) bool {
	g.places.CompareAndSwap(nil, new(gapPlaces))
	for i := range g.places.Load() {
		place := &g.places.Load()[i]
		if found := place.Load(); (found == nil || found.At <= now) && place.CompareAndSwap(found, &gap) {
			return true
		}
	}
	return false
}

// takeEarliest takes the earliest gap of cost permits from now on, if it is before other.
func (g *gaps) takeEarliest(now, cost, other uint64) (gap Charge, ok bool) {
	wanted := func(gap *Charge) bool { return gap.At >= now && gap.Cost == cost && gap.At < other }
	return g.take(wanted, func(gap, best *Charge) bool { return gap.At < best.At })
}

// takeLatest takes the latest gap after now.
func (g *gaps) takeLatest(now uint64) (gap Charge, ok bool) {
	return g.take(func(gap *Charge) bool { return gap.At > now }, func(gap, best *Charge) bool { return gap.At > best.At })
}

// forget forgets all gaps: their bookings are no longer in the word.
func (g *gaps) forget() {
	if g.exist() {
		for i := range g.places.Load() {
			g.places.Load()[i].Store(nil)
		}
	}
}

// take takes that gap which is wanted, and which no other such gap precedes.
func (g *gaps) take(wanted func(gap *Charge) bool, precedes func(gap, best *Charge) bool) (gap Charge, ok bool) {
	places := g.places.Load()
	if places == nil {
		return Charge{}, false
	}
	// Another try after a failed swap, as often as there are places.
	for range places {
		var place *atomic.Pointer[Charge]
		var best *Charge
		for i := range places {
			if found := places[i].Load(); found != nil && wanted(found) && (best == nil || precedes(found, best)) {
				place, best = &places[i], found
			}
		}
		if best == nil {
			return Charge{}, false
		}
		if place.CompareAndSwap(best, nil) {
			return *best, true
		}
	}
	return Charge{}, false
}
