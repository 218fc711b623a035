// A server that lets each client make three requests a minute.
//
//	go run .          serves on localhost:8080
//	go run . -demo    sends itself five requests and prints the answers
//
// Start it twice, with two addresses: both servers count in one table, because the table is in a
// file.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	tollbar "github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

func main() {
	listen := flag.String("listen", "localhost:8080", "the address to serve on")
	file := flag.String("table", filepath.Join(os.TempDir(), "example-clients"), "the file that the clients are counted in")
	policy := flag.String("policy", "3/min", "what a client may do")
	demo := flag.Bool("demo", false, "ask five times and say what came")
	flag.Parse()
	if err := run(*listen, *file, *policy, *demo); err != nil {
		log.Fatal(err)
	}
}

func run(listen, file, policy string, demo bool) error {
	clients, err := tollbar.OpenTable(file, tollbar.TableOptions{Capacity: 100_000}, policy)
	if err != nil {
		return err // names the column of the policy, or the fault of the file
	}
	defer clients.Close()
	limit, err := tollhttp.New(tollhttp.Options{Limits: []tollhttp.Limit{{Name: "client", Table: clients}}})
	if err != nil {
		return err
	}
	handler := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello\n")
	}))
	if demo {
		return ask(handler)
	}
	return http.ListenAndServe(listen, handler)
}

// ask starts a server and sends it five requests.
func ask(handler http.Handler) error {
	server := httptest.NewServer(handler)
	defer server.Close()
	for i := range 5 {
		answer, err := http.Get(server.URL)
		if err != nil {
			return err
		}
		answer.Body.Close()
		fmt.Printf("request %d: %s, RateLimit %s\n", i+1, answer.Status, answer.Header.Get("RateLimit"))
	}
	return nil
}
