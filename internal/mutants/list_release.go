package main

// releaseMutants break the release of a lease.
var releaseMutants = []Mutant{
	{
		Name:   "release-before-the-cancel",
		Rule:   "The context is cancelled before anything is released.",
		File:   "redlock/release.go",
		Old:    "ended := l.end(ErrReleased)\n\tl.mu.Unlock()",
		New:    "l.mu.Unlock()\n\t_ = l.free(ctx)\n\tl.mu.Lock()\n\tended := l.end(ErrReleased)\n\tl.mu.Unlock()",
		Checks: []Check{tests(redlock, "TestReleaseCancelsTheContextFirst")},
	},
	{
		Name:   "release-with-the-callers-context",
		Rule:   "Release works with a context that has been cancelled.",
		File:   "redlock/release.go",
		Old:    "\tctx = context.WithoutCancel(ctx)\n",
		New:    "\tif l.outcome = ctx.Err(); l.outcome != nil {\n\t\treturn l.outcome\n\t}\n",
		Checks: []Check{tests(redlock, "TestTrap03ReleaseWorksWithACancelledContext")},
	},
	{
		Name:   "release-without-comparison",
		Rule:   "A release deletes the key only if it is its owner's.",
		File:   "redlock/script.go",
		Old:    "  return 0\nend\nif ARGV[2] == '0' then",
		New:    "end\nif ARGV[2] == '0' then",
		Checks: []Check{tests(redlock, "TestReleaseOfALostLeaseLeavesTheNextOwnersKey")},
	},
	{
		Name:   "release-not-repeated",
		Rule:   "A release that did not get through is sent again until the key would have expired.",
		File:   "redlock/node.go",
		Old:    "if r.op == OpRelease {\n\t\tn.owe",
		New:    "if r.op == OpRelease && false {\n\t\tn.owe",
		Checks: []Check{tests(redlock, "TestOwedReleasesAreSentUnderTraffic")},
	},
	{
		Name:   "release-expires-while-frozen",
		Rule:   "While a node is silent what it is owed does not expire: it carries out what lies in its sockets when it goes on.",
		File:   "redlock/owed.go",
		Old:    "if silent {",
		New:    "if silent && false {",
		Checks: []Check{tests(redlock, "TestTrap17AcquireThatSleptPastItsTTLIsUndone")},
	},
	{
		Name:   "release-twice",
		Rule:   "Every Release of a lease returns the same, and only the first one sends anything.",
		File:   "redlock/release.go",
		Old:    "if done := l.releasing; done != nil {",
		New:    "if done := l.releasing; done != nil && false {",
		Checks: []Check{tests(redlock, "TestTrap23EveryReleaseReturnsTheSame")},
	},
	{
		Name:   "min-hold-ignored",
		Rule:   "Within the minimum hold a release shortens the key's life to what is left of it.",
		File:   "redlock/release.go",
		Old:    "keep := max(l.attempt.cfg.minHold-l.q.clock.Now().Sub(l.granted), 0)",
		New:    "keep := max(0-l.q.clock.Now().Sub(l.granted), 0)",
		Checks: []Check{tests(redlock, "TestMinHoldShortensTheKeysLife"), tests(scheduler, "TestMinHoldIsExact")},
	},
	{
		Name:   "min-hold-from-the-release",
		Rule:   "The minimum hold counts from the grant.",
		File:   "redlock/release.go",
		Old:    "keep := max(l.attempt.cfg.minHold-l.q.clock.Now().Sub(l.granted), 0)",
		New:    "keep := l.attempt.cfg.minHold",
		Checks: []Check{tests(redlock, "TestReleaseAfterTheMinHoldDeletes")},
	},
}
