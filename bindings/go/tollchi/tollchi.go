// Package tollchi has keys of requests for limits on a chi router. The middleware itself is that of
// package tollhttp: chi takes [tollhttp.Limiter.Handler] as it is.
//
//	limit, err := tollhttp.New(tollhttp.Options{Limits: []tollhttp.Limit{{Name: "user", Table: table, Key: tollchi.URLParam("user")}}})
//	...
//	router.With(limit.Handler).Get("/users/{user}", show)
package tollchi

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

// URLParam returns a key function for [tollhttp.Limit]: the value of a parameter in the route's
// pattern. chi knows the parameters of a route in middleware of that route (chi.Router.With, or Use
// in a Route or Group below the pattern), and not in middleware of the whole router. There the key
// is empty.
func URLParam(name string) func(*http.Request) (string, bool) {
	return func(r *http.Request) (string, bool) { return chi.URLParam(r, name), true }
}

// Route returns a key function that gives each route its own limit for each key of another
// function; nil is [tollhttp.RemoteAddr]. A route is its method and pattern, as far as chi has
// matched it, so the paths /users/1 and /users/2 of the pattern /users/{user} share a limit.
func Route(of func(*http.Request) (string, bool)) func(*http.Request) (string, bool) {
	if of == nil {
		of = tollhttp.RemoteAddr
	}
	return func(r *http.Request) (string, bool) {
		key, counted := of(r)
		if key == "" || !counted {
			return key, counted
		}
		pattern := ""
		if context := chi.RouteContext(r.Context()); context != nil {
			pattern = context.RoutePattern()
		}
		return r.Method + " " + pattern + "\x00" + key, true
	}
}
