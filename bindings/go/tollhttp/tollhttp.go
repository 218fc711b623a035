// Package tollhttp limits the rate of requests to an http.Handler: by a table of tollbar, or by a
// lease for many machines, with a key for each request.
//
//	table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 1_000_000}, "100/min burst 20")
//	...
//	limit, err := tollhttp.New(tollhttp.Options{Limits: []tollhttp.Limit{{Name: "client", Table: table}}})
//	...
//	http.ListenAndServe(":8080", limit.Handler(mux))
//
// A refused request gets status 429 with Retry-After. Every response has the fields of
// draft-ietf-httpapi-ratelimit-headers-11:
//
//	RateLimit-Policy: "client";q=100;w=60    100 permits in 60 seconds
//	RateLimit: "client";r=19;t=1             19 permits are left now, and more in a second
//
// For a refused request of cost 1, t equals Retry-After; for a larger cost it is never later. There
// is no t if no permit is missing, if a lease admits, or while some permits of a policy that lends
// (pacer, warm-up, borrow) are left.
package tollhttp

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/tollbar/tollbar/bindings/go"
)

// Lease is a limit that is shared with other machines, such as a Lease of the package redis.
type Lease interface {
	Check(key string, n uint64) (tollbar.Decision, error)
	Policy() tollbar.Policy
}

// Limit is one limit of the requests.
type Limit struct {
	// Name in the header fields: printable ASCII, not empty. The middleware quotes it.
	Name string
	// Table holds the states. The caller must keep it open as long as the handler is used.
	Table *tollbar.Table
	// Lease, in place of Table, is a limit that machines share. Only the store knows when more
	// permits are left, so the header fields of an admitted request have no such time. Requests
	// with an empty key share one limit.
	Lease Lease
	// Policy is the number of the table's policy. The header describes it as it was when the
	// handler was made.
	Policy uint32
	// Key returns the request's key, and whether this limit applies to the request. With false the
	// limit does not count it. Nil means [RemoteAddr]. A request with an empty key passes without a
	// charge if the table's MissingKey is MissingAllow, otherwise Options.Missing answers it.
	Key func(*http.Request) (key string, counted bool)
	// Cost returns the permits that a request takes. Nil means 1.
	Cost func(*http.Request) uint64
	// Charge returns a cost that is known only after the response, for example whether a login
	// failed or how many bytes were sent. The middleware then peeks for Cost permits before the
	// handler, and charges the permits that Charge returns after the handler. With the policy
	// "5/min ban 1h" this bans an address after five wrong passwords:
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

// Response is the handler's response, after the handler has returned.
type Response struct {
	// Status is 500 if the handler panicked before it began to answer.
	Status int
	Header http.Header
	// Written is the number of bytes in the body.
	Written int64
}

// Options are the options of a Limiter.
type Options struct {
	// Limits, at least one, and with tables at most [tollbar.LimitsMost]. A request is charged to
	// all of them, or, if one refuses, to none, as [tollbar.TakeMany] says. If a lease refuses, the
	// tables get back what they were charged, as [tollbar.Keys.Cancel] says. A lease stays charged
	// if another lease refuses after it.
	Limits []Limit
	// Exempt reports whether a request passes without a charge. Nil: no request does.
	// ([tollbar.Keys.Exempt] exempts keys; the key of an address is that of [tollbar.AddrKey] with
	// 32 and 64 bits.)
	Exempt func(*http.Request) bool
	// Refused answers a refused request. The header fields are set, with Retry-After if waiting
	// helps, and [RefusalOf] says why. Nil means [http.Error] with status 429.
	Refused http.Handler
	// Missing answers a request without a key, if the table refuses or reports it. Nil means
	// [http.Error] with status 403, since waiting does not help such a request.
	Missing http.Handler
	// Failed answers a request for which a check returned an error, such as one after the table's
	// Close. Nil means [http.Error] with status 500, so no request passes without a count.
	Failed func(http.ResponseWriter, *http.Request, error)
	// ChargeFailed gets the error of a charge after the response, such as one after the table's
	// Close. Nil: the middleware drops the error.
	ChargeFailed func(*http.Request, error)
	// Fields are the header fields that the middleware sends. Zero means [tollbar.FieldRetryAfter]
	// and [tollbar.FieldsDraft11].
	Fields tollbar.HTTPFields
	// NoHeaders: the middleware sends Retry-After alone.
	NoHeaders bool
	// Times, unless nil, gets the time that one in [TimesEvery] requests spends in the limiter.
	Times *Times
}

// Errors of New.
var (
	// ErrNoLimit: there are no limits, or a limit has no table or lease, or has both.
	ErrNoLimit = errors.New("tollhttp: a limit with a table or a lease is wanted")
	// ErrCharge: a limit with a lease has a Charge. A lease is charged before the response.
	ErrCharge = errors.New("tollhttp: a limit with Charge needs a table")
	// ErrName: a name is empty or not printable ASCII.
	ErrName = errors.New("tollhttp: a name is of printable ASCII, and not empty")
)

// Limiter limits the requests of handlers. Any number of handlers and goroutines may use it.
type Limiter struct {
	options Options
	limits  []limit
}

// limit is a Limit with the values that New computes.
type limit struct {
	Limit
	check  func(key string, cost uint64) (tollbar.Decision, error)
	policy tollbar.Policy
}

// New makes a Limiter. The error is [ErrNoLimit], [ErrName], [ErrCharge], [tollbar.ErrLimits] for
// too many limits with tables, or an error of a table.
func New(options Options) (*Limiter, error) {
	if options.Fields == 0 {
		options.Fields = tollbar.FieldRetryAfter | tollbar.FieldsDraft11
	}
	if options.NoHeaders {
		options.Fields = tollbar.FieldRetryAfter
	}
	l := &Limiter{options: options}
	if len(options.Limits) == 0 {
		return nil, ErrNoLimit
	}
	tables := 0
	for _, given := range options.Limits {
		if (given.Table == nil) == (given.Lease == nil) {
			return nil, ErrNoLimit
		}
		if given.Charge != nil && given.Lease != nil {
			return nil, ErrCharge
		}
		if !valid(given.Name) {
			return nil, ErrName
		}
		bound := limit{Limit: given}
		if err := bound.bind(); err != nil {
			return nil, err
		}
		if bound.Key == nil {
			bound.Key = RemoteAddr
		}
		l.limits = append(l.limits, bound)
		if bound.Table != nil {
			tables++
		}
	}
	if tables > tollbar.LimitsMost {
		return nil, fmt.Errorf(
			"tollhttp: a request has at most %d limits with tables, not %d: %w",
			tollbar.LimitsMost, tables, tollbar.ErrLimits)
	}
	return l, nil
}

// bind sets the function that calls the limit's table or lease, and reads its policy.
func (l *limit) bind() (err error) {
	if l.Lease != nil {
		l.check, l.policy = l.Lease.Check, l.Lease.Policy()
		return nil
	}
	keys := l.Table.Under(l.Limit.Policy)
	l.check = keys.Check
	if l.Charge != nil {
		l.check = look(l.Table, keys)
	}
	l.policy, err = l.Table.Policy(l.Limit.Policy)
	return err
}

// look peeks. If the peek refuses, look also checks at the same instant. The check refuses, too,
// and records the refusal in the table's counts and for a ban.
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

// Handler returns a handler that passes admitted requests to next.
func (l *Limiter) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.options.Exempt != nil && l.options.Exempt(r) {
			next.ServeHTTP(w, r)
			return
		}
		begin := l.options.Times.begin()
		answer, asked, err := l.ask(w.Header(), r)
		l.options.Times.end(begin)
		switch {
		case err != nil && l.options.Failed != nil:
			l.options.Failed(w, r, err)
		case err != nil:
			http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		case answer.verdict == passes && len(answer.charges) != 0:
			l.serveAndCharge(next, w, r.WithContext(asked.within(r.Context())), answer.charges)
		case answer.verdict == passes:
			next.ServeHTTP(w, r.WithContext(asked.within(r.Context())))
		case answer.verdict == missing && l.options.Missing != nil:
			l.options.Missing.ServeHTTP(w, r)
		case answer.verdict == missing:
			http.Error(w, "Forbidden: the request has no key that it could be counted by", http.StatusForbidden)
		default:
			if l.options.Refused != nil {
				l.options.Refused.ServeHTTP(w, withRefusal(r, answer.refusal))
				return
			}
			http.Error(w, http.StatusText(http.StatusTooManyRequests), http.StatusTooManyRequests)
		}
	})
}

