//go:build long

package redlock_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Commands that a server does not have under their names.
func TestServersWithRenamedCommands(t *testing.T) {
	t.Parallel()
	for command, needed := range map[string]bool{"EVALSHA": true, "SET": true, "EVAL": true, "PUBLISH": false, "SUBSCRIBE": false, "MGET": false} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 3, valkeytest.WithArgs("--rename-command", command, "X"+command))
			q := s.gated()
			if !needed {
				s.hold(q, "key")
			}
			s.acquire(q, "key") // who waits subscribes
			for i := range s.Nodes() {
				said := func(n redlock.NodeStatus) error { return errors.Join(append(n.Warnings, n.Err)...) }
				require.Eventually(t, func() bool { return said(node(t, q, i)) != nil }, longTTL, pollTick)
				n := node(t, q, i)
				require.Equal(t, !needed, n.Votes)
				var ce *redlock.ConditionError
				require.ErrorAs(t, said(n), &ce)
				require.Equal(t, redlock.Condition(wire.NoCommand), ce.Condition)
				require.ErrorContains(t, ce, command)
				require.ErrorContains(t, ce, "rename-command")
			}
		})
	}
}
