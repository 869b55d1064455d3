package checker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/harness/history"
	"github.com/tenure-dev/tenure/tools/soak/checker"
	"github.com/tenure-dev/tenure/tools/soak/record"
)

func TestCounts(t *testing.T) {
	s := begin(t)
	s.run("r0.1", manual, 0, instant(3), second/2)
	s.Strikes = append(s.Strikes, record.Strike{Kind: "kill", Replica: 1}, record.Strike{Kind: "roll", Replica: 0, Life: "r0.1"})
	v := checker.Check(s.History)
	require.Empty(t, v.Violations)
	require.Equal(t, 4*(lasts+1)+1, v.Runs)
	require.Equal(t, 4*(lasts+1), v.Ticks)
	require.Equal(t, 1, v.Manual)
	require.Equal(t, 5, v.Jobs)
	require.Equal(t, 2, v.Stopped)
	require.Equal(t, 3*(lasts-1), v.Exact, "of three jobs with CatchUpAll")
	require.Equal(t, map[string]int{"held": 4 * (lasts + 1)}, v.Skips)
	require.Equal(t, map[string]int{"kill (nobody there)": 1, "roll": 1}, v.Faults)
	require.Empty(t, v.Nobody)
	require.NotZero(t, v.Explained)
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
		s.change("r0.1", of(record.Begin, job, lasts+1), func(r *record.Record) { r.Tick += 500 })
		s.requireOnly(t, checker.Untimely, 1)
	}
	s := begin(t)
	for _, life := range []string{"r0.1", "r1.1"} {
		s.change(life, func(r record.Record) bool { return r.Job == phases }, func(r *record.Record) { r.Tick += 500 })
	}
	s.requireOnly(t, checker.Untimely, 0)
}

func TestTickThatIsRunAgain(t *testing.T) {
	last := lasts + 1
	retry := func(t *testing.T, cut func(s *script, end *record.Record)) *script {
		s := begin(t)
		id := ""
		s.change("r0.1", of(record.Begin, again, last), func(r *record.Record) { id = r.Run })
		s.change("r0.1", func(r record.Record) bool { return r.Kind == record.End && r.Run == id }, func(r *record.Record) { cut(s, r) })
		s.run("r1.1", again, last, instant(last)+2*second, 0)
		return s
	}
	t.Run("in order", func(t *testing.T) { retry(t, func(*script, *record.Record) {}).requireOnly(t, checker.Twice, 1) })
	t.Run("panic", func(t *testing.T) {
		retry(t, func(_ *script, r *record.Record) { r.Panicked = true }).requireOnly(t, checker.Twice, 0)
	})
	t.Run("told to end", func(t *testing.T) {
		retry(t, func(_ *script, r *record.Record) { r.Told = true }).requireOnly(t, checker.Twice, 0)
	})
	t.Run("lease lost", func(t *testing.T) {
		retry(t, func(_ *script, r *record.Record) { r.Text = "lost" }).requireOnly(t, checker.Twice, 0)
	})
	t.Run("its completion was not confirmed", func(t *testing.T) {
		s := retry(t, func(s *script, r *record.Record) {
			s.add("r0.1", record.Record{Kind: record.Unheard, At: r.At + ms, Token: s.tokenOf("r0.1", r.Run)})
		})
		require.Len(t, s.requireOnly(t, checker.Twice, 0).Excuses, 1)
	})
	t.Run("the completion of another run was not confirmed", func(t *testing.T) {
		retry(t, func(s *script, r *record.Record) {
			s.add("r0.1", record.Record{Kind: record.Unheard, At: r.At + ms, Token: s.tokenOf("r0.1", r.Run) - 1})
		}).requireOnly(t, checker.Twice, 1)
	})
	t.Run("frozen before the completion", func(t *testing.T) {
		retry(t, func(s *script, r *record.Record) { s.freeze("r0.1", r.At+100*ms, r.At+second) }).requireOnly(t, checker.Twice, 0)
	})
	t.Run("frozen long after it", func(t *testing.T) {
		retry(t, func(s *script, r *record.Record) { s.freeze("r0.1", r.At+1100*ms, r.At+2*second) }).requireOnly(t, checker.Twice, 1)
	})
	t.Run("killed", func(t *testing.T) {
		s := retry(t, func(*script, *record.Record) {})
		s.kill("r0.1", instant(last)+50*ms)
		s.requireOnly(t, checker.Twice, 0)
	})
	t.Run("the second by a lease that ran out before the first", func(t *testing.T) {
		s := retry(t, func(*script, *record.Record) {})
		s.change("r1.1", of(record.Begin, again, last), func(r *record.Record) { r.Deadline, r.Token = r.At, r.Token+1000 })
		s.requireOnly(t, checker.Twice, 0)
	})
	t.Run("killed, at most once", func(t *testing.T) {
		s := begin(t)
		s.run("r1.1", all, last, instant(last)+2*second, 0)
		s.kill("r0.1", instant(last)+50*ms)
		s.requireOnly(t, checker.Twice, 1)
	})
}

