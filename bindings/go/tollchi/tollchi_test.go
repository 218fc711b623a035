package tollchi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"

	tollbar "github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/tollchi"
	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

func limit(t *testing.T, policy string, key func(*http.Request) (string, bool)) *tollhttp.Limiter {
	t.Helper()
	table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 100}, policy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	limiter, err := tollhttp.New(tollhttp.Options{Limits: []tollhttp.Limit{{Name: "client", Table: table, Key: key}}})
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

func expect(t *testing.T, router http.Handler, path string, codes ...int) {
	t.Helper()
	for i, want := range codes {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("%s, request %d: %d, want %d", path, i, w.Code, want)
		}
	}
}

func TestURLParametersAreKeys(t *testing.T) {
	router := chi.NewRouter()
	router.With(limit(t, "2/day", tollchi.URLParam("user")).Handler).Get("/users/{user}", hello)
	router.With(limit(t, "2/day", tollchi.URLParam("user")).Handler).Get("/other", hello)
	expect(t, router, "/users/ann", 200, 200, 429)
	expect(t, router, "/users/bob", 200)
	expect(t, router, "/other", 403)
}

func TestEachRouteHasItsLimit(t *testing.T) {
	router := chi.NewRouter()
	limiter := limit(t, "2/day", tollchi.Route(nil))
	router.Group(func(router chi.Router) {
		router.Use(limiter.Handler)
		router.Get("/a/{id}", hello)
		router.Get("/b", hello)
	})
	expect(t, router, "/a/1", 200)
	expect(t, router, "/a/2", 200, 429)
	expect(t, router, "/b", 200, 200, 429)
}

// Middleware of the whole router, and a group with a limit of its own.
func TestGroups(t *testing.T) {
	router := chi.NewRouter()
	router.Use(limit(t, "4/day", nil).Handler)
	router.Get("/", hello)
	router.Route("/api", func(router chi.Router) {
		router.Use(limit(t, "1/day", nil).Handler)
		router.Get("/", hello)
	})
	expect(t, router, "/api", 200, 429)
	// C1: the group has refused its second request, so the limit of the whole router got that one
	// back.
	expect(t, router, "/", 200, 200, 200, 429)
}
