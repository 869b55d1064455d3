package redlock

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Why a node has not carried something out is told in words that are promised.
func TestTypesOfErrorsOfNodes(t *testing.T) {
	m := testQuorum(1).nodes[0]
	dead := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}
	for want, errs := range map[string][]error{
		"abandoned":     {node.ErrAbandoned},
		"overloaded":    {node.ErrOverloaded},
		"timeout":       {node.ErrTimeout},
		"closed":        {node.ErrClosed},
		"connection":    {dead, errors.New("EOF")},
		"other_process": {&wire.Fault{Condition: wire.Restarted}},
	} {
		for _, err := range errs {
			require.Equal(t, want, m.failure(OpAcquire, err).ErrorType(), "%v", err)
		}
	}
	require.ErrorIs(t, m.failure(OpAcquire, node.ErrTimeout), ErrTimeout)
	require.ErrorIs(t, m.failure(OpAcquire, node.ErrClosed), ErrClosed)
}

// What broke is worth another request at once, and what is not there is not.
func TestBrokenConnections(t *testing.T) {
	m := testQuorum(1).nodes[0]
	failed := func(err error) error {
		return &QuorumError{Op: OpAcquire, Errs: []*NodeError{m.failure(OpAcquire, err)}}
	}
	require.True(t, brokenConnection(failed(io.EOF)))
	require.True(t, brokenConnection(failed(&net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)})))
	require.False(t, brokenConnection(failed(&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})))
	require.False(t, brokenConnection(failed(node.ErrTimeout)))
	require.False(t, brokenConnection(&QuorumError{Op: OpAgree, Errs: []*NodeError{m.failure(OpAgree, io.EOF)}}))
}
