package checker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/harness/fault"
	"github.com/tenure-dev/tenure/tools/harness/history"
	"github.com/tenure-dev/tenure/tools/soak/checker"
	"github.com/tenure-dev/tenure/tools/soak/plan"
	"github.com/tenure-dev/tenure/tools/soak/record"
)

// missed is a history in which nobody runs a tick of a job that catches nothing up, and both
// replicas say why.
func missed(t *testing.T, why scheduler.Reason) *script {
	s := begin(t)
	s.drop("r0.1", of(record.Begin, plain, 20))
	s.skip("r0.1", plain, 20, instant(20), why, "")
	s.change("r1.1", of(record.Skip, plain, 20), func(r *record.Record) { r.Reason, r.By = string(why), "" })
	return s
}

// outage has servers away.
func (s *script) outage(kind fault.Kind, from, to history.Instant, servers ...int) {
	for _, server := range servers {
		s.Strikes = append(s.Strikes, record.Strike{Kind: kind, Replica: -1, Server: server, From: from, To: to})
	}
}

func TestTickThatNobodyRunsAlthoughAllIsWell(t *testing.T) {
	for _, why := range []scheduler.Reason{scheduler.SkipNoQuorum, scheduler.SkipTimeout, scheduler.SkipNotLeader, scheduler.SkipSplit} {
		v := missed(t, why).requireOnly(t, checker.Lost, 1)
		require.Contains(t, v.Violations[0].Text, "plain, tick")
		require.Contains(t, v.Violations[0].Text, "although all was well; r0.1")
		require.Equal(t, map[string]int{string(why): 1}, v.Nobody)
	}
	at := instant(20)
	for name, hurt := range map[string]func(*script){
		"one server is dead":                      func(s *script) { s.outage(fault.RestartKeep, at-second, at+second, 0) },
		"all stood still when it came":            func(s *script) { s.outage(fault.FreezeServer, at-100*ms, at+900*ms, 0, 1, 2) },
		"a replica was stopped in order":          func(s *script) { s.strike(plan.Roll, "r1.1", at-second, at+second) },
		"a replica was killed long before":        func(s *script) { s.Lives = append(s.Lives, history.Life{Name: "r2.1", Killed: at - 6*second}) },
		"a replica was frozen long after":         func(s *script) { s.freeze("r1.1", at+8*second, at+9*second) },
		"a clock leapt":                           func(s *script) { s.leap("r0.1", at-2*second, second/2) },
		"two servers are away, and back in time":  func(s *script) { s.outage(fault.FreezeServer, at-2*second, at+900*ms, 0, 1) },
		"a deploy was over long before":           func(s *script) { s.strike(plan.Deploy, "", at-11*second, at-9*second) },
		"a replica was stopped that nobody named": func(s *script) { s.strike(plan.RollAtTick, "r0.1", at, at+second) },
	} {
		t.Run(name, func(t *testing.T) {
			s := missed(t, scheduler.SkipTimeout)
			hurt(s)
			require.Equal(t, 1, checker.Check(s.History).Count(checker.Lost), "%v", checker.Check(s.History).Violations)
		})
	}
	for name, hurt := range map[string]func(*script){
		"two servers are dead": func(s *script) { s.outage(fault.RestartKeep, at-second, at+second, 0, 1) },
		"one is dead, one in quarantine": func(s *script) {
			s.outage(fault.RestartEmpty, at-5*second, at-4*second, 0)
			s.outage(fault.RestartKeep, at, at+second, 1)
		},
		"all stood still for too long": func(s *script) { s.outage(fault.FreezeServer, at-100*ms, at+1100*ms, 0, 1, 2) },
		"a replica was killed":         func(s *script) { s.Lives = append(s.Lives, history.Life{Name: "r2.1", Killed: at - 4*second}) },
		"a replica was frozen":         func(s *script) { s.freeze("r1.1", at+2*second, at+5*second) },
		"a process did not run for a moment": func(s *script) {
			s.add("r1.1", record.Record{Kind: record.Pause, At: at + second/2, Delay: time.Second})
		},
		"there was a deploy": func(s *script) { s.strike(plan.Deploy, "", at-6*second, at-4*second) },
	} {
		t.Run("excused: "+name, func(t *testing.T) {
			s := missed(t, scheduler.SkipTimeout)
			hurt(s)
			require.Zero(t, checker.Check(s.History).Count(checker.Lost))
		})
	}
	// Whoever had it was told to stop, and another one goes after it.
	s := missed(t, scheduler.SkipHeld)
	s.change("r1.1", of(record.Skip, plain, 20), func(r *record.Record) { r.By = "r2.1" })
	s.Lives = append(s.Lives, history.Life{Name: "r2.1", Began: second, Ended: at + second})
	require.Equal(t, 1, checker.Check(s.History).Count(checker.Lost))
}

