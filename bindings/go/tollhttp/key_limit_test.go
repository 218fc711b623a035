package tollhttp_test

import (
	"net/http"
	"testing"

	"github.com/tollbar/tollbar/bindings/go"
	"github.com/tollbar/tollbar/bindings/go/tollhttp"
)

// A limit for other frameworks takes permits, sets the fields, and says that a key is missing.
func TestKeyLimits(t *testing.T) {
	limit, err := tollhttp.NewKeyLimit(tollhttp.KeyOptions{Policy: "2/h", Capacity: 10})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		key     string
		cost    uint64
		allowed bool
		left    string
	}{{"ann", 1, true, "1"}, {"ann", 2, false, "1"}, {"ann", 1, true, "0"}, {"ann", 1, false, "0"}, {"bob", 2, true, "0"}} {
		header := http.Header{}
		_, d, err := limit.Check(t.Context(), header, want.key, want.cost)
		if err != nil || d.Allowed() != want.allowed || header.Get("X-RateLimit-Remaining") != want.left || want.allowed == (header.Get("Retry-After") != "") {
			t.Errorf("request %d: %+v, %v (%v)", i, d, header, err)
		}
	}
	header := http.Header{}
	if _, _, err := limit.Check(t.Context(), header, "", 1); err != tollbar.ErrMissingKey || len(header) != 0 {
		t.Errorf("%v, %v", header, err)
	}
	// A table of the caller may admit requests without a key.
	open, err := tollhttp.NewKeyLimit(tollhttp.KeyOptions{Table: memory(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, d, err := open.Check(t.Context(), header, "", 1); err != nil || !d.Allowed() || len(header) != 0 {
		t.Errorf("%+v, %v (%v)", d, header, err)
	}
}

func memory(t *testing.T) *tollbar.Table {
	t.Helper()
	table, err := tollbar.NewTable(tollbar.TableOptions{Capacity: 10, MissingKey: tollbar.MissingAllow}, "1/h")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

// Peek charges nothing if it admits, and records a refusal for a ban.
func TestKeyLimitsChargedLater(t *testing.T) {
	limit, err := tollhttp.NewKeyLimit(tollhttp.KeyOptions{Policy: "2/min ban 1h after 3"})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, d, err := limit.Peek(t.Context(), http.Header{}, "ann", 1); err != nil || !d.Allowed() {
			t.Fatalf("%+v (%v)", d, err)
		}
	}
	if err := limit.Charge("ann", 2); err != nil {
		t.Fatal(err)
	}
	// The charge that leaves no permit is the first refusal. The peeks are the second one and the
	// third.
	for i, reason := range []tollbar.Reason{tollbar.ReasonRate, tollbar.ReasonBanned} {
		if _, d, err := limit.Peek(t.Context(), http.Header{}, "ann", 1); err != nil || d.Reason != reason {
			t.Errorf("peek %d: %+v (%v)", i, d, err)
		}
	}
}

func TestAddressKeys(t *testing.T) {
	for _, same := range [][2]string{{"192.0.2.1", " ::ffff:192.0.2.1 "}, {"2001:db8::1", "2001:db8::2%eth0"}, {"", "nobody"},
		{"192.0.2.1:80", "[::ffff:192.0.2.1]:443"}, {"192.0.2.1", "64:ff9b::192.0.2.1"}, {"[2001:db8::1]:80", "[2001:db8::9]"}} {
		if a, b := tollhttp.AddressKey(same[0]), tollhttp.AddressKey(same[1]); a != b || (a == "") != (same[0] == "") {
			t.Errorf("%q is %q, and %q is %q", same[0], a, same[1], b)
		}
	}
}
