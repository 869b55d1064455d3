package redlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// A master that was made a replica has lost what it granted. Who saw that does not trust it when it
// is a master again.
func TestGateMasterThatWasAReplicaMeanwhile(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		opts []redlock.Option
		want redlock.Condition
	}{
		{"refused", nil, redlock.ConditionReplicated},
		{"accepted", []redlock.Option{redlock.WithReplicas()}, redlock.ConditionQuarantined},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 4)
			opts := append(test.opts, redlock.WithTTL(3*longTTL))
			first := gatedURLs(t, s.three(0, 1, 2), append(opts, cutOff(s.Node(2)))...)
			var seen nodeErrors
			second := gatedURLs(t, s.three(0, 1, 2), append(opts, redlock.WithTracer(&seen))...)
			held, err := first.TryAcquire(t.Context(), "key", redlock.WithoutAutoExtend())
			require.NoError(t, err)
			s.follow(1, 3)
			_, err = second.TryAcquire(t.Context(), "seen")
			require.NoError(t, err)
			require.Eventually(t, func() bool { return seen.last(s.Node(1).Addr()) != nil }, longTTL, pollTick)
			requireCondition(t, seen.last(s.Node(1).Addr()), s.Node(1).Addr(), redlock.ConditionReadOnly)
			s.promote(1)
			require.Empty(t, s.locks(1))
			_, err = second.TryAcquire(t.Context(), "key")
			require.NoError(t, held.Err())
			require.ErrorIs(t, err, redlock.ErrHeld)
			const recheck = 2 * time.Second // of a replica
			require.Eventually(t, func() bool { return redlock.ErrorType(node(t, second, 1).Err) == string(test.want) }, recheck+whole, pollTick)
		})
	}
}

// A server in cluster mode that serves all keys is one all the same (Valkey 8 says server_mode,
// Valkey 7.2 redis_mode).
func TestConditionOfAClusterServerThatServesAll(t *testing.T) {
	t.Parallel()
	s := startAged(t, 1, valkeytest.WithArgs("--cluster-enabled", "yes"))
	s.do([]string{"CLUSTER", "ADDSLOTSRANGE", "0", "16383"})
	require.Eventually(t, func() bool { return s.Node(0).Do(t, "GET", "key").NonValkeyError() == nil }, longTTL, pollTick)
	q := s.gated()
	ce := requireCondition(t, node(t, q, 0).Err, s.Node(0).Addr(), redlock.ConditionMoved)
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
