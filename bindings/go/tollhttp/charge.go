package tollhttp

import (
	"net/http"
)

// charge is a limit that is charged after the response, and the request's key.
type charge struct {
	limit *limit
	key   string
}

// serveAndCharge calls the handler, and then charges by its response. A request whose handler
// panics is charged, too.
func (l *Limiter) serveAndCharge(next http.Handler, w http.ResponseWriter, r *http.Request, charges []charge) {
	seen := &seenWriter{ResponseWriter: w}
	returned := false
	defer func() {
		response := Response{Status: seen.status, Header: w.Header(), Written: seen.written}
		if response.Status == 0 && returned {
			response.Status = http.StatusOK
		} else if response.Status == 0 {
			response.Status = http.StatusInternalServerError
		}
		for _, c := range charges {
			cost := c.limit.Charge(r, response)
			if cost == 0 {
				continue
			}
			_, err := c.limit.Table.Under(c.limit.Policy).Charge(c.key, cost)
			if err != nil && l.options.ChargeFailed != nil {
				l.options.ChargeFailed(r, err)
			}
		}
	}()
	next.ServeHTTP(seen, r)
	returned = true
}

// seenWriter records the status and the size of a response. Through Unwrap,
// [http.ResponseController] finds the other methods of the server's writer.
type seenWriter struct {
	http.ResponseWriter
	status  int
	written int64
}

func (w *seenWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *seenWriter) WriteHeader(status int) {
	// A status below 200 is not the final one, except 101, which switches protocols.
	if w.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *seenWriter) Write(data []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(data)
	w.written += int64(n)
	return n, err
}

// Flush is for handlers that look for an [http.Flusher].
func (w *seenWriter) Flush() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}
