package redlock_test

import (
	"context"
	"sync"
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

// nodeErrors is a tracer that keeps each node's last failed acquisition.
type nodeErrors struct{ errs sync.Map }

func (e *nodeErrors) TraceAcquireStart(ctx context.Context, _ redlock.TraceAcquireStartData) context.Context {
	return ctx
}

func (e *nodeErrors) TraceAcquireEnd(context.Context, redlock.TraceAcquireEndData) {}

func (e *nodeErrors) TraceNodeStart(ctx context.Context, _ redlock.TraceNodeStartData) context.Context {
	return ctx
}

func (e *nodeErrors) TraceNodeEnd(_ context.Context, data redlock.TraceNodeEndData) {
	if data.Op == redlock.OpAcquire && data.Err != nil {
		e.errs.Store(data.Node, data.Err)
	}
}

func (e *nodeErrors) last(addr string) error {
	err, _ := e.errs.Load(addr)
	last, _ := err.(error)
	return last
}
