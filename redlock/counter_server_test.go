package redlock_test

import (
	"testing"
	"time"

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

// The counter is for the next lease; that it cannot be written is no reason to lose this one.
func TestCounterThatCannotBeWrittenCostsNoExtension(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	s.counterUser("~" + fences)
	l := s.hold(openURLs(t, s.counterURLs(), redlock.WithTTL(longTTL)), "key", redlock.WithoutAutoExtend())
	s.counterUser("%R~" + fences)
	s.do([]string{"DEL", fences}) // so that there is something to write
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
