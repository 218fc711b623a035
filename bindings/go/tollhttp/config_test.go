package tollhttp_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

// settings is a configuration in JSON, as a program has it in memory.
func settings(t *testing.T, text string) func(string) any {
	t.Helper()
	var decoded map[string]any
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		t.Fatal(err)
	}
	return tollhttp.Settings(decoded)
}

func TestS50LoadConfig(t *testing.T) {
	get := settings(t, `{"server": {"rate-limits": [
		{"name": "by-api-key", "description": "d", "interval": "1ms", "max-requests": 30,
			"header-key-name": "X-API-KEY", "exception-keys": ["k"]},
		{"Policy": "100/min burst 20"},
		{"maxRequests": "5", "INTERVAL": "1m30s", "algorithm": "fixed-window"},
		{"enabled": false, "policy": "not even a policy"}
	], "one": {"policy": "1/s"}}}`)
	configs, err := tollhttp.LoadConfig(get, "server.rate-limits")
	want := []tollhttp.Config{
		{Name: "by-api-key", Description: "d", Interval: time.Millisecond, MaxRequests: 30,
			HeaderKeyName: "X-API-KEY", ExceptionKeys: []string{"k"}},
		{Policy: "100/min burst 20"},
		{MaxRequests: 5, Interval: 90 * time.Second, Algorithm: "fixed-window"},
	}
	if err != nil || !reflect.DeepEqual(configs, want) {
		t.Errorf("%+v, %v", configs, err)
	}
	if one, err := tollhttp.LoadConfig(get, "server.one"); err != nil || len(one) != 1 || one[0].Policy != "1/s" {
		t.Errorf("%+v, %v", one, err)
	}
	// The types that decoders of YAML and TOML make.
	typed := tollhttp.Settings(map[string]any{"a": map[any]any{"b": []map[string]any{{
		"max_requests": uint64(3), "interval": time.Hour, "exception_keys": []string{"192.0.2.1"},
		"enabled": "true"}}}})
	configs, err = tollhttp.LoadConfig(typed, "a.b")
	if err != nil || len(configs) != 1 || configs[0].MaxRequests != 3 || configs[0].Interval != time.Hour ||
		configs[0].ExceptionKeys[0] != "192.0.2.1" {
		t.Errorf("%+v, %v", configs, err)
	}
}

// Every mistake in a section is named with its place, and no limit is left out.
func TestLoadConfigMistakes(t *testing.T) {
	for section, says := range map[string]string{
		`null`:                                 `limits: nothing; expected a list of limits`,
		`"x"`:                                  `limits: "x"; expected a list of limits`,
		`["x"]`:                                `limits[0]: "x"; expected a limit`,
		`[{"policy": 3}]`:                      `limits[0].policy: 3; expected a text`,
		`[{"policy": "5/mn"}]`:                 `limits[0]: tollhttp: limit "": tollbar: policy "5/mn"`,
		`[{"polcy": "5/min"}]`:                 `limits[0]: "polcy"; expected name,`,
		`[{"max-requests": 1.5}]`:              `limits[0].max-requests: 1.5; expected a whole number`,
		`[{"max-requests": 5}]`:                `limits[0]: tollhttp: limit "": 5 requests in 0s: expected either a policy`,
		`[{"max-requests": 5, "interval": 5}]`: `limits[0].interval: 5; expected a time such as`,
		`[{"max-requests": -5, "interval": "1s"}]`:                      `-5 requests in 1s`,
		`[{"max-requests": 5, "interval": "1s", "policy": "5/s"}]`:      `a policy beside a number of requests`,
		`[{"policy": "5/s"}, {"enabled": "maybe"}]`:                     `limits[1].enabled: "maybe"; expected true or false`,
		`[{"policy": "5/s", "exception-keys": "k"}]`:                    `limits[0].exception-keys: "k"; expected a list of texts`,
		`[{"policy": "5/s", "exception-keys": [1]}]`:                    `limits[0].exception-keys[0]: 1; expected a text`,
		`[{"policy": "5/s", "exception-keys": ["k"]}]`:                  `limits[0]: tollhttp: limit "": exception "k": `,
		`[{"max-requests": 5, "interval": "1s", "algorithm": "no-al"}]`: `limits[0]: tollhttp: limit "": tollbar: policy `,
	} {
		configs, err := tollhttp.LoadConfig(settings(t, `{"limits": `+section+`}`), "limits")
		if err == nil || !strings.Contains(err.Error(), says) || configs != nil {
			t.Errorf("%s: %v, %v; expected %s", section, configs, err, says)
		}
	}
	var wrong *tollbar.PolicyError
	_, err := tollhttp.LoadConfig(settings(t, `{"limits": [{"policy": "5/mn"}]}`), "limits")
	if !errors.As(err, &wrong) || wrong.Column != 3 {
		t.Errorf("%v", err)
	}
}

// A request is charged to all limits of the section, or to none.
func TestFromConfig(t *testing.T) {
	configs, err := tollhttp.LoadConfig(settings(t, `{"limits": [
		{"name": "key", "max-requests": 2, "interval": "24h", "header-key-name": "X-Api-Key",
			"exception-keys": ["tests"]},
		{"name": "address", "policy": "5/day", "exception-keys": ["198.51.100.7"]}
	]}`), "limits")
	if err != nil {
		t.Fatal(err)
	}
	middleware, err := tollhttp.FromConfig(configs, tollhttp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	handler := middleware(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	ask := func(address string, keys ...string) int {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = address + ":1"
		r.Header["X-Api-Key"] = keys
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	for i, c := range []struct {
		address string
		keys    []string
		status  int
	}{
		{"192.0.2.1", []string{"a"}, 204}, {"192.0.2.1", []string{"a"}, 204}, {"192.0.2.1", []string{"a"}, 429},
		// The refusal has not been charged to the address, which has three left.
		{"192.0.2.1", []string{"b"}, 204}, {"192.0.2.1", []string{"tests"}, 204}, {"192.0.2.1", []string{"tests"}, 204},
		{"192.0.2.1", []string{"tests"}, 429}, {"192.0.2.1", []string{"c"}, 429},
		{"198.51.100.7", []string{"tests"}, 204}, {"198.51.100.7", []string{"d"}, 204}, {"198.51.100.7", nil, 403},
		// Several values are no key.
		{"198.51.100.7", []string{"x", "y"}, 403},
	} {
		if got := ask(c.address, c.keys...); got != c.status {
			t.Errorf("request %d: %d, not %d", i, got, c.status)
		}
	}
	for range 9 {
		if ask("198.51.100.7", "tests") != 204 {
			t.Error("an exception of both limits is limited")
		}
	}
	if _, err := tollhttp.FromConfig(nil, tollhttp.Options{}); err != tollhttp.ErrNoLimit {
		t.Error(err)
	}
	if _, err := tollhttp.FromConfig([]tollhttp.Config{{Name: "a"}}, tollhttp.Options{}); !errors.Is(err,
		tollhttp.ErrConfig) {
		t.Error(err)
	}
}
