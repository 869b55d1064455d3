package valkeytest

import (
	"net"
	"testing"
)

// FreeAddress returns an address of this machine at which nothing listened a moment ago.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
