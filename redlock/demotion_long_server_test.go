//go:build long

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
			require.Contains(t, []string{"readonly", "replica"}, redlock.ErrorType(seen.last(s.Node(1).Addr())), "whether it was looked at meanwhile")
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
