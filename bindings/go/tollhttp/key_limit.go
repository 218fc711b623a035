package tollhttp

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/tollbar/tollbar/bindings/go"
)

// KeyLimit is one limit for the middleware of another framework, which finds the key of a request
// and writes the answer. The packages tollgin, tollecho and tollgrpc are such middleware.
type KeyLimit struct {
	fields tollbar.HTTPFields
	// The same limit twice: Check charges `taken`, and Peek only looks at `looked`, which is
	// charged after the response.
	taken, looked limit
}

// KeyOptions are the options of a KeyLimit. Either Policy or Table is required.
type KeyOptions struct {
	// Name in the header fields: printable ASCII. Empty means "default".
	Name string
	// Policy, such as "100/min burst 20", of a table in this process's memory for this limit alone.
	Policy string
	// Capacity is the number of keys of that table that can have a debt at one time. 0 means
	// 100,000.
	Capacity uint64
	// Table, in place of Policy, is a table of the caller, and Number the policy's number there.
	// The caller must keep it open.
	Table  *tollbar.Table
	Number uint32
	// Fields are the header fields. 0 means Retry-After and X-RateLimit-Limit, -Remaining and
	// -Reset.
	Fields tollbar.HTTPFields
}

// NewKeyLimit makes a KeyLimit. The error is [ErrNoLimit], [ErrName], or an error of the policy or
// the table.
func NewKeyLimit(options KeyOptions) (*KeyLimit, error) {
	if (options.Table == nil) == (options.Policy == "") {
		return nil, ErrNoLimit
	}
	if options.Name == "" {
		options.Name = "default"
	}
	if !valid(options.Name) {
		return nil, ErrName
	}
	if options.Fields == 0 {
		options.Fields = tollbar.FieldRetryAfter | tollbar.FieldsLegacy
	}
	table, err := options.Table, error(nil)
	if table == nil {
		if table, err = newTable(options.Capacity, options.Policy); err != nil {
			return nil, err
		}
	}
	l := &KeyLimit{fields: options.Fields}
	l.taken.Limit = Limit{Name: options.Name, Table: table, Policy: options.Number}
	l.looked.Limit = l.taken.Limit
	l.looked.Charge = func(*http.Request, Response) uint64 { return 0 }
	if err := errors.Join(l.taken.bind(), l.looked.bind()); err != nil {
		return nil, err
	}
	return l, nil
}

// newTable makes a table of this process. 0 keys are 100,000.
func newTable(capacity uint64, policy string) (*tollbar.Table, error) {
	if capacity == 0 {
		capacity = 100_000
	}
	return tollbar.NewTable(tollbar.TableOptions{Capacity: capacity, MissingKey: tollbar.MissingReport}, policy)
}

// Check takes cost permits of the key, and sets the header fields. For an empty key the error is
// [tollbar.ErrMissingKey], unless the caller's table admits such requests.
//
// The caller passes the returned context to the next handlers of the request. If one of them calls
// Check of another limit with it, that call sets the fields of all limits so far. If it refuses, it
// also gives back what the limits before it were charged.
func (l *KeyLimit) Check(ctx context.Context, header http.Header, key string, cost uint64) (context.Context,
	tollbar.Decision, error) {
	return l.ask(&l.taken, ctx, header, key, cost)
}

// Peek returns what Check would return, for a request that Charge charges after its response. A
// refusal counts as one.
func (l *KeyLimit) Peek(ctx context.Context, header http.Header, key string, cost uint64) (context.Context,
	tollbar.Decision, error) {
	return l.ask(&l.looked, ctx, header, key, cost)
}

func (l *KeyLimit) ask(of *limit, ctx context.Context, header http.Header, key string,
	cost uint64) (context.Context, tollbar.Decision, error) {
	one := asked{limit: of, key: key, cost: cost}
	var err error
	if one.before, err = of.Table.Now(); err != nil {
		return ctx, tollbar.Decision{Verdict: tollbar.Denied, Reason: tollbar.ReasonFault}, err
	}
	err = one.check()
	if err == nil && one.decision.Reason == tollbar.ReasonMissingKey && one.decision.Allowed() {
		return ctx, one.decision, nil
	}
	if err == nil && one.decision.Reason == tollbar.ReasonMissingKey {
		err = tollbar.ErrMissingKey
	}
	outer := outside(ctx)
	if err != nil || !one.decision.Allowed() {
		if refund := outer.refund(); err == nil {
			err = refund
		}
	}
	if err != nil {
		return ctx, one.decision, err
	}
	all := outer.with(l.fields, []asked{one})
	return all.within(ctx), one.decision, all.write(header)
}

// Charge charges the key after the response.
func (l *KeyLimit) Charge(key string, cost uint64) error {
	_, err := l.taken.Table.Under(l.taken.Limit.Policy).Charge(key, cost)
	return err
}

// AddressKey returns the key of an address as text ([tollbar.ParseAddr]): all of an IPv4 address,
// and the first 64 bits of an IPv6 address, since a host can change the rest with every request. It
// is empty for a text that is no address.
func AddressKey(text string) string {
	address, err := tollbar.ParseAddr(text)
	if err != nil {
		return ""
	}
	return addrKey(address)
}

// Code is the body of a refusal in JSON.
type Code struct {
	// Code is the HTTP status.
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Refused is the body of a request that the limit refuses.
func Refused(d tollbar.Decision) Code {
	message := http.StatusText(http.StatusTooManyRequests)
	if d.RetryAfter != tollbar.Forever {
		seconds := (int64(d.RetryAfter) + 999_999_999) / 1_000_000_000
		message += ": try again in " + strconv.FormatInt(seconds, 10) + " s"
	}
	return Code{http.StatusTooManyRequests, message}
}

// Missing is the body of a request without a key.
func Missing() Code {
	return Code{http.StatusForbidden, "Forbidden: the request has no key that it could be counted by"}
}

// Failed is the body of a request that could not be decided.
func Failed() Code {
	return Code{http.StatusInternalServerError, http.StatusText(http.StatusInternalServerError)}
}
