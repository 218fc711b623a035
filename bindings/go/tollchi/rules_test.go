//go:build cgo

package tollchi_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/tollbar/tollbar/bindings/go/rules"
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
	server := chi.NewRouter()
	server.Use(limits.Handler)
	for _, path := range []string{"/login", "/"} {
		server.Get(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })
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