func TestTickThatIsLost(t *testing.T) {
	for _, job := range []string{all, again, phases} {
		s := begin(t)
		s.drop("r0.1", of(record.Begin, job, 20))
		s.skip("r0.1", job, 20, instant(20), scheduler.SkipNoQuorum, "")
		s.change("r1.1", of(record.Skip, job, 20), func(r *record.Record) { r.Reason = string(scheduler.SkipNoQuorum) })
		v := s.requireOnly(t, checker.Lost, 1)
		require.Contains(t, v.Violations[0].Text, "r1.1 at 40.02s: no_quorum by r0.1")
		require.Equal(t, map[string]int{"no_quorum": 1}, v.Nobody)
	}
	s := begin(t)
	s.drop("r0.1", of(record.Begin, plain, 20))
	s.skip("r0.1", plain, 20, instant(20), scheduler.SkipNoQuorum, "")
	s.requireOnly(t, checker.Lost, 1)
	s.Lives = append(s.Lives, history.Life{Name: "r2.1", Killed: instant(20)})
	s.requireOnly(t, checker.Lost, 0)

	s = begin(t)
	s.drop("r0.1", func(r record.Record) bool { return r.Job == all })
	s.drop("r1.1", func(r record.Record) bool { return r.Job == all })
	require.Equal(t, 1, checker.Check(s.History).Count(checker.Lost), "a job that was never run")
	s.Halted = true
	require.Zero(t, checker.Check(s.History).Count(checker.Lost), "of a soak that was interrupted")
}

// Its winner was killed before the task began: at most once means that nobody runs it.
func TestTickWhoseWinnerDied(t *testing.T) {
	lose := func(t *testing.T, job string) *script {
		s := begin(t)
		s.Lives = append(s.Lives, history.Life{Name: "r2.1", Began: second, Killed: instant(20) + 5*ms, Ended: instant(20) + 6*ms})
		s.drop("r0.1", of(record.Begin, job, 20))
		s.skip("r0.1", job, 20, instant(20)+20*ms, scheduler.SkipHeld, "r2.1")
		return s
	}
	v := lose(t, all).requireOnly(t, checker.Lost, 0)
	require.Len(t, v.Excuses, 1)
	lose(t, again).requireOnly(t, checker.Lost, 1)

	for _, killed := range []history.Instant{instant(20) - 4*second, instant(20) + 1100*ms} {
		s := lose(t, all)
		s.Lives[2].Killed = killed
		require.Equal(t, 1, checker.Check(s.History).Count(checker.Lost))
	}
	s := lose(t, all)
	s.change("r0.1", of(record.Skip, all, 20), func(r *record.Record) { r.Reason = string(scheduler.SkipOverlap) })
	s.requireOnly(t, checker.Lost, 1)
}

