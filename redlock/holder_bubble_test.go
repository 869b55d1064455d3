package redlock_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A lease is on two nodes, of which one does not answer. The two that do must not pass for a proof
// that nobody holds it.
func TestHolderBehindASilentNodeIsNotDenied(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		first, second := open(t, fleet), open(t, fleet)
		freeze(t, fleet, 2)
		held := acquire(t, first, redlock.WithoutAutoExtend())
		thaw(t, fleet, 2)
		synctest.Wait()
		fleet.Node(2).FlushAll()
		freeze(t, fleet, 1)
		_, err := second.Holder(t.Context(), "key")
		require.NoError(t, held.Err())
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NotErrorIs(t, err, redlock.ErrNotHeld)
		require.Equal(t, "timeout", redlock.ErrorType(err))
		var qe *redlock.QuorumError
		require.ErrorAs(t, err, &qe)
		require.Equal(t, 1, qe.Succeeded, "one node names the holder")
		require.Len(t, qe.Errs, 1)

		start := time.Now()
		_, err = second.Holder(t.Context(), "other")
		require.ErrorIs(t, err, redlock.ErrNotHeld, "one silent node alone cannot hide a holder")
		require.Zero(t, time.Since(start), "nor is it waited for")
	})
}

const payload = "https://10.0.0.1:8080/jobs?of=web 1&key=%20\n"

// Others read a holder's payload, in the answer to a question and in the error of an attempt, as
// long as it holds the key. A lease has its own, or none.
func TestPayloadIsThatOfTheHolder(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		first, second := open(t, fleet, redlock.WithIdentity("first")), open(t, fleet, redlock.WithIdentity("second"))
		seen := func(identity, payload string) {
			t.Helper()
			synctest.Wait()
			h, err := second.Holder(t.Context(), "key")
			require.NoError(t, err)
			require.Equal(t, []any{identity, payload}, []any{h.Identity, h.Payload})
			_, err = second.TryAcquire(t.Context(), "key", redlock.WithPayload("of another attempt"))
			var held *redlock.HeldError
			require.ErrorAs(t, err, &held)
			require.Equal(t, []any{identity, payload}, []any{held.Holder.Identity, held.Holder.Payload})
			require.Contains(t, err.Error(), " "+identity+" on ")
			require.Equal(t, identity == "second", held.Self)
		}
		l := acquire(t, first, redlock.WithPayload(payload))
		seen("first", payload)
		fleet.Node(0).FlushAll()
		time.Sleep(3 * ttl) // is extended, and put back
		seen("first", payload)
		value, _ := fleet.Node(0).Get("tenure:{key}")
		another, _ := fleet.Node(1).Get("tenure:{key}")
		require.Equal(t, another, value, "it was put back")
		finish(t, l.Release)
		for _, payload := range []string{"", strings.Repeat("\xff", redlock.MaxPayloadLength)} {
			l = acquire(t, second, redlock.WithPayload("given"), redlock.WithPayload(payload))
			seen("second", payload)
			finish(t, l.Release)
		}
		var invalid *redlock.OptionError
		_, err := first.TryAcquire(t.Context(), "key", redlock.WithPayload(strings.Repeat("x", redlock.MaxPayloadLength+1)))
		require.ErrorAs(t, err, &invalid)
		require.EqualError(t, err, "redlock: WithPayload: must be at most 1024 bytes, not 1025")
		synctest.Wait()
		_, err = second.Holder(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrNotHeld)
	})
}

// A payload is in no error and no line of the log, whatever it is and whoever wrote it.
func TestPayloadIsNotShown(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log lockedBuffer
		q := open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		for _, written := range []string{"sesame", "sesame%zz", "sesame\n", "sesame" + strings.Repeat("x", redlock.MaxPayloadLength)} {
			for i := range 3 {
				ask(t, fleet, i, "SET", "tenure:{key}", "web-1/AAAAAAAAAAAAAAAAAAAAAA?"+written, "PX", "60000")
			}
			_, err := q.TryAcquire(t.Context(), "key")
			require.ErrorContains(t, err, "held by another owner: web-1 on ")
			require.NotContains(t, err.Error(), "sesame")
		}
		for i, random := range []string{"A", "B"} {
			ask(t, fleet, i, "SET", "tenure:{key}", "web-1/"+strings.Repeat(random, 22)+"?sesame", "PX", "60000")
		}
		ask(t, fleet, 2, "SET", "tenure:{key}", "web-1/"+strings.Repeat("C", 22)+"?sesame", "PX", "60000")
		_, err := q.TryAcquire(t.Context(), "key")
		var split *redlock.SplitError
		require.ErrorAs(t, err, &split)
		require.Equal(t, "sesame", split.Rival.Payload)
		require.NotContains(t, err.Error(), "sesame")
		require.Contains(t, log.String(), "holder=web-1 ", "the lease has a longer TTL than is known")
		require.NotContains(t, log.String(), "sesame")
	})
}

// Of a lease that is live most nodes have forgotten it. That they have nothing tells nobody that it
// is not held: not before they vote again. That they have something does.
func TestHolderOnNodesThatMayHaveForgotten(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, reader := open(t, fleet), open(t, fleet)
		held := acquire(t, q)
		for i := range 2 {
			require.NoError(t, fleet.Node(i).Restart(false))
		}
		for began := time.Now(); time.Since(began) < quarantine-time.Second; time.Sleep(ttl / 8) {
			_, err := reader.Holder(t.Context(), "key")
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			require.NotErrorIs(t, err, redlock.ErrNotHeld, "the lease: %v", held.Err())
		}
	})
	bubbleOfYoung(t, func(t *testing.T, q *redlock.Quorum) {
		_, err := q.Holder(t.Context(), "key")
		require.ErrorContains(t, err, "quarantined until ")
		time.Sleep(quarantine + ttl/2)
		_, err = q.Holder(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrNotHeld)
	})
}

// bubbleOfYoung is a new fleet.
func bubbleOfYoung(t *testing.T, test func(t *testing.T, q *redlock.Quorum)) {
	t.Helper()
	alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		for _, n := range fleet.Nodes() {
			require.NoError(t, n.Restart(false))
		}
		test(t, dialOn(t, fleet, []int{0, 1, 2}))
	})
}
