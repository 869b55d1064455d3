package redlock_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Who may only read the keys can give no order, and hears at once why. What is paused it can see.
func TestPauseRightsOfAReader(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3, withUser(t))
	q := s.gated()
	_, err := q.Pause(t.Context(), "key", redlock.PauseOptions{By: "ann"})
	require.NoError(t, err)
	held := s.hold(q, "other")
	for i := range s.Nodes() {
		s.do([]string{"ACL", "SETUSER", "tenure", "resetkeys", "%R~tenure:*"}, i)
	}
	reader := gatedURLs(t, s.userURLs())
	for _, order := range []func(context.Context, string, redlock.PauseOptions) (redlock.Pause, error){reader.Pause, reader.Resume} {
		_, err = order(t.Context(), "key", redlock.PauseOptions{})
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NotErrorIs(t, err, redlock.ErrUnknown, "nothing was done")
		require.ErrorContains(t, err, "noperm")
	}
	p, err := reader.Paused(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, "ann", p.By)
	require.NoError(t, held.Err())
}

// A user without the rights for what processes tell people has leases all the same, and the log
// says what is lacking, once.
func TestBoardWithoutItsRights(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3, withUser(t))
	for i := range s.Nodes() {
		s.do([]string{"ACL", "SETUSER", "tenure", "-zrangebyscore", "-lpush"}, i)
	}
	var log lockedBuffer
	q := gatedURLs(t, s.userURLs(), redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	held := s.hold(q, "key")
	card := []redlock.Card{{Kind: "k", ID: "id", Text: "text", Lifetime: redlock.ReportLifetime}}
	for range 3 {
		_, err := q.Board().Post(t.Context(), card, nil)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.ErrorContains(t, err, "noperm")
	}
	require.Equal(t, 3, strings.Count(log.String(), "does not take what processes tell people"), "one a node")
	require.NoError(t, held.EndWith(redlock.Entry{Journal: "runs/key", Text: "text", Most: 1, Keep: redlock.ReportLifetime}))
	require.NoError(t, held.Release(t.Context()), "it costs no release")
	for i := range s.Nodes() {
		s.do([]string{"ACL", "SETUSER", "tenure", "+zrangebyscore", "+lpush"}, i)
	}
	n, err := q.Board().Post(t.Context(), card, nil)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.Equal(t, 3, strings.Count(log.String(), "takes again what processes tell people"))
}
