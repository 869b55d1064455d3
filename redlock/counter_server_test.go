package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// counterUser makes a user who may run any script, within which commands may touch the key, and the
// counter as the rule says: a server checks a script's keys and each of its commands, against the
// root permissions or one selector (https://valkey.io/topics/acl).
func (s *servers) counterUser(rule string) {
	s.t.Helper()
	s.do([]string{"ACL", "SETUSER", "half", "reset", "on", ">pass", "+@all", "&*", "~" + lockKey("key"), "~" + lockKey("") + "*", rule, // what is tried has no key
		"(+eval +evalsha ~*)"})
}

func (s *servers) counterURLs() []string {
	urls := make([]string, len(s.Nodes()))
	for i, n := range s.Nodes() {
		urls[i] = "valkey://half:pass@" + n.Addr()
	}
	return urls
}

// An error midway must leave no key behind: a grant without its counter could be repeated with the
// same token.
func TestCounterIsWrittenFirst(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	s.counterUser("%R~" + fenceKey("key"))
	q := openURLs(t, s.counterURLs())
	_, err := q.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorContains(t, err, "noperm")
	for _, n := range s.Nodes() {
		require.Eventually(t, func() bool {
			if stats := n.CommandStats(t); stats["get"] > 3*stats["zscore"] { // what a trial reads
				return true
			}
			_, err := q.TryAcquire(t.Context(), "key") // this one had not been asked when two had refused
			return assert.ErrorIs(t, err, redlock.ErrNoQuorum) && false
		}, 10*time.Second, pollTick, "the script did not run, so this tests nothing")
		stats := n.CommandStats(t)
		require.Equal(t, 3*stats["zscore"], stats["set"], "the key was written first: %v", stats)
	}
}

// The counter is for the next lease; that it cannot be written is no reason to lose this one.
func TestCounterThatCannotBeWrittenCostsNoExtension(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	s.counterUser("~" + fenceKey("key"))
	l := s.hold(openURLs(t, s.counterURLs(), redlock.WithTTL(longTTL)), "key", redlock.WithoutAutoExtend())
	s.counterUser("%R~" + fenceKey("key"))
	before := l.Deadline()
	require.NoError(t, l.Extend(t.Context()))
	require.Greater(t, l.Deadline(), before)
	for _, n := range s.Nodes() { // the last of them may still be at it
		require.Eventually(t, func() bool {
			acl, err := n.Do(t, "ACL", "LOG").ToArray()
			return err == nil && len(acl) > 0
		}, 10*time.Second, pollTick, "the counter was written, or nobody tried, so this tests nothing")
	}
}
