package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// The known hole of Redlock: the holder has two of three servers, one of these comes back empty,
// and helps somebody else to a quorum.
func TestGateClosesTheHoleOfRedlock(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		connected bool // before the restart
		opts      []redlock.Option
	}{
		{"a client that was there", true, nil},
		{"a new client", false, nil},
		{"a client that was there, without the gate", true, []redlock.Option{redlock.WithoutRestartGate()}},
		{"a new client, without the gate", false, []redlock.Option{redlock.WithoutRestartGate()}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 3)
			opts := append(test.opts, redlock.WithTTL(3*longTTL), redlock.WithNodeTimeout(longTTL/2)) // nothing expires here
			first := s.gated(append(opts, cutOff(s.Node(2)))...)
			var second *redlock.Quorum
			if test.connected {
				second = s.gated(opts...)
			}
			held, err := first.TryAcquire(t.Context(), "key", redlock.WithoutAutoExtend())
			require.NoError(t, err)
			s.restart(1)
			require.Empty(t, s.locks(1))
			require.Empty(t, s.locks(2))
			if len(test.opts) > 0 {
				s.do([]string{"DEL", "tenure:roster"}) // else it would be noticed that the server has lost its data
			}
			if !test.connected {
				second = s.gated(opts...)
			}
			l, err := second.TryAcquire(t.Context(), "key")
			require.NoError(t, held.Err())
			if len(test.opts) > 0 {
				require.NoError(t, err, "this test would not see two leases")
				require.NoError(t, l.Err())
				return
			}
			require.ErrorIs(t, err, redlock.ErrHeld)
			requireCondition(t, node(t, second, 1).Err, s.Node(1).Addr(), redlock.ConditionQuarantined)
			require.Empty(t, s.locks(1))
			s.requireFreeOn(2, "what the other server granted is released")
			for range 10 {
				_, err = second.TryAcquire(t.Context(), "key")
				require.ErrorIs(t, err, redlock.ErrHeld)
			}
			require.ErrorIs(t, held.Extend(t.Context()), redlock.ErrLost, "only one server has it still")
			require.Empty(t, s.locks(1), "what was put back must not count, so it is not put back")
			_, err = second.TryAcquire(t.Context(), "key")
			require.ErrorIs(t, err, redlock.ErrHeld)
		})
	}
}
