package main

// waitMutants break how a waiter wakes.
var waitMutants = []Mutant{
	{
		Name:   "waiter-without-poll",
		Rule:   "A waiter tries about once a TTL, in case the release was not announced.",
		File:   "redlock/wait.go",
		Old:    "pause = min(a.untilExpiry(), jitter(a.cfg.ttl, pollJitter))",
		New:    "pause = a.untilExpiry()",
		Checks: []Check{tests(redlock, "TestTrap14WaiterWithoutMessagesPolls")},
	},
	{
		Name:   "waiter-without-pttl",
		Rule:   "A waiter wakes when the keys of a dead holder expire.",
		File:   "redlock/wait.go",
		Old:    "pause = min(a.untilExpiry(), jitter(a.cfg.ttl, pollJitter))",
		New:    "pause = jitter(a.cfg.ttl, pollJitter)",
		Checks: []Check{tests(redlock, "TestTrap12SuccessorWakesAtExpiry")},
	},
	{
		Name:   "waiter-not-told",
		Rule:   "A waiter wakes when a quorum has announced the release.",
		File:   "redlock/notice.go",
		Old:    "if w.seen++; w.seen == need {",
		New:    "if w.seen++; w.seen == -1 {",
		Checks: []Check{tests(redlock, "TestWaiterWakesOnRelease")},
	},
	{
		Name:   "waiter-comes-too-late",
		Rule:   "A waiter that hears of a minimum hold comes when that is over.",
		File:   "redlock/wait.go",
		Old:    "\t\t\ta.freeIn = u.freeIn\n",
		New:    "",
		Checks: []Check{tests(redlock, "TestMinHoldShortensTheKeysLife")},
	},
	{
		Name:   "waiter-put-off",
		Rule:   "No announcement puts a waiter off for longer than a TTL.",
		File:   "redlock/wait.go",
		Old:    "timer.Reset(min(a.untilExpiry(), time.Until(poll)))",
		New:    "_ = poll\n\t\t\ttimer.Reset(a.untilExpiry())",
		Checks: []Check{tests(redlock, "TestAnnouncementDoesNotPutAWaiterOff")},
	},
	{
		Name:   "waiter-needs-every-node",
		Rule:   "A waiter wakes when enough keys have expired for a quorum, not when all have.",
		File:   "redlock/acquire.go",
		Old:    "wanted := min(max(a.q.need-o.agreed, 1), len(ttls))",
		New:    "wanted := len(ttls)",
		Checks: []Check{tests(redlock, "TestUntilFree")},
	},
	{
		Name:   "waiter-polls",
		Rule:   "A waiter sleeps until the release or the expiry: it costs one or two commands a node and TTL.",
		File:   "redlock/wait.go",
		Old:    "pause = min(a.untilExpiry(), jitter(a.cfg.ttl, pollJitter))",
		New:    "pause = jitter(a.cfg.ttl/10, pollJitter)",
		Checks: []Check{tests(redlock, "TestTrap07WaiterIsQuiet")},
	},
	{
		Name:   "context-error-masked",
		Rule:   "A context's error is never hidden behind another, nor hides it.",
		File:   "redlock/wait.go",
		Old:    "return nil, newContextError(ctx, a.keys.name, err)",
		New:    "return nil, err",
		Checks: []Check{tests(redlock, "TestTrap08ErrorsTellWhatHappened", "TestAcquireReturnsItsContextsError")},
	},
}
