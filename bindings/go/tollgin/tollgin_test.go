package tollgin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gin-gonic/gin"

	tollbar "github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/tollgin"
	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

func init() { gin.SetMode(gin.TestMode) }

func ask(engine http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	engine.ServeHTTP(w, r)
	return w
}

func hello(c *gin.Context) { c.String(http.StatusOK, "hello") }

// The group /api and the route /login have limits of their own.
func TestGroupsAndRoutes(t *testing.T) {
	engine := gin.New()
	api := engine.Group("/api", tollgin.ForGin(tollgin.Config{Policy: "3/day"}))
	api.GET("/a", hello)
	api.GET("/b", hello)
	engine.GET("/login", tollgin.ForGin(tollgin.Config{
		Policy: "2/day",
		Key:    func(c *gin.Context) string { return c.GetHeader("X-User") },
	}), hello)
	for i, path := range []string{"/api/a", "/api/b", "/api/a"} {
		w := ask(engine, path)
		left := []string{"2", "1", "0"}[i]
		if w.Code != http.StatusOK || w.Header().Get("X-RateLimit-Limit") != "3" || w.Header().Get("X-RateLimit-Remaining") != left {
			t.Errorf("request %d: %d, %v", i, w.Code, w.Header())
		}
	}
	w := ask(engine, "/api/b")
	var body struct {
		Code    int
		Message string
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != 429 || body.Code != 429 || !strings.HasPrefix(body.Message, "Too Many Requests: try again in 28") {
		t.Errorf("%d, %s (%v)", w.Code, w.Body, err)
	}
	if w.Header().Get("Retry-After") == "" || w.Header().Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("%v", w.Header())
	}
	for i, want := range []int{200, 200, 429} {
		if w := ask(engine, "/login", "X-User", "ann"); w.Code != want {
			t.Errorf("login %d: %d", i, w.Code)
		}
	}
	if w := ask(engine, "/login", "X-User", "bob"); w.Code != 200 {
		t.Errorf("another user: %d", w.Code)
	}
	if w := ask(engine, "/login"); w.Code != 403 || json.Unmarshal(w.Body.Bytes(), &body) != nil || body.Code != 403 {
		t.Errorf("without a key: %d, %s", w.Code, w.Body)
	}
}

// Wrong passwords are charged after the response, and lead to a ban.
func TestChargeAfterTheResponse(t *testing.T) {
	engine := gin.New()
	engine.GET("/login", tollgin.ForGin(tollgin.Config{
		Policy: "3/min ban 1h",
		Charge: func(c *gin.Context) uint64 {
			if c.Writer.Status() == http.StatusUnauthorized {
				return 1
			}
			return 0
		},
	}), func(c *gin.Context) { c.Status(map[bool]int{true: 200, false: 401}[c.Query("password") == "right"]) })
	for range 10 {
		if w := ask(engine, "/login?password=right"); w.Code != 200 {
			t.Fatalf("%d", w.Code)
		}
	}
	for range 3 {
		if w := ask(engine, "/login?password=wrong"); w.Code != 401 {
			t.Fatalf("%d", w.Code)
		}
	}
	if w := ask(engine, "/login?password=right"); w.Code != 429 {
		t.Errorf("%d", w.Code)
	}
}

// Goroutines get exactly the limit.
func TestExactUnderLoad(t *testing.T) {
	engine := gin.New()
	engine.GET("/", tollgin.ForGin(tollgin.Config{Policy: "100/day"}), hello)
	var passed atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 50 {
				if ask(engine, "/").Code == 200 {
					passed.Add(1)
				}
			}
		}()
	}
	all.Wait()
	if passed.Load() != 100 {
		t.Errorf("%d of 100 passed", passed.Load())
	}
}

