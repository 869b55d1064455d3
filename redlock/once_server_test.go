package redlock_test

import (
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
	l := s.hold(q, "key", atMostOnce(now))
	s.requireRecords(`^\d{13} 1 \d{13} 0 0 0 0 0 host one/`)
	require.NoError(t, l.Release(t.Context()))
	requireDone(t, q, atMostOnce(now))
	keep, err := s.Node(0).Do(t, "PTTL", lockKey("key")+":once").AsInt64()
	require.NoError(t, err)
	require.InDelta(t, time.Hour.Milliseconds(), keep, float64(longTTL.Milliseconds()))

	l = s.hold(q, "key", atLeastOnce(now))
	require.Equal(t, 2, l.Attempt())
	require.NoError(t, l.Complete(t.Context()))
	s.requireRecords(`^(\d{13}) 2 \d{13} \d{13} \d{13} \d{13} \d{13} 1 host one/`)
	require.Equal(t, now, requireDone(t, q, atLeastOnce(now)).Completed)
	sequence, err := q.Sequence(t.Context(), "key")
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), sequence.CompletedAt, longTTL)
	require.WithinDuration(t, time.Now(), sequence.BeganAt, longTTL)
	sequence.BeganAt, sequence.CompletedAt = time.Time{}, time.Time{}
	require.Equal(t, redlock.Sequence{Granted: now, Completed: now, Attempts: 2, Identity: "host one"}, sequence)
	require.NoError(t, s.hold(q, "key", redlock.WithOnce(redlock.MaxSequence, redlock.AtMostOnce, time.Hour)).Complete(t.Context()))
	s.requireRecords(`^9007199254740991 1 \d+ 9007199254740991 `)
}

// A record that is on disk outlives a restart of all servers.
func TestOnceIsRememberedOnDisk(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3, valkeytest.WithPersistence())
	q := s.open(redlock.WithTTL(longTTL))
	require.NoError(t, s.hold(q, "key", atMostOnce(5)).Release(t.Context()))
	s.requireRecords(`^5 1 \d+ 0 `)
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
