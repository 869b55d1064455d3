package admin_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

const (
	// patience is how long a test waits for an event that should come much sooner.
	patience = time.Minute
	poll     = 20 * time.Millisecond
)

// The history of a job has its bounds on a server, whatever its runs tell, and what it costs is
// logged: docs/operations.md has it.
func TestWhatHistoryCosts(t *testing.T) {
	t.Parallel()
	fleet := valkeytest.Start(t, 3)
	const ttl = 2 * time.Second
	q, err := redlock.Open(fleet.URLs(), redlock.WithTTL(ttl), redlock.WithMaxTTL(ttl), redlock.WithNodeTimeout(ttl/4),
		redlock.WithClockSkew(time.Millisecond), redlock.WithIdentity("replica-1.of-a-deployment"), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(q.Nodes(t.Context()), func(n redlock.NodeStatus) bool { return !n.Votes })
	}, patience, poll)
	c, err := admin.New(q)
	require.NoError(t, err)
	n := fleet.Node(0)
	long := strings.Repeat("x", 256)
	post := func(job string, from, to int, outcome, texts string) {
		for i := from; i < to; i++ {
			r := bulletin.Run{
				Job: job, Tick: 1780000000000, By: q.Identity(), Began: int64(1780000000123 + i), Took: 1234567, Outcome: outcome, Error: texts, Attempt: 1,
				Why: "on_time", Token: uint64(1780000000000000 + i), Trace: "0af7651916cd43dd8448eb211c80319c", Report: texts,
			}
			require.NoError(t, board.Of(q).Post(t.Context(), nil, r.Entries("job/"+job)...))
		}
	}
	// costs logs how long a server takes for a command.
	costs := func(what string, times int, do func()) {
		n.ResetStats(t)
		do()
		stats, err := n.Do(t, "INFO", "commandstats").ToString()
		require.NoError(t, err)
		for line := range strings.Lines(stats) {
			if strings.HasPrefix(line, "cmdstat_evalsha") {
				t.Logf("%d times %s: %s", times, what, line)
			}
		}
	}
	read := func(limit int) func() {
		return func() {
			for range 50 {
				runs, err := c.Runs(t.Context(), "short", limit)
				require.NoError(t, err)
				require.Len(t, runs, min(limit, 200))
			}
		}
	}
	post("short", 0, 10, bulletin.OK, "")
	costs("a run of a job with 10 is told", 100, func() { post("short", 10, 110, bulletin.OK, "") })
	post("short", 110, 250, bulletin.OK, "")
	costs("a run of a job with 200", 100, func() { post("short", 250, 350, bulletin.OK, "") })
	costs("one of 200 runs is read", 50, read(1))
	costs("20 of 200", 50, read(20))
	costs("200, and 50 that failed", 50, read(250))
	post("long", 0, 260, bulletin.Failed, long)
	for _, of := range []struct {
		job       string
		runs, kib int64
	}{{"short", 200, 70}, {"long", 250, 275}} {
		var entries, bytes int64
		for _, kind := range []string{bulletin.Runs, bulletin.Failed} {
			key := "tenure:{}:journal:" + kind + "/job/" + of.job
			has, err := n.Do(t, "LLEN", key).AsInt64()
			require.NoError(t, err)
			if has > 0 {
				size, err := n.Do(t, "MEMORY", "USAGE", key, "SAMPLES", "0").AsInt64()
				require.NoError(t, err)
				entries, bytes = entries+has, bytes+size
			}
		}
		t.Logf("%s: %d entries, %d bytes", of.job, entries, bytes)
		require.Equal(t, of.runs, entries)
		require.LessOrEqual(t, bytes, of.kib*1024)
	}
	for i := range 400 {
		card, ok := bulletin.Job{Job: fmt.Sprint("job", i), Key: fmt.Sprint("job/job", i), By: "a"}.Card()
		require.True(t, ok)
		require.NoError(t, board.Of(q).Post(t.Context(), []bulletin.Card{card}))
	}
	post("job7", 0, 3, bulletin.CutShort, "")
	costs("failures of 400 jobs", 10, func() {
		for range 10 {
			runs, err := c.FailedRuns(t.Context(), 1000)
			require.NoError(t, err)
			require.Len(t, runs, 3)
		}
	})
}
