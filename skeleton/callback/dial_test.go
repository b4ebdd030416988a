package callback

import (
	"context"
	"net/netip"
	"testing"
)

func TestForbidden(t *testing.T) {
	for a, want := range map[string]bool{
		"127.0.0.1": true, "127.8.8.8": true, "::1": true, "0.0.0.0": true, "0.1.2.3": true, "::": true, "169.254.169.254": true,
		"fe80::1": true, "::ffff:169.254.169.254": true, "64:ff9b::a9fe:a9fe": true, "64:ff9b::7f00:1": true, "fd00:ec2::254": true,
		"100.100.100.200": true, "168.63.129.16": true, "224.0.0.1": true, "ff02::1": true, "255.255.255.255": true,
		"10.0.0.7": false, "192.168.1.1": false, "172.16.3.4": false, "8.8.8.8": false, "fd00::1": false, "2001:db8::1": false,
	} {
		if got := forbidden(netip.MustParseAddr(a)); got != want {
			t.Errorf("%s: %v", a, got)
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