// At most once, a tick that was granted ahead of its time is lost with its holder, and others say
// that it was cut short. Without a fault, from the grant until they say so, it is lost.
func TestTickThatWasCutShortBeforeItsTask(t *testing.T) {
	const skew = 300 * ms // by which the holder's clock is ahead
	due := instant(20) - skew
	cut := func(t *testing.T, job string) *script {
		s := begin(t)
		s.Lives = append(s.Lives, history.Life{Name: "r2.1", Began: second, Ended: instant(lasts)})
		s.add("r2.1", record.Record{Kind: record.Start, At: second, Clock: clock(second + skew)})
		s.add("r2.1", record.Record{Kind: record.Stopping, At: instant(lasts)})
		s.drop("r0.1", of(record.Begin, job, 20))
		s.skip("r0.1", job, 20, instant(20)+600*ms, scheduler.SkipCutShort, "r2.1")
		return s
	}
	for _, test := range []struct {
		name     string
		from, to history.Instant
		lost     int
	}{
		{"frozen before its time", due - 350*ms, due + second, 0},
		{"frozen before the task", due, due + second, 0},
		{"frozen too early", due - second, due - 401*ms, 1},
		{"frozen too late", instant(20) + 601*ms, instant(20) + second, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := cut(t, all)
			s.freeze("r2.1", test.from, test.to)
			require.Len(t, s.requireOnly(t, checker.Lost, test.lost).Excuses, 1-test.lost)
		})
	}
	t.Run("killed", func(t *testing.T) {
		s := cut(t, all)
		s.kill("r2.1", due-ms)
		s.requireOnly(t, checker.Lost, 0)
	})
	t.Run("without servers", func(t *testing.T) {
		s := cut(t, all)
		s.Strikes = append(s.Strikes, record.Strike{Kind: "freeze-server", Replica: -1, Server: 1, From: due - 100*ms, To: due + second})
		s.requireOnly(t, checker.Lost, 0)
	})
	t.Run("another one was frozen", func(t *testing.T) {
		s := cut(t, all)
		s.freeze("r1.1", due-300*ms, due+second)
		s.requireOnly(t, checker.Lost, 1)
	})
	t.Run("at least once", func(t *testing.T) {
		s := cut(t, again)
		s.freeze("r2.1", due-300*ms, due+second)
		s.requireOnly(t, checker.Lost, 1)
	})
	t.Run("nobody said so", func(t *testing.T) {
		s := cut(t, all)
		s.freeze("r2.1", due-300*ms, due+second)
		s.change("r0.1", of(record.Skip, all, 20), func(r *record.Record) { r.Reason = string(scheduler.SkipHeld) })
		s.requireOnly(t, checker.Lost, 1)
	})
}

