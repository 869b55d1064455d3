//go:build long

package health_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// On real servers that hang, are killed, and come back: a replica that was ready stays so, one that
// begins is not before they are back, and no probe waits for a node.
func TestServersHangAndComeBack(t *testing.T) {
	t.Parallel()
	fleet := valkeytest.Start(t, 3, valkeytest.WithAge(time.Hour))
	r := newReplica(t, fleet.URLs())
	require.Eventually(t, func() bool { return r.ready(t) }, patience, 10*time.Millisecond)
	require.NoError(t, fleet.Node(0).Freeze())
	require.NoError(t, fleet.Node(1).Kill())
	require.Eventually(t, func() bool { return r.q.Healthy() != nil }, patience, 10*time.Millisecond)
	second := newReplica(t, fleet.URLs())
	for range 5 {
		start := time.Now()
		require.True(t, r.ready(t))
		require.False(t, second.ready(t))
		require.Less(t, time.Since(start), 5*time.Second, "four probes of which none asks a server")
	}
	_, text := r.asks(t, "/readyz?verbose")
	require.Contains(t, text, `"state": "degraded"`)
	require.NoError(t, fleet.Node(0).Thaw())
	require.Eventually(t, func() bool { return second.ready(t) }, patience, 10*time.Millisecond)
}
