// Package tollhttp limits the rate of requests to an http.Handler: by a table of tollbar, or by a lease for many
// machines, with a key for each request.
//
//	table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 1_000_000}, "100/min burst 20")
//	...
//	limit, err := tollhttp.New(tollhttp.Options{Limits: []tollhttp.Limit{{Name: "client", Table: table}}})
//	...
//	http.ListenAndServe(":8080", limit.Handler(mux))
//
// A request that is refused gets status 429 with Retry-After. Every answer has the fields of
// draft-ietf-httpapi-ratelimit-headers-11:
//
//	RateLimit-Policy: "client";q=100;w=60    a hundred in sixty seconds
//	RateLimit: "client";r=19;t=1             nineteen are left now, and there are more in a second
//
// Of a request that costs 1 and is refused, t is Retry-After; of a larger one it is never later. There is no t when all
// permits are there, of a lease that admits, and of what lends permits (pacer, warm-up, borrow) while some are left.
package tollhttp

import (
	"errors"
	"math"
	"math/bits"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

// Lease is a limit that is shared with other machines, such as a Lease of the package redis.
type Lease interface {
	Check(key string, n uint64) (tollbar.Decision, error)
	Policy() tollbar.Policy
}

// Limit is one limit that requests have to keep.
type Limit struct {
	// Name in the header fields: printable ASCII, not empty. It is quoted as need be.
	Name string
	// Table holds the states. It stays the caller's, and open for as long as the handler is used.
	Table *tollbar.Table
	// Lease in place of a table: a limit that is shared with other machines. When all of its permits are there again only the
	// store knows, so the header does not say. Requests with an empty key share the limit that is for all.
	Lease Lease
	// Policy is the number of the table's policy. What the header says of it is what it was when the handler was made.
	Policy uint32
	// Key says whose request it is, and whether this limit is for it at all: with false it is not counted. Nil is
	// [RemoteAddr]. An empty key is none: it passes, uncounted, if the table's MissingKey is MissingAllow, and gets
	// Options.Missing if not.
	Key func(*http.Request) (key string, counted bool)
	// Cost is the permits that a request takes; nil is 1 each.
	Cost func(*http.Request) uint64
	// Charge is for what is known only after the response: whether a login failed, how many bytes were sent. With it a request is only
	// looked at before the handler, as one of Cost permits, and charged afterwards with what Charge returns; 0 charges nothing. With the
	// policy "5/min ban 1h" this bans an address after five wrong passwords:
	//
	//	Charge: func(r *http.Request, response tollhttp.Response) uint64 {
	//		if response.Status == http.StatusUnauthorized {
	//			return 1
	//		}
	//		return 0
	//	}
	//
	// It needs a Table. An error of the charge goes to Options.ChargeFailed.
	Charge func(*http.Request, Response) uint64
}

// Response is what the handler answered, when it has returned.
type Response struct {
	// Status is 500 if the handler panicked before it began to answer.
	Status int
	Header http.Header
	// Written is the bytes of the body.
	Written int64
}

// Options say how requests are limited.
type Options struct {
	// Limits, at least one. They are asked in this order, and the first that refuses ends it. Those before it have been
	// charged: put the one first that refuses most.
	Limits []Limit
	// Exempt requests pass and are counted nowhere. Nil: none are. (Keys may be exempt too, by [tollbar.Keys.Exempt]; an
	// address by what [tollbar.AddrKey] makes of it with 32 and 64 bits.)
	Exempt func(*http.Request) bool
	// Refused answers a request that is refused; the header fields are set, Retry-After among them where waiting helps. Nil
	// is [http.Error] with status 429.
	Refused http.Handler
	// Missing answers a request without a key that a table refuses, or reports, for that. Nil is [http.Error] with status 403:
	// such a request has not asked too often, and waiting does not help it.
	Missing http.Handler
	// Failed answers a request that could not be decided on, such as one after the table's Close. Nil is [http.Error] with
	// status 500: no request passes uncounted.
	Failed func(http.ResponseWriter, *http.Request, error)
	// ChargeFailed is told that a [Limit.Charge] could not be charged, such as one after the table's Close. Nil: nobody is.
	ChargeFailed func(*http.Request, error)
	// NoHeaders: RateLimit and RateLimit-Policy are not sent. Retry-After is.
	NoHeaders bool
}

// Errors of New.
var (
	// ErrNoLimit: there is no limit, or one without a table or lease, or with both.
	ErrNoLimit = errors.New("tollhttp: a limit with a table or a lease is wanted")
	// ErrCharge: a limit with a lease has a Charge. A lease is charged before the response.
	ErrCharge = errors.New("tollhttp: a limit with Charge needs a table")
	// ErrName: a name that is empty or not of printable ASCII.
	ErrName = errors.New("tollhttp: a name is of printable ASCII, and not empty")
)

// Limiter limits the requests of handlers. Any number of them, and of goroutines, may use it.
type Limiter struct {
	options Options
	limits  []limit
	// Whether any limit is charged after the response.
	charges bool
}

// limit is a Limit with what can be worked out beforehand.
type limit struct {
	Limit
	check, peek func(key string, cost uint64) (tollbar.Decision, error)
	// The policy lends: it may admit a request that costs more permits than are left, and later requests wait until that debt is paid.
	lends bool
	// The name as a string of structured fields.
	quoted string
	// Its item of RateLimit-Policy.
	policy string
}

// New checks the options. The error is [ErrNoLimit], [ErrName], [ErrCharge], or the table's.
func New(options Options) (*Limiter, error) {
	l := &Limiter{options: options}
	if len(options.Limits) == 0 {
		return nil, ErrNoLimit
	}
	for _, given := range options.Limits {
		if (given.Table == nil) == (given.Lease == nil) {
			return nil, ErrNoLimit
		}
		if given.Charge != nil && given.Lease != nil {
			return nil, ErrCharge
		}
		l.charges = l.charges || given.Charge != nil
		quoted, err := quote(given.Name)
		if err != nil {
			return nil, err
		}
		bound := limit{Limit: given, quoted: quoted}
		policy, err := bound.bind()
		if err != nil {
			return nil, err
		}
		bound.policy = quoted + describe(policy)
		if bound.Key == nil {
			bound.Key = RemoteAddr
		}
		l.limits = append(l.limits, bound)
	}
	return l, nil
}

// bind finds out how the limit is asked, and its policy.
func (l *limit) bind() (policy tollbar.Policy, err error) {
	if l.Lease != nil {
		l.check, policy = l.Lease.Check, l.Lease.Policy()
	} else {
		keys := l.Table.Under(l.Policy)
		l.check, l.peek = keys.Check, keys.Peek
		if l.Charge != nil {
			l.check = look(l.Table, keys)
		}
		policy, err = l.Table.Policy(l.Policy)
	}
	l.lends = policy.Lends()
	return policy, err
}

// look is a check that takes nothing. A refusal counts, for the table's numbers and for a ban: the check at the instant of the peek is
// refused, too.
func look(table *tollbar.Table, keys tollbar.Keys) func(key string, cost uint64) (tollbar.Decision, error) {
	return func(key string, cost uint64) (tollbar.Decision, error) {
		now, err := table.Now()
		if err != nil {
			return tollbar.Decision{Verdict: tollbar.Denied, Reason: tollbar.ReasonFault}, err
		}
		decision, err := keys.PeekAt(key, now, cost)
		if err == nil && !decision.Allowed() {
			decision, err = keys.CheckAt(key, now, cost)
		}
		return decision, err
	}
}

// Handler is next for those requests that may pass.
func (l *Limiter) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.options.Exempt != nil && l.options.Exempt(r) {
			next.ServeHTTP(w, r)
			return
		}
		var charges []charge
		if l.charges {
			charges = make([]charge, 0, len(l.limits))
		}
		verdict, retry, err := l.ask(w.Header(), r, &charges)
		switch {
		case err != nil && l.options.Failed != nil:
			l.options.Failed(w, r, err)
		case err != nil:
			http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		case verdict == passes && len(charges) != 0:
			l.serveAndCharge(next, w, r, charges)
		case verdict == passes:
			next.ServeHTTP(w, r)
		case verdict == missing && l.options.Missing != nil:
			l.options.Missing.ServeHTTP(w, r)
		case verdict == missing:
			http.Error(w, "Forbidden: the request has no key that it could be counted by", http.StatusForbidden)
		default:
			if retry != tollbar.Forever {
				w.Header().Set("Retry-After", strconv.FormatUint(seconds(retry), 10))
			}
			if l.options.Refused != nil {
				l.options.Refused.ServeHTTP(w, r)
				return
			}
			http.Error(w, http.StatusText(http.StatusTooManyRequests), http.StatusTooManyRequests)
		}
	})
}

