package checker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/torture/checker"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

func TestCounts(t *testing.T) {
	s := begin(t)
	s.run("r0.1", manual, 0, instant(3), second/2)
	s.Strikes = append(s.Strikes, history.Strike{Kind: "kill"}, history.Strike{Kind: "roll", Life: "r0.1"})
	v := s.judge()
	require.Empty(t, v.Violations)
	require.Equal(t, 4*(lasts+1)+1, v.Counts["runs"])
	require.Equal(t, 4*(lasts+1), v.Counts["ticks that were run"])
	require.Equal(t, 1, v.Counts["runs by RunNow"])
	require.Equal(t, 5, v.Counts["jobs that ran"])
	require.Equal(t, 2, v.Counts["clients stopped in order"])
	require.Equal(t, 3*(lasts-1), v.Counts["ticks that had to be run exactly once"], "of three jobs with CatchUpAll")
	require.Equal(t, 4*(lasts+1), v.Counts["ticks not run here: held"])
	require.Equal(t, 1, v.Counts["faults: kill (nobody there)"])
	require.Equal(t, 1, v.Counts["faults: roll"])
	require.NotZero(t, v.Counts["ticks that had to be run, or else to be told of"])
}

func TestTickThatIsRunTwice(t *testing.T) {
	for _, job := range []string{plain, all, again, phases} {
		s := begin(t)
		s.run("r1.1", job, lasts+1, instant(lasts+1)+200*ms, 0)
		v := s.requireOnly(t, checker.Twice, 1)
		require.Contains(t, v.Violations[0].Text, job)
	}
}

// All ticks of a duration job have one phase.
func TestRunThatIsNoTick(t *testing.T) {
	for _, job := range []string{plain, phases} {
		s := begin(t)
		s.change("r0.1", of(history.Begin, job, lasts+1), func(r *history.Record) { r.Tick += 500 })
		s.requireOnly(t, checker.Untimely, 1)
	}
	s := begin(t)
	for _, life := range []string{"r0.1", "r1.1"} {
		s.change(life, func(r history.Record) bool { return r.Job == phases }, func(r *history.Record) { r.Tick += 500 })
	}
	s.requireOnly(t, checker.Untimely, 0)
}

func TestTickThatIsRunAgain(t *testing.T) {
	const last = lasts + 1
	unheard := func(s *days, end *history.Record, token uint64) {
		s.add("r0.1", history.Record{Kind: history.Unheard, At: end.At + ms, Token: token})
	}
	for name, test := range map[string]struct {
		change  func(s *days, end *history.Record) // end is that of the first run, by r0.1
		twice   int
		excused int
	}{
		"in order":    {func(*days, *history.Record) {}, 1, 0},
		"panic":       {func(_ *days, r *history.Record) { r.Panicked = true }, 0, 0},
		"told to end": {func(_ *days, r *history.Record) { r.Told = true }, 0, 0},
		"lease lost":  {func(_ *days, r *history.Record) { r.Text = "lost" }, 0, 0},
		"its completion was not confirmed": {func(s *days, r *history.Record) {
			unheard(s, r, s.tokenOf("r0.1", r.Run))
		}, 0, 1},
		"the completion of another run was not confirmed": {func(s *days, r *history.Record) {
			unheard(s, r, s.tokenOf("r0.1", r.Run)-1)
		}, 1, 0},
		"frozen before the completion": {func(s *days, r *history.Record) { s.freeze("r0.1", r.At+100*ms, r.At+second) }, 0, 0},
		"frozen long after it":         {func(s *days, r *history.Record) { s.freeze("r0.1", r.At+1100*ms, r.At+2*second) }, 1, 0},
		"killed":                       {func(s *days, _ *history.Record) { s.kill("r0.1", instant(last)+50*ms) }, 0, 0},
		"the second by a lease that ran out before the first": {func(s *days, _ *history.Record) {
			s.change("r1.1", of(history.Begin, again, last), func(r *history.Record) { r.Deadline, r.Token = r.At, r.Token+1000 })
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.run("r1.1", again, last, instant(last)+2*second, 0)
			var end *history.Record
			s.ends(again, last, func(r *history.Record) { end = r })
			test.change(s, end)
			require.Len(t, s.requireOnly(t, checker.Twice, test.twice).Excused, test.excused)
		})
	}
	s := begin(t) // at most once
	s.run("r1.1", all, last, instant(last)+2*second, 0)
	s.kill("r0.1", instant(last)+50*ms)
	s.requireOnly(t, checker.Twice, 1)
}

