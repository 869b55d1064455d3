package wire

import (
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
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
