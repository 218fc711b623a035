package tollhttp

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

// Config is a limit as it stands in an application's own configuration ([LoadConfig]). Either Policy
// or MaxRequests is required.
type Config struct {
	// Name in the header fields that have names. Empty means "default".
	Name string
	// Description is for people.
	Description string
	// Policy, such as "100/min burst 20".
	Policy string
	// MaxRequests in each Interval, in place of Policy, and as many at once.
	MaxRequests int64
	Interval    time.Duration
	// Algorithm, with MaxRequests: its name in a policy's text, such as "fixed-window". Empty means
	// "token-bucket".
	Algorithm string
	// HeaderKeyName is the header field with a request's key. A request without it is refused with
	// status 403. Empty means the client's address.
	HeaderKeyName string
	// ExceptionKeys are keys that are not limited: values of the header field, or addresses.
	ExceptionKeys []string
}

// ErrConfig is the error of a configuration that says no limit, or two.
var ErrConfig = errors.New("expected either a policy, or a number of requests and an interval")

// PolicyText returns the text of the policy that the configuration says, as [tollbar.ParsePolicy]
// reads it. The error is [ErrConfig] or a [*tollbar.PolicyError].
func (c Config) PolicyText() (string, error) {
	text := c.Policy
	switch {
	case c.Policy != "" && (c.MaxRequests != 0 || c.Interval != 0 || c.Algorithm != ""):
		return "", fmt.Errorf("tollhttp: limit %q: a policy beside a number of requests, an interval "+
			"or an algorithm: %w", c.Name, ErrConfig)
	case c.Policy == "" && (c.MaxRequests <= 0 || c.Interval <= 0):
		return "", fmt.Errorf("tollhttp: limit %q: %d requests in %v: %w", c.Name, c.MaxRequests, c.Interval, ErrConfig)
	case c.Policy == "":
		text = fmt.Sprintf("%d/%dns", c.MaxRequests, c.Interval.Nanoseconds())
		if c.Algorithm != "" {
			text += " algo " + c.Algorithm
		}
	}
	if _, err := tollbar.ParsePolicy(text); err != nil {
		return "", fmt.Errorf("tollhttp: limit %q: %w", c.Name, err)
	}
	return text, nil
}

// Keys returns a function that finds the key of a request by its header and its client's address,
// and says whether it is one of ExceptionKeys. The key is empty if the request has none. The error
// is [tollbar.ErrAddress] for an exception that is no address where the keys are addresses.
func (c Config) Keys() (func(header http.Header, address string) (key string, excepted bool), error) {
	except := make(map[string]bool, len(c.ExceptionKeys))
	for _, key := range c.ExceptionKeys {
		if c.HeaderKeyName == "" {
			text := key
			if key = AddressKey(text); key == "" {
				return nil, fmt.Errorf("tollhttp: limit %q: exception %q: %w", c.Name, text, tollbar.ErrAddress)
			}
		}
		except[key] = true
	}
	return func(header http.Header, address string) (string, bool) {
		key := ""
		if c.HeaderKeyName == "" {
			key = AddressKey(address)
		} else if values := header.Values(c.HeaderKeyName); len(values) == 1 {
			// A client that varies one of several values would get a key for each.
			key = values[0]
		}
		return key, except[key]
	}, nil
}

// FromConfig returns middleware for net/http and chi that limits by all the configurations: a
// request is charged to all of them, or to none. Each has a table of this process for 100,000 keys.
// The client's address is the connection's ([RemoteAddr]); options may have more limits, and all but
// their Limits and those of configs are as [New] says.
func FromConfig(configs []Config, options Options) (func(http.Handler) http.Handler, error) {
	limits := append([]Limit(nil), options.Limits...)
	for _, config := range configs {
		policy, err := config.PolicyText()
		if err != nil {
			return nil, err
		}
		keys, err := config.Keys()
		if err != nil {
			return nil, err
		}
		table, err := newTable(0, policy)
		if err != nil {
			return nil, err
		}
		limit := Limit{Name: config.Name, Table: table, Key: func(r *http.Request) (string, bool) {
			key, excepted := keys(r.Header, r.RemoteAddr)
			return key, !excepted
		}}
		if limit.Name == "" {
			limit.Name = "default"
		}
		limits = append(limits, limit)
	}
	options.Limits = limits
	limiter, err := New(options)
	if err != nil {
		return nil, err
	}
	return limiter.Handler, nil
}
