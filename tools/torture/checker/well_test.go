package checker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/torture/checker"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// missed is a history in which nobody runs a tick of a job that catches nothing up, and both
// replicas say why.
func missed(t *testing.T, why scheduler.Reason) *days {
	s := begin(t)
	s.unrun(plain, 20, instant(20), why, "")
	s.change("r1.1", of(history.Skip, plain, 20), func(r *history.Record) { r.Reason, r.By = string(why), "" })
	return s
}

// outage has servers away.
func (s *days) outage(kind plan.Kind, from, to history.Instant, servers ...int) {
	for _, server := range servers {
		s.Strikes = append(s.Strikes, history.Strike{Kind: kind, Server: server, From: from, To: to})
	}
}

func TestTickThatNobodyRunsAlthoughAllIsWell(t *testing.T) {
	for _, why := range []scheduler.Reason{scheduler.SkipNoQuorum, scheduler.SkipTimeout, scheduler.SkipNotLeader, scheduler.SkipSplit} {
		v := missed(t, why).requireOnly(t, checker.Lost, 1)
		require.Contains(t, v.Violations[0].Text, "plain, tick")
		require.Contains(t, v.Violations[0].Text, "although all was well; r0.1")
	}
	at := instant(20)
	for name, test := range map[string]struct {
		hurt func(*days)
		lost int // none if it is excused
	}{
		"one server is dead":                      {func(s *days) { s.outage(plan.RestartKeep, at-second, at+second, 0) }, 1},
		"all stood still when it came":            {func(s *days) { s.outage(plan.FreezeServer, at-100*ms, at+900*ms, 0, 1, 2) }, 1},
		"a replica was stopped in order":          {func(s *days) { s.strike(plan.Roll, "r1.1", at-second, at+second) }, 1},
		"a replica was killed long before":        {func(s *days) { s.Lives = append(s.Lives, history.Life{Name: "r2.1", Killed: at - 6*second}) }, 1},
		"a replica was frozen long after":         {func(s *days) { s.freeze("r1.1", at+8*second, at+9*second) }, 1},
		"a clock leapt":                           {func(s *days) { s.leap("r0.1", at-2*second, second/2) }, 1},
		"two servers are away, and back in time":  {func(s *days) { s.outage(plan.FreezeServer, at-2*second, at+900*ms, 0, 1) }, 1},
		"a deploy was over long before":           {func(s *days) { s.strike(plan.Deploy, "", at-11*second, at-9*second) }, 1},
		"a replica was stopped that nobody named": {func(s *days) { s.strike(plan.RollAtTick, "r0.1", at, at+second) }, 1},

		"two servers are dead": {func(s *days) { s.outage(plan.RestartKeep, at-second, at+second, 0, 1) }, 0},
		"one is dead, one in quarantine": {func(s *days) {
			s.outage(plan.RestartEmpty, at-5*second, at-4*second, 0)
			s.outage(plan.RestartKeep, at, at+second, 1)
		}, 0},
		"all stood still for too long": {func(s *days) { s.outage(plan.FreezeServer, at-100*ms, at+1100*ms, 0, 1, 2) }, 0},
		"a replica was killed":         {func(s *days) { s.Lives = append(s.Lives, history.Life{Name: "r2.1", Killed: at - 4*second}) }, 0},
		"a replica was frozen":         {func(s *days) { s.freeze("r1.1", at+2*second, at+5*second) }, 0},
		"a process did not run for a moment": {func(s *days) {
			s.add("r1.1", history.Record{Kind: history.Pause, At: at + second/2, Delay: time.Second})
		}, 0},
		"there was a deploy": {func(s *days) { s.strike(plan.Deploy, "", at-6*second, at-4*second) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := missed(t, scheduler.SkipTimeout)
			test.hurt(s)
			require.Equal(t, test.lost, s.judge().Count(checker.Lost), "%v", s.judge().Violations)
		})
	}
	// Whoever had it was told to stop, and another one goes after it.
	s := missed(t, scheduler.SkipHeld)
	s.change("r1.1", of(history.Skip, plain, 20), func(r *history.Record) { r.By = "r2.1" })
	s.Lives = append(s.Lives, history.Life{Name: "r2.1", Began: second, Ended: at + second})
	require.Equal(t, 1, s.judge().Count(checker.Lost))
}

func (s *days) strike(kind plan.Kind, life string, from, to history.Instant) {
	s.Strikes = append(s.Strikes, history.Strike{Kind: kind, Life: life, Server: -1, From: from, To: to})
}

// leap has a life's clock leap, and back at once.
func (s *days) leap(life string, at, by history.Instant) {
	s.Records[life] = append([]history.Record{
		s.Records[life][0], {Kind: history.Leap, At: at, Delay: time.Duration(by)}, {Kind: history.Leap, At: at + 1, Delay: -time.Duration(by)},
	}, s.Records[life][1:]...)
}

