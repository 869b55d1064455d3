package node

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A server that refuses its trial for want of rights has no vote, and is asked for what only reads
// until anything else is known of it.
func TestReaderIsToldWithoutAVote(t *testing.T) {
	n, c := voting(t)
	g := n.gate
	noRights := &wire.Fault{Condition: wire.NoPermission, Detail: "NOPERM"}
	for name, ends := range map[string]func(){
		"shut":   g.shut,
		"closed": func() { g.close(&wire.Fault{Condition: wire.Loading}, never) },
		"failed": func() { _ = g.failed(ErrTimeout) },
		"voting": func() { g.admit(nil, nil) },
		"other":  func() { _ = g.refuses(&wire.Fault{Condition: wire.OutOfMemory}) },
	} {
		require.Error(t, g.refuses(noRights))
		require.False(t, g.open, name)
		require.True(t, g.reading, name)
		g.lookAt = never
		var a answers
		for op, sent := range map[wire.Op]bool{wire.Observe: true, wire.Acquire: false, wire.Agree: false} {
			kept := n.admitted([]*Request{{Call: callOf(op, "key"), To: &a}})
			require.Equal(t, sent, len(kept) == 1, "%s", op)
		}
		ends()
		require.False(t, g.reading, name)
	}
	require.Empty(t, c.sent())
}
