package tollecho_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/tollbar/tollbar/bindings/go/tollecho"
	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

func TestS50LoadConfigForEcho(t *testing.T) {
	get := tollhttp.Settings(map[string]any{"server": map[string]any{
		"rate-limits": []any{
			map[string]any{"name": "by-api-key", "interval": "24h", "max-requests": 2,
				"header-key-name": "X-API-KEY", "exception-keys": []any{"tests"}},
			map[string]any{"policy": "4/day"},
		},
		"wrong": []any{map[string]any{"policy": "4/day"}, map[string]any{"policy": "4/dy"}},
	}})
	server := echo.New()
	group := server.Group("/prefix")
	if err := tollecho.LoadConfigForEcho(get, "server.rate-limits", group); err != nil {
		t.Fatal(err)
	}
	hello := func(c echo.Context) error { return c.String(http.StatusOK, "hello") }
	group.GET("/echo", hello)
	server.GET("/free", hello)
	for i, c := range []struct {
		path, key string
		status    int
	}{
		{"/prefix/echo", "a", 200}, {"/prefix/echo", "a", 200}, {"/prefix/echo", "a", 429}, {"/prefix/echo",
			"tests", 200},
		{"/prefix/echo", "tests", 200}, {"/prefix/echo", "tests", 429}, {"/prefix/echo", "", 403}, {"/free", "a", 200},
	} {
		r := httptest.NewRequest("GET", c.path, nil)
		if c.key != "" {
			r.Header.Set("X-API-KEY", c.key)
		}
		w := httptest.NewRecorder()
		if server.ServeHTTP(w, r); w.Code != c.status {
			t.Errorf("request %d: %d, not %d", i, w.Code, c.status)
		}
	}
	if err := tollecho.LoadConfigForEcho(get, "server.wrong", server); err == nil ||
		!strings.Contains(err.Error(), "server.wrong[1]: ") {
		t.Error(err)
	}
	for _, config := range []tollecho.Config{
		{MaxRequests: 2}, {MaxRequests: 2, Interval: time.Second, Policy: "1/s"}, {Policy: "1/s",
			ExceptionKeys: []string{"x"}},
		{Policy: "1/s", HeaderKeyName: "X", Key: tollecho.RealIP},
	} {
		if _, err := tollecho.New(config); err == nil {
			t.Errorf("%+v: no error", config)
		}
	}
}
