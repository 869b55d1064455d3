package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/soak/cast"
	"github.com/tenure-dev/tenure/internal/soak/story"
	"github.com/tenure-dev/tenure/internal/soak/work"
)

func TestMain(m *testing.M) {
	if os.Getenv(cast.Variable) != "" {
		os.Exit(cast.Main(os.Stdin, os.Stdout, play))
	}
	// toxiproxy leaves goroutines behind, see package arena of the chaos program.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	)
}

func TestTally(t *testing.T) {
	const from = int64(1_000_000_000)
	instant := jobs()[0]
	require.Equal(t, time.Second, instant.Every)
	c := &tally{way: "a way", from: from, to: from + 9999, runs: make(map[string]map[int64]int)}
	records := make(map[string][]story.Record)
	run := func(life, job string, tick int64) {
		records[life] = append(records[life], story.Record{Kind: story.Begin, Job: job, Tick: tick})
	}
	run("r0.1", instant.Name, from-1000) // before
	for tick := from; tick < from+8000; tick += 1000 {
		run("r0.1", instant.Name, tick)
	}
	run("r1.1", instant.Name, from)
	run("r2.1", instant.Name, from)
	run("r1.1", instant.Name, from+1000)
	records["r1.1"] = append(records["r1.1"], story.Record{Kind: story.Skip, Job: instant.Name, Tick: from + 2000})
	c.add(records)
	require.Equal(t, sum{due: 10, once: 6, twice: 2, extra: 3, lost: 2}, c.job(instant))
	require.Equal(t, sum{due: 10, lost: 10}, c.job(jobs()[1]))
	require.Equal(t, 20, c.sum(func(j work.Job) bool { return j.Every == time.Second }).due)

	var out bytes.Buffer
	table(&out, []*tally{c, c})
	require.Contains(t, out.String(), "| each 1s, instant: twice, lost, of | 2, 2, 10 | 2, 2, 10 |")
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
