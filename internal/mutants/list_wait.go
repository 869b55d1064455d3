package main

import "slices"

// waitMutants break how those who wait get their turn, and what is sent together.
var waitMutants = slices.Concat(wakeMutants, waitQueueMutants, packetMutants, pairsMutants, flightMutants, convoyMutants)

// wakeMutants break how a waiter wakes.
var wakeMutants = []Mutant{
	{
		Name:   "waiter-without-poll",
		Rule:   "A waiter tries about once a TTL, in case it was not called.",
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
		Rule:   "A waiter wakes when a release calls it.",
		File:   "redlock/queue.go",
		Old:    "if w := c.waiters[to]; w != nil {",
		New:    "if w := c.waiters[to]; w != nil && false {",
		Checks: []Check{tests(redlock, "TestWaiterWakesOnRelease")},
	},
	{
		Name:   "waiter-comes-too-late",
		Rule:   "A waiter that hears of a minimum hold comes when that is over.",
		File:   "redlock/wait.go",
		Old:    "\t\t\ta.freeIn, a.rank = u.freeIn, 0\n",
		New:    "",
		Checks: []Check{tests(redlock, "TestMinHoldShortensTheKeysLife")},
	},
	{
		Name:   "waiter-put-off",
		Rule:   "No call puts a waiter off for longer than a TTL.",
		File:   "redlock/wait.go",
		Old:    "timer.Reset(max(min(a.untilExpiry(), time.Until(poll)), atOnce))",
		New:    "_ = poll\n\t\t\ttimer.Reset(a.untilExpiry())",
		Checks: []Check{tests(redlock, "TestCallDoesNotPutAWaiterOff")},
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
