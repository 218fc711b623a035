package tollhttp

import (
	"context"
	"net/http"

	"github.com/tollbar/tollbar/bindings/go"
)

// layers has the limits that the handlers of one request have asked so far, each in its Limiter,
// the outermost first. So the fields of the response describe all of them, whatever their order,
// and a handler that refuses gives back what those around it were charged.
type layers struct {
	// The dialects of all handlers.
	fields tollbar.HTTPFields
	all    []asked
}

type layersKey struct{}

// outside returns the layers around the handler of this context, which are none for the outermost.
func outside(ctx context.Context) *layers {
	if outer, ok := ctx.Value(layersKey{}).(*layers); ok {
		return outer
	}
	return &layers{}
}

// within returns the context for the next handler.
func (l *layers) within(ctx context.Context) context.Context {
	return context.WithValue(ctx, layersKey{}, l)
}

// with returns these layers and a handler that has asked those limits.
func (l *layers) with(fields tollbar.HTTPFields, all []asked) *layers {
	return &layers{l.fields | fields, append(l.all[:len(l.all):len(l.all)], all...)}
}

// refund gives back what these layers were charged, and reads their decisions anew. A policy that
// takes nothing back stays charged, and so do leases.
func (l *layers) refund() error {
	giveBack(l.all)
	for i := range l.all {
		one := &l.all[i]
		if !one.decided || !one.isCharged() {
			continue
		}
		var err error
		if one.decision, err = one.limit.Table.Under(one.limit.Limit.Policy).Peek(one.key, one.cost); err != nil {
			return err
		}
	}
	return nil
}

// HideFields leaves the fields of limits out of the response of another server, but not its
// Retry-After. It is for [httputil.ReverseProxy.ModifyResponse], where the response otherwise has
// the upstream's fields beside those of a [Limiter]. It returns nil.
func HideFields(response *http.Response) error {
	for _, name := range [...]string{
		"RateLimit", "RateLimit-Policy", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset",
	} {
		response.Header.Del(name)
	}
	return nil
}
