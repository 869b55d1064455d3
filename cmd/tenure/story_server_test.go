package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// odd is a name that a terminal may do something else with than show it.
const odd = "odd \x1b[31m\u202e{name}"

// replica is a process with jobs: one each second, one that lasts until it is cancelled, one that
// fails, and one of an odd name.
func replica(t *testing.T, f *valkeytest.Fleet) {
	t.Helper()
	q := use(t, f.URLs(), redlock.WithTTL(2*time.Second), redlock.WithNodeTimeout(500*time.Millisecond))
	s, err := scheduler.New(q, scheduler.WithElection("poller"), scheduler.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	everySecond := gocron.CronJob("* * * * * *", true)
	once := gocron.CronJob("0 0 1 1 *", false)
	for name, job := range map[string]struct {
		when gocron.JobDefinition
		task func(context.Context) error
	}{
		"report": {everySecond, func(context.Context) error { return nil }},
		"fails":  {everySecond, func(context.Context) error { return errors.New("no such table") }},
		"slow":   {once, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }},
		odd:      {once, func(context.Context) error { return nil }},
	} {
		_, err := s.NewJob(job.when, scheduler.NewTask(job.task), gocron.WithName(name))
		require.NoError(t, err)
	}
	s.Start()
	t.Cleanup(func() { _ = s.Shutdown() }) // before the Quorum's Close
}

// story is a cluster, and command lines that see and steer it.
type story struct {
	t       *testing.T
	environ []string
}

// ok is a command line that does what it should, with its document read.
func ok[D any](s *story, args ...string) (d D) {
	s.t.Helper()
	got := call(s.t, s.environ, append(args, "-o", "json")...)
	require.Equal(s.t, exitOK, got.code, "%v: %s%s", args, got.out, got.err)
	s.decode(got.out, &d)
	return d
}

// decode reads a document, which has the fields that its type says and no others.
func (s *story) decode(text string, d any) {
	s.t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(s.t, decoder.Decode(d), "%s", text)
}

// text is a command line that does what it should, for people. It writes no character that a
// terminal might obey.
func (s *story) text(args ...string) string {
	s.t.Helper()
	got := call(s.t, s.environ, args...)
	require.Equal(s.t, exitOK, got.code, "%v: %s%s", args, got.out, got.err)
	require.NotContains(s.t, strings.ReplaceAll(got.out, "\n", ""), "\x1b")
	require.NotContains(s.t, got.out, "\u202e")
	return got.out
}

// fails is a command line that ends with a code, and the text of its error.
func (s *story) fails(code int, args ...string) string {
	s.t.Helper()
	began := time.Now()
	got := call(s.t, s.environ, args...)
	require.Equal(s.t, code, got.code, "%v: %s%s", args, got.out, got.err)
	require.NotEmpty(s.t, got.err, "%v", args)
	require.Less(s.t, time.Since(began), patience)
	return got.err
}

// timesOut is an order to run a job that takes longer than --timeout. On a slow machine that passes
// before the job has begun: then the outcome is not known, and a longer one is tried.
func (s *story) timesOut(args ...string) {
	s.t.Helper()
	for timeout := 3 * time.Second; ; timeout *= 3 {
		got := call(s.t, s.environ, append(args, "--timeout", timeout.String())...)
		if got.code == exitTimedOut {
			require.NotEmpty(s.t, got.err)
			return
		}
		require.Equal(s.t, exitUnknown, got.code, "%v: %s%s", args, got.out, got.err)
		require.Less(s.t, timeout, patience)
		s.cancels(args[1])
	}
}

// cancels ends the run of a job that was ordered and may not have begun yet.
func (s *story) cancels(job string) {
	s.t.Helper()
	s.eventually(func() bool {
		return call(s.t, s.environ, "cancel", job, "--why", "it was too long", "--wait").code == exitOK
	}, "it is cancelled")
}

func (s *story) eventually(is func() bool, what string) {
	s.t.Helper()
	require.Eventually(s.t, is, patience, 10*poll, what)
}

// sees is a command line whose document becomes what it is to be. On a busy machine a node may not
// vote for a moment, or a leader lose its lease.
func sees[D any](s *story, is func(d D) bool, args ...string) (d D) {
	s.t.Helper()
	s.eventually(func() bool { d = ok[D](s, args...); return is(d) }, strings.Join(args, " "))
	return d
}

// reads is a command line whose text comes to have a part.
func (s *story) reads(part string, args ...string) {
	s.t.Helper()
	s.eventually(func() bool { return strings.Contains(s.text(args...), part) }, part)
}

