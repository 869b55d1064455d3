package rival_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// TestOracleInOrder has three take turns in the order in which they came, and one leave before its
// turn.
func TestOracleInOrder(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	open := func() rival.Rival { return open(t, rival.Oracle, fleet) }
	type got struct {
		name string
		held rival.Held
		err  error
	}
	turns := make(chan got)
	wait := func(ctx context.Context, name string, r rival.Rival) {
		before := rival.OracleWaiting(r, "k")
		go func() {
			held, err := r.Acquire(ctx, "k")
			turns <- got{name, held, err}
		}()
		require.Eventually(t, func() bool { return rival.OracleWaiting(r, "k") == before+1 }, 10*time.Second, time.Millisecond)
	}
	a, b, c, d := open(), open(), open(), open()
	held, err := a.Acquire(t.Context(), "k")
	require.NoError(t, err)
	_, err = b.Try(t.Context(), "k")
	require.Error(t, err, "it is held")
	leaving, leave := context.WithCancel(t.Context())
	wait(t.Context(), "b", b)
	wait(leaving, "c", c)
	wait(t.Context(), "d", d)
	leave()
	g := <-turns
	require.Equal(t, "c", g.name)
	require.ErrorIs(t, g.err, context.Canceled)
	for _, name := range []string{"b", "d"} {
		require.NoError(t, held.Release(t.Context()))
		g := <-turns
		require.NoError(t, g.err)
		require.Equal(t, name, g.name)
		require.Eventually(t, func() bool {
			there := 0
			for _, n := range fleet.Nodes() {
				there += len(n.Keys(t))
			}
			return there >= 2
		}, 10*time.Second, time.Millisecond, "it locks a quorum")
		held = g.held
	}
	require.NoError(t, held.Release(t.Context()))
	held, err = c.Acquire(t.Context(), "k")
	require.NoError(t, err, "it is free again")
	require.NoError(t, held.Release(t.Context()))
}