// A tick that comes within the lease of a run whose process was killed is not overlapped: it was
// missed, and is to be run.
func TestTickThatADeadRunOverlaps(t *testing.T) {
	lose := func(t *testing.T, job string, why scheduler.Reason, killed history.Instant) *script {
		s := begin(t)
		s.Lives = append(s.Lives, history.Life{Name: "r2.1", Began: second, Killed: killed, Ended: killed + ms})
		s.drop("r0.1", of(record.Begin, job, 20))
		s.skip("r0.1", job, 20, instant(20)+20*ms, why, "r2.1")
		s.change("r1.1", of(record.Skip, job, 20), func(r *record.Record) { r.Reason = string(scheduler.SkipOverlap) })
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
	s.drop("r0.1", of(record.Begin, again, 20))
	s.skip("r0.1", again, 20, instant(20)+20*ms, scheduler.SkipHeld, "r2.1")
	s.add("r2.1", record.Record{Kind: record.Begin, At: instant(20), Run: "r2.1/1", Job: again, Tick: clock(instant(20)), Attempt: 1, Deadline: instant(21)})
	v := checker.Check(s.History)
	require.Equal(t, 1, v.Count(checker.Lost), "%v", v.Violations)
	require.Equal(t, 1, v.Cut)

	for _, cut := range []func(*record.Record){
		func(r *record.Record) { r.Panicked = true }, func(r *record.Record) { r.Text = "lost" }, func(r *record.Record) { r.Told = true },
	} {
		s := begin(t)
		id := ""
		s.change("r0.1", of(record.Begin, again, 20), func(r *record.Record) { id = r.Run })
		s.change("r0.1", func(r record.Record) bool { return r.Kind == record.End && r.Run == id }, cut)
		s.requireOnly(t, checker.Lost, 1)
	}
}

func TestRunsThatOverlap(t *testing.T) {
	at, lasting := instant(lasts+1)+second, 500*ms
	overlap := func(t *testing.T, second history.Instant) *script {
		s := begin(t)
		s.run("r0.1", manual, 0, at, lasting)
		s.run("r1.1", manual, 0, second, 0)
		return s
	}
	v := overlap(t, at+lasting-1).requireOnly(t, checker.Overlap, 1)
	require.Contains(t, v.Violations[0].Text, "1ns before")
	overlap(t, at+lasting).requireOnly(t, checker.Overlap, 0)

	// A run is over at the deadline that was known last, whether its process knows or not.
	hang := func(t *testing.T, next history.Instant) *script {
		s := begin(t)
		id := s.run("r0.1", manual, 0, at, 0)
		s.drop("r0.1", func(r record.Record) bool { return r.Run == id && r.Kind == record.End })
		s.add("r0.1", record.Record{Kind: record.Valid, At: at + second/2, Run: id, Deadline: at + 2*second})
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
	s.change("r1.1", func(r record.Record) bool { return r.Kind == record.Begin && r.Job == manual }, func(r *record.Record) { r.Deadline = r.At })
	require.Equal(t, 1, s.requireOnly(t, checker.Overlap, 0).Stale)
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
			s.change("r1.1", func(r record.Record) bool { return r.Kind == record.Begin && r.Job == manual },
				func(r *record.Record) { r.Token = test.token(r.Token - 1) })
			s.requireOnly(t, checker.Disorder, test.n)
		})
	}
}

func TestTickThatIsNotExplained(t *testing.T) {
	forget := func(t *testing.T, job string) *script {
		s := begin(t)
		for i := range s.Jobs {
			s.Jobs[i].CatchUp, s.Jobs[i].Takes = scheduler.CatchUpLatest, s.Jobs[i].Every-time.Second/2 // no tick has to be run
		}
		s.drop("r0.1", of(record.Begin, job, 20))
		s.drop("r1.1", of(record.Skip, job, 20))
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
		s.drop("r0.1", of(record.Begin, job, 21))
		s.skip("r0.1", job, 21, instant(23), scheduler.SkipMissed, "")
		s.requireOnly(t, checker.Unexplained, 1)
		s.change("r0.1", of(record.Skip, job, 21), func(r *record.Record) { r.Count = 2 })
		s.requireOnly(t, checker.Unexplained, 0)
	}
	for name, hurt := range map[string]func(*script){
		"frozen": func(s *script) { s.freeze("r1.1", instant(20)-second, instant(20)+second) },
		"killed": func(s *script) { s.Lives = append(s.Lives, history.Life{Name: "r2.1", Killed: instant(20) + second}) },
		"stalled": func(s *script) {
			s.add("r1.1", record.Record{Kind: record.Pause, At: instant(20) + second/2, Delay: time.Second})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := forget(t, plain)
			hurt(s)
			require.Equal(t, 1, s.requireOnly(t, checker.Unexplained, 0).Unasked)
		})
	}
	s := forget(t, plain)
	s.freeze("r1.1", instant(20)-7*second, instant(20)-6*second)
	s.requireOnly(t, checker.Unexplained, 1)

	// A one-time job is to be run if a replica had it that lived for long enough.
	once := func(t *testing.T, end history.Instant) *script {
		s := begin(t)
		s.add("r1.1", record.Record{Kind: record.Created, At: instant(10), Job: "once-at-7", Tick: clock(instant(12))})
		for i := range s.Lives {
			s.Lives[i].Ended = end
		}
		s.drop("r1.1", func(r record.Record) bool { return r.Kind == record.Stopping })
		return s
	}
	s = once(t, s.Over)
	require.Equal(t, 1, checker.Check(s.History).Count(checker.Unexplained))
	s.skip("r1.1", "once-at-7", 12, instant(12), scheduler.SkipMissed, "")
	require.Zero(t, checker.Check(s.History).Count(checker.Unexplained))
	require.Zero(t, checker.Check(once(t, instant(12)+second).History).Count(checker.Unexplained))
}

