package tollgin_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	tollbar "github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/tollgin"
	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

// statuses asks so many times, and returns the statuses.
func statuses(engine http.Handler, times int, path string, header ...string) (all []int) {
	for range times {
		all = append(all, ask(engine, path, header...).Code)
	}
	return all
}

func same(t *testing.T, what string, got []int, want ...int) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s: %v, not %v", what, got, want)
			return
		}
	}
}

// A limit in numbers, with a header as the key and exceptions.
func TestConfigInNumbers(t *testing.T) {
	engine := gin.New()
	engine.Use(tollgin.ForGin(tollgin.Config{
		Name: "by-api-key", Description: "of the API", Algorithm: "token-bucket", Interval: 24 * time.Hour,
		MaxRequests:   2,
		HeaderKeyName: "X-API-TOKEN", ExceptionKeys: []string{"tests"},
	}))
	engine.GET("/", hello)
	same(t, "a key", statuses(engine, 3, "/", "X-Api-Token", "a"), 200, 200, 429)
	same(t, "an exception", statuses(engine, 3, "/", "X-Api-Token", "tests"), 200, 200, 200)
	same(t, "no key", statuses(engine, 1, "/"), 403)
	for _, config := range []tollgin.Config{
		{MaxRequests: 2}, {Interval: 1}, {MaxRequests: 2, Interval: 1, Policy: "1/s"}, {Policy: "1/s",
			ExceptionKeys: []string{"x"}},
		{MaxRequests: 2, Interval: 1, Algorithm: "x"}, {Policy: "1/s", HeaderKeyName: "X", Key: tollgin.ClientIP}, {},
	} {
		if _, err := tollgin.New(config); err == nil {
			t.Errorf("%+v: no error", config)
		}
	}
}

func TestS50LoadConfigForGin(t *testing.T) {
	get := tollhttp.Settings(map[string]any{"server": map[string]any{
		"rate-limits": []any{
			map[string]any{"name": "by-api-key", "interval": "24h", "max-requests": 2,
				"header-key-name": "X-API-KEY", "exception-keys": []any{"tests"}},
			map[string]any{"policy": "4/day"},
		},
		"wrong": []any{map[string]any{"policy": "4/day"}, map[string]any{"policy": "4/dy"}},
	}})
	engine := gin.New()
	group := engine.Group("/prefix")
	if err := tollgin.LoadConfigForGin(get, "server.rate-limits", group); err != nil {
		t.Fatal(err)
	}
	group.GET("/echo", hello)
	engine.GET("/free", hello)
	same(t, "a key", statuses(engine, 3, "/prefix/echo", "X-Api-Key", "a"), 200, 200, 429)
	same(t, "the address", statuses(engine, 3, "/prefix/echo", "X-Api-Key", "tests"), 200, 200, 429)
	same(t, "no key", statuses(engine, 1, "/prefix/echo"), 403)
	same(t, "beside the group", statuses(engine, 9, "/free"), 200, 200, 200, 200, 200, 200, 200, 200, 200)
	wrong := engine.Group("/wrong")
	err := tollgin.LoadConfigForGin(get, "server.wrong", wrong)
	if err == nil || !strings.Contains(err.Error(), "server.wrong[1]: ") || len(wrong.Handlers) != 0 {
		t.Errorf("%v, %d handlers", err, len(wrong.Handlers))
	}
	if err := tollgin.LoadConfigForGin(get, "server.no", wrong); err == nil {
		t.Error("a section that is not there is no error")
	}
}

func TestNewLimiterForGin(t *testing.T) {
	engine := gin.New()
	engine.Use(tollgin.NewLimiterForGin(24*time.Hour, 2, func(c *gin.Context) (string, error) {
		switch key := c.GetHeader("X-User"); key {
		case "root":
			return "", tollgin.ErrPass
		case "":
			return "", errors.New("no user")
		case "ghost":
			c.JSON(http.StatusTeapot, gin.H{"code": 2901})
			return "", errors.New("a ghost")
		default:
			return key, nil
		}
	}).Middleware())
	engine.GET("/", hello)
	same(t, "a user", statuses(engine, 3, "/", "X-User", "ann"), 200, 200, 429)
	same(t, "root", statuses(engine, 3, "/", "X-User", "root"), 200, 200, 200)
	if w := ask(engine, "/"); w.Code != 403 || w.Body.String() != `{"code":403,"message":"no user"}` {
		t.Errorf("%d, %s", w.Code, w.Body)
	}
	if w := ask(engine, "/", "X-User", "ghost"); w.Code != http.StatusTeapot || w.Body.String() != `{"code":2901}` {
		t.Errorf("%d, %s", w.Code, w.Body)
	}
}

// Middleware for net/http, with a charge after the response.
func TestWrap(t *testing.T) {
	table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 10}, "2/day")
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	limit, err := tollhttp.New(tollhttp.Options{Limits: []tollhttp.Limit{{Name: "failures", Table: table,
		Charge: func(_ *http.Request, response tollhttp.Response) uint64 {
			if response.Status == http.StatusUnauthorized && response.Written == int64(len("wrong")) {
				return 1
			}
			return 0
		}}}})
	if err != nil {
		t.Fatal(err)
	}
	engine, after := gin.New(), 0
	engine.Use(tollgin.Wrap(limit.Handler), func(*gin.Context) { after++ })
	engine.GET("/right", hello)
	engine.GET("/wrong", func(c *gin.Context) { c.String(http.StatusUnauthorized, "wrong") })
	same(t, "right", statuses(engine, 3, "/right"), 200, 200, 200)
	same(t, "wrong", statuses(engine, 3, "/wrong"), 401, 401, 429)
	if w := ask(engine, "/right"); w.Code != 429 || w.Header().Get("RateLimit") == "" || after != 5 {
		t.Errorf("%d, %v, %d calls of the handlers behind", w.Code, w.Header(), after)
	}
}
