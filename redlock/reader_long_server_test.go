//go:build long

package redlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// What a node knows to which this process may not write, nobody has compared with the others:
// nothing is restored from it.
func TestNothingIsRestoredFromANodeThatIsOnlyRead(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3, withUser(t))
	q := gatedURLs(t, s.userURLs())
	run := func(n int64) error {
		l, err := q.TryAcquire(t.Context(), "key", redlock.WithSequence(n, redlock.AtMostOnce, time.Hour))
		if err == nil {
			require.NoError(t, l.Complete(t.Context()))
		}
		return err
	}
	require.Eventually(t, func() bool { return run(7) == nil }, patienceOfReaders, pollTick)
	const record = "tenure:{key}:once"
	require.Eventually(t, func() bool {
		text, _ := s.Node(2).Do(t, "GET", record).ToString()
		return strings.Contains(text, " 7 ")
	}, patienceOfReaders, pollTick)
	text, err := s.Node(2).Do(t, "GET", record).ToString()
	require.NoError(t, err)
	s.do([]string{"ACL", "SETUSER", "tenure", "resetkeys", "%R~tenure:*"}, 2)
	s.do([]string{"SET", record, strings.ReplaceAll(text, " 7 ", " 9 ")}, 2)
	require.Eventually(t, func() bool { return !q.Nodes(t.Context())[2].Votes }, patienceOfReaders, pollTick)
	require.NoError(t, s.Node(0).Restart(false))
	require.Eventually(t, func() bool { return run(8) == nil }, patienceOfReaders, pollTick, "the two others know of 7")
}
