package tollbar

import (
	"net/netip"
	"strconv"
	"strings"
)

// ParseAddr reads an address as servers, proxies and logs write it: "192.0.2.1", "2001:db8::1", and
// both with a port ("192.0.2.1:80", "[2001:db8::1]:80"), in brackets, with a zone ("fe80::1%eth0")
// and with blanks around it. The result has no port and no zone, and of an IPv4-mapped address it
// is the IPv4 address. The error is [ErrAddress] for every other text.
func ParseAddr(text string) (netip.Addr, error) {
	text = strings.Trim(text, " \t\n\f\r")
	address, port := text, ""
	hasPort := false
	if inside, ok := strings.CutPrefix(text, "["); ok {
		var rest string
		if address, rest, ok = strings.Cut(inside, "]"); !ok {
			return netip.Addr{}, ErrAddress
		}
		if rest != "" {
			if port, hasPort = strings.CutPrefix(rest, ":"); !hasPort {
				return netip.Addr{}, ErrAddress
			}
		}
	} else if strings.Count(text, ":") == 1 {
		// With more than one colon it is an IPv6 address, which has a port only behind brackets.
		address, port, hasPort = strings.Cut(text, ":")
	}
	if hasPort && !isPort(port) {
		return netip.Addr{}, ErrAddress
	}
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Addr{}, ErrAddress
	}
	return addr.WithZone("").Unmap(), nil
}

func isPort(text string) bool {
	if text == "" || len(text) > 8 || strings.Trim(text, "0123456789") != "" {
		return false
	}
	number, err := strconv.Atoi(text)
	return err == nil && number <= 65535
}

// Proxies are networks of trusted proxies.
type Proxies struct {
	networks []netip.Prefix
	// Whether proxies that connect by a Unix socket are trusted.
	sockets bool
}

// ParseProxies reads networks: "10.0.0.0/8", one address, or "unix:" for connections by a Unix
// socket. The error is [ErrAddress] for another text and for a network with bits beyond its prefix.
func ParseProxies(networks ...string) (Proxies, error) {
	var p Proxies
	for _, text := range networks {
		if text == "unix:" {
			p.sockets = true
			continue
		}
		network, err := netip.ParsePrefix(text)
		if addr, single := netip.ParseAddr(text); single == nil && addr.Zone() == "" {
			network, err = addr.Prefix(addr.BitLen())
		}
		if err != nil || network != network.Masked() {
			return Proxies{}, &ProxiesError{text}
		}
		p.networks = append(p.networks, network)
	}
	return p, nil
}

// ProxiesError is the error of [ParseProxies]. It is an [ErrAddress].
type ProxiesError struct{ Text string }

func (e *ProxiesError) Error() string {
	return "tollbar: " + strconv.Quote(e.Text) + ` is no network; expected one such as "10.0.0.0/8", without bits beyond its prefix, an address, or "unix:"`
}

// Unwrap returns [ErrAddress].
func (e *ProxiesError) Unwrap() error { return ErrAddress }

// Client returns the address of a client. It is that of the connection, peer, or, if the peer is a
// trusted proxy, the right-most address in X-Forwarded-For that no trusted proxy has. A client can
// write anything at the left of the header, and each proxy adds at the right the address that it
// saw. A text that is no address ends the walk: then the last trusted proxy is the client.
//
// peer is a text as [ParseAddr] reads it; an empty one, "unix:..." and "@..." are a Unix socket.
// forwarded has the header's values in their order. The error is [ErrAddress] if the client has no
// address.
func (p Proxies) Client(peer string, forwarded []string) (netip.Addr, error) {
	var client netip.Addr
	trusted := p.sockets
	if peer != "" && peer[0] != '@' && !strings.HasPrefix(peer, "unix:") {
		var err error
		if client, err = ParseAddr(peer); err != nil {
			return netip.Addr{}, err
		}
		trusted = p.has(client)
	}
	for value := len(forwarded) - 1; trusted && value >= 0; value-- {
		for rest, more := forwarded[value], true; trusted && more; {
			hop := rest
			comma := strings.LastIndexByte(rest, ',')
			if more = comma >= 0; more {
				rest, hop = rest[:comma], rest[comma+1:]
			}
			addr, err := ParseAddr(hop)
			if err != nil {
				trusted = false
				break
			}
			client, trusted = addr, p.has(addr)
		}
	}
	if !client.IsValid() {
		return netip.Addr{}, ErrAddress
	}
	return client, nil
}

func (p Proxies) has(addr netip.Addr) bool {
	for _, network := range p.networks {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}
