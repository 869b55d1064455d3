package checker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/torture/checker"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/jobs"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// The jobs of the histories that are made up.
const (
	plain  = "plain"  // each 2 s, at most once, nothing is caught up
	all    = "all"    // the same, and all is
	again  = "again"  // at least once
	phases = "phases" // a duration job, all is caught up
	manual = "manual"
)

func work() []jobs.Job {
	every := 2 * time.Second
	return []jobs.Job{
		{Name: plain, Kind: jobs.Cron, Every: every},
		{Name: all, Kind: jobs.Cron, Every: every, CatchUp: scheduler.CatchUpAll},
		{Name: again, Kind: jobs.Cron, Every: every, CatchUp: scheduler.CatchUpAll, Delivery: scheduler.AtLeastOnce},
		{Name: phases, Kind: jobs.Duration, Every: every, CatchUp: scheduler.CatchUpAll},
		{Name: manual, Kind: jobs.Manual, Every: every},
	}
}

const (
	ms     = history.Instant(time.Millisecond)
	second = history.Instant(time.Second)
	epoch  = int64(1_000_000_000) // what the clocks show at 0
	lasts  = 40                   // ticks until the end of the faults
)

// days is a history: r0.1 and r1.1 live from 1 s on; r0.1 runs all ticks in order, and r1.1 says
// so, until the faults are over.
type days struct {
	*history.History
	Jobs  []jobs.Job
	token uint64
	runs  int
}

func instant(tick int) history.Instant { return history.Instant(tick) * 2 * second }

func clock(at history.Instant) int64 { return epoch + int64(at/ms) }

func begin(t *testing.T) *days {
	t.Helper()
	over := instant(lasts) + second
	h := &history.History{
		Account: history.Account{Workload: "five", Servers: 3, Over: over, OverAt: clock(over)}, Records: make(map[string][]history.Record),
	}
	h.Lives = []history.Life{{Name: "r0.1", Began: second / 2, Ended: over + 10*second}, {Name: "r1.1", Began: second / 2, Ended: over + 10*second}}
	s := &days{History: h, Jobs: work()}
	for _, life := range h.Lives {
		s.add(life.Name, history.Record{Kind: history.Start, At: second, Clock: clock(second)})
	}
	for tick := 1; tick <= lasts+1; tick++ {
		for _, job := range work() {
			if job.Ticked() {
				s.run("r0.1", job.Name, tick, instant(tick)+10*ms, 100*ms)
				s.skip("r1.1", job.Name, tick, instant(tick)+20*ms, scheduler.SkipHeld, "r0.1")
			}
		}
	}
	for _, life := range h.Lives {
		s.add(life.Name, history.Record{Kind: history.Stopping, At: over + 5*second})
		s.add(life.Name, history.Record{Kind: history.Stop, At: over + 6*second})
	}
	require.Empty(t, s.judge().Violations, "the history without a fault")
	return s
}

func (s *days) judge() *checker.Verdict { return checker.Check(s.History, s.Jobs) }

func (s *days) add(life string, r history.Record) { s.Records[life] = append(s.Records[life], r) }

// run adds a run, and returns its name.
func (s *days) run(life, job string, tick int, at, takes history.Instant) string {
	s.token++
	s.runs++
	id := fmt.Sprintf("%s/%d", life, s.runs)
	r := history.Record{Kind: history.Begin, At: at, Run: id, Job: job, Attempt: 1, Reason: "on_time", Token: s.token, Deadline: at + second}
	if tick != 0 {
		r.Tick = clock(instant(tick))
	}
	s.add(life, r)
	s.add(life, history.Record{Kind: history.End, At: at + takes, Run: id, Deadline: at + takes + second})
	return id
}

func (s *days) tokenOf(life, run string) uint64 {
	for _, r := range s.Records[life] {
		if r.Kind == history.Begin && r.Run == run {
			return r.Token
		}
	}
	return 0
}

func (s *days) skip(life, job string, tick int, at history.Instant, why scheduler.Reason, by string) {
	s.add(life, history.Record{Kind: history.Skip, At: at, Job: job, Tick: clock(instant(tick)), Reason: string(why), By: by})
}

// unrun has r0.1 not run a tick, and say why.
func (s *days) unrun(job string, tick int, at history.Instant, why scheduler.Reason, by string) {
	s.drop("r0.1", of(history.Begin, job, tick))
	s.skip("r0.1", job, tick, at, why, by)
}

// says changes what a life says of a tick.
func (s *days) says(life, job string, tick int, why scheduler.Reason) {
	s.change(life, of(history.Skip, job, tick), func(r *history.Record) { r.Reason = string(why) })
}

// ends changes the end of the run of a tick by r0.1.
func (s *days) ends(job string, tick int, how func(*history.Record)) {
	id := ""
	s.change("r0.1", of(history.Begin, job, tick), func(r *history.Record) { id = r.Run })
	s.change("r0.1", func(r history.Record) bool { return r.Kind == history.End && r.Run == id }, how)
}

// drop removes records.
func (s *days) drop(life string, which func(history.Record) bool) {
	var kept []history.Record
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
func (s *days) change(life string, which func(history.Record) bool, how func(*history.Record)) {
	for i := range s.Records[life] {
		if r := &s.Records[life][i]; which(*r) {
			how(r)
		}
	}
}

func of(kind history.Kind, job string, tick int) func(history.Record) bool {
	return func(r history.Record) bool { return r.Kind == kind && r.Job == job && r.Tick == clock(instant(tick)) }
}

// kill has a life end by SIGKILL.
func (s *days) kill(life string, at history.Instant) {
	for i := range s.Lives {
		if s.Lives[i].Name == life {
			s.Lives[i].Killed, s.Lives[i].Ended = at, at+ms
		}
	}
	s.drop(life, func(r history.Record) bool { return r.At > at })
}

func (s *days) freeze(life string, from, to history.Instant) {
	s.Strikes = append(s.Strikes, history.Strike{Kind: plan.Freeze, Life: life, Server: -1, From: from, To: to})
}

// requireOnly wants violations of one kind, so many.
func (s *days) requireOnly(t *testing.T, kind checker.Kind, n int) *checker.Verdict {
	t.Helper()
	v := s.judge()
	require.Len(t, v.Violations, n, "%v", v.Violations)
	require.Equal(t, n, v.Count(kind), "%v", v.Violations)
	return v
}
