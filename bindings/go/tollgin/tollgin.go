// Package tollgin limits the rate of requests to a gin engine.
//
//	engine := gin.Default()
//	api := engine.Group("/api", tollgin.ForGin(tollgin.Config{Policy: "100/min burst 20"}))
//	engine.POST("/login", tollgin.ForGin(tollgin.Config{Policy: "5/min ban 1h", Key: byUser}), login)
//
// Every response has X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset. A refused
// request gets status 429 with Retry-After, and a request without a key status 403, both with a
// body such as {"code":429,"message":"Too Many Requests: try again in 3 s"}.
package tollgin

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

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
	// Key returns the request's key. Nil means [ClientIP], or HeaderKeyName. A request with an empty key
	// is answered by Missing.
	Key func(*gin.Context) string
	// HeaderKeyName, in place of Key, is the header field with the key. A request without it, or with
	// several of it, has no key.
	HeaderKeyName string
	// ExceptionKeys are keys that pass without a charge. Without Key and HeaderKeyName they are
	// addresses.
	ExceptionKeys []string
	// Cost returns the permits that a request takes. Nil means 1.
	Cost func(*gin.Context) uint64
	// Charge returns a cost that is known only after the response, such as 1 for status 401. The
	// middleware then only looks for Cost permits before the handler.
	Charge func(*gin.Context) uint64
	// Exempt reports whether a request passes without a charge. Nil: no request does.
	Exempt func(*gin.Context) bool
	// Refused answers a refused request. Nil means status 429 and [tollhttp.Refused].
	Refused func(*gin.Context, tollbar.Decision)
	// Missing answers a request without a key. Nil means status 403 and [tollhttp.Missing].
	Missing gin.HandlerFunc
	// Failed answers a request that could not be decided. Nil means status 500 and
	// [tollhttp.Failed].
	Failed func(*gin.Context, error)
}

// ForGin makes middleware for an engine, a group or a route. Each call makes a limit of its own,
// unless the configurations name one table. It panics if the configuration is wrong, as gin does
// for a wrong route; [New] returns the error.
func ForGin(config Config) gin.HandlerFunc {
	handler, err := New(config)
	if err != nil {
		panic(err)
	}
	return handler
}

// New is [ForGin], and returns an error where that panics.
func New(config Config) (gin.HandlerFunc, error) {
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
	return func(c *gin.Context) {
		if config.Exempt != nil && config.Exempt(c) {
			return
		}
		key, excepted := find(c)
		if excepted {
			return
		}
		cost := uint64(1)
		if config.Cost != nil {
			cost = config.Cost(c)
		}
		within, decision, err := check(c.Request.Context(), c.Writer.Header(), key, cost)
		c.Request = c.Request.WithContext(within)
		switch {
		case err != nil:
			config.fail(c, err)
		case !decision.Allowed() && config.Refused != nil:
			config.Refused(c, decision)
			c.Abort()
		case !decision.Allowed():
			refused := tollhttp.Refused(decision)
			c.AbortWithStatusJSON(refused.Code, refused)
		case config.Charge != nil:
			config.serveAndCharge(c, limit, key)
		}
	}, nil
}

// compile returns the policy's text, and the function that finds a request's key and says whether it
// is one of ExceptionKeys.
func (config *Config) compile() (policy string, find func(*gin.Context) (key string, excepted bool), err error) {
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
			return "", nil, fmt.Errorf("tollgin: limit %q: Key beside HeaderKeyName; expected one of them", config.Name)
		}
		except := config.ExceptionKeys
		return policy, func(c *gin.Context) (string, bool) {
			found := key(c)
			return found, slices.Contains(except, found)
		}, nil
	}
	keys, err := stated.Keys()
	return policy, func(c *gin.Context) (string, bool) { return keys(c.Request.Header, c.ClientIP()) }, err
}

// fail answers a request without a key, or one that could not be decided.
func (config *Config) fail(c *gin.Context, err error) {
	body := tollhttp.Failed()
	switch {
	case errors.Is(err, tollbar.ErrMissingKey) && config.Missing != nil:
		config.Missing(c)
		c.Abort()
		return
	case errors.Is(err, tollbar.ErrMissingKey):
		body = tollhttp.Missing()
	case config.Failed != nil:
		config.Failed(c, err)
		c.Abort()
		return
	default:
		_ = c.Error(err)
	}
	c.AbortWithStatusJSON(body.Code, body)
}

// serveAndCharge runs the other handlers, and then charges by their response, also if one of them
// panics.
func (config *Config) serveAndCharge(c *gin.Context, limit *tollhttp.KeyLimit, key string) {
	defer func() {
		if cost := config.Charge(c); cost != 0 && key != "" {
			if err := limit.Charge(key, cost); err != nil {
				_ = c.Error(err)
			}
		}
	}()
	c.Next()
}

// ClientIP returns the key of the client's address as gin finds it ([gin.Context.ClientIP], by the
// engine's trusted proxies). [tollhttp.AddressKey] says which bits the key has.
func ClientIP(c *gin.Context) string { return tollhttp.AddressKey(c.ClientIP()) }
