package main

// clockMutants break how the clocks of servers and of this process are watched.
var clockMutants = []Mutant{
	{
		Name:   "jump-ignored",
		Rule:   "A server whose wall clock jumped forward does not vote for the quarantine.",
		File:   "redlock/gate.go",
		Old:    "if jump <= 0 {",
		New:    "if jump <= 0 || true {",
		Checks: []Check{tests(redlock, "TestClockJumpCostsTheVote")},
	},
	{
		Name:   "jump-grant-counts",
		Rule:   "The grant whose own answer shows that the clock has jumped does not count.",
		File:   "redlock/gate.go",
		Old:    "why != nil && why.Condition == ClockJumped {",
		New:    "why != nil && false {",
		Checks: []Check{tests(redlock, "TestClockJumpCostsTheVote")},
	},
	{
		Name:   "jump-unseen-while-idle",
		Rule:   "A server's clock is looked at also when nobody acquires anything.",
		File:   "redlock/duty.go",
		Old:    "n.probe(timeProbe, now)",
		New:    "_ = timeProbe",
		Checks: []Check{tests(redlock, "TestClockJumpIsNoticedWhileIdle")},
	},
	{
		Name:   "jump-in-small-steps",
		Rule:   "What is known of a server's clock is kept: small steps add up and are seen.",
		File:   "redlock/clockwatch.go",
		Old:    "\tcase lo > most:\n\t\tlo, hi = most, most\n",
		New:    "\tcase lo > most:\n",
		Checks: []Check{tests(redlock, "TestClockWatchSeesACreepingClock")},
	},
	{
		Name:   "suspend-not-counted",
		Rule:   "The time in which the machine was suspended counts.",
		File:   "internal/clock/clock.go",
		Old:    "return Instant(int64(mono) + c.suspended.Load())",
		New:    "return Instant(int64(mono))",
		Checks: []Check{tests(clock, "TestSuspendCounts")},
	},
	{
		Name:   "wall-clock",
		Rule:   "A step of this machine's wall clock changes nothing.",
		File:   "internal/clock/clock.go",
		Old:    "mono := t.Sub(c.base)",
		New:    "mono := t.Round(0).Sub(c.base.Round(0))",
		Checks: []Check{tests(clock, "TestWallClockStepChangesNothing")},
	},
}
