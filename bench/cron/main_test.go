package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/harness/harnesstest"
	"github.com/tenure-dev/tenure/tools/soak/record"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

func TestMain(m *testing.M) { harnesstest.Main(m, begin) }

func TestTally(t *testing.T) {
	const from = int64(1_000_000_000)
	c := &tally{way: "a way", from: from, to: from + 9999, runs: make(map[string]map[int64]int)}
	records := make(map[string][]record.Record)
	run := func(life, job string, tick int64) {
		records[life] = append(records[life], record.Record{Kind: record.Begin, Job: job, Tick: tick})
	}
	const instant, interval = "cron-1", "duration-31"
	run("r0.1", instant, from-1000) // before
	for tick := from; tick < from+8000; tick += 1000 {
		run("r0.1", instant, tick)
	}
	run("r1.1", instant, from)
	run("r2.1", instant, from)
	run("r1.1", instant, from+1000)
	run("r1.1", instant, 0) // no tick
	run("r1.1", interval, from+2001)
	run("r2.1", interval, from+3999)
	once, at := work.OneTime((from + 5000) / work.OnceEvery.Milliseconds())
	run("r2.1", once.Name, at.UnixMilli())
	records["r1.1"] = append(records["r1.1"], record.Record{Kind: record.Skip, Job: instant, Tick: from + 2000})
	c.add(records)

	only := func(name string) group { return group{name, func(j *work.Job) bool { return j.Name == name }} }
	require.Equal(t, sum{due: 10, once: 6, twice: 2, extra: 3, lost: 2}, c.sum(only(instant)))
	require.Equal(t, sum{due: 10, lost: 10}, c.sum(only("cron-2")))
	require.Equal(t, sum{due: 3, twice: 1, extra: 1, lost: 2}, c.sum(only(interval)), "in intervals 2, 4 and 6")
	require.Equal(t, sum{due: 1, once: 1}, c.sum(only(once.Name)))
	require.Equal(t, 5, c.sum(only("cron-11")).due)

	var all sum
	for _, g := range groups {
		some := c.sum(g)
		all.due, all.once, all.twice, all.extra, all.lost = all.due+some.due, all.once+some.once, all.twice+some.twice, all.extra+some.extra, all.lost+some.lost
	}
	require.Equal(t, all, c.sum(everyJob), "the groups share all jobs but the long ones among them")
	require.Zero(t, c.sum(group{"both", func(j *work.Job) bool { return everyJob.has(j) && longerJobs.has(j) }}).due)
	require.Zero(t, c.sum(group{"caught up, but long", func(j *work.Job) bool { return caughtUp.has(j) && longerJobs.has(j) }}).due)

	var out bytes.Buffer
	table(&out, []*tally{c, c})
	require.Contains(t, out.String(), "| duration | 1, ")
	require.Contains(t, out.String(), "| one-time | 0, 0, 1 | 0, 0, 1 |")
}

func TestShortRun(t *testing.T) {
	var out bytes.Buffer
	require.Equal(t, exitDone, cronMain([]string{"-duration", "10s", "-seed", "1"}, &out), out.String())
	require.Contains(t, out.String(), "| ticks that were due | ")
	require.Equal(t, 4, strings.Count(strings.SplitN(out.String()[strings.Index(out.String(), "| **lost**"):], "\n", 2)[0], "|")-1)
}

func TestTrouble(t *testing.T) {
	for _, args := range [][]string{{"-duration", "1s"}, {"x"}, {"-x"}} {
		require.Equal(t, exitTrouble, cronMain(args, &bytes.Buffer{}), "%q", args)
	}
}