// valid reports whether a name can be in a header field.
func valid(name string) bool {
	for i := range len(name) {
		if name[i] < 0x20 || name[i] > 0x7e {
			return false
		}
	}
	return name != ""
}

// RemoteAddr returns a key of the request's RemoteAddr, with or without a port: all of an IPv4
// address, and the first 64 bits of an IPv6 address, since a host can change the rest with every
// request. It is the address of the connection, or what a middleware has put in its place, such as
// chi's RealIP. The key is empty if the connection has no address (a Unix socket). Behind a proxy
// it is the proxy's: see [Client].
func RemoteAddr(r *http.Request) (string, bool) {
	return AddressKey(r.RemoteAddr), true
}

// Client returns a key function for servers behind trusted proxies, whose networks are given:
// "10.0.0.0/8", one address, or "unix:" for proxies that connect by a Unix socket. The key is that
// of the connection's address or, if this is a trusted proxy's, of the right-most address in
// X-Forwarded-For that no trusted proxy has ([tollbar.Proxies.Client]). The error is a
// [tollbar.ProxiesError].
func Client(proxies ...string) (func(*http.Request) (string, bool), error) {
	trusted, err := tollbar.ParseProxies(proxies...)
	if err != nil {
		return nil, err
	}
	return func(r *http.Request) (string, bool) {
		client, err := trusted.Client(r.RemoteAddr, r.Header.Values("X-Forwarded-For"))
		if err != nil {
			return "", true
		}
		return addrKey(client), true
	}, nil
}

// Header returns a key function for servers behind one proxy, which sets the header field itself
// and does not pass it on from its client, such as X-Real-IP. The key is that of the address in the
// field, with or without a port. If the field is a list, the function takes the last address, which
// the nearest proxy has added. Without an address the key is empty. For more proxies see [Client].
func Header(name string) func(*http.Request) (string, bool) {
	return func(r *http.Request) (string, bool) {
		values := r.Header.Values(name)
		if len(values) == 0 {
			return "", true
		}
		last := values[len(values)-1]
		return AddressKey(last[strings.LastIndexByte(last, ',')+1:]), true
	}
}

func addrKey(address netip.Addr) string {
	key, err := tollbar.AddrKey(address, 32, 64)
	if err != nil {
		return ""
	}
	return key
}
