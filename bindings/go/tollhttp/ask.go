package tollhttp

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

// Refusal says why a request was refused.
type Refusal struct {
	// Limit is the name of the limit that refused. If several refused, it is the one with the
	// longest wait.
	Limit string
	// Decision is that limit's decision. Its Reason distinguishes a ban from a spent limit.
	Decision tollbar.Decision
}

type refusalKey struct{}

// RefusalOf returns why the request was refused. Only a request that Options.Refused answers has a
// Refusal.
func RefusalOf(r *http.Request) (Refusal, bool) {
	refusal, ok := r.Context().Value(refusalKey{}).(Refusal)
	return refusal, ok
}

func withRefusal(r *http.Request, refusal Refusal) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), refusalKey{}, refusal))
}

// verdict is the decision of all limits on a request.
type verdict int

const (
	passes verdict = iota
	refused
	// missing: refused because it has no key.
	missing
)

// asked is a limit of a request.
type asked struct {
	limit *limit
	key   string
	cost  uint64
	// The limit's decision, if decided. If another limit refused the request, it is the decision
	// that this limit would make alone.
	decision tollbar.Decision
	decided  bool
	// The table's time before its charge, by which the charge can be given back.
	before uint64
}

// answer is the outcome of a request.
type answer struct {
	verdict verdict
	retry   time.Duration
	refusal Refusal
	// The limits that are charged after the response.
	charges []charge
}

// ask charges all limits of the request, or none, and writes the fields of all layers into the
// header. The layers are for the next handler.
func (l *Limiter) ask(header http.Header, r *http.Request) (answer, *layers, error) {
	outer := outside(r.Context())
	found, all, err := l.askOf(r)
	if err != nil {
		return found, outer, err
	}
	if found.verdict != passes {
		if err := outer.refund(); err != nil {
			return answer{verdict: refused}, outer, err
		}
	}
	asked := outer.with(l.options.Fields, all)
	if err := asked.write(header); err != nil {
		return answer{verdict: refused}, outer, err
	}
	return found, asked, nil
}

// askOf charges all limits of the request, or none.
func (l *Limiter) askOf(r *http.Request) (answer, []asked, error) {
	all, found, err := l.limitsOf(nil, r)
	if err != nil || found == missing {
		return answer{verdict: missing}, nil, err
	}
	refusing, retry, err := decide(all)
	if err != nil {
		return answer{verdict: refused}, nil, err
	}
	if refusing != nil {
		return answer{verdict: refused, retry: retry, refusal: Refusal{refusing.limit.Name, refusing.decision}}, all, nil
	}
	var charges []charge
	for i := range all {
		if one := &all[i]; one.limit.Charge != nil {
			charges = append(charges, charge{one.limit, one.key})
		}
	}
	return answer{verdict: passes, charges: charges}, all, nil
}

// limitsOf appends the limits that count the request. The second result is missing if the request
// has no key that one of them needs.
func (l *Limiter) limitsOf(all []asked, r *http.Request) ([]asked, verdict, error) {
	for i := range l.limits {
		limit := &l.limits[i]
		key, counted := limit.Key(r)
		if !counted {
			continue
		}
		cost := uint64(1)
		if limit.Cost != nil {
			cost = limit.Cost(r)
		}
		if key == "" && limit.Table != nil {
			// No key is charged, so the header has no field for this limit.
			decision, err := limit.check(key, cost)
			if err != nil && !errors.Is(err, tollbar.ErrMissingKey) {
				return nil, refused, err
			}
			if err != nil || !decision.Allowed() {
				return nil, missing, nil
			}
			continue
		}
		all = append(all, asked{limit: limit, key: key, cost: cost})
	}
	return all, passes, nil
}

// decide charges all of the limits or none, and returns the one that refuses and the wait, if one
// does.
//
// It peeks first at the limits that are charged after the response. Then one call charges the
// tables. Leases come last, because only a charge shows whether a lease admits the request. If one
// refuses, the tables get their charges back. A lease takes nothing back, so if a second lease
// refuses, the first one stays charged.
func decide(all []asked) (refusing *asked, retry time.Duration, err error) {
	tables := 0
	for i := range all {
		one := &all[i]
		switch {
		case one.limit.Lease != nil:
		case one.limit.Charge == nil:
			tables++
		default:
			if err := one.check(); err != nil || !one.decision.Allowed() {
				return one, one.decision.RetryAfter, err
			}
		}
	}
	if tables != 0 {
		refusing, retry, err = chargeTables(all)
		if refusing != nil || err != nil {
			return refusing, retry, err
		}
	}
	for i := range all {
		one := &all[i]
		if one.limit.Lease == nil {
			continue
		}
		if err := one.check(); err != nil || !one.decision.Allowed() {
			giveBack(all)
			return one, one.decision.RetryAfter, err
		}
	}
	return nil, 0, nil
}

