//go:build cgo || tollbar_purego

package tollhttp

import (
	"net/http"

	"github.com/tollbar/tollbar/bindings/go"
)

// Transport is an http.RoundTripper that paces the requests of a client to each scheme, host and
// port, and learns their rates from the answers.
//
//	pace, err := tollbar.NewPacing(tollbar.PacingOptions{})
//	...
//	client := &http.Client{Transport: &tollhttp.Transport{Pacing: pace}}
//
// A request waits until its host's turn has come, or until its context ends. Transport repeats no
// request: the caller gets each 429.
type Transport struct {
	// Pacing has the rates. Several transports may share one.
	Pacing *tollbar.Pacing
	// Base sends the requests; nil is http.DefaultTransport.
	Base http.RoundTripper
}

// RoundTrip sends the request when its turn has come.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ticket, err := t.Pacing.Acquire(r.Context(), r.URL.Scheme+"://"+r.URL.Host)
	if err != nil {
		// http.RoundTripper must close the body, also if it fails.
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	response, err := base.RoundTrip(r)
	if err == nil {
		t.Pacing.Respond(ticket, response.StatusCode, response.Header)
	}
	return response, err
}
