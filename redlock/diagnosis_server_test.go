package redlock_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// requireAdvice waits until a node has no vote and says what to do about it, and says that once.
func requireAdvice(t *testing.T, q *redlock.Quorum, says ...string) string {
	t.Helper()
	var n redlock.NodeStatus
	require.Eventually(t, func() bool {
		n = q.Nodes(t.Context())[0]
		return n.Err != nil && strings.Contains(n.Err.Error(), says[0])
	}, longTTL, pollTick, "%v", &n)
	for _, text := range says {
		require.ErrorContains(t, n.Err, text)
	}
	for _, w := range n.Warnings {
		require.NotEqual(t, redlock.ErrorType(n.Err), redlock.ErrorType(w), "said twice")
	}
	return n.Err.Error()
}