func (s *script) strike(kind fault.Kind, life string, from, to history.Instant) {
	s.Strikes = append(s.Strikes, record.Strike{Kind: kind, Life: life, Server: -1, From: from, To: to})
}

// leap has a life's clock leap, and back at once.
func (s *script) leap(life string, at, by history.Instant) {
	s.Records[life] = append([]record.Record{
		s.Records[life][0], {Kind: record.Leap, At: at, Delay: time.Duration(by)}, {Kind: record.Leap, At: at + 1, Delay: -time.Duration(by)},
	}, s.Records[life][1:]...)
}

// A run overlaps the ticks that come while it goes on, or would if it had begun at its time, and no
// others.
func TestTickThatARunOverlaps(t *testing.T) {
	lose := func(t *testing.T, job string, takes history.Instant) *script {
		s := begin(t)
		id := ""
		s.change("r0.1", of(record.Begin, job, 19), func(r *record.Record) { id = r.Run })
		s.change("r0.1", func(r record.Record) bool { return r.Run == id }, func(r *record.Record) { r.Deadline = instant(20) + 10*second })
		s.change("r0.1", func(r record.Record) bool { return r.Kind == record.End && r.Run == id }, func(r *record.Record) { r.At = instant(19) + 10*ms + takes })
		s.drop("r0.1", of(record.Begin, job, 20))
		s.skip("r0.1", job, 20, instant(20), scheduler.SkipOverlap, "")
		s.change("r1.1", of(record.Skip, job, 20), func(r *record.Record) { r.Reason = string(scheduler.SkipOverlap) })
		return s
	}
	for _, job := range []string{all, again} {
		s := lose(t, job, 1600*ms)
		require.NotZero(t, checker.Check(s.History).Count(checker.Lost))
		require.Zero(t, checker.Check(s.History).Overlapped)
		s = lose(t, job, 1950*ms)
		require.Equal(t, 1, checker.Check(s.History).Overlapped)
		// Its process was frozen, so it may have looked at its clock late.
		s = lose(t, job, 100*ms)
		s.freeze("r0.1", instant(19)+130*ms, instant(19)+2100*ms)
		require.Equal(t, 1, checker.Check(s.History).Overlapped)
	}
	// A run that came to no end overlaps nothing.
	s := lose(t, again, 1800*ms)
	s.change("r0.1", func(r record.Record) bool { return r.Kind == record.End && r.At == instant(19)+1810*ms }, func(r *record.Record) { r.Text = "lost" })
	require.Zero(t, checker.Check(s.History).Overlapped)
}

// A job that takes longer than its interval has no time for all ticks; but one that was begun is
// brought to its end.
func TestTicksOfAJobThatTakesLong(t *testing.T) {
	for why, lost := range map[scheduler.Reason]int{scheduler.SkipMissed: 0, scheduler.SkipSuperseded: 0, scheduler.SkipNoQuorum: 1} {
		s := begin(t)
		s.Jobs = jobs()
		for i := range s.Jobs {
			s.Jobs[i].Takes = s.Jobs[i].Every
		}
		s.drop("r0.1", of(record.Begin, again, 20))
		s.skip("r0.1", again, 20, instant(20), why, "")
		s.requireOnly(t, checker.Lost, lost)
		// It waits until the end.
		for tick := 21; tick <= lasts+1; tick++ {
			s.drop("r0.1", of(record.Begin, again, tick))
			s.drop("r1.1", of(record.Skip, again, tick))
		}
		s.drop("r1.1", of(record.Skip, again, 20))
		s.requireOnly(t, checker.Lost, 0)
	}
}