func TestTickThatIsLost(t *testing.T) {
	for _, job := range []string{all, again, phases} {
		s := begin(t)
		s.unrun(job, 20, instant(20), scheduler.SkipNoQuorum, "")
		s.says("r1.1", job, 20, scheduler.SkipNoQuorum)
		v := s.requireOnly(t, checker.Lost, 1)
		require.Contains(t, v.Violations[0].Text, "r1.1 at 40.02s: no_quorum by r0.1")
	}
	s := begin(t)
	s.unrun(plain, 20, instant(20), scheduler.SkipNoQuorum, "")
	s.requireOnly(t, checker.Lost, 1)
	s.Lives = append(s.Lives, history.Life{Name: "r2.1", Killed: instant(20)})
	s.requireOnly(t, checker.Lost, 0)

	s = begin(t)
	s.drop("r0.1", func(r history.Record) bool { return r.Job == all })
	s.drop("r1.1", func(r history.Record) bool { return r.Job == all })
	require.Equal(t, 1, s.judge().Count(checker.Lost), "a job that was never run")
}

// Its winner was killed before the task began: at most once means that nobody runs it.
func TestTickWhoseWinnerDied(t *testing.T) {
	lose := func(t *testing.T, job string) *days {
		s := begin(t)
		s.Lives = append(s.Lives, history.Life{Name: "r2.1", Began: second, Killed: instant(20) + 5*ms, Ended: instant(20) + 6*ms})
		s.unrun(job, 20, instant(20)+20*ms, scheduler.SkipHeld, "r2.1")
		return s
	}
	v := lose(t, all).requireOnly(t, checker.Lost, 0)
	require.Len(t, v.Excused, 1)
	lose(t, again).requireOnly(t, checker.Lost, 1)

	for _, killed := range []history.Instant{instant(20) - 4*second, instant(20) + 1100*ms} {
		s := lose(t, all)
		s.Lives[2].Killed = killed
		require.Equal(t, 1, s.judge().Count(checker.Lost))
	}
	s := lose(t, all)
	s.says("r0.1", all, 20, scheduler.SkipOverlap)
	s.requireOnly(t, checker.Lost, 1)
}

// At most once, a tick that was granted ahead of its time is lost with its holder, and others say
// that it was cut short. Without a fault, from the grant until they say so, it is lost.
func TestTickThatWasCutShortBeforeItsTask(t *testing.T) {
	const skew = 300 * ms // by which the holder's clock is ahead
	due := instant(20) - skew
	for name, test := range map[string]struct {
		job  string
		hurt func(s *days)
		lost int
	}{
		"frozen before its time": {all, func(s *days) { s.freeze("r2.1", due-350*ms, due+second) }, 0},
		"frozen before the task": {all, func(s *days) { s.freeze("r2.1", due, due+second) }, 0},
		"frozen too early":       {all, func(s *days) { s.freeze("r2.1", due-second, due-401*ms) }, 1},
		"frozen too late":        {all, func(s *days) { s.freeze("r2.1", instant(20)+601*ms, instant(20)+second) }, 1},
		"killed":                 {all, func(s *days) { s.kill("r2.1", due-ms) }, 0},
		"without servers":        {all, func(s *days) { s.outage(plan.FreezeServer, due-100*ms, due+second, 1) }, 0},
		"another one was frozen": {all, func(s *days) { s.freeze("r1.1", due-300*ms, due+second) }, 1},
		"at least once":          {again, func(s *days) { s.freeze("r2.1", due-300*ms, due+second) }, 1},
		"nobody said so": {all, func(s *days) {
			s.freeze("r2.1", due-300*ms, due+second)
			s.says("r0.1", all, 20, scheduler.SkipHeld)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.Lives = append(s.Lives, history.Life{Name: "r2.1", Began: second, Ended: instant(lasts)})
			s.add("r2.1", history.Record{Kind: history.Start, At: second, Clock: clock(second + skew)})
			s.add("r2.1", history.Record{Kind: history.Stopping, At: instant(lasts)})
			s.unrun(test.job, 20, instant(20)+600*ms, scheduler.SkipCutShort, "r2.1")
			test.hurt(s)
			require.Len(t, s.requireOnly(t, checker.Lost, test.lost).Excused, 1-test.lost)
		})
	}
}

