package tollbar_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tollbar/tollbar/bindings/go"
)

// The rows of src/address/tests.rs.
func TestParseAddr(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", " 192.0.2.1\t": "192.0.2.1", "192.0.2.1:80": "192.0.2.1",
		"192.0.2.1:00443": "192.0.2.1", "[192.0.2.1]:0": "192.0.2.1",
		"::ffff:192.0.2.1": "192.0.2.1", "[::ffff:192.0.2.1]:65535": "192.0.2.1",
		"2001:db8::1": "2001:db8::1", "[2001:db8::1]": "2001:db8::1", "[2001:db8::1]:80": "2001:db8::1",
		"fe80::1%eth0": "fe80::1", "[fe80::1%eth0]:80": "fe80::1", "64:ff9b::192.0.2.1": "64:ff9b::c000:201",
	} {
		if addr, err := tollbar.ParseAddr(text); err != nil || addr.String() != want {
			t.Errorf("%q: %v (%v)", text, addr, err)
		}
	}
	for _, text := range []string{
		"", " ", "-", "unknown", "localhost:80", "192.0.2", "192.0.2.1.5", "192.0.2.256", "192.0.2.1:", "192.0.2.1:65536", "192.0.2.1:000000080", "192.0.2.1:+8",
		"192.0.2.1:80:80", "192.0.2.1%eth0", "192.0.2.1/32", ":80", "[", "[]", "[192.0.2.1", "[2001:db8::1]80", "[2001:db8::1]:", "[2001:db8::1]:80:1",
		"[2001:db8::1]]", "[[2001:db8::1]]", "2001:db8::1]", "fe80::1%", "1::2::3", "::ffff:192.0.2.300", "192.0.2.1, 192.0.2.2", "192.0.2.1\x00", "caf\u00e9", "\xff\xfe",
	} {
		if addr, err := tollbar.ParseAddr(text); err != tollbar.ErrAddress {
			t.Errorf("%q: %v (%v)", text, addr, err)
		}
	}
}

func TestClientsBehindProxies(t *testing.T) {
	proxies, err := tollbar.ParseProxies("10.0.0.0/8", "2001:db8::/32", "192.0.2.200")
	if err != nil {
		t.Fatal(err)
	}
	sockets, err := tollbar.ParseProxies("unix:")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		proxies         tollbar.Proxies
		peer, forwarded string
		want            string
	}{
		{proxies, "192.0.2.1", "198.51.100.7", "192.0.2.1"}, // a stranger's header counts for nothing
		{proxies, "10.0.0.1", "", "10.0.0.1"},
		{proxies, "10.0.0.1", "198.51.100.7", "198.51.100.7"},
		{proxies, "192.0.2.200", "198.51.100.7", "198.51.100.7"},
		{proxies, "10.0.0.1", "1.1.1.1, 198.51.100.7, 10.9.9.9", "198.51.100.7"},
		{proxies, "10.0.0.1", "1.1.1.1|198.51.100.7", "198.51.100.7"},
		{proxies, "10.0.0.1", "198.51.100.7, nonsense, 10.9.9.9", "10.9.9.9"},
		{proxies, "10.0.0.1", "198.51.100.7,", "10.0.0.1"},
		{proxies, "10.0.0.1:80", "198.51.100.7:4711", "198.51.100.7"},
		{proxies, "[::ffff:10.0.0.1]:80", "198.51.100.7:4711", "198.51.100.7"},
		{proxies, "2001:db8::1", "[2001:db9::2]:80", "2001:db9::2"},
		{proxies, "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"},
		{proxies, "64:ff9b::10.0.0.1", "198.51.100.7", "64:ff9b::a00:1"},
		{proxies, "unix:", "198.51.100.7", ""},
		{proxies, "localhost", "198.51.100.7", ""},
		{tollbar.Proxies{}, "10.0.0.1", "198.51.100.7", "10.0.0.1"},
		{sockets, "", "1.1.1.1, 198.51.100.7", "198.51.100.7"},
		{sockets, "@", "198.51.100.7", "198.51.100.7"},
		{sockets, "unix:/run/a", "198.51.100.7", "198.51.100.7"},
		{sockets, "", "", ""},
		{sockets, "10.0.0.1", "198.51.100.7", "10.0.0.1"},
	} {
		var forwarded []string
		if one.forwarded != "" {
			forwarded = strings.Split(one.forwarded, "|")
		}
		client, err := one.proxies.Client(one.peer, forwarded)
		if (err == nil) != (one.want != "") || err == nil && client.String() != one.want {
			t.Errorf("%q behind %q: %v (%v)", one.forwarded, one.peer, client, err)
		}
	}
	for _, text := range []string{"10.0.0.1/8", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/+8", "host", "unix", "", "fe80::1%eth0"} {
		if _, err := tollbar.ParseProxies("10.0.0.0/8", text); !errors.Is(err, tollbar.ErrAddress) || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
