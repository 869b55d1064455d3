//go:build long

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/cmd/tenure/internal/doctor"
	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/internal/view"
)

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

// What an operator does: looks, pauses, runs, cancels, has the leader resign, and looks again.
func TestStory(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3, valkeytest.WithPersistence())
	replica(t, f)
	s := &story{t, append(nodesAt(f.URLs()...), "TENURE_NODE_TIMEOUT=1s", "USER=ann")}

	sees(s, func(d statusDocument) bool {
		return *d.Replicas == 1 && d.Jobs.Total == 4 && len(d.Elections) == 1 && d.Elections[0].Leader != nil && d.Quorum.Votes == 3
	}, "status")
	s.reads("3 of 3 nodes vote; 1 more may fail.", "status")
	s.reads(`"poller": led by replica`, "status")
	s.reads(`failing: "fails"`, "status")
	jobs := ok[jobsDocument](s, "jobs")
	require.Equal(t, []string{"fails", odd, "report", "slow"}, []string{jobs.Jobs[0].Name, jobs.Jobs[1].Name, jobs.Jobs[2].Name, jobs.Jobs[3].Name})
	s.reads("odd ␛[31m⟨U+202E⟩{name}", "jobs")
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
	var term view.Number
	s.eventually(func() bool {
		term = sees(s, leads, "elections").Elections[0].Leader.Term
		holder := call(t, s.environ, "holder", "election/poller", "-o", "json")
		if holder.code == exitNotFound { // its lease was lost
			return false
		}
		var d holderDocument
		s.decode(holder.out, &d)
		return d.Token == term && d.LeaseLeft > 0 &&
			strings.Contains(call(t, s.environ, "holder", "election/poller").out, strconv.FormatUint(uint64(term), 10))
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
		return slices.ContainsFunc(d.Skips, func(s view.Skip) bool { return s.Reason == "paused" })
	}, "runs", "report")
	s.reads("not run", "runs", "report")
	s.reads("the job was paused", "runs", "report")
	require.Contains(t, s.text("run-now", "report", "--why", "all the same", "--as", "night shift", "--wait"), "the job is paused, and was run all the same")
	require.Contains(t, s.text("resume", "report", "--why", "done"), "resumed")
	require.Contains(t, s.text("pause", "--all", "--why", "maintenance"), "all jobs: paused")
	require.Contains(t, s.text("resume", "--all", "--why", "done"), "all jobs: resumed")

	end := time.Now().Add(-time.Minute).UTC().Truncate(time.Second)
	filled := ok[givenDocument](s, "backfill", "report", "--from", end.Add(-2*time.Second).Format(time.RFC3339), "--to", end.Format(time.RFC3339), "--why", "the source was late")
	require.Equal(t, end, filled.Ticks.To.UTC())
	sees(s, func(d runsDocument) bool {
		return slices.ContainsFunc(d.Runs, func(r view.Past) bool { return r.Why == "backfill" && !r.Tick.After(end) })
	}, "runs", "report")
	require.Contains(t, s.fails(exitNotFound, "backfill", "nothing", "--from", "2026-03-01T00:00:00Z", "--to", "2026-03-02T00:00:00Z", "--why", "test"), "no replica is known to have the job")

	started := ok[givenDocument](s, "run-now", "slow", "--why", "test")
	require.NotZero(t, started.Run.Token)
	require.Contains(t, s.fails(exitRefused, "run-now", "slow", "--why", "again"), "tenure cancel")
	require.Contains(t, s.fails(exitNotFound, "cancel", "slow", "--token", "1", "--why", "another one"), "does not go on")
	cancelled := ok[givenDocument](s, "cancel", "slow", "--token", strconv.FormatUint(uint64(started.Run.Token), 10), "--why", "enough", "--wait")
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
	require.Subset(t, kinds, []string{"pause", "resume", "run_now", "cancel", "resign", "backfill"})
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
}

