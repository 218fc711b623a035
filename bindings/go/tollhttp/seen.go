//go:build cgo || tollbar_purego

package tollhttp

import (
	"net/http"
	"strings"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
)

// Seen reads what a server's answer says about its limits.
func Seen(header http.Header) tollbar.HTTPSeen {
	var lines strings.Builder
	// Strings without line breaks, so no value can look like a field.
	_ = header.Write(&lines)
	return tollbar.ReadHTTPFields([]byte(lines.String()), time.Now())
}
