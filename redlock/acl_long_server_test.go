//go:build long

package redlock_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// A right that is missing shows, with its name, whatever it is for: the node has no vote, or Nodes
// warns. It is over when the right is there.
func TestACLEachRightThatIsMissingShows(t *testing.T) {
	t.Parallel()
	for _, right := range strings.Fields(redlock.Rights) {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 1, withUser(t, strings.Replace(right, "+", "-", 1)))
			var log lockedBuffer
			q := gatedURLs(t, s.userURLs(), logTo(&log))
			name := strings.ToUpper(right[1:])
			shows := func(err error) bool {
				var ce *redlock.ConditionError
				said := strings.ToUpper(errorText(err))
				return errors.As(err, &ce) && ce.Condition == redlock.ConditionNoPermission &&
					(strings.Contains(said, name) || strings.Contains(said, strings.ReplaceAll(name, "|", " ")))
			}
			require.Eventually(t, func() bool {
				n := q.Nodes(t.Context())[0]
				return shows(n.Err) || n.Votes && slices.ContainsFunc(n.Warnings, shows)
			}, longTTL, pollTick, "%s", &log)
			require.Equal(t, 1, saidOf(&log), "%s", &log)
			s.do([]string{"ACL", "SETUSER", "tenure", right})
			require.Eventually(t, func() bool {
				n := q.Nodes(t.Context())[0]
				return n.Votes && len(n.Warnings) == 0
			}, longTTL, pollTick, "%s", &log)
		})
	}
}