// A tick that comes within the lease of a run whose process was killed is not overlapped: it was
// missed, and is to be run.
func TestTickThatADeadRunOverlaps(t *testing.T) {
	lose := func(t *testing.T, job string, why scheduler.Reason, killed history.Instant) *days {
		s := begin(t)
		s.Lives = append(s.Lives, history.Life{Name: "r2.1", Began: second, Killed: killed, Ended: killed + ms})
		s.unrun(job, 20, instant(20)+20*ms, why, "r2.1")
		s.says("r1.1", job, 20, scheduler.SkipOverlap)
		return s
	}
	before := instant(20) - 4*second
	lose(t, phases, scheduler.SkipOverlap, before).requireOnly(t, checker.Lost, 1)
	lose(t, all, scheduler.SkipOverlap, before).requireOnly(t, checker.Lost, 1)
	lose(t, phases, scheduler.SkipNoQuorum, before).requireOnly(t, checker.Lost, 1)
	lose(t, phases, scheduler.SkipOverlap, instant(20)+30*ms).requireOnly(t, checker.Lost, 1)
}

// At least once, a run that its process did not survive is not enough.
func TestTickThatIsCutShortForGood(t *testing.T) {
	s := begin(t)
	s.Lives = append(s.Lives, history.Life{Name: "r2.1", Began: second, Killed: instant(20) + 500*ms, Ended: instant(20) + second})
	s.unrun(again, 20, instant(20)+20*ms, scheduler.SkipHeld, "r2.1")
	s.add("r2.1", history.Record{Kind: history.Begin, At: instant(20), Run: "r2.1/1", Job: again, Tick: clock(instant(20)), Attempt: 1, Deadline: instant(21)})
	v := s.judge()
	require.Equal(t, 1, v.Count(checker.Lost), "%v", v.Violations)
	require.Equal(t, 1, v.Counts["runs cut short by SIGKILL"])

	for _, c := range []struct {
		cut  func(*history.Record)
		lost int
	}{
		{func(r *history.Record) { r.Panicked = true }, 1},
		{func(r *history.Record) { r.Told = true }, 1},
		{func(r *history.Record) { r.Told, r.Text = true, "lost" }, 1},
		{func(r *history.Record) { r.Text = "lost" }, 0}, // its task was at its end
	} {
		s := begin(t)
		s.ends(again, 20, c.cut)
		s.requireOnly(t, checker.Lost, c.lost)
	}
}

