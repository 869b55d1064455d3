package main

// inScheduler are those of a scheduler.Locker and of options.
var inScheduler = []defect{
	{"lock-waits", "Lock makes one try: one that waits for the holder runs the tick a second time.",
		[]edit{{"scheduler/locker.go", "return l.q.TryAcquire(ctx, key, l.cfg.lease...)", "return l.q.Acquire(ctx, key, l.cfg.lease...)"}},
		"./scheduler", "TestTrap02LockDoesNotWaitForTheHolder"},
	{"lock-hangs", "Lock returns within the try timeout.",
		[]edit{{"scheduler/locker.go", "context.WithTimeoutCause(ctx, l.cfg.tryTimeout, late)", "context.WithTimeoutCause(ctx, 100*l.cfg.tryTimeout, late)"}},
		"./scheduler", "TestTryTimeout"},
	{"lock-panics", "A panic below Lock is an error, and does not end the process.",
		[]edit{{"scheduler/locker.go", "lock, err = nil, recovered(ctx, l.cfg.logger, name, p)", "panic(p)"}},
		"./scheduler", "TestTrap09PanicInLockIsAnError"},
}
