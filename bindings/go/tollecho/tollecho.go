// Package tollecho limits the rate of requests to an echo server.
//
//	server := echo.New()
//	api := server.Group("/api", tollecho.ForEcho(tollecho.Config{Policy: "100/min burst 20"}))
//	server.POST("/login", login, tollecho.ForEcho(tollecho.Config{Policy: "5/min ban 1h", Key: byUser}))
//
// Every response has X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset. A refused
// request gets status 429 with Retry-After, and a request without a key status 403, both with a
// body such as {"code":429,"message":"Too Many Requests: try again in 3 s"}.
package tollecho

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	tollbar "github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

// Config is the configuration of a limit. One of Policy, MaxRequests and Table is required.
type Config struct {
	// Name in the header fields that have names. Empty means "default".
	Name string
	// Description is for people.
	Description string
	// Policy, such as "100/min burst 20", of a table in this process's memory for this limit alone.
	Policy string
	// MaxRequests in each Interval, in place of Policy, and as many at once. Algorithm is a name such
	// as "fixed-window"; empty means "token-bucket".
	MaxRequests int64
	Interval    time.Duration
	Algorithm   string
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
	// Key returns the request's key. Nil means [RealIP], or HeaderKeyName. A request with an empty key
	// is answered by Missing.
	Key func(echo.Context) string
	// HeaderKeyName, in place of Key, is the header field with the key. A request without it, or with
	// several of it, has no key.
	HeaderKeyName string
	// ExceptionKeys are keys that pass without a charge. Without Key and HeaderKeyName they are
	// addresses.
	ExceptionKeys []string
	// Cost returns the permits that a request takes. Nil means 1.
	Cost func(echo.Context) uint64
	// Charge returns a cost that is known only after the response, such as 1 for status 401; err is
	// what the handler returned. The middleware then only looks for Cost permits before the
	// handler.
	Charge func(c echo.Context, err error) uint64
	// Exempt reports whether a request passes without a charge. Nil: no request does.
	Exempt func(echo.Context) bool
	// Refused answers a refused request. Nil means status 429 and [tollhttp.Refused].
	Refused func(echo.Context, tollbar.Decision) error
	// Missing answers a request without a key. Nil means status 403 and [tollhttp.Missing].
	Missing echo.HandlerFunc
}

// ForEcho makes middleware for a server, a group or a route. Each call makes a limit of its own,
// unless the configurations name one table. It panics if the configuration is wrong, as echo does
// for a wrong route; [New] returns the error.
func ForEcho(config Config) echo.MiddlewareFunc {
	middleware, err := New(config)
	if err != nil {
		panic(err)
	}
	return middleware
}

// New is [ForEcho], and returns an error where that panics. A request that cannot be decided, such
// as one after the table's Close, gets the error of the check, for which echo answers with status
// 500.
func New(config Config) (echo.MiddlewareFunc, error) {
	policy, find, err := config.compile()
	if err != nil {
		return nil, err
	}
	limit, err := tollhttp.NewKeyLimit(tollhttp.KeyOptions{
		Name: config.Name, Policy: policy, Capacity: config.Capacity, Table: config.Table, Number: config.Number,
		Fields: config.Fields,
	})
	if err != nil {
		return nil, err
	}
	check := limit.Check
	if config.Charge != nil {
		check = limit.Peek
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if config.Exempt != nil && config.Exempt(c) {
				return next(c)
			}
			key, excepted := find(c)
			if excepted {
				return next(c)
			}
			cost := uint64(1)
			if config.Cost != nil {
				cost = config.Cost(c)
			}
			within, decision, err := check(c.Request().Context(), c.Response().Header(), key, cost)
			c.SetRequest(c.Request().WithContext(within))
			switch {
			case errors.Is(err, tollbar.ErrMissingKey) && config.Missing != nil:
				return config.Missing(c)
			case errors.Is(err, tollbar.ErrMissingKey):
				missing := tollhttp.Missing()
				return c.JSON(missing.Code, missing)
			case err != nil:
				return err
			case !decision.Allowed() && config.Refused != nil:
				return config.Refused(c, decision)
			case !decision.Allowed():
				refused := tollhttp.Refused(decision)
				return c.JSON(refused.Code, refused)
			case config.Charge != nil:
				return config.serveAndCharge(c, next, limit, key)
			}
			return next(c)
		}
	}, nil
}

// compile returns the policy's text, and the function that finds a request's key and says whether it
// is one of ExceptionKeys.
func (config *Config) compile() (policy string, find func(echo.Context) (key string, excepted bool), err error) {
	stated := tollhttp.Config{
		Name: config.Name, Policy: config.Policy, MaxRequests: config.MaxRequests, Interval: config.Interval,
		Algorithm: config.Algorithm, HeaderKeyName: config.HeaderKeyName, ExceptionKeys: config.ExceptionKeys,
	}
	policy = config.Policy
	if config.MaxRequests != 0 || config.Interval != 0 || config.Algorithm != "" {
		if policy, err = stated.PolicyText(); err != nil {
			return "", nil, err
		}
	}
	if key := config.Key; key != nil {
		if config.HeaderKeyName != "" {
			return "", nil, fmt.Errorf("tollecho: limit %q: Key beside HeaderKeyName; expected one of them",
				config.Name)
		}
		except := config.ExceptionKeys
		return policy, func(c echo.Context) (string, bool) {
			found := key(c)
			return found, slices.Contains(except, found)
		}, nil
	}
	keys, err := stated.Keys()
	return policy, func(c echo.Context) (string, bool) { return keys(c.Request().Header, c.RealIP()) }, err
}

// serveAndCharge calls the handler, and then charges by its response. A handler that panics is
// charged for the error that it has not returned.
func (config *Config) serveAndCharge(c echo.Context, next echo.HandlerFunc, limit *tollhttp.KeyLimit, key string) (err error) {
	err = errPanic
	defer func() {
		if cost := config.Charge(c, err); cost != 0 && key != "" {
			if failed := limit.Charge(key, cost); failed != nil && err == nil {
				err = failed
			}
		}
	}()
	err = next(c)
	return err
}

var errPanic = errors.New("tollecho: the handler panicked")

// RealIP returns the key of the client's address as echo finds it ([echo.Context.RealIP], by the
// server's IPExtractor). [tollhttp.AddressKey] says which bits the key has.
func RealIP(c echo.Context) string { return tollhttp.AddressKey(c.RealIP()) }
