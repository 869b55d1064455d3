//go:build !linux

package valkeytest

import (
	"fmt"
	"net"
)

// port is one that was free a moment ago. Here nothing keeps it: while its server is down another
// one may get it.
type port struct{}

func freePort() (port, int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return port{}, 0, fmt.Errorf("valkeytest: no free port: %w", err)
	}
	return port{}, l.Addr().(*net.TCPAddr).Port, l.Close()
}

func (port) close() error { return nil }