// What an operator does: looks, pauses, runs, cancels, has the leader resign, and looks again.
func TestStory(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3, valkeytest.WithPersistence())
	replica(t, f)
	s := &story{t, append(nodesAt(f.URLs()...), "TENURE_NODE_TIMEOUT=1s", "USER=ann")}

	sees(s, func(d statusDocument) bool {
		return *d.Replicas == 1 && *d.Jobs == 4 && len(d.Elections) == 1 && d.Elections[0].Leader != nil && d.Nodes.Votes == 3
	}, "status")
	s.reads("3 of 3 nodes vote; 1 more may fail.", "status")
	s.reads(`"poller": led by replica`, "status")
	s.reads(`failing: "fails"`, "status")
	jobs := ok[jobsDocument](s, "jobs")
	require.Equal(t, []string{"fails", odd, "report", "slow"}, []string{jobs.Jobs[0].Name, jobs.Jobs[1].Name, jobs.Jobs[2].Name, jobs.Jobs[3].Name})
	s.reads(`odd \x1b[31m\u202e{name}`, "jobs")
	require.Equal(t, odd, ok[jobsDocument](s, "jobs", odd).Jobs[0].Name)
	run := sees(s, func(d runsDocument) bool { return len(d.Runs) > 2 }, "runs", "report").Runs[0]
	require.Equal(t, "ok", run.Outcome)
	require.True(t, strings.HasPrefix(run.Replica, "replica"))
	require.NotZero(t, run.Token)
	require.Regexp(t, `(?m)^TICK +OUTCOME +REPLICA`, s.text("runs", "report"))
	s.reads("failed", "runs", "fails")

	leads := func(d electionsDocument) bool { return len(d.Elections) == 1 && d.Elections[0].Leader != nil }
	elections := sees(s, leads, "elections")
	require.Equal(t, "poller", elections.Elections[0].Name)
	s.reads("candidates: replica", "elections", "poller")
	var term uint64
	s.eventually(func() bool {
		term = sees(s, leads, "elections").Elections[0].Leader.Term
		holder := call(t, s.environ, "holder", "--election", "poller", "-o", "json")
		if holder.code == exitNotFound { // its lease was lost
			return false
		}
		var d holderDocument
		s.decode(holder.out, &d)
		return d.Token == term && d.LeaseLeft != nil &&
			strings.Contains(call(t, s.environ, "holder", "--election", "poller").out, strconv.FormatUint(term, 10))
	}, "the holder is the leader")
	sees(s, func(d nodesDocument) bool {
		return len(d.Nodes) == 3 && *d.Nodes[0].Votes && d.Nodes[0].ThisProcess
	}, "nodes")
	s.reads("1 of 1 replicas agree", "nodes")

	paused := ok[givenDocument](s, "pause", "report", "--why", "the database moves", "--for", "1h", "--wait")
	require.Equal(t, "the database moves", paused.Paused.Reason)
	require.True(t, strings.HasPrefix(paused.By, "root@") || strings.Contains(paused.By, "@"), paused.By)
	require.WithinDuration(t, time.Now().Add(time.Hour), paused.Paused.Until.Time, 2*patience)
	s.reads(`paused: "report"`, "status")
	sees(s, func(d runsDocument) bool {
		return slices.ContainsFunc(d.Skips, func(s skipDocument) bool { return s.Reason == "paused" })
	}, "runs", "report")
	s.reads("not run", "runs", "report")
	s.reads("the job was paused", "runs", "report")
	require.Contains(t, s.text("run-now", "report", "--why", "all the same", "--as", "night shift", "--wait"), "the job is paused, and was run all the same")
	require.Contains(t, s.text("resume", "report", "--why", "done"), "resumed")
	require.Contains(t, s.text("pause", "--all", "--why", "maintenance"), "all jobs: paused")
	require.Contains(t, s.text("resume", "--all", "--why", "done"), "all jobs: resumed")

	started := ok[givenDocument](s, "run-now", "slow", "--why", "test")
	require.NotZero(t, started.Run.Token)
	require.Contains(t, s.fails(exitRefused, "run-now", "slow", "--why", "again"), "tenure cancel")
	require.Contains(t, s.fails(exitNotFound, "cancel", "slow", "--token", "1", "--why", "another one"), "does not go on")
	cancelled := ok[givenDocument](s, "cancel", "slow", "--token", strconv.FormatUint(started.Run.Token, 10), "--why", "enough", "--wait")
	require.True(t, cancelled.Waited)
	sees(s, func(d runsDocument) bool {
		return len(d.Runs) == 1 && d.Runs[0].Outcome == "cancelled" && d.Runs[0].Order == started.Order
	}, "runs", "slow")

	resigned := s.text("resign", "poller", "--why", "its host is drained")
	require.Contains(t, resigned, "has resigned")
	require.Contains(t, resigned, "may go on: see tenure jobs")
	sees(s, func(d electionsDocument) bool { return leads(d) && d.Elections[0].Leader.Term > term }, "elections", "poller")
	var kinds []string
	for _, o := range ok[ordersDocument](s, "orders", "--limit", "100").Orders {
		kinds = append(kinds, o.Kind)
		if o.Why == "all the same" {
			require.Equal(t, "night shift", o.By)
			require.Equal(t, "done", o.Result)
		}
	}
	require.Subset(t, kinds, []string{"pause", "resume", "run_now", "cancel", "resign"})
	s.reads("its host is drained", "orders")
	s.eventually(func() bool { return call(t, s.environ, "doctor").code == exitOK }, "all is well")

	require.Contains(t, s.fails(exitNotFound, "runs", "nothing"), "tenure jobs")
	s.fails(exitNotFound, "jobs", "nothing")
	s.fails(exitNotFound, "elections", "nothing")
	s.fails(exitNotFound, "holder", "nothing")
	s.fails(exitNotFound, "cancel", "slow", "--why", "it has ended")
	s.fails(exitNotFound, "resign", "nothing", "--why", "test")
	require.Contains(t, s.fails(exitNotFound, "run-now", "nothing", "--why", "test", "--as", "ann"), "tenure jobs")
	s.reads("nobody: no_replica", "orders")
	s.timesOut("run-now", "slow", "--why", "test", "--wait")
	s.cancels("slow")

	// Names are completed, but for those that a shell might obey.
	completes := func(command, name string) (names string) {
		s.eventually(func() bool {
			names = call(t, s.environ, "__complete", command, "").out
			return strings.Contains(names, name+"\n")
		}, "a name is completed")
		return names
	}
	require.NotContains(t, completes("runs", "report"), "odd")
	completes("resign", "poller")
}