// An idle job may not have ticked yet.
func TestJobThatHasNotTicked(t *testing.T) {
	s := begin(t)
	for i := range s.Jobs {
		if s.Jobs[i].Name == all {
			s.Jobs[i].Every = 10 * time.Minute
		}
	}
	s.drop("r0.1", func(r record.Record) bool { return r.Job == all })
	s.drop("r1.1", func(r record.Record) bool { return r.Job == all })
	s.requireOnly(t, checker.Lost, 0)
}

func TestRunNowThatRunsNothing(t *testing.T) {
	at := instant(20) + second/2
	ask := func(t *testing.T) *script {
		s := begin(t)
		s.add("r1.1", record.Record{Kind: record.Asked, At: at, Job: manual})
		return s
	}
	v := ask(t).requireOnly(t, checker.Silent, 1)
	require.Contains(t, v.Violations[0].Text, "r1.1: RunNow of manual")
	s := ask(t)
	s.run("r1.1", manual, 0, at+second, 0)
	require.Equal(t, 1, s.requireOnly(t, checker.Silent, 0).Asked)
	s.add("r1.1", record.Record{Kind: record.Asked, At: at + 2, Job: manual})
	s.requireOnly(t, checker.Silent, 1) // one run is not two

	s = ask(t)
	s.run("r1.1", manual, 0, at+4*second, 0)
	s.requireOnly(t, checker.Silent, 1)
	s = ask(t)
	s.run("r0.1", manual, 0, at+second, 0)
	s.requireOnly(t, checker.Silent, 1)
	s = ask(t)
	s.change("r1.1", func(r record.Record) bool { return r.Kind == record.Asked }, func(r *record.Record) { r.Text = "held" })
	s.requireOnly(t, checker.Silent, 0)
	s = ask(t)
	s.freeze("r1.1", at+second, at+2*second)
	s.requireOnly(t, checker.Silent, 0)
}

// The next leader runs a tick of a hand-over, also if it was not there when the tick came.
func TestTickOfAHandOver(t *testing.T) {
	s := missed(t, scheduler.SkipNotLeader)
	for i := range s.Jobs {
		s.Jobs[i].Leader = s.Jobs[i].Name == plain
	}
	started := instant(20) + second
	s.Lives = append(s.Lives, history.Life{Name: "r2.1", Began: started, Ended: s.Over + 10*second})
	s.add("r2.1", record.Record{Kind: record.Start, At: started, Clock: clock(started)})
	s.drop("r0.1", of(record.Begin, plain, 21))
	s.run("r2.1", plain, 21, instant(21)+10*ms, 0)
	require.Equal(t, 1, checker.Check(s.History).Count(checker.Lost))
}

// Of a job with an interval below a second there may be more to be caught up than there is time.
func TestTickThatIsTooOld(t *testing.T) {
	late := func(t *testing.T, every time.Duration, delay history.Instant) int {
		s := begin(t)
		for i := range s.Jobs {
			s.Jobs[i].Every = every
		}
		for tick := 2; tick <= lasts+1; tick++ {
			s.drop("r0.1", of(record.Begin, all, tick))
		}
		s.run("r0.1", all, 3, instant(2)+delay, 0)
		v := checker.Check(s.History)
		lost := 0
		for _, found := range v.Violations {
			if found.Kind == checker.Lost && strings.HasPrefix(found.Text, "all, tick "+time.UnixMilli(clock(instant(2))).UTC().Format("15:04:05.000")) {
				lost++
			}
		}
		return lost
	}
	const half = 500 * time.Millisecond
	require.Equal(t, 0, late(t, half, 30*second))
	require.Equal(t, 1, late(t, half, 28*second))
	require.Equal(t, 1, late(t, 2*time.Second, 30*second))
}
