package callback

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
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
	own, err := net.InterfaceAddrs()
	if err != nil {
		return fmt.Errorf("callback: the addresses of this machine: %w", err)
	}
	if forbidden(at.Addr(), own) {
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

// carriers are networks whose addresses carry an IPv4 address in the given bytes,
// to which a router on the way may pass a connection on.
var carriers = []struct {
	prefix netip.Prefix
	bytes  [4]int
	mask   byte
}{
	{netip.MustParsePrefix("::/96"), [4]int{12, 13, 14, 15}, 0},          // IPv4-compatible
	{netip.MustParsePrefix("64:ff9b::/96"), [4]int{12, 13, 14, 15}, 0},   // NAT64 (RFC 6052)
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{12, 13, 14, 15}, 0}, // NAT64 of a site (RFC 8215), by a prefix of 96 bits
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{6, 7, 9, 10}, 0},    // and of 48 bits
	{netip.MustParsePrefix("2002::/16"), [4]int{2, 3, 4, 5}, 0},          // 6to4
	{netip.MustParsePrefix("2001::/32"), [4]int{12, 13, 14, 15}, 0xff},   // Teredo: the client, inverted
}

// carried lists the IPv4 addresses that an address carries. A place that is empty
// holds none.
func carried(a netip.Addr) (list []netip.Addr) {
	b := a.As16()
	for _, c := range carriers {
		if !c.prefix.Contains(a) {
			continue
		}
		var v4 [4]byte
		for i, at := range c.bytes {
			v4[i] = b[at] ^ c.mask
		}
		if v4 != [4]byte{} {
			list = append(list, netip.AddrFrom4(v4))
		}
	}
	return list
}

// forbidden reports addresses of the machine itself (own are those of its
// interfaces), of its link, of nobody, and of metadata services, also where an
// IPv6 address carries one. Private networks are where a cluster's receivers live.
func forbidden(a netip.Addr, own []net.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, v4 := range carried(a) {
		if forbidden(v4, own) {
			return true
		}
	}
	if a.IsUnspecified() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return true
	}
	if a.Is4() && a.As4()[0] == 0 {
		return true // "this network"
	}
	for _, o := range own {
		if n, ok := o.(*net.IPNet); ok && n.IP.Equal(a.AsSlice()) {
			return true
		}
	}
	return slices.Contains(metadata, a)
}