func TestRunsThatOverlap(t *testing.T) {
	at, lasting := instant(lasts+1)+second, 500*ms
	overlap := func(t *testing.T, second history.Instant) *days {
		s := begin(t)
		s.run("r0.1", manual, 0, at, lasting)
		s.run("r1.1", manual, 0, second, 0)
		return s
	}
	v := overlap(t, at+lasting-1).requireOnly(t, checker.Overlap, 1)
	require.Contains(t, v.Violations[0].Text, "1ns before")
	overlap(t, at+lasting).requireOnly(t, checker.Overlap, 0)

	// A run is over at the deadline that was known last, whether its process knows or not.
	hang := func(t *testing.T, next history.Instant) *days {
		s := begin(t)
		id := s.run("r0.1", manual, 0, at, 0)
		s.drop("r0.1", func(r history.Record) bool { return r.Run == id && r.Kind == history.End })
		s.add("r0.1", history.Record{Kind: history.Valid, At: at + second/2, Run: id, Deadline: at + 2*second})
		s.run("r1.1", manual, 0, next, 0)
		return s
	}
	hang(t, at+2*second-1).requireOnly(t, checker.Overlap, 1)
	hang(t, at+2*second).requireOnly(t, checker.Overlap, 0)
	s := hang(t, at+second)
	s.kill("r0.1", at+second-1)
	s.requireOnly(t, checker.Overlap, 0)

	// One that begins when its lease is over is stale, and excludes nobody.
	s = overlap(t, at+lasting-1)
	s.change("r1.1", func(r history.Record) bool { return r.Kind == history.Begin && r.Job == manual }, func(r *history.Record) { r.Deadline = r.At })
	require.Equal(t, 1, s.requireOnly(t, checker.Overlap, 0).Counts["runs that began after their lease, in a thawed process"])
}

func TestTokensOutOfOrder(t *testing.T) {
	at := instant(lasts+1) + second
	for _, test := range []struct {
		name  string
		token func(uint64) uint64
		n     int
	}{
		{"larger", func(n uint64) uint64 { return n + 7 }, 0},
		{"the same", func(n uint64) uint64 { return n }, 1},
		{"smaller", func(n uint64) uint64 { return n - 1 }, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := begin(t)
			s.token = 1000
			s.run("r0.1", manual, 0, at, 0)
			s.run("r1.1", manual, 0, at+second, 0)
			s.change("r1.1", func(r history.Record) bool { return r.Kind == history.Begin && r.Job == manual },
				func(r *history.Record) { r.Token = test.token(r.Token - 1) })
			s.requireOnly(t, checker.Disorder, test.n)
		})
	}
}

func TestTickThatIsNotExplained(t *testing.T) {
	forget := func(t *testing.T, job string) *days {
		s := begin(t)
		for i := range s.Jobs {
			s.Jobs[i].CatchUp, s.Jobs[i].Takes = scheduler.CatchUpLatest, s.Jobs[i].Every-time.Second/2 // no tick has to be run
		}
		s.drop("r0.1", of(history.Begin, job, 20))
		s.drop("r1.1", of(history.Skip, job, 20))
		return s
	}
	for _, job := range []string{plain, phases} {
		v := forget(t, job).requireOnly(t, checker.Unexplained, 1)
		require.Contains(t, v.Violations[0].Text, "nobody ran "+job)
		for why, n := range map[scheduler.Reason]int{
			scheduler.SkipMissed: 0, scheduler.SkipSuperseded: 0, scheduler.SkipOverlap: 0, scheduler.SkipPaused: 0, scheduler.SkipCutShort: 0,
			scheduler.SkipNoQuorum: 1, scheduler.SkipSplit: 1, scheduler.SkipStopped: 1,
		} {
			s := forget(t, job)
			s.skip("r0.1", job, 20, instant(23), why, "")
			s.requireOnly(t, checker.Unexplained, n)
		}
		// Of several in a row.
		s := forget(t, job)
		s.unrun(job, 21, instant(23), scheduler.SkipMissed, "")
		s.requireOnly(t, checker.Unexplained, 1)
		s.change("r0.1", of(history.Skip, job, 21), func(r *history.Record) { r.Count = 2 })
		s.requireOnly(t, checker.Unexplained, 0)
	}
	for name, hurt := range map[string]func(*days){
		"frozen": func(s *days) { s.freeze("r1.1", instant(20)-second, instant(20)+second) },
		"killed": func(s *days) { s.Lives = append(s.Lives, history.Life{Name: "r2.1", Killed: instant(20) + second}) },
		"stalled": func(s *days) {
			s.add("r1.1", history.Record{Kind: history.Pause, At: instant(20) + second/2, Delay: time.Second})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := forget(t, plain)
			hurt(s)
			require.Equal(t, 1, s.requireOnly(t, checker.Unexplained, 0).Counts["ticks whose fate nobody need tell, because something happened to a process"])
		})
	}
	s := forget(t, plain)
	s.freeze("r1.1", instant(20)-7*second, instant(20)-6*second)
	s.requireOnly(t, checker.Unexplained, 1)
}

