package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/resp"
)

// An error is the server's, of the connection, or of one that took too long.
func TestWhoseAnErrorIs(t *testing.T) {
	for _, test := range []struct {
		err             error
		server, timeout bool
	}{
		{fmt.Errorf("%w: 7", ErrUnexpected), true, false},
		{&Fault{Condition: Busy}, true, false},
		{fmt.Errorf("wrapped: %w", &Fault{Condition: Busy}), true, false},
		{&resp.Error{What: "a reply to no command", Said: "ERR max number of clients reached"}, false, false},
		{context.DeadlineExceeded, false, true},
		{io.EOF, false, false},
	} {
		require.Equal(t, test.server, IsServerError(test.err), "%v", test.err)
		require.Equal(t, test.timeout, IsTimeout(test.err), "%v", test.err)
		require.Equal(t, !test.server && !test.timeout, IsBroken(test.err), "%v", test.err)
	}
	for _, err := range []error{nil, io.EOF, context.DeadlineExceeded, errors.New("READONLY, says somebody else")} {
		require.Nil(t, FaultOf(err), "%v", err)
		require.Equal(t, err, Diagnose(err))
		require.False(t, IsDemoted(err))
	}
	for condition, demoted := range map[Condition]bool{ReadOnly: true, Masterless: true, Loading: true, Busy: false, Replica: false} {
		require.Equal(t, demoted, IsDemoted(&Fault{Condition: condition}), condition)
	}
}

// A Fault tells what was seen, or else what the server said, as far as that is not too long.
func TestFaults(t *testing.T) {
	said := errors.New("OOM " + strings.Repeat("x", 2*maxSaid))
	require.EqualError(t, &Fault{Condition: Loading}, "loading")
	require.EqualError(t, &Fault{Condition: Loading, Detail: "it reads", Err: said}, "loading: it reads")
	long := &Fault{Condition: OutOfMemory, Err: said}
	require.EqualError(t, long, "oom: "+said.Error()[:maxSaid]+"...")
	require.ErrorIs(t, long, said)
}

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
