//go:build cgo || tollbar_purego

// Package rules decides on requests by a file of rules in TOML or YAML (docs/rules.md). It is a
// separate package, so that a program without rules does not link libtollbar-rules.
//
//	limits, err := rules.Follow("site.toml")
//	...
//	http.ListenAndServe(":8080", limits.Handler(mux)) // chi: router.Use(limits.Handler)
//	engine.Use(tollgin.Wrap(limits.Handler))          // gin
//	server.Use(echo.WrapMiddleware(limits.Handler))   // echo
package rules

import (
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/internal/guard"
)

// Options say how rules are opened.
type Options struct {
	// Keys is the number of keys that can have a debt at one time: a key counts once for each of
	// its limits. 0 means 100,000.
	Keys uint64
	// Shared: the states are in memory that this process shares with the processes that it forks
	// later. Then only this process can reload.
	Shared bool
	// Room is the most segments of a sliding window, or permits of a sliding log, for which each
	// key has room. A reload may then change such a limit to any other, and any other to it, and
	// keys keep the permits that they have left. 0: none, and such a limit begins anew if its
	// policy changes.
	Room uint32
	// Watch is how often a goroutine looks whether the file has changed, and reloads it if so
	// ([Rules.ReloadIfChanged]); it ends with Close. 0: never. A request is decided by the old rules
	// or by the new ones.
	Watch time.Duration
	// Reloaded gets the outcome of each reload by Watch: nil, or the error of a file with faults,
	// whose former rules stay in force. Nil means that errors go to [slog.Error].
	Reloaded func(error)
	// Fields returns what a rule may name of a request beside its own fields ([RequestFields]), such
	// as {":user", name} for `key = "field user"`. Nil means nothing.
	Fields func(*http.Request) []Field
}

// Field is a field of a request. The names ":method", ":path" and ":address" are the request's
// method, its target as the client sent it, and the address of the connection's other end. Any
// other name that begins with a colon is a word of the server, for `key = "field NAME"`. All other
// fields are headers; upper and lower case are equal in their names.
type Field struct {
	Name, Value string
}

// Answer is the decision on a request.
type Answer struct {
	Verdict tollbar.Verdict
	Reason  tollbar.Reason
	// Status is the HTTP status to answer; 200 for a request that may pass.
	Status int
	// Rule is the name of the rule that refuses or, in an admission, has the fewest permits left.
	// Empty: no rule matches.
	Rule string
	// Body is the body to answer; empty for a request that may pass.
	Body string
	// Remaining is the number of permits that are left of the rule with the fewest.
	Remaining uint64
	// RetryAfter is the time until the same request would pass; [tollbar.Forever] if waiting does
	// not help.
	RetryAfter time.Duration
	// ResetAfter is the time until all limits are as good as fresh.
	ResetAfter time.Duration
	// Generation is the number of the set of rules that decided: each reload that succeeds adds 1.
	Generation uint64
	// For Settle: when the estimates were taken, and a bit for each shadow that has taken nothing.
	takenAt, refusedShadows uint64
}

// FileError is the error for a rules file that cannot be read or has faults.
type FileError struct {
	// Code is the kind of error; errors.Is finds it.
	Code tollbar.Code
	// Text has one line for each fault, such as
	// `site.toml:3:11: group.a.limit: "r/y" in "5r/y"; expected a limit: a whole number`.
	Text string
}

func (e *FileError) Error() string { return e.Text }

// Unwrap returns the code.
func (e *FileError) Unwrap() error { return e.Code }

// Rules are rules in force. Any number of goroutines may check requests while another one reloads.
type Rules struct {
	handle uintptr
	guard  guard.Guard
	fields func(*http.Request) []Field
	// Closed by Close; ends the goroutine that watches the file.
	closed chan struct{}
}

// Open reads the rules file and puts its rules in force. A name that ends in .yaml, .yml or .json
// is YAML, any other is TOML. The error is a [*FileError] with the places of all faults. End the
// rules with Close.
func Open(path string, options Options) (*Rules, error) {
	handle, err := open(path, options)
	if err != nil {
		return nil, err
	}
	r := &Rules{handle: handle, fields: options.Fields, closed: make(chan struct{})}
	runtime.SetFinalizer(r, func(r *Rules) { _ = r.Close() })
	if options.Watch > 0 {
		go r.watch(options.Watch, options.Reloaded)
	}
	return r, nil
}

// Follow is Open for a file that may change: once a second a goroutine looks whether it has, until
// Close. A file with faults is logged by [slog.Error], and the former rules stay in force.
func Follow(path string) (*Rules, error) {
	return Open(path, Options{Watch: time.Second})
}

// watch reloads a changed file until the rules are closed.
func (r *Rules) watch(every time.Duration, reloaded func(error)) {
	if reloaded == nil {
		reloaded = func(err error) {
			if err != nil {
				slog.Error("tollbar: the former rules stay in force", "error", err)
			}
		}
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-r.closed:
			return
		case <-ticker.C:
		}
		changed, err := r.ReloadIfChanged()
		if err == tollbar.ErrClosed {
			return
		}
		if changed || err != nil {
			reloaded(err)
		}
	}
}

