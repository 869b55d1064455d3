package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/internal/view"
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
	once := gocron.CronJob(fmt.Sprintf("0 0 1 %d *", time.Now().AddDate(0, 6, 0).Month()), false)
	for name, job := range map[string]struct {
		when gocron.JobDefinition
		task func(context.Context) error
	}{
		"report": {everySecond, func(context.Context) error { return nil }},
		"fails":  {everySecond, func(context.Context) error { return errors.New("no such table") }},
		"slow":   {once, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }},
		odd:      {once, func(context.Context) error { return nil }},
	} {
		_, err := s.NewJob(job.when, gocron.NewTask(job.task), gocron.WithName(name))
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

// calls carries out a command line on nodes that are well, as often as it takes for them to answer
// in time: they are slow on a busy machine. Without a quorum nothing was done.
func (s *story) calls(args ...string) (got called) {
	s.t.Helper()
	for began := time.Now(); ; {
		if got = call(s.t, s.environ, args...); got.code != exitNoQuorum || time.Since(began) > patience {
			return got
		}
	}
}

// ok is a command line that does what it should, with its document read.
func ok[D any](s *story, args ...string) (d D) {
	s.t.Helper()
	got := s.calls(append(args, "-o", "json")...)
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
	got := s.calls(args...)
	require.Equal(s.t, exitOK, got.code, "%v: %s%s", args, got.out, got.err)
	require.NotContains(s.t, strings.ReplaceAll(got.out, "\n", ""), "\x1b")
	require.NotContains(s.t, got.out, "\u202e")
	return got.out
}

// fails is a command line that ends with a code, and the text of its error.
func (s *story) fails(code int, args ...string) string {
	s.t.Helper()
	began, calls := time.Now(), s.calls
	if code == exitNoQuorum {
		calls = func(args ...string) called { return call(s.t, s.environ, args...) }
	}
	got := calls(args...)
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

// A pause of a job that no replica has is refused, because its name may be misspelled; an end of a
// pause that is none is an error. Neither is in the journal.
func TestPauseOfNothing(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	s := &story{t, append(nodesAt(f.URLs()...), "TENURE_NODE_TIMEOUT=1s")}
	const why = "--why=a test"
	require.Contains(t, s.fails(exitNotFound, "resume", "report", why), `not paused: job "report"`)
	require.Contains(t, s.fails(exitNotFound, "resume", "--all", why), "not paused: all jobs")
	refused := s.fails(exitNotFound, "pause", "report", why)
	require.Contains(t, refused, `no replica is known to have the job: "report"`)
	require.Contains(t, refused, "tenure run job/NAME")
	require.Empty(t, ok[ordersDocument](s, "orders").Orders, "nothing was done")

	require.Contains(t, s.text("pause", "report", "--force", why), "report: paused by")
	require.Contains(t, s.text("resume", "report", why), "report: resumed")
	s.fails(exitNotFound, "resume", "report", why)

	got := call(t, s.environ, "pause", "--all", why)
	require.Equal(t, exitOK, got.code, got.err)
	require.Empty(t, got.err)
	require.Contains(t, s.fails(exitNotFound, "resume", "report", why), "tenure resume --all")
	require.Contains(t, s.text("resume", "--all", why), "all jobs: resumed")
}

// Failures of all jobs are no other runs, the newest first, and as old as was asked for at most.
func TestFailuresOfAllJobs(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	replica(t, f)
	s := &story{t, append(nodesAt(f.URLs()...), "TENURE_NODE_TIMEOUT=1s")}
	sees(s, func(d statusDocument) bool { return d.Jobs != nil && d.Jobs.Total == 4 }, "status")
	sees(s, func(d runsDocument) bool { return len(d.Runs) > 1 }, "runs", "report")
	failures := sees(s, func(d runsDocument) bool { return len(d.Runs) > 1 }, "runs", "--failed", "--since", "1h")
	require.Nil(t, failures.Job)
	for i, r := range failures.Runs {
		require.NotEqual(t, "ok", r.Outcome) // on a slow machine a lease may be lost
		require.False(t, i > 0 && r.Ended().After(failures.Runs[i-1].Ended().Time))
	}
	require.Regexp(t, `^JOB +TICK +OUTCOME `, s.text("runs", "--failed"))
	require.Empty(t, ok[runsDocument](s, "runs", "--failed", "--since", "1ns").Runs)
	require.Contains(t, s.text("runs", "--failed", "--since", "1ns"), "No such run has ended")
	for _, r := range ok[runsDocument](s, "runs", "report", "--failed").Runs {
		require.NotEqual(t, "ok", r.Outcome)
	}
}

// Who looks leaves nothing on the nodes: with a wrong list that would keep replicas out.
func TestLookingLeavesNothing(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	environ := append(nodesAt(f.URLs()...), "TENURE_NODE_TIMEOUT=1s")
	for _, args := range [][]string{{"status"}, {"jobs"}, {"runs", "x"}, {"elections"}, {"nodes"}, {"holder", "x"}, {"orders"}, {"doctor"}} {
		got := call(t, environ, args...)
		require.Contains(t, []int{exitOK, exitNotFound}, got.code, "%v: %s%s", args, got.out, got.err)
		for _, n := range f.Nodes() {
			require.Empty(t, n.Keys(t), "%v", args)
		}
	}
	for _, n := range f.Nodes() {
		text, err := n.Do(t, "INFO", "persistence").ToString()
		require.NoError(t, err)
		require.Contains(t, text, "rdb_changes_since_last_save:0\r\n", "nothing was written, not even for a moment")
	}
	call(t, environ, "resume", "--all", "--why", "who gives orders does take part")
	r, err := bridge.ReadRoster(t.Context(), f.Node(0).Client(), "tenure")
	require.NoError(t, err)
	require.NotEmpty(t, r)
}

// What happens is told as it does, a line each, and the end of it is no failure: a run that begins,
// its end, a pause and the ticks that it costs, and the leader that steps down.
func TestWatch(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	replica(t, f)
	s := &story{t: t, environ: nodesAt(f.URLs()...)}
	ctx, interrupt := context.WithCancel(t.Context())
	defer time.AfterFunc(4*patience, interrupt).Stop()
	told, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		p := &program{in: strings.NewReader(""), out: out, err: io.Discard, environ: s.environ}
		code <- p.run(ctx, []string{"watch", "-o", "json"})
		_ = out.Close()
	}()
	lines := bufio.NewScanner(told)
	var orders sync.WaitGroup
	defer orders.Wait()
	until := func(what string, is func(h happening) bool) {
		t.Helper()
		for lines.Scan() {
			var h happening
			s.decode(lines.Text(), &h)
			w := &page{now: h.Now}
			h.text(w)
			require.Equal(t, 1, strings.Count(w.String(), "\n"), w.String())
			if is(h) {
				return
			}
		}
		require.Fail(t, "it ended", what)
	}
	// ordering repeats an order until it is told of: on a busy machine one may come to nothing.
	ordering := func(what string, is func(h happening) bool, args ...string) {
		t.Helper()
		told := make(chan struct{})
		defer close(told)
		orders.Go(func() {
			for again := true; again; {
				call(t, s.environ, args...)
				select {
				case <-told:
					again = false
				case <-time.After(50 * poll):
				}
			}
		})
		until(what, is)
	}
	until("an end", func(h happening) bool { return h.Event == "ended" && h.Past.Job == "report" && h.Past.Outcome == "ok" })
	ordering("a beginning", func(h happening) bool { return h.Event == "began" && h.Run.Job == "slow" && h.Run.Token != 0 },
		"run-now", "slow", "--why", "again")
	ordering("a pause", func(h happening) bool {
		return h.Event == "order" && h.Order.Kind == "pause" && h.Order.Target == "report" && h.Order.Why == "it moves"
	}, "pause", "report", "--why", "it moves")
	until("a skip", func(h happening) bool {
		return h.Event == "skipped" && h.Skip.Job == "report" && h.Skip.Reason == "paused"
	})
	ordering("a term", func(h happening) bool {
		return h.Event == "term" && h.Term.Election == "poller" && h.Term.Event == "resigned"
	}, "resign", "poller", "--why", "maintenance")
	interrupt()
	go func() { _, _ = io.Copy(io.Discard, told) }()
	require.Equal(t, exitOK, <-code)
}

// looking are command lines that only look.
var looking = [][]string{{"status"}, {"nodes"}, {"jobs"}, {"jobs", "report"}, {"runs", "report"}, {"runs", "--failed"}, {"elections"}, {"elections", "poller"},
	{"holder", "election/poller"}, {"orders"}}

// ordering are command lines that give an order.
var ordering = [][]string{{"pause", "report", "--force", "--why", "y"}, {"resume", "report", "--why", "y"}, {"run-now", "report", "--why", "y"},
	{"run", "key", "--try", "--", "true"}}

// saysNothingOfTheCluster requires that a user who may not know how it is hears nothing of it.
func saysNothingOfTheCluster(t *testing.T, got called) {
	t.Helper()
	for _, untrue := range []string{"no lease is", "nodes vote,", "no replica", "no job", "No replica", "no quorum", "No order", "nobody", "delete"} {
		require.NotContains(t, got.out+got.err, untrue)
	}
}

// Where one node of three refuses a user, the others tell.
func TestOneNodeThatRefuses(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	use(t, f.URLs())
	s := &story{t, append(nodesAt("valkey://nobody:wrong@"+f.Node(0).Addr(), f.URLs()[1], f.URLs()[2]), "TENURE_NODE_TIMEOUT=1s")}
	s.reads("2 of 3 nodes vote; none more may fail.", "status")
	s.reads(f.Node(0).Addr()+": not known: it refuses this user: noauth", "status")
	d := nodesDocument{Nodes: []view.Node{{Node: "a", ThisProcess: true, Error: "node a: acquire: noperm: x", SeenBy: []view.Seen{{Said: now()}}}}}
	require.Equal(t, []string{"a: no vote: noperm: x"}, d.problems())
	d.Nodes[0] = view.Node{Votes: new(true), SeenBy: []view.Seen{{Replica: "r", Votes: true, Why: "noauth"}}}
	require.Contains(t, seen(&page{}, d.Nodes[0]), "0 of 1 replicas agree; not r (noauth, said ")
}

// A node that was restarted votes again when the replicas say so, from the first moment on,
// whatever the TTL of the command is; and nobody is told to delete a key.
func TestQuarantineIsThatOfTheReplicas(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	skew := redlock.WithClockSkew(10 * time.Millisecond)
	q := use(t, f.URLs(), skew, redlock.WithTTL(6*time.Second))
	environ := append(nodesAt(f.URLs()...), "TENURE_CLOCK_SKEW=10ms") // a TTL of a second
	require.NoError(t, f.Node(2).Restart(false))
	replicas := func() time.Time { return q.Nodes(t.Context())[2].QuarantinedUntil }
	require.Eventually(t, func() bool { return !replicas().IsZero() }, patience, poll)
	until, compared := replicas(), 0
	for !replicas().IsZero() {
		began := time.Now()
		got := call(t, environ, "nodes", "-o", "json")
		require.NotContains(t, got.out, "delete")
		var nodes nodesDocument
		if got.code != exitOK { // a node that does not answer in a tenth of a second, on a busy machine
			continue
		}
		require.NoError(t, json.Unmarshal([]byte(got.out), &nodes))
		if said := nodes.Nodes[2].QuarantinedUntil; !said.IsZero() {
			require.WithinDuration(t, until, said.Time, 1500*time.Millisecond+time.Since(began), "a server tells its age in seconds")
			compared++
		}
		require.NotContains(t, call(t, environ, "status", "-o", "json").out, "delete")
		began = time.Now()
		got = call(t, environ, "doctor")
		require.NotContains(t, got.out, "delete")
		if _, at, found := strings.Cut(got.out, "it votes again at "); found {
			said, err := time.ParseInLocation(time.DateTime, at[:len(time.DateTime)], time.Local)
			require.NoError(t, err)
			require.WithinDuration(t, until, said, 2500*time.Millisecond+time.Since(began), got.out)
			compared++
		}
	}
	require.NotZero(t, compared)
}