// A pause of a job that no replica has is told of, because its name may be misspelled; an end of a
// pause that is none is an error.
func TestPauseOfNothing(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	s := &story{t, append(nodesAt(f.URLs()...), "TENURE_NODE_TIMEOUT=1s")}
	const why = "--why=a test"
	require.Contains(t, s.fails(exitNotFound, "resume", "report", why), `job "report": there was no pause to end`)
	require.Contains(t, s.fails(exitNotFound, "resume", "--all", why), "all jobs: there was no pause to end")
	for _, o := range ok[ordersDocument](s, "orders").Orders {
		require.Equal(t, "done: not_paused", o.Result+": "+o.Detail)
	}

	got := call(t, s.environ, "pause", "report", why)
	require.Equal(t, exitOK, got.code, got.err)
	require.Contains(t, got.out, "report: paused by")
	require.Contains(t, got.err, `no replica is known to have a job "report"`)
	require.Contains(t, got.err, `tenure run "job/report"`)
	require.Contains(t, s.text("resume", "report", why), "report: resumed")
	s.fails(exitNotFound, "resume", "report", why)

	got = call(t, s.environ, "pause", "--all", why)
	require.Equal(t, exitOK, got.code, got.err)
	require.Empty(t, got.err)
	require.Contains(t, s.fails(exitNotFound, "resume", "report", why), "tenure resume --all")
	require.Contains(t, s.text("resume", "--all", why), "all jobs: resumed")
}

// Without a quorum nothing hangs, and what is known is shown.
func TestWithoutAQuorum(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	s := &story{t, nodesAt(f.URLs()...)}
	require.NoError(t, f.Node(0).Freeze())
	require.NoError(t, f.Node(1).Kill())
	require.Eventually(t, func() bool { // the third may be slow, too
		return strings.Contains(s.fails(exitNoQuorum, "status"), "1 of 3 nodes vote, and 2 are needed")
	}, time.Minute, 100*time.Millisecond)
	require.Contains(t, s.fails(exitNoQuorum, "nodes"), "tenure doctor")
	s.fails(exitNoQuorum, "holder", "key")
	s.fails(exitNoQuorum, "pause", "--all", "--why", "test")
	var d nodesDocument
	s.decode(call(t, s.environ, "nodes", "-o", "json").out, &d)
	require.True(t, *d.Nodes[2].Votes)
	require.NotEmpty(t, d.Nodes[1].Error)

	require.NoError(t, f.Node(2).Kill())
	for _, args := range [][]string{{"status"}, {"jobs"}, {"runs", "x"}, {"elections"}, {"nodes"}, {"orders"}, {"resign", "x", "--why", "y"}, {"cancel", "x", "--why", "y"}, {"run-now", "x", "--why", "y"}} {
		s.fails(exitNoQuorum, args...)
	}
}

// Who looks leaves nothing on the nodes: with a wrong list that would keep replicas out.
func TestLookingLeavesNothing(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	environ := append(nodesAt(f.URLs()...), "TENURE_NODE_TIMEOUT=1s")
	members := func(n *valkeytest.Node) []string {
		text, err := n.Do(t, "GET", "tenure:members").ToString()
		if err != nil {
			require.True(t, valkey.IsValkeyNil(err), "%v", err)
			return nil
		}
		return []string{text}
	}
	for _, args := range [][]string{{"status"}, {"jobs"}, {"runs", "x"}, {"elections"}, {"nodes"}, {"holder", "x"}, {"orders"}, {"doctor"}, {"__complete", "runs", ""}} {
		got := call(t, environ, args...)
		require.Contains(t, []int{exitOK, exitNotFound}, got.code, "%v: %s%s", args, got.out, got.err)
		for _, n := range f.Nodes() {
			require.Empty(t, append(n.Keys(t), members(n)...), "%v", args)
		}
	}
	for _, n := range f.Nodes() {
		text, err := n.Do(t, "INFO", "persistence").ToString()
		require.NoError(t, err)
		require.Contains(t, text, "rdb_changes_since_last_save:0\r\n", "nothing was written, not even for a moment")
	}
	call(t, environ, "resume", "--all", "--why", "who gives orders does take part")
	require.NotEmpty(t, members(f.Node(0)))
}