// Close ends the rules. A second call does nothing.
func (r *Rules) Close() error {
	if r.guard.Close() {
		runtime.SetFinalizer(r, nil)
		if r.closed != nil {
			close(r.closed)
		}
		closeRules(r.handle)
	}
	return nil
}

// Check takes the request's cost of all limits of all rules that it matches, or of none. With an
// error nothing has been charged, and the caller says whether the request passes.
func (r *Rules) Check(request []Field) (Answer, error) {
	return r.check(request, nil)
}

// CheckAt is Check at the caller's time, on the scale of [Rules.Now].
func (r *Rules) CheckAt(now uint64, request []Field) (Answer, error) {
	return r.check(request, &now)
}

// Settle charges what the answer to an admitted request has cost, under rules with cost = "answer
// NAME". answer is that of Check, and request has the request's fields again, with the words of the
// answer (":NAME") among them. A cost above the estimate makes a debt; of a cost below it the rest
// goes back to the key. The result is false if the words lack a cost: there the estimate stays.
// Call it once for each admission.
func (r *Rules) Settle(answer *Answer, request []Field) (known bool, err error) {
	return r.settle(answer, request, nil)
}

// SettleAt is Settle at the caller's time, on the scale of [Rules.Now].
func (r *Rules) SettleAt(now uint64, answer *Answer, request []Field) (known bool, err error) {
	return r.settle(answer, request, &now)
}

// Now reads the rules' clock, in nanoseconds.
func (r *Rules) Now() (now uint64, err error) {
	err = r.with(func(rules uintptr) error {
		now = rulesNow(rules)
		return nil
	})
	return now, err
}

// Reload reads the file again and puts its rules in force as a whole. Keys of rules whose name
// stays keep their states. With an error the old rules stay in force.
func (r *Rules) Reload() error {
	return r.with(reload)
}

// ReloadIfChanged is Reload if the file has changed since it was last read. It returns whether it
// has, and an error once for each change.
func (r *Rules) ReloadIfChanged() (changed bool, err error) {
	err = r.with(func(rules uintptr) error {
		changed, err = reloadIfChanged(rules)
		return err
	})
	return changed, err
}

// Reset lets all keys of a rule begin anew. With an error it has reset none.
func (r *Rules) Reset(rule string) error {
	return r.with(func(rules uintptr) error {
		_, err := reset(rules, rule, nil)
		return err
	})
}

// ResetKey lets one key of a rule begin anew. The text names the key as keys and exempt of the
// rules file do. The result is false if the table has no other slot for the key: then the key keeps
// its debt.
func (r *Rules) ResetKey(rule, key string) (done bool, err error) {
	err = r.with(func(rules uintptr) error {
		done, err = reset(rules, rule, &key)
		return err
	})
	return done, err
}

// AppendMetrics appends what the rules have counted, as text: decisions by rule, and shadows'
// disagreements. name is the value of the label "limit" of their series. No key is a label.
func (r *Rules) AppendMetrics(to []byte, format tollbar.MetricsFormat, name string) (text []byte, err error) {
	err = r.with(func(rules uintptr) error {
		text, err = appendMetrics(rules, to, format, name)
		return err
	})
	return text, err
}

// RequestFields returns the fields of a request that a server has got: the method, the target, the
// address of the connection's other end and the headers.
func RequestFields(request *http.Request) []Field {
	address, _, err := net.SplitHostPort(request.RemoteAddr)
	if err != nil {
		address = request.RemoteAddr
	}
	target := request.RequestURI
	if target == "" {
		target = request.URL.RequestURI()
	}
	fields := []Field{{":method", request.Method}, {":path", target}, {":address", address}, {"Host", request.Host}}
	for name, values := range request.Header {
		for _, value := range values {
			fields = append(fields, Field{name, value})
		}
	}
	return fields
}

// Handler checks each request before next. A refused request gets the rule's status and body, and
// Retry-After in seconds, rounded up. If the check fails, the request gets status 500.
func (r *Rules) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		fields := RequestFields(request)
		if r.fields != nil {
			fields = append(fields, r.fields(request)...)
		}
		answer, err := r.Check(fields)
		switch {
		case err != nil:
			http.Error(w, "the limits cannot be checked", http.StatusInternalServerError)
		case answer.Verdict == tollbar.Allowed:
			next.ServeHTTP(w, request)
		default:
			if answer.RetryAfter != tollbar.Forever {
				seconds := (answer.RetryAfter + time.Second - 1) / time.Second
				w.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
			}
			w.WriteHeader(answer.Status)
			_, _ = w.Write([]byte(answer.Body))
		}
	})
}

func (r *Rules) check(request []Field, now *uint64) (answer Answer, err error) {
	err = r.with(func(rules uintptr) error {
		answer, err = check(rules, request, now)
		return err
	})
	return answer, err
}

func (r *Rules) settle(answer *Answer, request []Field, now *uint64) (known bool, err error) {
	err = r.with(func(rules uintptr) error {
		known, err = settle(rules, answer, request, now)
		return err
	})
	return known, err
}

// with calls f unless the rules are closed.
func (r *Rules) with(f func(rules uintptr) error) error {
	c := r.guard.Enter()
	if c == nil {
		return tollbar.ErrClosed
	}
	defer runtime.KeepAlive(r)
	defer c.Leave()
	return f(r.handle)
}