func TestExplanationThatIsUntrue(t *testing.T) {
	const last = lasts + 1
	say := func(t *testing.T, why scheduler.Reason) *days {
		s := begin(t)
		s.unrun(plain, last, instant(last), scheduler.SkipOther, "")
		s.says("r1.1", plain, last, why)
		return s
	}
	for _, why := range []scheduler.Reason{scheduler.SkipHeld, scheduler.SkipDone} {
		s := say(t, why)
		s.requireOnly(t, checker.Untrue, 1)
		s.freeze("r0.1", instant(last)-second, instant(last))
		s.requireOnly(t, checker.Untrue, 0)
		// What was granted then stays granted.
		s = say(t, why)
		s.change("r1.1", of(history.Skip, plain, last), func(r *history.Record) { r.At += 500 * ms })
		s.requireOnly(t, checker.Untrue, 1)
		s.kill("r0.1", instant(last)-2700*ms)
		s.requireOnly(t, checker.Untrue, 0)
		// What is done may be a later tick.
		s = say(t, why)
		s.run("r0.1", plain, last+1, instant(last)+second, 0)
		s.requireOnly(t, checker.Untrue, 0)
	}
	say(t, scheduler.SkipNotLeader).requireOnly(t, checker.Untrue, 0)
	// Who had the lease for it found that it had been left out, as somebody said, or by a run of
	// whose end too few had heard.
	for why, n := range map[scheduler.Reason]int{scheduler.SkipHeld: 0, scheduler.SkipDone: 1} {
		s := say(t, why)
		s.skip("r0.1", plain, last, instant(last), scheduler.SkipOverlap, "")
		s.requireOnly(t, checker.Untrue, n)
		s = say(t, why)
		s.change("r0.1", of(history.Begin, plain, last-1), func(r *history.Record) {
			s.add("r0.1", history.Record{Kind: history.Unheard, At: r.At + ms, Token: r.Token})
		})
		s.requireOnly(t, checker.Untrue, n)
		// Who had votes, and then no time, was in the way, but has done nothing.
		for _, end := range []scheduler.Reason{scheduler.SkipTimeout, scheduler.SkipNoQuorum, scheduler.SkipSplit} {
			s := say(t, why)
			s.says("r0.1", plain, last, end)
			s.requireOnly(t, checker.Untrue, n)
		}
		// Long after that it is not in the way any more.
		s = say(t, why)
		s.change("r0.1", of(history.Skip, plain, last), func(r *history.Record) { r.Reason, r.At = string(scheduler.SkipTimeout), r.At-4*second })
		s.requireOnly(t, checker.Untrue, 1)
	}
}

func TestOtherViolations(t *testing.T) {
	for kind, hurt := range map[checker.Kind][]func(*days){
		checker.Leftover: {func(s *days) { s.Leftover = []string{"server 1: soak:{job/x}"} }},
		checker.Failed: {
			func(s *days) { s.Failures = []string{"replica 1 did not stop"} },
			func(s *days) { s.add("r0.1", history.Record{Kind: history.Fault, Text: "wrong parameter"}) },
			func(s *days) { s.Lives[1].Err = "exit status 2" },
		},
		checker.Leaked: {func(s *days) {
			s.change("r0.1", func(r history.Record) bool { return r.Kind == history.Stop }, func(r *history.Record) { r.Text = "a goroutine" })
		}},
	} {
		for _, how := range hurt {
			s := begin(t)
			how(s)
			s.requireOnly(t, kind, 1)
		}
	}
	s := begin(t)
	s.Lives[1].Err, s.Lives[1].Killed = "exit status 2", s.Lives[1].Ended
	s.requireOnly(t, checker.Failed, 0)
}