// The hooks answer in place of the middleware, and no later handler runs.
func TestHooks(t *testing.T) {
	engine := gin.New()
	engine.Use(tollgin.ForGin(tollgin.Config{
		Policy:  "1/day",
		Key:     func(c *gin.Context) string { return c.Query("key") },
		Cost:    func(c *gin.Context) uint64 { return uint64(len(c.Query("cost"))) },
		Exempt:  func(c *gin.Context) bool { return c.Query("key") == "root" },
		Refused: func(c *gin.Context, d tollbar.Decision) { c.String(418, "%s", d.Reason) },
		Missing: func(c *gin.Context) { c.String(400, "who?") },
	}))
	engine.GET("/", hello)
	for path, want := range map[string]string{
		"/?key=a&cost=x": "hello", "/?key=a&cost=xx": "above the burst", "/?cost=x": "who?", "/?key=root&cost=xxxx": "hello", "/?key=b": "hello",
	} {
		if w := ask(engine, path); w.Body.String() != want {
			t.Errorf("%s: %d, %q, want %q", path, w.Code, w.Body, want)
		}
	}
	if w := ask(engine, "/?key=a&cost=x"); w.Code != 418 || w.Body.String() != "over the rate" {
		t.Errorf("%d, %s", w.Code, w.Body)
	}
}

// A wrong configuration is found when the middleware is made.
func TestWrongConfigurations(t *testing.T) {
	table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 10}, "1/s")
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	for i, config := range []tollgin.Config{
		{}, {Policy: "3/dy"}, {Policy: "3/day", Table: table}, {Table: table, Number: 1}, {Policy: "3/day", Name: "é"},
	} {
		if _, err := tollgin.New(config); err == nil {
			t.Errorf("configuration %d is accepted", i)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("ForGin does not panic")
		}
	}()
	tollgin.ForGin(tollgin.Config{Policy: "3/dy"})
}

// C1: limits of a group and of its route are one answer in each order: the fields describe both
// (draft 11) or the one that binds, each once, and a refusal charges no other limit.
func TestStackedLimitsAreOneAnswer(t *testing.T) {
	for _, order := range [][]string{{"wide", "tight"}, {"tight", "wide"}} {
		for _, fields := range []tollbar.HTTPFields{tollbar.FieldsDraft11, tollbar.FieldsLegacy} {
			engine := gin.New()
			tables := map[string]*tollbar.Table{}
			for _, name := range order {
				table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 100}, map[string]string{"wide": "100/day", "tight": "2/day"}[name])
				if err != nil {
					t.Fatal(err)
				}
				tables[name] = table
				engine.Use(tollgin.ForGin(tollgin.Config{Name: name, Table: table, Fields: tollbar.FieldRetryAfter | fields}))
			}
			engine.GET("/", hello)
			for call := range 4 {
				w := ask(engine, "/")
				admitted := min(call+1, 2)
				if (w.Code == 200) != (call < 2) || (w.Header().Get("Retry-After") != "") != (call >= 2) {
					t.Errorf("%v, call %d: %d %v", order, call, w.Code, w.Header())
				}
				for name, values := range w.Header() {
					if len(values) != 1 {
						t.Errorf("%v, call %d: %s comes %d times", order, call, name, len(values))
					}
				}
				if left, err := tables["wide"].Under(0).Peek(tollhttp.AddressKey("192.0.2.1"), 1); err != nil || left.Remaining != uint64(100-admitted) {
					t.Errorf("%v, call %d: %d left (%v)", order, call, left.Remaining, err)
				}
				if fields == tollbar.FieldsLegacy && (w.Header().Get("X-RateLimit-Limit") != "2" || w.Header().Get("X-RateLimit-Remaining") != fmt.Sprint(2-admitted)) {
					t.Errorf("%v, call %d: %v", order, call, w.Header())
				}
				// A handler behind the one that refuses is not asked.
				for i, name := range order {
					isAsked := i == 0 || order[0] == "wide" || call < 2
					if fields == tollbar.FieldsDraft11 && isAsked != strings.Contains(w.Header().Get("RateLimit"), said(name, admitted)) {
						t.Errorf("%v, call %d: %v", order, call, w.Header())
					}
				}
			}
		}
	}
}

// said is the beginning of a limit's part of the field RateLimit.
func said(name string, admitted int) string {
	full := map[string]int{"wide": 100, "tight": 2}[name]
	return fmt.Sprintf("%q;r=%d", name, full-admitted)
}
