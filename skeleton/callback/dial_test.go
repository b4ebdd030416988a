package callback

import (
	"context"
	"net"
	"net/netip"
	"testing"
)

func TestForbidden(t *testing.T) {
	own := []net.Addr{&net.IPNet{IP: net.ParseIP("10.0.0.9"), Mask: net.CIDRMask(24, 32)}, &net.IPNet{IP: net.ParseIP("2001:db8::9"), Mask: net.CIDRMask(64, 128)}}
	for a, want := range map[string]bool{
		"127.0.0.1": true, "127.8.8.8": true, "::1": true, "0.0.0.0": true, "0.1.2.3": true, "::": true, "169.254.169.254": true,
		"fe80::1": true, "::ffff:169.254.169.254": true, "64:ff9b::a9fe:a9fe": true, "64:ff9b::7f00:1": true, "fd00:ec2::254": true,
		"100.100.100.200": true, "168.63.129.16": true, "224.0.0.1": true, "ff02::1": true, "255.255.255.255": true,
		"10.0.0.7": false, "192.168.1.1": false, "172.16.3.4": false, "8.8.8.8": false, "fd00::1": false, "2001:db8::1": false,
		"10.0.0.9": true, "::ffff:10.0.0.9": true, "2001:db8::9": true, "10.0.0.8": false, // its own, and a neighbour
		"::127.0.0.1": true, "::10.1.2.3": false,
		"64:ff9b::8.8.8.8": false, "64:ff9b::10.0.0.9": true,
		"64:ff9b:1::169.254.169.254": true, "64:ff9b:1:a9fe:a9:fe00::": true, "64:ff9b:1::8.8.8.8": false, "64:ff9b:1:808:8:800::": false,
		"2002:7f00:1::1": true, "2002:a9fe:a9fe::": true, "2002:808:808::1": false,
		"2001:0:808:808:0:0:80ff:fffe": true, "2001:0:808:808:0:0:5601:5601": true, "2001:0:808:808:0:0:f7f7:f7f7": false, // 127.0.0.1, 169.254.169.254, 8.8.8.8
	} {
		if got := forbidden(netip.MustParseAddr(a), own); got != want {
			t.Errorf("%s: %v", a, got)
		}
	}
}

// No name leads to an interface of this machine.
func TestGuardKnowsTheMachine(t *testing.T) {
	r, err := parseRule("hooks.example.com")
	if err != nil {
		t.Fatal(err)
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range own {
		address := net.JoinHostPort(o.(*net.IPNet).IP.String(), "80")
		if err := guard(withRule(context.Background(), r), "tcp", address, nil); err == nil {
			t.Error("let through to", address)
		}
	}
}

// What is connected to is checked, whatever the name was; only an address that
// the list names itself is let through.
func TestGuard(t *testing.T) {
	for _, c := range []struct {
		entry, address string
		ok             bool
	}{
		{"hooks.example.com", "169.254.169.254:80", false},
		{"*.example.com", "127.0.0.1:8082", false},
		{"hooks.example.com", "[fe80::1%eth0]:80", false},
		{"hooks.example.com", "10.1.2.3:80", true},
		{"169.254.169.254", "169.254.169.254:80", true},
		{"localhost", "127.0.0.1:80", true},
	} {
		r, err := parseRule(c.entry)
		if err != nil {
			t.Fatal(err)
		}
		if err := guard(withRule(context.Background(), r), "tcp", c.address, nil); (err == nil) != c.ok {
			t.Errorf("%s to %s: %v", c.entry, c.address, err)
		}
	}
}
