//go:build !linux

package valkeytest

import (
	"fmt"
	"net"
)

// port reserves nothing: while the node's server is down another process may get its port.
type port struct{}

func freePort() (port, int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return port{}, 0, fmt.Errorf("valkeytest: no free port: %w", err)
	}
	return port{}, l.Addr().(*net.TCPAddr).Port, l.Close()
}

func (port) close() error { return nil }
