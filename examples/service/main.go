// A shop whose limits are all of tollbar at once. run.sh starts two instances of it, as two
// machines, and a Redis.
//
//	rules in limits.toml        who may ask for what, reloaded when the file changes
//	a lease through Redis       50 reports a second for all instances together
//	a table in shared memory    clients that give five wrong passwords are banned, by all instances
//	a queue                     orders are not refused but wait, and leave at a constant rate
//	a queue in Redis            mails above the limit wait for a worker, which sends them at the limit
//	/metrics, /status, /        for Prometheus, for programs, and for people
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	tollbar "github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/redis"
	"github.com/tollbar/tollbar/bindings/go/rules"
)

//go:embed page.html
var page []byte

func main() {
	address := flag.String("listen", "127.0.0.1:8080", "where to listen")
	file := flag.String("rules", "limits.toml", "the rules file")
	store := flag.String("store", "redis://127.0.0.1", "the URL of Redis")
	bans := flag.String("bans", "/dev/shm/shop-bans",
		"the table of banned clients, for all instances of this machine")
	mails := flag.String("mails", "/dev/shm/shop-mails",
		"the table of the limit of mails, for all instances and the worker")
	sent := flag.String("outbox", "outbox", "the file that gets the mails")
	other := flag.String("other", "", "the address of the other instance, for the page")
	kill := flag.String("kill", "", "the command that stops Redis, for the page")
	work := flag.Bool("work", false, "be the worker that sends the mails of the stream, and no instance")
	flag.Parse()
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	out, err := openOutbox(*store, *mails, *sent)
	if err != nil {
		log.Fatal(err)
	}
	if *work {
		if err := out.work(stop); err != nil && stop.Err() == nil {
			log.Fatal("worker: ", err)
		}
		return
	}
	shop, err := open(*file, *store, *bans)
	if err != nil {
		log.Fatal(err)
	}
	shop.mails, shop.address, shop.other, shop.kill = out, *address, *other, *kill
	go shop.deliver(stop)
	server := &http.Server{Addr: *address, Handler: shop.routes(), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-stop.Done()
		_ = server.Close()
	}()
	log.Println("http://" + *address)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	// The store gets the permits that this instance has used and not reported yet.
	last, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	_ = shop.reports.Close(last)
}

type shop struct {
	rules   *rules.Rules
	reports *redis.Lease
	bans    *tollbar.Table
	pace    *tollbar.Limiter
	orders  chan int
	mails   *outbox
	// What the page says of this instance and of the other one.
	address, other, kill string
	// The counts since the start.
	served, byRules, given, byLease, wrong, banned, queued, queueFull, delivered atomic.Uint64
	// The permits that the rule for all clients left the last one.
	left atomic.Uint64
	// The fault of the rules file; empty if the file is in force.
	fault atomic.Pointer[string]
}

// open opens the limits. The rules' states are this process's own, the lease's are in Redis, the
// bans' in the file.
func open(file, store, bans string) (*shop, error) {
	s := &shop{orders: make(chan int, 30)}
	s.fault.Store(new(string))
	limits, err := rules.Open(file, rules.Options{Watch: time.Second / 4, Reloaded: s.reloaded})
	if err != nil {
		return nil, err
	}
	// An instance gives up to 20 reports before Redis has answered, so a few reports after a quiet
	// time need not wait for a lease.
	overdraft := uint64(20)
	reports, err := redis.NewLease("reports", "50/s burst 100",
		redis.LeaseOptions{Nodes: 2, URL: store, Overdraft: &overdraft})
	if err != nil {
		return nil, err
	}
	banned, err := tollbar.OpenTable(bans, tollbar.TableOptions{Capacity: 100_000}, "5/min ban 1h")
	if err != nil {
		return nil, err
	}
	pace, err := tollbar.NewLimiter("10/s algo pacer")
	if err != nil {
		return nil, err
	}
	s.rules, s.reports, s.bans, s.pace = limits, reports, banned, pace
	return s, nil
}

// reloaded notes whether the rules file is in force. With a fault in the file the former rules stay.
func (s *shop) reloaded(err error) {
	fault := ""
	if err != nil {
		fault = err.Error()
		log.Print(fault)
	}
	s.fault.Store(&fault)
}

func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page)
	})
	mux.HandleFunc("GET /status", s.status)
	mux.HandleFunc("GET /other", s.otherStatus)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("POST /shop/login", s.login)
	mux.HandleFunc("POST /shop/orders", s.order)
	mux.HandleFunc("POST /shop/mails", s.mail)
	mux.HandleFunc("GET /shop/reports", s.report)
	mux.HandleFunc("GET /shop/", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, "welcome\n", 0)
	})
	return s.limited(mux)
}