// A run overlaps the ticks that come while it goes on, or would if it had begun at its time, and no
// others.
func TestTickThatARunOverlaps(t *testing.T) {
	lose := func(t *testing.T, job string, takes history.Instant) *days {
		s := begin(t)
		id := ""
		s.change("r0.1", of(history.Begin, job, 19), func(r *history.Record) { id = r.Run })
		s.change("r0.1", func(r history.Record) bool { return r.Run == id }, func(r *history.Record) { r.Deadline = instant(20) + 10*second })
		s.change("r0.1", func(r history.Record) bool { return r.Kind == history.End && r.Run == id }, func(r *history.Record) { r.At = instant(19) + 10*ms + takes })
		s.unrun(job, 20, instant(20), scheduler.SkipOverlap, "")
		s.says("r1.1", job, 20, scheduler.SkipOverlap)
		return s
	}
	for _, job := range []string{all, again} {
		s := lose(t, job, 1600*ms)
		require.NotZero(t, s.judge().Count(checker.Lost))
		require.Zero(t, s.judge().Counts["ticks that had to be run, but runs of earlier ones left no time"])
		s = lose(t, job, 1950*ms)
		require.Equal(t, 1, s.judge().Counts["ticks that had to be run, but runs of earlier ones left no time"])
		// Its process was frozen, so it may have looked at its clock late.
		s = lose(t, job, 100*ms)
		s.freeze("r0.1", instant(19)+130*ms, instant(19)+2100*ms)
		require.Equal(t, 1, s.judge().Counts["ticks that had to be run, but runs of earlier ones left no time"])
	}
	// A run that began late overlaps what comes while it goes on, and nothing that it was late by.
	for late, overlaps := range map[history.Instant]int{1900 * ms: 1, 2200 * ms: 0} {
		s := lose(t, all, 150*ms+late)
		s.change("r0.1", of(history.Begin, all, 19), func(r *history.Record) { r.At += late })
		require.Equal(t, overlaps, s.judge().Counts["ticks that had to be run, but runs of earlier ones left no time"])
	}
	// A run that came to no end overlaps nothing, and one whose lease had ended what is said.
	for _, c := range []struct {
		cut     func(*history.Record)
		skipped scheduler.Reason
		counts  int64
	}{
		{func(*history.Record) {}, scheduler.SkipHeld, 1},
		{func(r *history.Record) { r.Told = true }, scheduler.SkipOverlap, 0},
		{func(r *history.Record) { r.Text = "lost" }, scheduler.SkipOverlap, 1},
		{func(r *history.Record) { r.Text = "lost" }, scheduler.SkipHeld, 0},
	} {
		s := lose(t, all, 1990*ms)
		s.change("r0.1", func(r history.Record) bool { return r.Kind == history.End && r.At == instant(19)+2*second }, c.cut)
		for _, life := range []string{"r0.1", "r1.1"} {
			s.says(life, all, 20, c.skipped)
		}
		require.EqualValues(t, c.counts, s.judge().Counts["ticks that had to be run, but runs of earlier ones left no time"])
	}
}

