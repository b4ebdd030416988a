package callback

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

type ruleKey struct{}

func withRule(ctx context.Context, r rule) context.Context {
	return context.WithValue(ctx, ruleKey{}, r)
}

// newTransport makes one connection per callback, so that each is checked, and
// uses no proxy of the environment, which would be checked in the receiver's
// place.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, ControlContext: guard}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		DisableKeepAlives:      true,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// guard refuses addresses that a name must not lead to. It is called after the
// name was resolved: what is checked is what is connected to.
func guard(ctx context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("callback: address %q: %w", address, err)
	}
	if r, ok := ctx.Value(ruleKey{}).(rule); ok && r.exact() {
		return nil
	}
	if forbidden(at.Addr()) {
		return fmt.Errorf("callback: the host leads to %s, which is no place for callbacks unless the allow list names that address", at.Addr())
	}
	return nil
}

// metadata are services of clouds for their machines that lie outside the
// link-local range.
var metadata = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("192.0.0.192"),     // Oracle
	netip.MustParseAddr("fd00:ec2::254"),   // Amazon
}

// translated holds IPv4 addresses in its last four bytes (RFC 6052).
var translated = netip.MustParsePrefix("64:ff9b::/96")

// forbidden reports addresses of the machine itself, of its link, of nobody, and
// of metadata services. Private networks are where a cluster's receivers live.
func forbidden(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if translated.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if a.IsUnspecified() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return true
	}
	if a.Is4() && a.As4()[0] == 0 {
		return true // "this network"
	}
	for _, m := range metadata {
		if a == m {
			return true
		}
	}
	return false
}
