package gateway

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrBadName refuses a name that cannot be one of a function.
var ErrBadName = errors.New("gateway: not the name of a function")

// label is RFC 1035's, as Kubernetes asks of services; a leading digit and an
// underscore pass too, since a provider may allow more.
var label = regexp.MustCompile(`^[A-Za-z0-9]([-_A-Za-z0-9]{0,61}[A-Za-z0-9])?$`)

// Split takes NAME or NAME.NAMESPACE apart; without a namespace it is fallback.
// Nothing it lets through can change the path of a URL.
func Split(name, fallback string) (short, namespace string, err error) {
	short, namespace, dotted := strings.Cut(name, ".")
	if !dotted {
		namespace = fallback
	}
	if !label.MatchString(short) || !label.MatchString(namespace) {
		return "", "", fmt.Errorf("%w: %.100q", ErrBadName, name)
	}
	return short, namespace, nil
}

// Join is the inverse of Split: the name alone in the namespace fallback, else
// NAME.NAMESPACE.
func Join(short, namespace, fallback string) string {
	if namespace == "" || namespace == fallback {
		return short
	}
	return short + "." + namespace
}
