//go:build long

package redlock_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// SCRIPT FLUSH costs a look at the servers, and neither a vote nor an error.
func TestGateFlushedScriptsAreLoadedAgain(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	var log lockedBuffer
	q := s.gated(logTo(&log), redlock.WithNodeTimeout(serverTTL/4))
	for i := range 20 {
		s.do([]string{"SCRIPT", "FLUSH"})
		l := s.hold(q, fmt.Sprint("key", i)) // on all nodes: one that is slow would lose its scripts again and again
		s.do([]string{"SCRIPT", "FLUSH"})
		require.NoError(t, l.Extend(t.Context()))
		s.do([]string{"SCRIPT", "FLUSH"})
		require.NoError(t, l.Release(t.Context()))
		s.requireFree(longTTL, "not released")
	}
	for i := range s.Nodes() {
		require.True(t, node(t, q, i).Votes, "%+v %s", node(t, q, i), &log)
	}
	require.NotContains(t, log.String(), "does not vote")
}