// verdict is what becomes of a request.
type verdict int

const (
	passes verdict = iota
	refused
	// missing: refused for want of a key.
	missing
)

// ask puts the request to each limit, and what they say into the header.
// A limit that is to be charged after the response is added to charges.
func (l *Limiter) ask(header http.Header, r *http.Request, charges *[]charge) (v verdict, retry time.Duration, err error) {
	var policies, states []byte
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
		decision, err := limit.check(key, cost)
		if key == "" && limit.Table != nil && (err == nil || errors.Is(err, tollbar.ErrMissingKey)) {
			// Nobody's permits: there is nothing to tell of them.
			if err == nil && decision.Allowed() {
				continue
			}
			v = missing
			break
		}
		if err != nil {
			return refused, 0, err
		}
		if !l.options.NoHeaders {
			policies = append(separate(policies), limit.policy...)
			states = limit.appendState(separate(states), key, cost, decision)
		}
		if !decision.Allowed() {
			v, retry = refused, decision.RetryAfter
			break
		}
		if limit.Charge != nil {
			*charges = append(*charges, charge{limit, key})
		}
	}
	if len(policies) != 0 {
		header.Set("RateLimit-Policy", string(policies))
		header.Set("RateLimit", string(states))
	}
	return v, retry, nil
}

func separate(list []byte) []byte {
	if len(list) == 0 {
		return list
	}
	return append(list, ", "...)
}

