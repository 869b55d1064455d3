package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A server in cluster mode that serves all keys is one all the same (Valkey 8 says server_mode,
// Valkey 7.2 redis_mode).
func TestConditionOfAClusterServerThatServesAll(t *testing.T) {
	t.Parallel()
	s := startAged(t, 1, valkeytest.WithArgs("--cluster-enabled", "yes"))
	s.do([]string{"CLUSTER", "ADDSLOTSRANGE", "0", "16383"})
	require.Eventually(t, func() bool { return s.Node(0).Do(t, "GET", "key").NonValkeyError() == nil }, longTTL, pollTick)
	q := s.gated()
	ce := requireCondition(t, node(t, q, 0).Err, s.Node(0).Addr(), redlock.Condition(wire.Moved))
	require.ErrorContains(t, ce, "cluster mode")
}