// limited decides a request by the bans, and then by the rules.
func (s *shop) limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client := clientOf(r)
		if ban, err := s.bans.Under(0).Peek(client, 1); err == nil && ban.Reason == tollbar.ReasonBanned {
			s.banned.Add(1)
			answer(w, http.StatusTooManyRequests, "banned\n", ban.RetryAfter)
			return
		}
		decision, err := s.rules.Check(append(rules.RequestFields(r), rules.Field{Name: ":client", Value: client}))
		switch {
		case err != nil:
			http.Error(w, "the limits cannot be checked", http.StatusInternalServerError)
			return
		case decision.Verdict != tollbar.Allowed:
			s.byRules.Add(1)
			s.leaves(decision)
			answer(w, decision.Status, decision.Body, decision.RetryAfter)
			return
		case decision.Rule != "":
			// The page, its status and the metrics match no limit and do not count.
			s.served.Add(1)
			s.leaves(decision)
		}
		next.ServeHTTP(w, r)
	})
}

// report takes a permit of the limit that all instances share. The instance has a lease on some of
// them, so the call waits for nobody.
func (s *shop) report(w http.ResponseWriter, _ *http.Request) {
	if all, err := s.reports.Check("", 1); err != nil || all.Verdict != tollbar.Allowed {
		s.byLease.Add(1)
		answer(w, http.StatusTooManyRequests, "too many reports for the shop\n", all.RetryAfter)
		return
	}
	s.given.Add(1)
	answer(w, http.StatusOK, "a report\n", 0)
}

// login charges wrong passwords, and right ones cost nothing.
func (s *shop) login(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("password") == "secret" {
		answer(w, http.StatusOK, "welcome back\n", 0)
		return
	}
	s.wrong.Add(1)
	if _, err := s.bans.Under(0).Charge(clientOf(r), 1); err != nil {
		log.Print(err)
	}
	answer(w, http.StatusUnauthorized, "wrong password\n", 0)
}

// order puts an order into the queue. A full queue refuses, and tells when it has room again.
func (s *shop) order(w http.ResponseWriter, _ *http.Request) {
	select {
	case s.orders <- 1:
		s.queued.Add(1)
		answer(w, http.StatusAccepted, "order taken, "+strconv.Itoa(len(s.orders))+" before the van\n", 0)
	default:
		s.queueFull.Add(1)
		answer(w, http.StatusTooManyRequests, "too many orders\n", 100*time.Millisecond)
	}
}

// deliver takes the orders out of the queue, ten a second.
func (s *shop) deliver(stop context.Context) {
	for {
		select {
		case <-stop.Done():
			return
		case <-s.orders:
			if s.pace.Wait(stop) != nil {
				return
			}
			s.delivered.Add(1)
		}
	}
}

// leaves remembers for the page how many permits the rule for all clients has left the last one.
func (s *shop) leaves(decision rules.Answer) {
	if decision.Rule == "shop" {
		s.left.Store(decision.Remaining)
	}
}

// otherStatus is the status of the other instance, so that one page shows both.
func (s *shop) otherStatus(w http.ResponseWriter, r *http.Request) {
	within, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(within, http.MethodGet, "http://"+s.other+"/status", nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	found, err := http.DefaultClient.Do(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer found.Body.Close()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(found.StatusCode)
	_, _ = io.Copy(w, found.Body)
}

func (s *shop) status(w http.ResponseWriter, _ *http.Request) {
	lease, _ := s.reports.Stats()
	held, _ := s.reports.Peek("", 1)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"served": s.served.Load(), "refused_by_rules": s.byRules.Load(),
		"refused_by_lease": s.byLease.Load(), "banned": s.banned.Load(),
		"orders_taken": s.queued.Load(), "orders_refused": s.queueFull.Load(),
		"orders_delivered": s.delivered.Load(), "orders_waiting": len(s.orders),
		"address": s.address, "kill": s.kill, "visits_left": s.left.Load(),
		"reports": s.given.Load(), "reports_left": held.Remaining, "reports_most": s.reports.Policy().Burst,
		"orders_most": cap(s.orders), "wrong_passwords": s.wrong.Load(), "owed": lease.Owed,
		"store": lease.Circuit.String(), "without_store": lease.FallbackPermits, "rules_fault": *s.fault.Load(),
	})
}

func (s *shop) metrics(w http.ResponseWriter, _ *http.Request) {
	text, err := tollbar.AppendMetrics(nil, tollbar.Prometheus, s.bans.Metrics("bans"), s.pace.Metrics("orders"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = w.Write(text)
}

// clientOf is the client's name. In the example a client may choose one, so that one machine can
// play many clients. Otherwise it is the client's address, which nobody can choose.
func clientOf(r *http.Request) string {
	if name := r.Header.Get("X-Client"); name != "" {
		return name
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	return address
}

func answer(w http.ResponseWriter, status int, body string, wait time.Duration) {
	if wait > 0 && wait != tollbar.Forever {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}
