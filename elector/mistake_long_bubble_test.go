//go:build long

package elector_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// An Elector that is given to gocron, and whose Run nobody calls, says so, once, and not at once.
func TestElectorThatIsNeverRunSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		log := new(journal)
		e := candidate(t, fleet, elector.WithLogger(log.logger()))
		require.ErrorIs(t, e.IsLeader(t.Context()), elector.ErrNotLeader)
		time.Sleep(29 * time.Second)
		require.ErrorIs(t, e.IsLeader(t.Context()), elector.ErrNotLeader)
		require.Empty(t, log.lines("Run was never called"))
		time.Sleep(time.Second)
		for range 3 {
			require.ErrorIs(t, e.IsLeader(t.Context()), elector.ErrNotLeader)
			time.Sleep(time.Minute)
		}
		require.Len(t, log.lines("Run was never called"), 1)
		require.Contains(t, log.lines("Run was never called")[0], "election=test")

		ran := new(journal)
		e = candidate(t, fleet, elector.WithLogger(ran.logger()))
		require.NoError(t, run(t, e, nil).end())
		time.Sleep(time.Hour)
		require.ErrorIs(t, e.IsLeader(t.Context()), elector.ErrNotLeader)
		require.Empty(t, ran.lines("Run was never called"))
	})
}

// Two replicas of one name are told of, once; one that takes over from a dead one of its name is
// not, nor are those of other names.
func TestSameIdentityTwiceIsSaid(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		const said = "under this one's identity"
		log := new(journal)
		same := elector.WithIdentity("billing")
		first := run(t, candidate(t, fleet, same, elector.WithLogger(log.logger())), untilDone)
		synctest.Wait()
		second := run(t, candidate(t, fleet, same, elector.WithLogger(log.logger())), untilDone)
		other := new(journal)
		third := run(t, candidate(t, fleet, elector.WithLogger(other.logger())), untilDone)
		time.Sleep(3*time.Minute - time.Second)
		require.Empty(t, log.lines(said))
		time.Sleep(2 * time.Second)
		require.Len(t, log.lines(said), 1)
		require.Contains(t, log.lines(said)[0], "identity=billing")
		time.Sleep(10 * time.Minute)
		require.Len(t, log.lines(said), 1)
		require.Empty(t, other.lines(said))
		for _, r := range []*running{first, second, third} {
			require.NoError(t, r.end())
		}
	})
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		log := new(journal)
		long := elector.WithLeaseOptions(redlock.WithTTL(5 * time.Minute))
		q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithTTL(5*time.Minute), redlock.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		q.Nodes(t.Context())
		_, err = q.TryAcquire(t.Context(), "election/test", redlock.WithIdentity("billing"), redlock.WithTTL(5*time.Minute))
		require.NoError(t, err)
		require.NoError(t, q.Close(), "its lease is left to run out")
		next, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithTTL(5*time.Minute), redlock.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, next.Close()) })
		next.Nodes(t.Context())
		e, err := elector.New(next, "test", elector.WithIdentity("billing"), long, elector.WithLogger(log.logger()))
		require.NoError(t, err)
		r := run(t, e, untilDone)
		time.Sleep(10 * time.Minute)
		require.True(t, leads(e))
		require.Empty(t, log.lines("under this one's identity"))
		require.NoError(t, r.end())
	})
}
