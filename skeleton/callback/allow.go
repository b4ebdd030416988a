package callback

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"strings"
)

// maxURL bounds a callback URL.
const maxURL = 2048

// rule is an entry of the allow list.
type rule struct {
	scheme string // "" = http and https
	host   string // lower case; with a leading dot: every name below it
	port   string // "" = any
	path   string // prefix, by whole segments; "" = any
}

// parseRule reads "host", "host:port", "*.domain" or "https://host/prefix".
func parseRule(entry string) (rule, error) {
	bad := fmt.Errorf("callback: allow list: %q is neither a host, nor *.domain, nor an http(s) URL prefix", entry)
	text := strings.TrimSpace(entry)
	prefix := strings.Contains(text, "://")
	if !prefix {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return rule{}, bad
	}
	r := rule{host: hostOf(u), port: u.Port()}
	if name, ok := strings.CutPrefix(r.host, "*."); ok && name != "" {
		r.host = "." + name
	}
	if strings.Contains(r.host, "*") || !prefix && u.Path != "" {
		return rule{}, bad
	}
	if prefix {
		r.scheme, r.port, r.path = u.Scheme, portOf(u), strings.TrimSuffix(u.Path, "/")
	}
	return r, nil
}

func (r rule) allows(u *url.URL) bool {
	host := hostOf(u)
	sameHost := host == r.host
	if strings.HasPrefix(r.host, ".") {
		sameHost = strings.HasSuffix(host, r.host) && len(host) > len(r.host)
	}
	if !sameHost || r.scheme != "" && u.Scheme != r.scheme || r.port != "" && portOf(u) != r.port {
		return false
	}
	if r.path == "" {
		return true
	}
	rest, ok := strings.CutPrefix(u.Path, r.path)
	return ok && (rest == "" || rest[0] == '/') && !strings.Contains(u.EscapedPath(), "%") && clean(u.Path)
}

// clean reports whether a path says where it leads: without . and .. in it.
func clean(p string) bool { return path.Clean(p) == strings.TrimSuffix(p, "/") || p == "/" || p == "" }

// exact reports whether the operator named this very address, so that it may be
// one that names must not lead to.
func (r rule) exact() bool {
	if r.host == "localhost" {
		return true
	}
	_, err := netip.ParseAddr(r.host)
	return err == nil
}

func hostOf(u *url.URL) string { return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".") }

func portOf(u *url.URL) string {
	switch port := u.Port(); {
	case port != "":
		return port
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

// Check says why a callback URL is refused, or nil.
func (s *Sender) Check(raw string) error {
	_, _, err := s.check(raw)
	return err
}

func (s *Sender) check(raw string) (*url.URL, rule, error) {
	if len(s.allow) == 0 {
		return nil, rule{}, errors.New("callbacks are off: no host is allowed")
	}
	if len(raw) > maxURL {
		return nil, rule{}, fmt.Errorf("a callback URL has at most %d bytes", maxURL)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, rule{}, errors.New("the callback is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, rule{}, errors.New("the callback is not an absolute http or https URL")
	case u.User != nil:
		return nil, rule{}, errors.New("the callback URL holds credentials, which would be stored and logged: callbacks are signed instead")
	case u.Hostname() == "":
		return nil, rule{}, errors.New("the callback URL has no host")
	case u.Fragment != "":
		return nil, rule{}, errors.New("the callback URL has a fragment")
	}
	for _, r := range s.allow {
		if r.allows(u) {
			return u, r, nil
		}
	}
	return nil, rule{}, fmt.Errorf("callbacks to %s are not allowed", u.Host)
}
