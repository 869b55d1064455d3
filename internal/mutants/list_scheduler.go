package main

// schedulerMutants break the lock of gocron's jobs.
var schedulerMutants = []Mutant{
	{
		Name:   "lock-waits",
		Rule:   "Lock makes one try: who waits for the holder runs the tick a second time.",
		File:   "scheduler/locker.go",
		Old:    "return l.q.TryAcquire(ctx,",
		New:    "return l.q.Acquire(ctx,",
		Checks: []Check{tests(scheduler, "TestTrap02LockDoesNotWaitForTheHolder")},
	},
	{
		Name:   "lock-without-try-timeout",
		Rule:   "Lock returns within the try timeout.",
		File:   "scheduler/locker.go",
		Old:    "context.WithTimeoutCause(ctx, l.cfg.tryTimeout, late)",
		New:    "context.WithTimeoutCause(ctx, 100*l.cfg.tryTimeout, late)",
		Checks: []Check{tests(scheduler, "TestTryTimeout")},
	},
	{
		Name:   "unlock-with-the-jobs-context",
		Rule:   "Unlock works with the job's context, which a shutdown has cancelled.",
		File:   "scheduler/lock.go",
		Old:    "unreported := l.unwatch()",
		New:    "if ctx.Err() != nil {\n\t\treturn ctx.Err()\n\t}\n\tunreported := l.unwatch()",
		Checks: []Check{tests(scheduler, "TestUnlockWithACancelledContextFreesTheKey", "TestUnconfirmedUnlockIsLogged")},
	},
	{
		Name:   "job-min-hold-dropped",
		Rule:   "The minimum hold of a job reaches its lease.",
		File:   "scheduler/option.go",
		Old:    "c.lease = append(c.lease, redlock.WithMinHold(c.minHold))",
		New:    "_ = redlock.WithMinHold",
		Checks: []Check{tests(scheduler, "TestMinHoldIsExact", "TestTrap03InstantJob")},
	},
	{
		Name:   "job-loss-untold",
		Rule:   "A lease that is lost while its job runs is reported at once.",
		File:   "scheduler/lock.go",
		Old:    "context.AfterFunc(lease.Context(), func() {",
		New:    "context.AfterFunc(context.WithoutCancel(lease.Context()), func() {",
		Checks: []Check{tests(scheduler, "TestLossIsLoggedWhileTheJobRuns")},
	},
	{
		Name:   "lock-panics",
		Rule:   "A panic below Lock is an error, and does not end the process.",
		File:   "scheduler/locker.go",
		Old:    "if p := recover(); p != nil {",
		New:    "if p := recover(); p != nil && false {",
		Checks: []Check{tests(scheduler, "TestTrap09PanicInLockIsAnError")},
	},
}
