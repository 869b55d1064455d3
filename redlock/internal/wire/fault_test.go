package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/resp"
)

// What the kernel says of a connection that did not answer its probes is a timeout, by its own
// name. It is no server that is slow: what can be sent on another connection is.
func TestConnectionThatTheKernelFoundDeadIsBroken(t *testing.T) {
	dead := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}
	require.True(t, dead.Timeout())
	require.False(t, IsTimeout(dead))
	require.True(t, IsBroken(dead))
	slow := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	require.True(t, IsTimeout(slow))
	require.False(t, IsBroken(slow))
}

// Who refuses a new connection has counted it, if that is a Valkey server. Where nobody was
// reached, nobody has refused anything.
func TestRefusedBy(t *testing.T) {
	for name, test := range map[string]struct {
		err      error
		counter  string
		somebody bool
	}{
		"full":          {&resp.Error{Said: "ERR max number of clients reached"}, "rejected_connections", true},
		"refused early": {&resp.Error{Said: "DENIED Valkey is running in protected mode"}, "rejected_connections", true},
		"no Valkey":     {&resp.Error{Said: "HTTP/1.1 400"}, "rejected_connections", true},
		"cut":           {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, "rejected_connections", true},
		"ended":         {io.EOF, "rejected_connections", true},
		"a Sentinel":    {&Fault{Condition: Sentinel}, "", true},
		"TLS":           {tls.RecordHeaderError{Msg: "x"}, "", true},
		"another CA":    {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "", true},
		"expired":       {&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}, "", false},
		"no port":       {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "", false},
		"no name":       {&net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}, "", false},
		"silent":        {context.DeadlineExceeded, "", false},
		"given up":      {context.Canceled, "", false},
		"local":         {errors.New("no place in the pool"), "", false},
	} {
		counter, somebody := RefusedBy(fmt.Errorf("look: %w", test.err))
		require.Equal(t, test.somebody, somebody, name)
		require.Equal(t, test.counter, counter, name)
	}
}
