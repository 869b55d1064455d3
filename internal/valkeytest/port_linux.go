package valkeytest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// port reserves a port for its node, whether a server listens there or not, by a socket that is
// bound and never listens. Connections are refused as on a free port. A server that sets
// SO_REUSEADDR, as valkey-server does, may bind the port too. No process gets it by asking for any
// free port, to listen or to connect from (ip(7), ip_local_port_range).
type port struct{ socket *os.File }

// freePort reserves a free port.
func freePort() (port, int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return port{}, 0, fmt.Errorf("valkeytest: no free port: %w", os.NewSyscallError("socket", err))
	}
	p := port{os.NewFile(uintptr(fd), "port")}
	number, err := bindAny(fd)
	if err != nil {
		return port{}, 0, fmt.Errorf("valkeytest: no free port: %w", errors.Join(err, p.close()))
	}
	return p, number, nil
}

// bindAny binds a socket to a free loopback port, and returns the port.
func bindAny(fd int) (int, error) {
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte(net.IPv4(127, 0, 0, 1).To4())}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	return name.(*syscall.SockaddrInet4).Port, nil
}

// close gives up the reservation.
func (p port) close() error {
	if p.socket == nil {
		return nil
	}
	return p.socket.Close()
}
