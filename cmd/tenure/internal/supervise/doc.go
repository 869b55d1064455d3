// Package supervise runs a command under a lease, so that the command ends before the lease does.
//
//	tenure ──── control, report, deadline ──── watchdog ──── command ─── its own children
//
// [Command.Run] starts a watchdog, which is this program again ([Watch]). The watchdog starts the
// command in a process group of its own. tenure and the watchdog both know the deadline of the
// lease, by a clock that also runs while the machine is suspended. Each of them ends the command
// before the deadline:
//
//   - The lease is about to expire without an extension: the watchdog sends SIGTERM when only the
//     grace period is left, and SIGKILL a margin before the deadline. It does so even if tenure is
//     frozen.
//   - tenure dies: the watchdog's socket ends, and the kernel wakes the watchdog if it is stopped
//     (PR_SET_PDEATHSIG with SIGCONT). The watchdog sends SIGTERM at once. It sends SIGKILL when
//     the grace period is over, and at the latest a margin before the deadline.
//   - The watchdog dies: the kernel kills the command (PR_SET_PDEATHSIG), and tenure kills the
//     processes that the command has started.
//   - The watchdog is frozen: tenure continues it. If the watchdog has not killed everything in
//     time, tenure does so itself within the margin.
//
// Processes that leave the group (by setsid or a double fork) are found too. The kernel gives
// orphans to the watchdog, or to tenure if the watchdog is dead (PR_SET_CHILD_SUBREAPER). So every
// process that the command has started stays below one of the two.
//
// When the command ends and leaves processes behind, these are ended too, before Run returns.
//
// The command, or a process that it has started, may outlive the lease in these cases:
//
//   - tenure and the watchdog are both stopped by SIGSTOP, and neither is killed.
//   - tenure and the watchdog are killed at once, or one is killed while the other is stopped. The
//     command itself still ends in time, but not the processes that it has started.
//   - A process has become another user's and may not be killed (sudo, a set-user-ID program).
//   - A process is in uninterruptible sleep. It dies when the kernel ends the sleep.
//   - The machine was suspended. When it resumes, the command may run until the watchdog runs.
//
// A resource that checks the fencing token is safe in all of these cases.
//
// The package needs Linux: on other systems Run returns [ErrUnsupported].
package supervise
