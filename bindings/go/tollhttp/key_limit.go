package tollhttp

import (
	"net/http"
	"strconv"

	"github.com/tollbar/tollbar/bindings/go"
)

// KeyLimit is one limit for the middleware of another framework, which finds the key of a request and writes the answer. The packages tollgin,
// tollecho and tollgrpc are such middleware.
type KeyLimit struct {
	name   string
	table  *tollbar.Table
	keys   tollbar.Keys
	policy tollbar.Policy
	fields tollbar.HTTPFields
}

// KeyOptions are the options of a KeyLimit. Either Policy or Table is required.
type KeyOptions struct {
	// Name in the header fields: printable ASCII. Empty means "default".
	Name string
	// Policy, such as "100/min burst 20", of a table in this process's memory for this limit alone.
	Policy string
	// Capacity is the number of keys of that table that can have a debt at one time. 0 means 100,000.
	Capacity uint64
	// Table, in place of Policy, is a table of the caller, and Number the policy's number there. The caller must keep it open.
	Table  *tollbar.Table
	Number uint32
	// Fields are the header fields. 0 means Retry-After and X-RateLimit-Limit, -Remaining and -Reset.
	Fields tollbar.HTTPFields
}

// NewKeyLimit makes a KeyLimit. The error is [ErrNoLimit], [ErrName], or an error of the policy or the table.
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
		if options.Capacity == 0 {
			options.Capacity = 100_000
		}
		table, err = tollbar.NewTable(tollbar.TableOptions{Capacity: options.Capacity, MissingKey: tollbar.MissingReport}, options.Policy)
		if err != nil {
			return nil, err
		}
	}
	policy, err := table.Policy(options.Number)
	if err != nil {
		return nil, err
	}
	return &KeyLimit{options.Name, table, table.Under(options.Number), policy, options.Fields}, nil
}

// Check takes cost permits of the key, and sets the header fields. For an empty key the error is [tollbar.ErrMissingKey], unless the caller's table
// admits such requests.
func (l *KeyLimit) Check(header http.Header, key string, cost uint64) (tollbar.Decision, error) {
	return l.write(l.keys.Check, header, key, cost)
}

// Peek returns what Check would return, for a request that Charge charges after its response. A refusal counts as one.
func (l *KeyLimit) Peek(header http.Header, key string, cost uint64) (tollbar.Decision, error) {
	return l.write(look(l.table, l.keys), header, key, cost)
}

func (l *KeyLimit) write(check func(string, uint64) (tollbar.Decision, error), header http.Header, key string, cost uint64) (tollbar.Decision, error) {
	decision, err := check(key, cost)
	if err == nil && decision.Reason == tollbar.ReasonMissingKey {
		if !decision.Allowed() {
			err = tollbar.ErrMissingKey
		}
		return decision, err
	}
	if err != nil {
		return decision, err
	}
	more, err := l.keys.MoreAfter(key, cost, decision)
	if err != nil {
		return decision, err
	}
	return decision, Set(header, l.fields, tollbar.HTTPLimit{Name: l.name, Policy: l.policy, Decision: decision, MoreAfter: more})
}

// Charge charges the key after the response.
func (l *KeyLimit) Charge(key string, cost uint64) error {
	_, err := l.keys.Charge(key, cost)
	return err
}

// AddressKey returns the key of an address as text ([tollbar.ParseAddr]): all of an IPv4 address, and the first 64 bits of an IPv6 address, since a
// host can change the rest with every request. It is empty for a text that is no address.
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
