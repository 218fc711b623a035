//go:build cgo || tollbar_purego

package tollhttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	tollbar "github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

// refusing is a server that refuses its first request for a second, and records the time of each.
type refusing struct {
	mutex sync.Mutex
	times []time.Time
}

func (s *refusing) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.times = append(s.times, time.Now()); len(s.times) == 1 {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// A request whose context ends during the pause is not sent, and five others wait for the pause's
// end. The test begins again if the machine lost the whole pause before the early request had
// ended.
func TestTransport(t *testing.T) {
	for tries := 1; pauses(t); tries++ {
		if tries == 20 {
			t.Fatal("the pause of a second was over before a request of 10 ms, 20 times")
		}
	}
}

// pauses makes the requests, and returns whether the pause was over too early.
func pauses(t *testing.T) (late bool) {
	requests := new(refusing)
	server := httptest.NewServer(requests)
	defer server.Close()
	pace, err := tollbar.NewPacing(tollbar.PacingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &tollhttp.Transport{Pacing: pace}}
	get := func() int {
		response, err := client.Get(server.URL + "/a?b")
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	began := time.Now()
	if status := get(); status != http.StatusTooManyRequests {
		t.Error("the transport has repeated the request:", status)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	early, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("body"))
	response, err := client.Do(early)
	if err == nil {
		_ = response.Body.Close()
	}
	if time.Since(began) >= time.Second {
		return true
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	var all sync.WaitGroup
	for range 5 {
		all.Add(1)
		go func() {
			defer all.Done()
			if status := get(); status != http.StatusOK {
				t.Error(status)
			}
		}()
	}
	all.Wait()
	requests.mutex.Lock()
	defer requests.mutex.Unlock()
	if len(requests.times) != 6 {
		t.Fatal(requests.times)
	}
	for _, at := range requests.times[1:] {
		if after := at.Sub(requests.times[0]); after < time.Second {
			t.Error("a request during the pause, after", after)
		}
	}
	if state, known := pace.State(server.URL); !known || state.Rate >= 1e6 || state.Waiting != 0 {
		t.Error(state, known)
	}
	return false
}

// A client that may send 200 requests per second finds the rate of a server that admits 50, and
// names its limit.
func ExampleTransport() {
	limiter, _ := tollbar.NewLimiter("50/s burst 5")
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RateLimit-Policy", `"api";q=50;w=1`)
		w.Header().Set("RateLimit", `"api";r=1`)
		if !limiter.Allow() {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	server := httptest.NewServer(handler)
	defer server.Close()

	pace, _ := tollbar.NewPacing(tollbar.PacingOptions{Most: 200})
	client := &http.Client{Transport: &tollhttp.Transport{Pacing: pace}}
	accepted := 0
	for range 60 {
		response, err := client.Get(server.URL)
		if err != nil {
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			accepted++
		}
	}
	state, _ := pace.State(server.URL)
	fmt.Println(accepted >= 50, state.Rate <= 50)
	// Output: true true
}
