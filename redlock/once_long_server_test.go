//go:build long

package redlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

func (s *servers) record(node int) string {
	s.t.Helper()
	text, _ := s.Node(node).Do(s.t, "GET", lockKey("key")+":once").ToString()
	return text
}

// requireRecords waits until every node's record of the sequence matches.
func (s *servers) requireRecords(pattern string) {
	s.t.Helper()
	for i := range s.Nodes() {
		require.EventuallyWithT(s.t, func(c *assert.CollectT) { require.Regexp(c, pattern, s.record(i)) }, longTTL, pollTick, "node %d", i)
	}
}

func TestOnceOnServers(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL), redlock.WithIdentity("host one")) // a blank in it
	now := time.Now().UnixMilli()
	l := s.hold(q, "key", atMostOnce(now), redlock.WithLabel("nightly é"))
	s.requireRecords(`^1 \S* \d{13} 1 \d{13} 0 0 0 0 0 nightly\+%C3%A9    host one/`)
	require.NoError(t, l.Release(t.Context()))
	requireDone(t, q, atMostOnce(now))
	keep, err := s.Node(0).Do(t, "PTTL", lockKey("key")+":once").AsInt64()
	require.NoError(t, err)
	require.InDelta(t, time.Hour.Milliseconds(), keep, float64(longTTL.Milliseconds()))

	l = s.hold(q, "key", atLeastOnce(now))
	require.Equal(t, 2, l.Attempt())
	require.NoError(t, l.Complete(t.Context()))
	s.requireRecords(`^1 \S* \d{13} 2 \d{13} \d{13} \d{13} \d{13} \d{13} 1  nightly\+%C3%A9   host one/`)
	require.Equal(t, now, requireDone(t, q, atLeastOnce(now)).Completed)
	sequence, err := q.Sequence(t.Context(), "key")
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), sequence.CompletedAt, longTTL)
	require.WithinDuration(t, time.Now(), sequence.BeganAt, longTTL)
	sequence.BeganAt, sequence.CompletedAt = time.Time{}, time.Time{}
	require.Equal(t, redlock.SequenceState{Granted: now, Completed: now, Attempts: 2, Identity: "host one"}, sequence)
	require.NoError(t, s.hold(q, "key", redlock.WithSequence(redlock.MaxSequence, redlock.AtMostOnce, time.Hour)).Complete(t.Context()))
	s.requireRecords(`^1 \S* 9007199254740991 1 \d+ 9007199254740991 `)
}

// A record that is on disk outlives a restart of all servers.
func TestOnceIsRememberedOnDisk(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3, valkeytest.WithPersistence())
	q := s.open(redlock.WithTTL(longTTL))
	require.NoError(t, s.hold(q, "key", atMostOnce(5)).Release(t.Context()))
	s.requireRecords(`^1 \S* 5 1 \d+ 0 `)
	for _, i := range s.all() {
		require.NoError(t, s.Node(i).Restart(true))
	}
	requireDone(t, s.open(redlock.WithTTL(longTTL)), atMostOnce(5))
}

// A server that is full frees the key all the same, and says that the completion is not recorded.
func TestOnceOnFullServers(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL))
	l := s.hold(q, "key", atLeastOnce(5))
	s.do([]string{"CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1mb"})
	err := l.Complete(t.Context())
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorContains(t, err, "could not be recorded")
	s.requireFree(longTTL/2, "a full server kept what was released")
	s.do([]string{"CONFIG", "SET", "maxmemory", "0"})
	require.Equal(t, 2, s.hold(q, "key", atLeastOnce(5)).Attempt(), "it was not completed as far as anybody knows")
}

// Servers without a disk that are restarted one after the other learn from each other what was
// granted while nobody asks for a number.
func TestIdleSequenceOutlivesRestartsOfServers(t *testing.T) {
	t.Parallel()
	const patience = 2 * time.Minute
	s := startServers(t, 3)
	q := s.gated(redlock.WithNodeTimeout(serverTTL / 4))
	defer q.KeepSequence("key")()
	var l *redlock.Lease
	require.Eventually(t, func() (ok bool) {
		var err error
		l, err = q.TryAcquire(t.Context(), "key", atMostOnce(5), redlock.WithLabel("nightly"))
		return err == nil
	}, patience, pollTick, "servers are quarantined for 3 s")
	_ = l.Complete(t.Context()) // it is repeated
	known := func(c *assert.CollectT, i int) {
		require.Regexp(c, `^1 [0-9a-f]{40} 5 1 \d+ 5 \d+ \d+ \d+ \d+ nightly `, s.record(i))
		require.Contains(c, s.record(i), s.info(i, "run_id"))
	}
	for _, i := range s.all() {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			_, _ = q.Sequence(t.Context(), "key") // restores a node that was too slow for the acquisition
			known(c, i)
		}, patience, 10*pollTick, "node %d", i)
	}
	for _, i := range s.all() {
		s.restart(i)
		require.EventuallyWithT(t, func(c *assert.CollectT) { known(c, i) }, patience, pollTick, "node %d", i)
	}
	require.Eventually(t, func() bool {
		_, err := q.TryAcquire(t.Context(), "key", atMostOnce(5))
		return errors.Is(err, redlock.ErrDone)
	}, patience, pollTick)
}