// check decides a request with one limit. It charges the limit, or only peeks if the limit is
// charged after the response.
func (one *asked) check() (err error) {
	one.decision, err = one.limit.check(one.key, one.cost)
	one.decided = err == nil
	return err
}

// isCharged reports whether chargeTables charges the limit.
func (one *asked) isCharged() bool { return one.limit.Table != nil && one.limit.Charge == nil }

// chargeTables charges the limits with a table, of which there is one at least.
func chargeTables(all []asked) (refusing *asked, retry time.Duration, err error) {
	var (
		limits    [tollbar.LimitsMost]tollbar.Limit
		decisions [tollbar.LimitsMost]tollbar.Decision
		of        [tollbar.LimitsMost]*asked
	)
	n := 0
	for i := range all {
		one := &all[i]
		if !one.isCharged() {
			continue
		}
		if one.before, err = one.limit.Table.Now(); err != nil {
			return nil, 0, err
		}
		limits[n], of[n] = one.limit.Table.Under(one.limit.Limit.Policy).Limit(one.key, one.cost), one
		n++
	}
	if n == 1 {
		if err := of[0].check(); err != nil || !of[0].decision.Allowed() {
			return of[0], of[0].decision.RetryAfter, err
		}
		return nil, 0, nil
	}
	taken, err := tollbar.TakeManyEach(decisions[:n], limits[:n]...)
	if err != nil {
		return nil, 0, err
	}
	for i, one := range of[:n] {
		one.decision, one.decided = decisions[i], true
	}
	if !taken.Allowed() {
		return of[taken.Bound], taken.RetryAfter, nil
	}
	return nil, 0, nil
}

// giveBack gives back what chargeTables has charged.
func giveBack(all []asked) {
	for i := range all {
		one := &all[i]
		if one.isCharged() && one.decision.Allowed() {
			// Cancel fails only if the table was closed or is damaged. The next request of that
			// table fails in the same way, and is reported.
			_, _ = one.limit.Table.Under(one.limit.Limit.Policy).Cancel(one.key, tollbar.Reservation{Departs: one.before, Cost: one.cost})
		}
	}
}

// write sets the fields of the limits that have decided. If a limit refused the request before
// other limits were asked, only that limit and those before it have decided.
func (l *layers) write(header http.Header) error {
	var usual [4]tollbar.HTTPLimit
	limits := usual[:0]
	for i := range l.all {
		one := &l.all[i]
		if !one.decided {
			continue
		}
		// Only the store knows when a lease has more permits. A refusal has an estimate.
		more := tollbar.Forever
		if one.limit.Table != nil && l.fields&^tollbar.FieldRetryAfter != 0 {
			var err error
			if more, err = one.limit.Table.Under(one.limit.Limit.Policy).MoreAfter(one.key, one.cost, one.decision); err != nil {
				return err
			}
		}
		limits = append(limits, tollbar.HTTPLimit{Name: one.limit.Name, Policy: one.limit.policy, Decision: one.decision, MoreAfter: more})
	}
	if len(limits) == 0 {
		return nil
	}
	// More limits than this have no room in a field. The last one asked is the one that refuses, if
	// one does.
	if more := len(limits) - tollbar.LimitsMost; more > 0 {
		limits = limits[more:]
	}
	return Set(header, l.fields, limits...)
}

// Set sets the header fields of limits, for a handler that decides by itself.
func Set(header http.Header, fields tollbar.HTTPFields, limits ...tollbar.HTTPLimit) error {
	var room [512]byte
	lines, err := tollbar.AppendHTTPFields(room[:0], fields, time.Now(), limits...)
	for line := range strings.SplitSeq(string(lines), "\r\n") {
		if name, value, found := strings.Cut(line, ": "); found {
			header.Set(name, value)
		}
	}
	return err
}
