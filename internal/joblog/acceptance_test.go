package joblog_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/joblog"
)

var (
	none    = joblog.Policy{}
	all     = joblog.Policy{CatchUp: joblog.CatchUpAll, Window: 24 * time.Hour}
	again   = joblog.Policy{CatchUp: joblog.CatchUpAll, Window: 24 * time.Hour, Delivery: joblog.AtLeastOnce}
	queuing = joblog.Policy{Overlap: joblog.OverlapQueue}
)

func latest(window time.Duration) joblog.Policy {
	return joblog.Policy{CatchUp: joblog.CatchUpLatest, Window: window}
}

// Each is what people are told of a life: given, when, then.
var lives = []struct {
	name   string
	def    joblog.Definition
	made   string
	policy joblog.Policy
	live   func(l *life)
	told   []string
}{
	{"within Grace", every(time.Hour), "30m", none, func(l *life) {
		require.Equal(l.t, at("1h30m5s"), l.owed("1h30m4s").Until)
		l.run("1h30m5s", time.Second)
	}, []string{"on_time 1h30m #1"}},
	{"a queued tick that was told to end is owed again within the window, and not beyond", every(time.Minute), "0s",
		joblog.Policy{CatchUp: joblog.CatchUpAll, Window: 3 * time.Minute, Delivery: joblog.AtLeastOnce, Overlap: joblog.OverlapQueue}, func(l *life) {
			l.run("1m", 70*time.Second) // 2m is queued
			l.begin("2m10s")
			l.end("3m", joblog.Stopped, 50*time.Second)
			l.begin("3m")
			l.end("5m1s", joblog.Stopped, 121*time.Second)
			l.run("5m2s", time.Second)
		}, []string{"on_time 1m #1", "queued 2m #1", "again 2m #2", "missed 2m..2m 1", "late 3m #1"}},
	{"a schedule changed to a longer interval at once, by clocks that are behind the run before", every(time.Minute), "0s", none, func(l *life) {
		l.run("1m", 0)
		l.deploy(atOnce(15*time.Minute), "59.9s")
		l.run("1m0.1s", 0)
		l.deploy(atOnce(15*time.Minute), "2m")
		l.run("2m", 0)
		l.run("16m0.001s", 0)
	}, []string{"on_time 1m #1", "on_time 1m0.001s #1", "on_time 16m0.001s #1"}},
	{"at least once, told to end by a changed schedule", every(time.Hour), "0s", again, func(l *life) {
		l.begin("1h")
		l.end("1h10m", joblog.Stopped, 10*time.Minute)
		l.deploy(every(7*time.Hour), "1h11m")
		l.run("1h12m", time.Minute)
		l.run("8h11m", 0)
	}, []string{"on_time 1h0m #1", "again 1h0m #2", "on_time 8h11m #1"}},
	{"at least once, killed twice, and what panics rests", every(time.Hour), "0s", again, func(l *life) {
		l.begin("1h")
		require.Equal(l.t, at("1h0m1s"), l.owed("1h0m0.5s").At)
		l.begin("1h10m")
		l.begin("1h20m")
		l.end("1h20m1s", joblog.Panicked, time.Second)
		require.Equal(l.t, at("1h20m5s"), l.owed("1h20m1s").At)
		l.run("1h20m5s", 0)
		l.run("1h21m", 0)
	}, []string{"on_time 1h0m #1", "cut_short 1h0m", "again 1h0m #2", "cut_short 1h0m", "again 1h0m #3", "again 1h0m #4"}},
	{"a run that is cancelled is complete before the operator has the answer", every(time.Hour), "0s", again, func(l *life) {
		l.begin("1h")
		l.end("1h10m", joblog.Cancelled, 10*time.Minute)
		l.run("1h20m", 0) // its replica is killed
	}, []string{"on_time 1h0m #1"}},
	{"a cancelled task that is deaf, skip", every(time.Hour), "0s", none, func(l *life) {
		l.begin("1h")
		l.end("3h10m", joblog.Cancelled, 130*time.Minute)
		l.end("4h10m", joblog.Cancelled, 190*time.Minute)
		l.run("4h10m", 0)
	}, []string{"on_time 1h0m #1", "overlap 2h0m..3h0m 2", "overlap 4h0m..4h0m 1"}},
	{"400 ms each second, the release hangs for 2.5 s", every(time.Second), "0s", all, func(l *life) {
		l.begin("1s")
		l.end("3.9s", joblog.Succeeded, 400*time.Millisecond)
		l.run("3.9s", 400*time.Millisecond)
		l.run("4.3s", 400*time.Millisecond)
	}, []string{"on_time 1s #1", "on_time 2s #1", "on_time 3s #1"}},
	{"a late run overlaps none of those it is late by", every(time.Minute), "0s", all, func(l *life) {
		l.run("2m50s", 20*time.Second)
		l.run("3m10s", 20*time.Second)
		l.run("3m30s", 20*time.Second)
	}, []string{"late 1m #1", "late 2m #1", "late 3m #1"}},
	{"a late run overlaps what comes meanwhile, skip", every(time.Minute), "0s", latest(time.Hour), func(l *life) {
		l.run("2m50s", 20*time.Second)
		l.run("3m10s", 0)
	}, []string{"superseded 1m..1m 1", "late 2m #1", "overlap 3m..3m 1"}},
	{"a late run behind which one was missed", every(time.Minute), "0s", queuing, func(l *life) {
		l.run("1m", 70*time.Second)    // queues 2m, which waits for nodes
		l.run("3m40s", 50*time.Second) // and queues 4m
		l.run("4m30s", 0)
	}, []string{"on_time 1m #1", "queued 2m #1", "missed 3m..3m 1", "queued 4m #1"}},
	{"a late run of a job that runs all, queue: the last that came waits, however long", every(time.Minute), "0s",
		joblog.Policy{CatchUp: joblog.CatchUpAll, Window: 150 * time.Second, Overlap: joblog.OverlapQueue}, func(l *life) {
			l.run("2m50s", 75*time.Second)
			l.run("7m50s", 0)
			l.run("7m51s", 0)
		}, []string{"late 1m #1", "missed 2m..3m 2", "queued 4m #1", "missed 5m..5m 1", "late 6m #1"}},
	{"run now overlaps", every(time.Minute), "0s", all, func(l *life) {
		l.order("1m30s")
		l.end("3m30s", joblog.Succeeded, 2*time.Minute)
		l.run("3m40s", 0) // of before it
		l.run("3m41s", 0)
		l.run("4m", 0)
	}, []string{"late 1m #1", "overlap 2m..3m 2", "on_time 4m #1"}},
	{"run now overlaps, queue", every(time.Minute), "0s", queuing, func(l *life) {
		l.run("1m", 0)
		l.order("1m30s")
		l.end("3m30s", joblog.Succeeded, 2*time.Minute)
		l.run("3m40s", 0)
		require.Empty(l.t, l.read().Beside)
	}, []string{"on_time 1m #1", "overlap 2m..2m 1", "queued 3m #1"}},
	{"run now is no tick", every(time.Hour), "0s", none, func(l *life) {
		l.order("59m")
		l.end("59m10s", joblog.Succeeded, 10*time.Second)
		require.Equal(l.t, joblog.Success{Ended: at("59m10s")}, l.read().OK)
		require.Empty(l.t, l.read().Beside)
		l.run("1h", 0)
	}, []string{"on_time 1h0m #1"}},
	{"run now between a killed run and its next attempt", every(time.Hour), "0s", again, func(l *life) {
		l.begin("1h")
		l.order("1h10m")
		l.end("1h11m", joblog.Succeeded, time.Minute)
		l.run("1h12m", time.Second)
	}, []string{"on_time 1h0m #1", "again 1h0m #2"}},
	{"the last run is killed, at least once", every(time.Hour), "0s",
		joblog.Policy{Limit: 1, CatchUp: joblog.CatchUpAll, Window: time.Hour, Delivery: joblog.AtLeastOnce}, func(l *life) {
			l.begin("1h")
			l.begin("1h30m")
			l.end("1h31m", joblog.Succeeded, time.Minute)
			require.True(l.t, l.owed("3h").Over)
			l.run("3h", 0)
		}, []string{"on_time 1h0m #1", "cut_short 1h0m", "again 1h0m #2"}},
	{"from at least to at most once: what was granted is not run again", every(time.Hour), "0s", again, func(l *life) {
		l.begin("1h")
		l.policy.Delivery = joblog.AtMostOnce
		l.run("1h10m", 0)
		l.run("2h", 0)
	}, []string{"on_time 1h0m #1", "cut_short 1h0m", "on_time 2h0m #1"}},
	{"random: chosen with the grant", chained(time.Hour, false), "0s", none, func(l *life) {
		l.begin("1h")
		require.Equal(l.t, at("2h"), l.read().Next)
		l.run("2h", time.Minute) // killed
		l.run("5h", 0)           // missed
		require.Equal(l.t, at("6h"), l.read().Next)
		l.run("6h", 90*time.Minute) // overlaps the next
		require.Equal(l.t, at("8h30m"), l.read().Next)
	}, []string{"on_time 1h0m #1", "cut_short 1h0m", "on_time 2h0m #1", "missed 3h0m..3h0m 1", "on_time 6h0m #1", "overlap 7h0m..7h0m 1"}},
	{"interval from completion", chained(time.Hour, true), "0s", none, func(l *life) {
		l.run("1h", 30*time.Minute)
		l.begin("2h30m")
		require.True(l.t, l.owed("2h40m").Tick.IsZero())
		require.False(l.t, l.owed("2h40m").Over)
		l.run("2h50m", 0) // it was killed: who finds it sets the next
		l.run("3h50m", 0)
		l.run("4h50m", 0)
	}, []string{"on_time 1h0m #1", "on_time 2h30m #1", "cut_short 2h30m", "on_time 3h50m #1", "on_time 4h50m #1"}},
	{"backfill: what is due goes first, over kills, with the delivery", every(time.Hour), "10h", again, func(l *life) {
		l.run("11h", 0)
		l.fill("8h", "20h", "11h30m")
		l.run("11h30m", time.Second)
		l.begin("11h31m") // killed
		l.begin("11h40m")
		l.end("12h1m", joblog.Succeeded, 21*time.Minute)
		l.run("12h1m", time.Second) // is not overlapped
		l.run("12h2m", 0)
		l.run("12h3m", 0)
		l.run("12h4m", 0)
		require.Zero(l.t, l.read().Fill)
	}, []string{"on_time 11h0m #1", "backfill 8h0m #1", "backfill 9h0m #1", "cut_short 9h0m", "backfill 9h0m #2",
		"queued 12h0m #1", "backfill 10h0m #1", "backfill 11h0m #1"}},
	{"a backfill waits for the end of a pause", every(time.Hour), "10h", none, func(l *life) {
		l.fill("8h", "9h", "10h")
		l.run("10h", 0)
		l.policy.Floor = at("2400h")
		require.False(l.t, joblog.Owed(l.read(), l.table, l.policy, at("10h10m")).Due)
		l.policy.Floor = at("10h20m")
		require.False(l.t, joblog.Owed(l.read(), l.table, l.policy, at("10h20m")).Due)
		l.run("10h20m1s", 0)
	}, []string{"backfill 8h0m #1", "backfill 9h0m #1"}},
	{"backfill at most once", every(time.Hour), "10h", none, func(l *life) {
		l.fill("8h", "9h", "10h")
		l.begin("10h")
		l.run("10h10m", 0)
		l.run("10h11m", 0)
	}, []string{"backfill 8h0m #1", "cut_short 8h0m", "backfill 9h0m #1"}},
	{"backfill without ticks is cleared", every(time.Hour), "10h", none, func(l *life) {
		l.fill("8h10m", "8h20m", "10h")
		l.run("10h10m", 0)
		require.Zero(l.t, l.read().Fill)
		_, ok := l.read().Backfill(at("11h"), at("12h"), at("10h"))
		require.False(l.t, ok)
	}, nil},
	{"backfill of a chain is none", chained(time.Hour, true), "10h", none, func(l *life) {
		_, ok := l.read().Backfill(at("8h"), at("9h"), at("10h"))
		require.False(l.t, ok)
	}, nil},
	{"backfill after a run of an old version that was a chain", every(time.Hour), "10h", none, func(l *life) {
		old := chained(time.Hour, true).Table(midnight)
		r, _ := joblog.End(joblog.Begin(l.read(), old, none, joblog.Verdict{Why: joblog.Ordered}, joblog.Grant{At: at("10h")}), old, none, joblog.Ending{At: at("10h")})
		l.write(r)
		l.fill("8h", "9h", "10h")
	}, nil},
	{"backfill whose run is cancelled is over", every(time.Hour), "10h", again, func(l *life) {
		l.fill("7h", "9h", "10h")
		l.begin("10h10m")
		l.end("10h15m", joblog.Cancelled, 5*time.Minute)
		l.end("10h20m", joblog.Cancelled, 10*time.Minute)
		l.run("10h30m", 0)
		require.Zero(l.t, l.read().Fill)
	}, []string{"backfill 7h0m #1"}},
	{"retry: an attempt that is written counts", every(time.Hour), "0s", again, func(l *life) {
		l.begin("1h")
		l.write(joblog.Retry(l.read()))
		l.write(joblog.Retry(l.read()))
		require.Equal(l.t, 3, l.read().Run.Attempt)
		l.run("1h10m", 0) // it was killed
	}, []string{"on_time 1h0m #1", "cut_short 1h0m", "again 1h0m #4"}},
	{"retry of a backfill", every(time.Hour), "10h", again, func(l *life) {
		l.fill("8h", "8h", "10h")
		l.begin("10h")
		l.write(joblog.Retry(l.read()))
		l.run("10h10m", time.Second) // it was killed
		require.Zero(l.t, l.read().Fill)
	}, []string{"backfill 8h0m #1", "cut_short 8h0m", "backfill 8h0m #3"}},
	{"latest: the newest of those within the window", every(time.Hour), "0s", latest(3 * time.Hour), func(l *life) { l.run("6h30m", 0) },
		[]string{"missed 1h0m..3h0m 3", "superseded 4h0m..5h0m 2", "late 6h0m #1"}},
}

func TestLives(t *testing.T) {
	for _, tc := range lives {
		t.Run(tc.name, func(t *testing.T) {
			l := newLife(t, tc.def, tc.made, tc.policy)
			tc.live(l)
			l.requireTold(tc.told...)
		})
	}
}