// What a user may not see is told as his missing right or his wrong password, and never as the
// state of the cluster, which is well here.
func TestWhoMayNotKnowHearsNothingOfTheCluster(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	replica(t, f)
	command(t, f.Nodes(), append([]string{"ACL", "SETUSER", "reader", "reset", "on", ">p4ss"}, readerRights(t, "tenure")...)...)
	recipe(t, f, "resetkeys", "resetchannels", "~billing:*", "&billing:*")
	environ := func(user string) []string { return append(nodesAt(as(f, user)...), "TENURE_NODE_TIMEOUT=1s") }

	reader := &story{t, environ("reader:p4ss")}
	reader.reads("3 of 3 nodes vote, as replicas say: the user of this process may not ask the nodes.", "status")
	status := sees(reader, func(d statusDocument) bool { return *d.Replicas == 1 && d.Jobs.Total == 4 }, "status")
	require.Nil(t, status.Quorum.Spare)
	require.Equal(t, 3, status.Quorum.Hidden)
	for _, n := range ok[nodesDocument](reader, "nodes").Nodes {
		require.Nil(t, n.Votes)
		require.True(t, n.SeenBy[0].Votes)
	}
	reader.reads("it votes for 1 of 1 replica", "nodes")
	for _, args := range looking {
		s := reader.text(args...)
		require.NotContains(t, s, "no lease is", "%v", args)
	}
	for _, args := range ordering {
		require.Contains(t, reader.fails(exitDenied, args...), "the nodes refuse this user", "%v", args)
	}

	for user, why := range map[string]string{"billing:p4ss": "No permissions to access a key", "billing:wrong": "WRONGPASS"} {
		s := &story{t, environ(user)}
		for _, args := range append(looking, ordering...) {
			got := call(t, s.environ, args...)
			require.Equal(t, exitDenied, got.code, "%s: %v: %s%s", user, args, got.out, got.err)
			require.Contains(t, got.err, "the nodes refuse this user", "%v", args)
			require.Contains(t, got.err, why, "%v", args)
			require.Contains(t, got.err, "this says nothing of the cluster", "%v", args)
			saysNothingOfTheCluster(t, got)
		}
		got := call(t, s.environ, "doctor")
		require.Equal(t, exitFaults, got.code)
		saysNothingOfTheCluster(t, got)
	}

	// Of a cluster that is not well a reader hears.
	require.NoError(t, f.Node(0).Kill())
	require.NoError(t, f.Node(1).Kill())
	reader.fails(exitNoQuorum, "status")
	reader.fails(exitNoQuorum, "nodes")
	require.NotContains(t, reader.fails(exitNoQuorum, "holder", "election/poller"), "refuse this user")
}

// What replicas said before they were killed, or before a node voted for them, is no warning. What
// one goes on to say is.
func TestDoctorBelievesFreshCardsOnly(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	q := use(t, f.URLs())
	say := func(replica string) {
		text := fmt.Sprintf(`{"v":1,"process":%q,"identity":%[1]q,"nodes":[{"node":%q,"votes":false,"why":"quarantined"},{"node":%q,"votes":true,"why":"noauth"}]}`,
			replica, f.Node(1).Addr(), f.Node(2).Addr())
		require.NoError(t, board.Of(q).Post(t.Context(), []bulletin.Card{{Kind: bulletin.Processes, ID: replica, Text: text, Lifetime: bulletin.ProcessLifetime}}))
	}
	for i := range 6 {
		say(fmt.Sprint("killed-", i))
	}
	done := make(chan called)
	go func() { done <- call(t, nodesAt(f.URLs()...), "doctor", "-o", "json", "--node-timeout", "1s") }()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		say("lives")
		select {
		case <-again.C:
			continue
		case got := <-done:
			var d doctorDocument
			require.NoError(t, json.Unmarshal([]byte(got.out), &d), "%s%s", got.out, got.err)
			require.Equal(t, 7, d.Replicas)
			d.Findings = slices.DeleteFunc(d.Findings, func(f doctor.Finding) bool { return f.Code != "seen_differently" })
			require.Len(t, d.Findings, 2, got.out)
			require.Contains(t, d.Findings[0].Seen, `"lives" says of it: quarantined`)
			require.Contains(t, d.Findings[1].Seen, `"lives" says of it: noauth`)
			return
		}
	}
}
