package valkeytest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// port reserves a port for its node, whether a server listens there or not, by a socket that is
// bound and never listens. Connections are refused as on a free port. A server that sets
// SO_REUSEADDR, as valkey-server does, may bind the port too. No process gets it by asking for any
// free port, to listen or to connect from (ip(7), ip_local_port_range).
type port struct{ socket *os.File }

// freePort reserves a free port of loopback.
func freePort() (port, int, error) {
	fd, none := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	p := port{os.NewFile(uintptr(fd), "port")} // nil for none
	err := cmp.Or(
		os.NewSyscallError("socket", none),
		os.NewSyscallError("setsockopt", syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)),
		os.NewSyscallError("bind", syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})),
	)
	name, unnamed := syscall.Getsockname(fd)
	if err = cmp.Or(err, os.NewSyscallError("getsockname", unnamed)); err != nil {
		return port{}, 0, fmt.Errorf("valkeytest: no free port: %w", errors.Join(err, p.close()))
	}
	return p, name.(*syscall.SockaddrInet4).Port, nil
}

// close gives up the reservation.
func (p port) close() error {
	if p.socket == nil {
		return nil
	}
	return p.socket.Close()
}
