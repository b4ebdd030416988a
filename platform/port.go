package platform

import (
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sys/unix"
)

// port is a loopback port kept for a replica. It is bound but not listened on:
// Linux lets a server that sets SO_REUSEADDR, as almost all do, listen on it
// all the same, while it neither hands it out to anybody who asks for any port
// nor uses it for an outgoing connection. So no other process can come between
// the choice of the port and the server's start, and probing a server that is
// not up yet never connects to itself.
type port struct {
	address string
	fd      int // -1 once released
}

func reservePort() (*port, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	p := &port{fd: fd}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	var name unix.Sockaddr
	if err == nil {
		name, err = unix.Getsockname(fd)
	}
	if err != nil {
		p.release()
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	p.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*unix.SockaddrInet4).Port))
	return p, nil
}

// release gives the port back; twice is fine.
func (p *port) release() {
	if p.fd >= 0 {
		_ = unix.Close(p.fd)
		p.fd = -1
	}
}