// A job that takes longer than its interval has no time for all ticks; but one that was begun is
// brought to its end.
func TestTicksOfAJobThatTakesLong(t *testing.T) {
	for why, lost := range map[scheduler.Reason]int{scheduler.SkipMissed: 0, scheduler.SkipSuperseded: 0, scheduler.SkipNoQuorum: 1} {
		s := begin(t)
		s.Jobs = work()
		for i := range s.Jobs {
			s.Jobs[i].Takes = s.Jobs[i].Every
		}
		s.unrun(again, 20, instant(20), why, "")
		s.requireOnly(t, checker.Lost, lost)
		// It waits until the end.
		for tick := 21; tick <= lasts+1; tick++ {
			s.drop("r0.1", of(history.Begin, again, tick))
			s.drop("r1.1", of(history.Skip, again, tick))
		}
		s.drop("r1.1", of(history.Skip, again, 20))
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
	s.drop("r0.1", func(r history.Record) bool { return r.Job == all })
	s.drop("r1.1", func(r history.Record) bool { return r.Job == all })
	s.requireOnly(t, checker.Lost, 0)
}

func TestRunNowThatRunsNothing(t *testing.T) {
	at := instant(20) + second/2
	ask := func(t *testing.T) *days {
		s := begin(t)
		s.add("r1.1", history.Record{Kind: history.Asked, At: at, Job: manual})
		return s
	}
	v := ask(t).requireOnly(t, checker.Silent, 1)
	require.Contains(t, v.Violations[0].Text, "r1.1: RunNow of manual")
	s := ask(t)
	s.run("r1.1", manual, 0, at+second, 0)
	require.Equal(t, 1, s.requireOnly(t, checker.Silent, 0).Counts["calls of RunNow without an error"])
	s.add("r1.1", history.Record{Kind: history.Asked, At: at + 2, Job: manual})
	s.requireOnly(t, checker.Silent, 1) // one run is not two

	s = ask(t)
	s.run("r1.1", manual, 0, at+4*second, 0)
	s.requireOnly(t, checker.Silent, 1)
	s = ask(t)
	s.run("r0.1", manual, 0, at+second, 0)
	s.requireOnly(t, checker.Silent, 1)
	s = ask(t)
	s.change("r1.1", func(r history.Record) bool { return r.Kind == history.Asked }, func(r *history.Record) { r.Text = "held" })
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
	s.add("r2.1", history.Record{Kind: history.Start, At: started, Clock: clock(started)})
	s.drop("r0.1", of(history.Begin, plain, 21))
	s.run("r2.1", plain, 21, instant(21)+10*ms, 0)
	require.Equal(t, 1, s.judge().Count(checker.Lost))
}

// A tick that has grown too old is lost, unless its job had no time: of an interval below a second
// there may be more to be caught up than there is time, and runs may take half of the time.
func TestTickThatIsTooOld(t *testing.T) {
	late := func(t *testing.T, every time.Duration, said, takes history.Instant) int {
		s := begin(t)
		for i := range s.Jobs {
			s.Jobs[i].Every = every
		}
		for tick := 2; tick <= lasts+1; tick++ {
			s.drop("r0.1", of(history.Begin, all, tick))
		}
		for tick := 3; tick <= lasts+1; tick++ {
			id := s.run("r0.1", all, tick, instant(tick), takes)
			s.change("r0.1", func(r history.Record) bool { return r.Run == id }, func(r *history.Record) { r.Deadline += second })
		}
		s.skip("r1.1", all, 2, instant(2)+said, scheduler.SkipMissed, "")
		lost := 0
		for _, found := range s.judge().Violations {
			if found.Kind == checker.Lost && strings.HasPrefix(found.Text, "all, tick "+time.UnixMilli(clock(instant(2))).UTC().Format("15:04:05.000")) {
				lost++
			}
		}
		return lost
	}
	const half = 500 * time.Millisecond
	require.Equal(t, 0, late(t, half, 30*second, 10*ms))
	require.Equal(t, 1, late(t, half, 20*second, 10*ms), "it was not so old")
	require.Equal(t, 1, late(t, 2*time.Second, 30*second, 900*ms))
	require.Equal(t, 0, late(t, 2*time.Second, 30*second, 1200*ms))
}

// From when a pause had returned until it is ended nothing of the job begins, and what came due is
// not run later.
func TestTickThatIsRunInSpiteOfAPause(t *testing.T) {
	pause := func(t *testing.T, from, done, heal history.Instant) *days {
		s := begin(t)
		s.Strikes = append(s.Strikes, history.Strike{Kind: plan.Pause, Server: -1, Job: plain, From: from, Done: done, Heal: heal, To: heal + ms})
		return s
	}
	due := instant(20)
	pause(t, due-second, due-500*ms, due+second).requireOnly(t, checker.Unpaused, 1)
	pause(t, due-second, due-200*ms, due+second).requireOnly(t, checker.Unpaused, 0) // it looked before that
	pause(t, due-second, 0, due+second).requireOnly(t, checker.Unpaused, 0)          // it failed
	pause(t, due+second, due+1500*ms, due+1900*ms).requireOnly(t, checker.Unpaused, 0)
	s := pause(t, due-second, due-500*ms, due+second)
	s.outage(plan.RestartKeep, due-second, due, 0) // servers that are away are no excuse
	s.requireOnly(t, checker.Unpaused, 1)
	s.freeze("r0.1", due-600*ms, due)
	s.requireOnly(t, checker.Unpaused, 0)

	// What came due in a pause is run after it.
	s = pause(t, due-second, due-500*ms, due+second)
	s.change("r0.1", of(history.Begin, plain, 20), func(r *history.Record) { r.At, r.Deadline = r.At+1200*ms, r.Deadline+1200*ms })
	require.Equal(t, 1, s.judge().Count(checker.Unpaused))

	// Nothing is run after the last pause.
	s = pause(t, instant(lasts)-second, instant(lasts)-second/2, s.Over+5*second)
	for tick := lasts; tick <= lasts+1; tick++ {
		s.drop("r0.1", of(history.Begin, plain, tick))
		s.says("r1.1", plain, tick, scheduler.SkipPaused)
	}
	require.Equal(t, 1, s.judge().Count(checker.Unavailable))
}

// An operator who is not heard to the end is told of.
func TestOrderThatCannotBeGiven(t *testing.T) {
	s := begin(t)
	s.Strikes = append(s.Strikes, history.Strike{Kind: plan.Pause, Server: -1, Job: plain, Heal: second, To: s.Over, Failed: "no quorum"})
	v := s.requireOnly(t, checker.Unavailable, 1)
	require.Contains(t, v.Violations[0].Text, "no quorum")
}
