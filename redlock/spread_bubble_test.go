package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A node that granted a smaller token than the others is not asked to agree when a quorum does
// without it. It learns the token with the first extension, so that any quorum knows it from then
// on.
func TestExtensionBringsALowCounterUp(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		ahead := uint64(time.Now().Add(time.Hour).UnixMicro())
		setFence(t, fleet.Node(0), ahead)
		setFence(t, fleet.Node(1), ahead)
		fleet.Node(2).SetDelay(10 * time.Millisecond)
		l := acquire(t, q, redlock.WithoutAutoExtend())
		fleet.Node(2).SetDelay(0)
		time.Sleep(time.Second)
		require.Less(t, fence(t, fleet.Node(2)), l.FencingToken(), "there is nothing to learn, so this tests nothing")
		require.NoError(t, l.Extend(t.Context()))
		synctest.Wait()
		for _, n := range fleet.Nodes() {
			require.Equal(t, l.FencingToken(), fence(t, n))
		}
	})
}

// An extension brings back a counter that a node has lost while it kept the key.
func TestExtensionBringsALostCounterBack(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet), redlock.WithoutAutoExtend())
		synctest.Wait()
		setFence(t, fleet.Node(2), 7)
		time.Sleep(time.Second)
		require.NoError(t, l.Extend(t.Context()))
		synctest.Wait()
		require.Equal(t, l.FencingToken(), fence(t, fleet.Node(2)))
	})
}
