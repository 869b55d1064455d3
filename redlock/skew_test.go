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
	q.cfg.others.Set(0, 20*time.Second)
	require.Equal(t, 20*time.Second, q.cfg.skew())
	require.Equal(t, "20000000", q.skewText())
	require.Greater(t, q.cfg.quarantine(), was)
	q.cfg.others.Set(0, own/2)
	require.Equal(t, own, q.cfg.skew())
	require.Equal(t, was, q.cfg.quarantine())
}
