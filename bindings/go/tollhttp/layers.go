package tollhttp

import (
	"context"
	"net/http"

	"github.com/tollbar/tollbar/bindings/go"
)

// layers has the limits that the handlers of one request have asked so far, each in its Limiter, the outermost first. So the fields of the response describe
// all of them, whatever their order, and a handler that refuses gives back what those around it were charged.
type layers struct {
	// The dialects of all handlers.
	fields tollbar.HTTPFields
	all    []asked
}

type layersKey struct{}

// outside returns the layers around this handler, which are none for the outermost.
func outside(r *http.Request) *layers {
	if outer, ok := r.Context().Value(layersKey{}).(*layers); ok {
		return outer
	}
	return &layers{}
}

// within returns the request for the next handler.
func (l *layers) within(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), layersKey{}, l))
}

// with returns these layers and a handler that has asked those limits.
func (l *layers) with(fields tollbar.HTTPFields, all []asked) *layers {
	return &layers{l.fields | fields, append(l.all[:len(l.all):len(l.all)], all...)}
}

// refund gives back what these layers were charged, and reads their decisions anew. A policy that takes nothing back stays charged, and so do leases.
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
