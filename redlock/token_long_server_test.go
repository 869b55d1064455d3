//go:build long

package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// An extension of a lease takes no token of another key back that shares the counter, and is newer:
// neither on a server whose clock is days behind, nor on one whose counter is damaged meanwhile.
// Counters lead all clocks here, as they do where clocks were set back, so no hint makes up for it.
func TestOlderLeaseLowersNoCounter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		jump   time.Duration // of the clock of node 0
		damage [][]string    // of its counters
		again  bool          // the newer key can be had from nodes 0 and 2
	}{
		"well":            {0, nil, true},
		"days behind":     {-50 * time.Hour, nil, true},
		"damaged":         {0, [][]string{{"HSET", fences, slotOf("a"), "x"}}, false},
		"damaged, behind": {-50 * time.Hour, [][]string{{"HSET", fences, slotOf("a"), "x"}}, false},
		"another type":    {0, [][]string{{"DEL", fences}, {"SET", fences, "x"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServers(t, 3, valkeytest.WithClock())
			s.jump(test.jump, 0)
			q := s.open(redlock.WithTTL(longTTL))
			require.NoError(t, s.hold(q, "first").Release(t.Context())) // which knows the clocks from now on
			s.do([]string{"HSET", fences, slotOf("a"), fmt.Sprint(time.Now().Add(time.Hour).UnixMicro())})
			older, newer := s.hold(q, "a", redlock.WithoutAutoExtend()), "twin 0"
			for i := 1; slotOf(newer) != slotOf("a"); i++ {
				newer = fmt.Sprint("twin ", i)
			}
			s.squat(newer, time.Minute, 2)
			l, err := tryUntilAnswered(t, q, newer, redlock.WithoutAutoExtend()) // from nodes 0 and 1
			require.NoError(t, err)
			token := l.FencingToken()
			require.Greater(t, token, older.FencingToken())
			require.NoError(t, l.Release(t.Context()))
			s.do([]string{"DEL", lockKey(newer)}, 2)

			for _, command := range test.damage {
				s.do(command, 0)
			}
			require.NoError(t, older.Extend(t.Context()))
			s.freeze(1)
			l, err = tryOften(t, q, newer)
			s.thaw(1)
			if !test.again {
				require.ErrorIs(t, err, redlock.ErrNoQuorum)
				return
			}
			require.NoError(t, err)
			require.Greater(t, l.FencingToken(), token)
		})
	}
}
