//go:build cgo

package tollgin_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/tollbar/tollbar/bindings/go/rules"
	"github.com/tollbar/tollbar/bindings/go/tollgin"
)

// A file of rules before the routes.
func TestRulesFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.toml")
	if err := os.WriteFile(path,
		[]byte("version = 1\n[route.login]\npath = \"/login\"\nlimit = \"2/day\"\nbody = \"later\"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	limits, err := rules.Follow(path)
	if err != nil {
		t.Fatal(err)
	}
	defer limits.Close()
	server := gin.New()
	server.Use(tollgin.Wrap(limits.Handler))
	for _, path := range []string{"/login", "/"} {
		server.GET(path, func(c *gin.Context) { c.String(http.StatusOK, "hello") })
	}
	for i, c := range []struct {
		path   string
		status int
		body   string
	}{{"/login", 200, "hello"}, {"/login", 200, "hello"}, {"/login", 429, "later"}, {"/", 200, "hello"}} {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequest("GET", c.path, nil))
		if w.Code != c.status || w.Body.String() != c.body {
			t.Errorf("request %d: %d %q", i, w.Code, w.Body)
		}
	}
}
