package redlock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The widest skew that any process uses is used for all that the own one is for.
func TestSkewOfOthers(t *testing.T) {
	q := testQuorum(3)
	own := q.cfg.clockSkew
	require.Equal(t, own, q.cfg.skew())
	require.Equal(t, q.texts.skew, q.skewText())
	was := q.cfg.quarantine()
	q.cfg.others.learn(1, 0, 20*time.Second)
	require.Equal(t, 20*time.Second, q.cfg.skew())
	require.Equal(t, "20000000", q.skewText())
	require.Greater(t, q.cfg.quarantine(), was)
	q.cfg.others.learn(1, 0, own/2)
	require.Equal(t, own, q.cfg.skew())
	require.Equal(t, was, q.cfg.quarantine())
}

// The longest TTL and skew are those of any node, and a node says which.
func TestLongestOfOthers(t *testing.T) {
	q := testQuorum(3)
	require.Empty(t, q.longer())
	q.cfg.others.learn(0, time.Minute, time.Second)
	q.cfg.others.learn(2, time.Second, 30*time.Second)
	require.Contains(t, q.longer(), "a TTL of 1m0s, a skew of 30s, by tenure:roster on c:1")
	q.cfg.others.learn(2, time.Second, 0)
	require.Contains(t, q.longer(), "on a:1")
	require.Equal(t, time.Minute, q.cfg.longestTTL())
	q.cfg.others.learn(0, 0, 0)
	require.Empty(t, q.longer())
}