func TestExplanationThatIsUntrue(t *testing.T) {
	const last = lasts + 1
	say := func(t *testing.T, why scheduler.Reason) *script {
		s := begin(t)
		s.drop("r0.1", of(record.Begin, plain, last))
		s.skip("r0.1", plain, last, instant(last), scheduler.SkipOther, "")
		s.change("r1.1", of(record.Skip, plain, last), func(r *record.Record) { r.Reason = string(why) })
		return s
	}
	for _, why := range []scheduler.Reason{scheduler.SkipHeld, scheduler.SkipDone} {
		s := say(t, why)
		s.requireOnly(t, checker.Untrue, 1)
		s.freeze("r0.1", instant(last)-second, instant(last))
		s.requireOnly(t, checker.Untrue, 0)
		// What was granted then stays granted.
		s = say(t, why)
		s.change("r1.1", of(record.Skip, plain, last), func(r *record.Record) { r.At += 500 * ms })
		s.requireOnly(t, checker.Untrue, 1)
		s.kill("r0.1", instant(last)-2700*ms)
		s.requireOnly(t, checker.Untrue, 0)
		// What is done may be a later tick.
		s = say(t, why)
		s.run("r0.1", plain, last+1, instant(last)+second, 0)
		s.requireOnly(t, checker.Untrue, 0)
	}
	say(t, scheduler.SkipNotLeader).requireOnly(t, checker.Untrue, 0)
	// Who had the lease for it found that it had been left out.
	for why, n := range map[scheduler.Reason]int{scheduler.SkipHeld: 0, scheduler.SkipDone: 1} {
		s := say(t, why)
		s.skip("r0.1", plain, last, instant(last), scheduler.SkipOverlap, "")
		s.requireOnly(t, checker.Untrue, n)
	}
	// Who had votes, and then no time, was in the way, but has done nothing.
	for why, n := range map[scheduler.Reason]int{scheduler.SkipHeld: 0, scheduler.SkipDone: 1} {
		for _, end := range []scheduler.Reason{scheduler.SkipTimeout, scheduler.SkipNoQuorum, scheduler.SkipSplit} {
			s := say(t, why)
			s.change("r0.1", of(record.Skip, plain, last), func(r *record.Record) { r.Reason = string(end) })
			s.requireOnly(t, checker.Untrue, n)
		}
		// Long after that it is not in the way any more.
		s := say(t, why)
		s.change("r0.1", of(record.Skip, plain, last), func(r *record.Record) { r.Reason, r.At = string(scheduler.SkipTimeout), r.At-4*second })
		s.requireOnly(t, checker.Untrue, 1)
	}
}

func TestOtherViolations(t *testing.T) {
	s := begin(t)
	s.Leftover = []string{"server 1: soak:{job/x}"}
	s.requireOnly(t, checker.Leftover, 1)
	s = begin(t)
	s.Failures = []string{"replica 1 did not stop"}
	s.requireOnly(t, checker.Failure, 1)
	s = begin(t)
	s.add("r0.1", record.Record{Kind: record.Fault, Text: "wrong parameter"})
	s.requireOnly(t, checker.Faulty, 1)
	s = begin(t)
	s.change("r0.1", func(r record.Record) bool { return r.Kind == record.Stop }, func(r *record.Record) { r.Text = "a goroutine" })
	s.requireOnly(t, checker.Leaked, 1)
	s = begin(t)
	s.Lives[1].Err = "exit status 2"
	s.requireOnly(t, checker.Ended, 1)
	s.Lives[1].Killed = s.Lives[1].Ended
	s.requireOnly(t, checker.Ended, 0)
}
