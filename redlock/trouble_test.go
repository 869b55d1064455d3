package redlock

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
)

// What lasts is said after 1, 3, 7, 15, 31 and 63 minutes, and then once an hour.
func TestRemindersGrowRare(t *testing.T) {
	r := telling{next: clock.Instant(firstReminder), pause: firstReminder}
	var said []time.Duration
	for now := clock.Instant(0); now < clock.Instant(4*time.Hour); now = now.Add(time.Second) {
		if r.due(now) {
			said = append(said, lasted(r.since, now))
		}
	}
	require.Equal(t, []time.Duration{
		time.Minute, 3 * time.Minute, 7 * time.Minute, 15 * time.Minute, 31 * time.Minute, 63 * time.Minute, 123 * time.Minute, 183 * time.Minute,
	}, said)
}

// A trouble is told when it begins, with each further reason once, and when it is over; of more
// than some nothing is. The line of who asks for the key is no lock for whoever hears it.
func TestNews(t *testing.T) {
	var log bytes.Buffer
	n := newNews(slog.New(slog.NewTextHandler(&log, nil)), clock.New(), newLines())
	about := matter{damagedKey, &member{addr: "a:1"}, "counter"}
	require.False(t, n.over(about, "key"))
	require.True(t, n.is(about, "one", "key", "reason", "r"))
	require.Contains(t, log.String(), `level=WARN msg="redlock: node does not vote for a key" node=a:1 key=key reason=r`)
	require.False(t, n.is(about, "one", "key"))
	require.True(t, n.is(about, "two", "key"))
	require.False(t, n.is(about, "one", "key"), "it was told")
	require.True(t, n.over(about, "key"))
	require.Contains(t, log.String(), `level=INFO msg="redlock: node votes for a key again" node=a:1 key=key after=`)
	require.False(t, n.over(about, "key"))
	require.True(t, n.is(about, "one", "key"), "it begins again")
	require.Equal(t, 4, strings.Count(log.String(), "\n"))
	for i := range 2 * maxTold {
		n.is(matter{damagedKey, about.node, fmt.Sprint(i)}, "", "key")
	}
	require.Equal(t, 4+maxTold-1, strings.Count(log.String(), "\n"))
	require.Len(t, n.told, maxTold)
	require.Empty(t, n.lines.away)
}

// Each trouble has a text, and one for its end unless it has none.
func TestTextsOfTroubles(t *testing.T) {
	for i, s := range said {
		require.NotEmpty(t, s.begins, i)
		require.GreaterOrEqual(t, s.level, slog.LevelWarn)
		require.Equal(t, slices.Contains([]trouble{forgetful, excluding, longLease}, trouble(i)), s.ends == "", s.begins)
	}
}
