package tollecho_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	tollbar "github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/tollecho"
)

func ask(server http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

func hello(c echo.Context) error { return c.String(http.StatusOK, "hello") }

func user(c echo.Context) string { return c.QueryParam("user") }

// The group /api and the route /login have limits of their own.
func TestGroupsAndRoutes(t *testing.T) {
	server := echo.New()
	api := server.Group("/api", tollecho.ForEcho(tollecho.Config{Policy: "2/day"}))
	api.GET("/a", hello)
	api.GET("/b", hello)
	server.GET("/login", hello, tollecho.ForEcho(tollecho.Config{Policy: "1/day", Key: user}))
	for i, want := range []struct {
		path, left string
		code       int
	}{
		{"/api/a", "1", 200}, {"/api/b", "0", 200}, {"/api/a", "0", 429}, {"/login?user=ann", "0", 200}, {"/login?user=ann", "0", 429},
		{"/login?user=bob", "0", 200}, {"/login", "", 403},
	} {
		w := ask(server, want.path)
		if w.Code != want.code || w.Header().Get("X-RateLimit-Remaining") != want.left || w.Code == 429 && w.Header().Get("Retry-After") == "" {
			t.Errorf("request %d: %d, %v", i, w.Code, w.Header())
		}
		var body struct{ Code int }
		if w.Code != 200 && (json.Unmarshal(w.Body.Bytes(), &body) != nil || body.Code != w.Code) {
			t.Errorf("request %d: %s", i, w.Body)
		}
	}
}

// Wrong passwords are charged after the response, and lead to a ban. So is a handler that panics.
func TestChargeAfterTheResponse(t *testing.T) {
	wrong := echo.NewHTTPError(http.StatusUnauthorized)
	server := echo.New()
	server.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) (err error) {
			defer func() {
				if recover() != nil {
					err = errors.New("panic")
				}
			}()
			return next(c)
		}
	}, tollecho.ForEcho(tollecho.Config{Policy: "3/min ban 1h", Key: user, Charge: func(_ echo.Context, err error) uint64 {
		if err != nil {
			return 1
		}
		return 0
	}}))
	server.GET("/", func(c echo.Context) error {
		switch c.QueryParam("password") {
		case "right":
			return hello(c)
		case "panic":
			panic("")
		}
		return wrong
	})
	for _, want := range []struct {
		password string
		code     int
	}{{"right", 200}, {"right", 200}, {"right", 200}, {"right", 200}, {"wrong", 401}, {"panic", 500}, {"wrong", 401}, {"right", 429}} {
		if w := ask(server, "/?user=ann&password="+want.password); w.Code != want.code {
			t.Errorf("%s: %d", want.password, w.Code)
		}
	}
}

// The hooks answer in place of the middleware, and a closed table is an error.
func TestHooksAndErrors(t *testing.T) {
	table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 10}, "9/day", "1/day")
	if err != nil {
		t.Fatal(err)
	}
	server := echo.New()
	server.Use(tollecho.ForEcho(tollecho.Config{
		Table: table, Number: 1, Key: user,
		Cost:    func(c echo.Context) uint64 { return uint64(len(c.QueryParam("cost"))) },
		Exempt:  func(c echo.Context) bool { return user(c) == "root" },
		Refused: func(c echo.Context, d tollbar.Decision) error { return c.String(418, d.Reason.String()) },
		Missing: func(c echo.Context) error { return c.String(400, "who?") },
	}))
	server.GET("/", hello)
	for path, want := range map[string]string{"/?user=a&cost=x": "hello", "/?user=a&cost=xx": "above the burst", "/?user=root&cost=xx": "hello"} {
		if w := ask(server, path); w.Body.String() != want {
			t.Errorf("%s: %d, %s", path, w.Code, w.Body)
		}
	}
	table.Close()
	if w := ask(server, "/?user=a&cost=x"); w.Code != 500 {
		t.Errorf("%d, %s", w.Code, w.Body)
	}
	if _, err := tollecho.New(tollecho.Config{Policy: "3/dy"}); err == nil {
		t.Error("a wrong policy is accepted")
	}
}

// C1: limits of a group and of its route are one answer in each order: each field comes once, for
// the limit that binds, and a refusal charges no other limit.
func TestStackedLimitsAreOneAnswer(t *testing.T) {
	for _, order := range [][]string{{"wide", "tight"}, {"tight", "wide"}} {
		server := echo.New()
		tables := map[string]*tollbar.Table{}
		for _, name := range order {
			table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 100}, map[string]string{"wide": "100/day", "tight": "2/day"}[name])
			if err != nil {
				t.Fatal(err)
			}
			tables[name] = table
			server.Use(tollecho.ForEcho(tollecho.Config{Name: name, Table: table, Key: func(echo.Context) string { return "ann" }}))
		}
		server.GET("/", hello)
		for call := range 4 {
			w := ask(server, "/")
			admitted := min(call+1, 2)
			if (w.Code == 200) != (call < 2) || w.Header().Get("X-RateLimit-Limit") != "2" || w.Header().Get("X-RateLimit-Remaining") != fmt.Sprint(2-admitted) {
				t.Errorf("%v, call %d: %d %v", order, call, w.Code, w.Header())
			}
			for name, values := range w.Header() {
				if len(values) != 1 {
					t.Errorf("%v, call %d: %s comes %d times", order, call, name, len(values))
				}
			}
			if left, err := tables["wide"].Under(0).Peek("ann", 1); err != nil || left.Remaining != uint64(100-admitted) {
				t.Errorf("%v, call %d: %d left (%v)", order, call, left.Remaining, err)
			}
		}
	}
}
