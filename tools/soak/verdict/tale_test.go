package verdict_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/chaos/journal"
	"github.com/tenure-dev/tenure/tools/soak/plan"
	"github.com/tenure-dev/tenure/tools/soak/story"
	"github.com/tenure-dev/tenure/tools/soak/verdict"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

// The jobs of the histories that are made up.
const (
	plain  = "plain"  // each 2 s, at most once, nothing is caught up
	all    = "all"    // the same, and all is
	again  = "again"  // at least once
	phases = "phases" // a duration job, all is caught up
	manual = "manual"
)

func jobs() []work.Job {
	every := 2 * time.Second
	return []work.Job{
		{Name: plain, Kind: work.Cron, Every: every},
		{Name: all, Kind: work.Cron, Every: every, CatchUp: scheduler.CatchUpAll},
		{Name: again, Kind: work.Cron, Every: every, CatchUp: scheduler.CatchUpAll, Delivery: redlock.AtLeastOnce},
		{Name: phases, Kind: work.Duration, Every: every, CatchUp: scheduler.CatchUpAll},
		{Name: manual, Kind: work.Manual, Every: every},
	}
}

const (
	ms     = journal.Instant(time.Millisecond)
	second = journal.Instant(time.Second)
	epoch  = int64(1_000_000_000) // what the clocks show at 0
	lasts  = 40                   // ticks until the end of the faults
)

// tale is a history: r0.1 and r1.1 live from 1 s on; r0.1 runs all ticks in order, and r1.1 says so, until the faults are over.
type tale struct {
	*verdict.History
	token uint64
	runs  int
}

func instant(tick int) journal.Instant { return journal.Instant(tick) * 2 * second }

func clock(at journal.Instant) int64 { return epoch + int64(at/ms) }

func begin(t *testing.T) *tale {
	t.Helper()
	over := instant(lasts) + second
	h := &verdict.History{
		Jobs: jobs(), Servers: 3, Records: make(map[string][]story.Record), Over: over, OverAt: clock(over),
		Lives: []journal.Life{{Name: "r0.1", Began: second / 2, Ended: over + 10*second}, {Name: "r1.1", Began: second / 2, Ended: over + 10*second}},
	}
	s := &tale{History: h}
	for _, life := range h.Lives {
		s.add(life.Name, story.Record{Kind: story.Start, At: second, Clock: clock(second)})
	}
	for tick := 1; tick <= lasts+1; tick++ {
		for _, job := range jobs() {
			if job.Ticked() {
				s.run("r0.1", job.Name, tick, instant(tick)+10*ms, 100*ms)
				s.skip("r1.1", job.Name, tick, instant(tick)+20*ms, scheduler.SkipHeld, "r0.1")
			}
		}
	}
	for _, life := range h.Lives {
		s.add(life.Name, story.Record{Kind: story.Stopping, At: over + 5*second})
		s.add(life.Name, story.Record{Kind: story.Stop, At: over + 6*second})
	}
	require.Empty(t, verdict.Check(h).Violations, "the tale without a fault")
	return s
}

func (s *tale) add(life string, r story.Record) { s.Records[life] = append(s.Records[life], r) }

// run adds a run, and returns its name.
func (s *tale) run(life, job string, tick int, at, takes journal.Instant) string {
	s.token++
	s.runs++
	id := fmt.Sprintf("%s/%d", life, s.runs)
	r := story.Record{Kind: story.Begin, At: at, Run: id, Job: job, Attempt: 1, Token: s.token, Deadline: at + second}
	if tick != 0 {
		r.Tick = clock(instant(tick))
	}
	s.add(life, r)
	s.add(life, story.Record{Kind: story.End, At: at + takes, Run: id, Deadline: at + takes + second})
	return id
}

func (s *tale) tokenOf(life, run string) uint64 {
	for _, r := range s.Records[life] {
		if r.Kind == story.Begin && r.Run == run {
			return r.Token
		}
	}
	return 0
}

func (s *tale) skip(life, job string, tick int, at journal.Instant, why scheduler.Reason, by string) {
	s.add(life, story.Record{Kind: story.Skip, At: at, Job: job, Tick: clock(instant(tick)), Reason: string(why), By: by})
}

// drop removes records.
func (s *tale) drop(life string, which func(story.Record) bool) {
	var kept []story.Record
	gone := make(map[string]bool)
	for _, r := range s.Records[life] {
		if which(r) {
			gone[r.Run] = r.Run != ""
			continue
		}
		if !gone[r.Run] {
			kept = append(kept, r)
		}
	}
	s.Records[life] = kept
}

// change changes records.
func (s *tale) change(life string, which func(story.Record) bool, how func(*story.Record)) {
	for i := range s.Records[life] {
		if r := &s.Records[life][i]; which(*r) {
			how(r)
		}
	}
}

func of(kind story.Kind, job string, tick int) func(story.Record) bool {
	return func(r story.Record) bool { return r.Kind == kind && r.Job == job && r.Tick == clock(instant(tick)) }
}

// kill has a life end by SIGKILL.
func (s *tale) kill(life string, at journal.Instant) {
	for i := range s.Lives {
		if s.Lives[i].Name == life {
			s.Lives[i].Killed, s.Lives[i].Ended = at, at+ms
		}
	}
	s.drop(life, func(r story.Record) bool { return r.At > at })
}

func (s *tale) freeze(life string, from, to journal.Instant) {
	s.Strikes = append(s.Strikes, story.Strike{Kind: string(plan.Freeze), Life: life, From: from, To: to})
}

// requireOnly wants violations of one kind, so many.
func (s *tale) requireOnly(t *testing.T, kind verdict.Kind, n int) *verdict.Verdict {
	t.Helper()
	v := verdict.Check(s.History)
	require.Len(t, v.Violations, n, "%v", v.Violations)
	require.Equal(t, n, v.Count(kind), "%v", v.Violations)
	return v
}