func (l *limit) appendState(to []byte, key string, cost uint64, d tollbar.Decision) []byte {
	to = append(append(to, l.quoted...), ";r="...)
	to = strconv.AppendUint(to, min(d.Remaining, mostInteger), 10)
	more := l.untilMore(key, cost, d)
	if more == tollbar.Forever {
		return to
	}
	// At least a second: a permit may have come back since the decision.
	return strconv.AppendUint(append(to, ";t="...), max(seconds(more), 1), 10)
}

// untilMore is how long until there are more permits than now. Forever: there are all, there will never be more, or it
// cannot be said.
func (l *limit) untilMore(key string, cost uint64, d tollbar.Decision) time.Duration {
	// When a lease has more to take only the store knows; a refusal has its estimate.
	if !d.Allowed() && (l.Lease != nil || d.Remaining+1 == cost) {
		return d.RetryAfter
	}
	// A lending policy admits a cost above the permits left, so a peek for one more permit than is left is allowed and says no time.
	if l.Lease != nil || d.ResetAfter == 0 || (l.lends && d.Remaining != 0) {
		return tollbar.Forever
	}
	next, err := l.peek(key, d.Remaining+1)
	if err != nil {
		return tollbar.Forever
	}
	if !d.Allowed() {
		// Others may have taken permits since the decision.
		return min(next.RetryAfter, d.RetryAfter)
	}
	return next.RetryAfter
}

// mostInteger is the largest number that a structured field can have.
const mostInteger = 999_999_999_999_999

// describe is so many permits in so many seconds; of a period that is no whole number of seconds, what comes to as much.
func describe(p tollbar.Policy) string {
	window := seconds(p.Period)
	high, low := bits.Mul64(p.Limit, window*uint64(time.Second))
	quota := uint64(math.MaxUint64)
	if period := uint64(p.Period); high < period {
		quota, _ = bits.Div64(high, low, period)
	}
	return ";q=" + strconv.FormatUint(min(quota, mostInteger), 10) + ";w=" + strconv.FormatUint(window, 10)
}

// seconds are rounded up: a client that comes back then is not early.
func seconds(d time.Duration) uint64 {
	s := uint64(d / time.Second)
	if d%time.Second != 0 {
		s++
	}
	return s
}

// quote is a name as a string of structured fields (RFC 9651, 3.3.3).
func quote(name string) (string, error) {
	if name == "" {
		return "", ErrName
	}
	for i := range len(name) {
		if name[i] < 0x20 || name[i] > 0x7e {
			return "", ErrName
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`, nil
}

// RemoteAddr is a key of the address that the connection comes from: all of an IPv4 address, and the first 64 bits of an
// IPv6 address, since a host can change the rest with every request. It is empty where there is no address (a Unix
// socket). Behind a proxy it is the proxy's: see [Header].
func RemoteAddr(r *http.Request) (string, bool) {
	address, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "", true
	}
	return addrKey(address.Addr()), true
}

// Header is a key function for those behind a proxy: of the address in that header field, which the proxy must set
// itself and not pass on from its client. Of a list it takes the last, which is the one that the nearest proxy has added.
// It is empty where there is no such address.
func Header(name string) func(*http.Request) (string, bool) {
	return func(r *http.Request) (string, bool) {
		values := r.Header.Values(name)
		if len(values) == 0 {
			return "", true
		}
		last := values[len(values)-1]
		address, err := netip.ParseAddr(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:]))
		if err != nil {
			return "", true
		}
		return addrKey(address), true
	}
}

func addrKey(address netip.Addr) string {
	key, err := tollbar.AddrKey(address, 32, 64)
	if err != nil {
		return ""
	}
	return key
}
