//go:build long

package admin_test

import (
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// What operators do on a bad night, on real servers, with replicas in processes of their own: and
// what the history tells of it afterwards.
func TestStory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("servers are aged on Linux only")
	}
	t.Parallel()
	s := &story{t: t, fleet: valkeytest.Start(t, 3, valkeytest.WithAge(24*time.Hour))}
	q, err := storyQuorum(s.fleet.URLs(), "operator")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close()) })
	c, err := admin.New(q, admin.WithActor("ann"), admin.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	beganAt := time.Now()
	var stops []func()
	for _, identity := range []string{"a1", "b1", "c1"} {
		stops = append(stops, s.start(identity))
	}
	s.eventually(func() bool { return s.ticks() >= 2 }, "ticks are run")
	s.eventually(func() bool { all, err := c.Replicas(t.Context()); return err == nil && len(all) == 3 }, "replicas are there")

	// In the middle of a run the job is paused. That run is named.
	var going admin.Run
	s.eventually(func() bool { going, err = c.Running(t.Context(), "report"); return err == nil && going.LeaseLeft > 0 }, "a run goes on")
	var paused admin.Paused
	s.eventually(func() bool {
		paused, err = c.Pause(t.Context(), admin.Job("report"), admin.PauseOptions{Reason: "the database moves"})
		return err == nil
	}, "the job is paused")
	at := s.ticks()
	for _, run := range paused.Running {
		require.Equal(t, s.began()[len(s.began())-1].token, run.FencingToken, "what is named is the run that had begun")
	}
	require.NoError(t, c.Wait(t.Context(), "report"))

	// Every node loses everything, one after the other, and then every replica is replaced.
	for i := range s.fleet.Nodes() {
		require.NoError(t, s.fleet.Node(i).Restart(false))
		s.eventually(func() bool {
			for _, n := range q.Nodes(t.Context()) {
				if !n.Votes {
					return false
				}
			}
			return true
		}, "the node votes again")
		s.eventually(func() bool {
			record, err := s.fleet.Node(i).Do(t, "GET", "tenure:{pause/job/report}:register").ToString()
			return err == nil && strings.Contains(record, `"by":"ann"`)
		}, "replicas restore what they keep")
	}
	for i, identity := range []string{"a2", "b2", "c2"} {
		stops[i]()
		stops[i] = s.start(identity)
	}
	time.Sleep(2 * storyRun) // in which several ticks are due
	require.Equal(t, at, s.ticks(), "nothing is granted")
	is, err := c.Paused(t.Context(), admin.Job("report"))
	require.NoError(t, err)
	require.Equal(t, "ann", is.By)
	require.Equal(t, "the database moves", is.Reason)

	// A paused job is run by hand: once, by the leader, although messages come again and again and
	// one node hangs.
	leader := func() string {
		e, err := c.Election(t.Context(), "jobs")
		if err != nil || e.Leader == nil {
			return ""
		}
		return e.Leader.Identity
	}
	s.eventually(func() bool { return leader() != "" }, "somebody leads")
	s.doubleMessages(1, 2)
	require.NoError(t, s.fleet.Node(0).Freeze())
	leads := leader()
	var started admin.Started
	s.eventually(func() bool {
		if started, err = c.RunNow(t.Context(), "report", "a customer waits"); err != nil {
			t.Log(err)
		}
		return err == nil
	}, "it is run")
	require.NotNil(t, started.Paused)
	require.Equal(t, "ann", started.Paused.By)
	require.Equal(t, leads, started.Replica)
	require.NoError(t, c.Wait(t.Context(), "report"))
	time.Sleep(2 * storyTTL) // in which the order is heard for the last time
	byHand := 0
	for _, run := range s.began() {
		if run.tick == 0 {
			byHand++
			require.Equal(t, started.FencingToken, run.token)
			require.Equal(t, leads, run.replica)
		}
	}
	require.Equal(t, 1, byHand)
	require.NoError(t, s.fleet.Node(0).Thaw())

	// It goes on.
	s.eventually(func() bool {
		err := c.Resume(t.Context(), admin.Job("report"), "moved")
		return err == nil || errors.Is(err, admin.ErrNotPaused)
	}, "the job is resumed")
	s.eventually(func() bool { return s.ticks() > at }, "runs go on")

	// A run is cancelled.
	var cancelled admin.Run
	s.eventually(func() bool {
		if cancelled, err = c.Running(t.Context(), "report"); err != nil {
			return false
		}
		return c.Cancel(t.Context(), cancelled.ID(), "it is the wrong one") == nil
	}, "a run is cancelled")

	// The leader steps down, again and again. Nobody leads for a moment only.
	for range 5 {
		s.eventually(func() bool { return c.Resign(t.Context(), "jobs", "maintenance") == nil }, "the leader resigns")
		s.eventually(func() bool { return leader() != "" }, "somebody leads")
	}

	// The history has it all.
	var jobs []admin.JobStatus
	s.eventually(func() bool {
		jobs = nil
		for j, err := range c.Jobs(t.Context()) {
			require.NoError(t, err)
			jobs = append(jobs, j)
		}
		return len(jobs) == 1 && jobs[0].Last != nil && !jobs[0].Late
	}, "the job is there")
	require.Equal(t, "report", jobs[0].Name)
	require.Equal(t, "jobs", jobs[0].Election)
	require.Contains(t, jobs[0].Schedule, "* * * * * *")
	require.True(t, jobs[0].Orders)
	s.eventually(func() bool {
		runs, err := c.Runs(t.Context(), "report", 20)
		require.NoError(t, err)
		hand, cut := false, false
		for _, run := range runs {
			hand = hand || run.FencingToken == started.FencingToken && run.Order == started.Order && run.Outcome == admin.OutcomeOK &&
				run.Replica == leads && run.Took >= storyRun && run.Tick.IsZero() && run.Began.After(beganAt)
			cut = cut || run.FencingToken == cancelled.FencingToken && run.Outcome == admin.OutcomeCancelled
		}
		return hand && cut
	}, "the runs are told")
	s.eventually(func() bool {
		skips, err := c.Skips(t.Context(), "report", 10)
		require.NoError(t, err)
		for _, skip := range skips {
			if skip.Reason == "paused" && skip.Count >= 3 {
				return true
			}
		}
		return false
	}, "the skips are told")
	given, err := c.Orders(t.Context(), 100)
	require.NoError(t, err)
	told := make(map[admin.OrderKind]string)
	for _, o := range given {
		require.Equal(t, "ann", o.By)
		if o.Result == "done" {
			told[o.Kind] = o.Why
		}
	}
	require.Equal(t, map[admin.OrderKind]string{admin.OrderRunNow: "a customer waits", admin.OrderResume: "moved", admin.OrderCancel: "it is the wrong one",
		admin.OrderResign: "maintenance"}, told, "the pause went with the nodes that had it")
	e, err := c.Election(t.Context(), "jobs")
	require.NoError(t, err)
	least, resigned := time.Hour, 0
	for i, term := range e.Terms {
		if i > 0 && term.How == "resigned" {
			resigned++
			if gap := e.Terms[i-1].Gap; gap > 0 {
				least = min(least, gap)
			}
		}
	}
	t.Logf("terms: %d; the shortest time without a leader: %v", len(e.Terms), least)
	require.GreaterOrEqual(t, resigned, 5)
	require.Less(t, least, 100*time.Millisecond, "10 ms on a quiet machine")
	// A card that a node could not be told to forget is there for half a minute.
	s.eventually(func() bool {
		all, err := c.Replicas(t.Context())
		require.NoError(t, err)
		var names []string
		for _, r := range all {
			names = append(names, r.Identity)
			require.Equal(t, []string{"report"}, r.Jobs)
			require.Len(t, r.Nodes, 3)
			require.NotZero(t, r.PID, strconv.Itoa(r.PID))
		}
		return slices.Equal([]string{"a2", "b2", "c2"}, names)
	}, "those that were stopped are gone")
}
