package tollgin

import (
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

// LoadConfig reads limits from a section of the application's own configuration, as
// [tollhttp.LoadConfig] says.
func LoadConfig(get func(keyPath string) any, keyPath string) ([]Config, error) {
	read, err := tollhttp.LoadConfig(get, keyPath)
	configs := make([]Config, 0, len(read))
	for _, one := range read {
		configs = append(configs, Config{
			Name: one.Name, Description: one.Description, Policy: one.Policy, MaxRequests: one.MaxRequests,
			Interval:  one.Interval,
			Algorithm: one.Algorithm, HeaderKeyName: one.HeaderKeyName, ExceptionKeys: one.ExceptionKeys,
		})
	}
	return configs, err
}

// LoadConfigForGin puts the limits of a section of the application's own configuration before the
// routes that the engine or group gets after this call:
//
//	err := tollgin.LoadConfigForGin(viper.Get, "server.rate-limits", engine.Group("/api"))
//
// With an error it has put none there.
func LoadConfigForGin(get func(keyPath string) any, keyPath string, router gin.IRouter) error {
	configs, err := LoadConfig(get, keyPath)
	if err != nil {
		return err
	}
	var handlers []gin.HandlerFunc
	for _, config := range configs {
		handler, err := New(config)
		if err != nil {
			return err
		}
		handlers = append(handlers, handler)
	}
	router.Use(handlers...)
	return nil
}

// ErrPass is the error of a function of [NewLimiterForGin] for a request that passes without a
// charge.
var ErrPass = errors.New("tollgin: the request passes without a charge")

// Middleware is a limit whose Middleware goes to gin's Use.
type Middleware struct{ handler gin.HandlerFunc }

// Middleware returns the handler.
func (m Middleware) Middleware() gin.HandlerFunc { return m.handler }

// keyOf is the name of a request's key in its context.
const keyOf = "tollgin.key"

// NewLimiterForGin makes a token bucket of maxRequests in each interval for each key. With [ErrPass]
// from key the request passes. With another error it is refused, with status 403 and the error's text
// unless key has answered it. NewLimiterForGin panics as [ForGin] does.
func NewLimiterForGin(interval time.Duration, maxRequests int64, key func(*gin.Context) (string, error)) Middleware {
	limit := ForGin(Config{
		Interval: interval, MaxRequests: maxRequests, Key: func(c *gin.Context) string { return c.GetString(keyOf) },
	})
	return Middleware{func(c *gin.Context) {
		found, err := key(c)
		switch {
		case err == nil:
			c.Set(keyOf, found)
			limit(c)
		case errors.Is(err, ErrPass):
		case c.Writer.Written():
			c.Abort()
		default:
			c.AbortWithStatusJSON(http.StatusForbidden, tollhttp.Code{Code: http.StatusForbidden, Message: err.Error()})
		}
	}}
}

// Wrap makes a gin handler of middleware for net/http, such as Handler of [tollhttp.Limiter] and of
// the package rules: the handlers after it run if the middleware calls the handler that it got.
func Wrap(middleware func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		passed := false
		middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			passed = true
			c.Request = r
			if before := c.Writer; w != http.ResponseWriter(before) {
				c.Writer = &watched{before, w}
				defer func() { c.Writer = before }()
			}
			c.Next()
		})).ServeHTTP(c.Writer, c.Request)
		if !passed {
			c.Abort()
		}
	}
}

// watched writes through the writer of the middleware, which may count or change what it gets.
type watched struct {
	gin.ResponseWriter
	through http.ResponseWriter
}

func (w *watched) WriteHeader(status int)               { w.through.WriteHeader(status) }
func (w *watched) Write(body []byte) (int, error)       { return w.through.Write(body) }
func (w *watched) WriteString(body string) (int, error) { return w.through.Write([]byte(body)) }
