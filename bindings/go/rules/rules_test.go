//go:build cgo || tollbar_purego

package rules_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/internal/prompt"
	"github.com/tollbar/tollbar/bindings/go/rules"
)

const twoAnHour = "version = 1\n[group.a]\nlimit = \"2/h\"\nbody = \"slow down\"\n"

func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustOpen(t testing.TB, path string) *rules.Rules {
	t.Helper()
	r, err := rules.Open(path, rules.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestRequestsByAFile(t *testing.T) {
	path := write(t, twoAnHour)
	r := mustOpen(t, path)
	request := []rules.Field{{Name: ":path", Value: "/"}, {Name: ":address", Value: "192.0.2.1"}}
	var answer rules.Answer
	for n, want := range []tollbar.Verdict{tollbar.Allowed, tollbar.Allowed, tollbar.Denied} {
		var err error
		if answer, err = r.Check(request); err != nil || answer.Verdict != want {
			t.Error(n, answer, err)
		}
	}
	if answer.Status != 429 || answer.Rule != "a" || answer.Body != "slow down" || answer.Generation != 1 {
		t.Error(answer)
	}
	if answer.RetryAfter <= 0 || answer.RetryAfter > 30*time.Minute || answer.ResetAfter > time.Hour {
		t.Error(answer.RetryAfter, answer.ResetAfter)
	}
	now, err := r.Now()
	if err != nil {
		t.Fatal(err)
	}
	if answer, err = r.CheckAt(now+uint64(time.Hour), request); err != nil || answer.Verdict != tollbar.Allowed {
		t.Error(answer, err)
	}
}

// A9
func TestKeysBeginAnew(t *testing.T) {
	r := mustOpen(t, write(t, twoAnHour))
	request := []rules.Field{{Name: ":path", Value: "/"}, {Name: ":address", Value: "192.0.2.1"}}
	useUp := func() (passed int) {
		for {
			if answer, err := r.Check(request); err != nil || answer.Verdict != tollbar.Allowed {
				return passed
			}
			passed++
		}
	}
	if passed := useUp(); passed != 2 {
		t.Error(passed)
	}
	if err := r.Reset("a"); err != nil || useUp() != 2 {
		t.Error(err)
	}
	if done, err := r.ResetKey("a", "192.0.2.1"); !done || err != nil || useUp() != 2 {
		t.Error(done, err)
	}
	// An empty key is not all keys.
	for _, key := range []string{"", "ann"} {
		if done, err := r.ResetKey("a", key); done || !errors.Is(err, tollbar.ErrAddress) || useUp() != 0 {
			t.Error(done, err)
		}
	}
	if err := r.Reset("none"); !errors.Is(err, tollbar.ErrNoSuchPolicy) || !strings.Contains(err.Error(), "no rule \"none\"") {
		t.Error(err)
	}
}

func TestAReloadChangesTheAlgorithm(t *testing.T) {
	file := func(limit string) string {
		return "version = 1\n[group.a]\nkey = 'address'\nlimit = '" + limit + "'\n"
	}
	path := write(t, file("10/h"))
	r, err := rules.Open(path, rules.Options{Room: 30})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	now, err := r.Now()
	if err != nil {
		t.Fatal(err)
	}
	request := []rules.Field{{Name: ":path", Value: "/"}, {Name: ":address", Value: "192.0.2.1"}}
	for n, limit := range []string{"10/h", "10/h algo sliding-log", "10/h algo sliding-window segments 20", "10/h"} {
		if err := os.WriteFile(path, []byte(file(limit)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.Reload(); err != nil {
			t.Fatal(limit, err)
		}
		if answer, err := r.CheckAt(now, request); err != nil || answer.Remaining != uint64(9-n) {
			t.Error(limit, answer, err)
		}
	}
}

func TestAFileWithFaultsLeavesTheRules(t *testing.T) {
	path := write(t, twoAnHour)
	r := mustOpen(t, path)
	if changed, err := r.ReloadIfChanged(); changed || err != nil {
		t.Error(changed, err)
	}
	if err := os.WriteFile(path, []byte("version = 1\n[group.a]\nlimit = \"2/y\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var fault *rules.FileError
	if err := r.Reload(); !errors.As(err, &fault) || !errors.Is(err, tollbar.ErrSyntax) || !strings.HasPrefix(fault.Text, path+":3:") {
		t.Error(err)
	}
	if _, err := rules.Open(path, rules.Options{}); !errors.As(err, &fault) {
		t.Error(err)
	}
	if answer, err := r.Check([]rules.Field{{Name: ":address", Value: "192.0.2.1"}}); err != nil || answer.Generation != 1 {
		t.Error(answer, err)
	}
	_ = r.Close()
	if _, err := r.Check(nil); !errors.Is(err, tollbar.ErrClosed) {
		t.Error(err)
	}
}

func TestHandler(t *testing.T) {
	prompt.Within(t, time.Second, func(t testing.TB) {
		r := mustOpen(t, write(t, twoAnHour))
		handler := r.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))
		got := httptest.NewRecorder()
		for _, want := range []int{204, 204, 429} {
			got = httptest.NewRecorder()
			handler.ServeHTTP(got, httptest.NewRequest("GET", "/x?y", nil))
			if got.Code != want {
				t.Error(got.Code, want)
			}
		}
		if got.Body.String() != "slow down" || got.Header().Get("Retry-After") != "1800" {
			t.Error(got.Body, got.Header())
		}
	})
}

// A rule may name what only the program knows.
func TestFieldsOfTheProgram(t *testing.T) {
	r, err := rules.Open(write(t, "version = 1\n[group.a]\nkey = 'field user'\nlimit = '1/day'\n"),
		rules.Options{Fields: func(r *http.Request) []rules.Field {
			name, _, _ := r.BasicAuth()
			return []rules.Field{{Name: ":user", Value: name}}
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	handler := r.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))
	for i, c := range []struct {
		user string
		want int
	}{{"ann", 204}, {"ann", 429}, {"bob", 204}} {
		request := httptest.NewRequest("GET", "/", nil)
		request.SetBasicAuth(c.user, "")
		got := httptest.NewRecorder()
		handler.ServeHTTP(got, request)
		if got.Code != c.want {
			t.Errorf("request %d: %d", i, got.Code)
		}
	}
}

func TestAWatchedFile(t *testing.T) {
	path := write(t, twoAnHour)
	outcomes := make(chan error)
	r, err := rules.Open(path, rules.Options{
		Watch: time.Millisecond, Reloaded: func(err error) { outcomes <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	// Another file takes the place of the old one, as with an editor that saves.
	replace := func(text string) {
		if err := os.Rename(write(t, text), path); err != nil {
			t.Fatal(err)
		}
	}
	var fault *rules.FileError
	replace("version = 1\n[group.a]\nlimit = \"2/y\"\n")
	if err := <-outcomes; !errors.As(err, &fault) {
		t.Error(err)
	}
	replace("version = 1\n[group.a]\nlimit = \"1/h\"\n")
	if err := <-outcomes; err != nil {
		t.Error(err)
	}
	request := []rules.Field{{Name: ":address", Value: "192.0.2.1"}}
	for _, want := range []tollbar.Verdict{tollbar.Allowed, tollbar.Denied} {
		if answer, err := r.Check(request); err != nil || answer.Verdict != want || answer.Generation != 2 {
			t.Error(answer, err)
		}
	}
	_ = r.Close()
	replace(twoAnHour)
	select {
	case err := <-outcomes:
		t.Error("a reload after Close", err)
	case <-time.After(50 * time.Millisecond):
	}
	// A value that no call has made.
	if err := new(rules.Rules).Close(); err != nil {
		t.Error(err)
	}
}

func TestFollow(t *testing.T) {
	r, err := rules.Follow(write(t, twoAnHour))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if answer, err := r.Check([]rules.Field{{Name: ":address", Value: "192.0.2.1"}}); err != nil || answer.Verdict != tollbar.Allowed {
		t.Error(answer, err)
	}
	if _, err := rules.Follow("/nonexistent/limits.toml"); err == nil {
		t.Error("no such file")
	}
}

func TestReloadsBesideRequests(t *testing.T) {
	path := write(t, twoAnHour)
	r := mustOpen(t, path)
	var wait sync.WaitGroup
	for n := 0; n < 4; n++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for n := 0; n < 2_000; n++ {
				if _, err := r.Check([]rules.Field{{Name: ":address", Value: "192.0.2.1"}}); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	for n := 0; n < 50; n++ {
		if err := r.Reload(); err != nil {
			t.Error(err)
		}
	}
	wait.Wait()
	if answer, _ := r.Check(nil); answer.Generation != 51 {
		t.Error(answer)
	}
}
