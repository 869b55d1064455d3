// Package supervise runs a command under a lease, so that the command ends before the lease does.
//
//	tenure ──── control, report, deadline ──── watchdog ──── command ─── its own children
//
// [Command.Run] starts a watchdog, which is this program again ([Watch]), and the watchdog starts
// the command, in a process group of its own. Both know the deadline of the lease, by the clock
// that goes on while the machine is suspended, and each of them ends the command before it:
//
//   - About to end unextended: the watchdog sends SIGTERM when the grace period is all that is
//     left, and SIGKILL a margin before the deadline. So it does if tenure is frozen.
//   - tenure dies: the watchdog's socket ends, and the kernel wakes the watchdog if it is stopped
//     (PR_SET_PDEATHSIG with SIGCONT). It sends SIGTERM at once, and SIGKILL when the grace period
//     is over, and a margin before the deadline at the latest.
//   - The watchdog dies: the kernel kills the command (PR_SET_PDEATHSIG), and tenure kills what the
//     command has started.
//   - The watchdog is frozen: tenure thaws it, and kills everything itself within the margin if it
//     has not done so.
//
// Processes that leave the group (setsid, double forks) are found because orphans are given to the
// watchdog, and if that is dead to tenure (PR_SET_CHILD_SUBREAPER), so that all that the command
// has started stays below one of them.
//
// When the command ends and leaves processes behind, these are ended too, before Run returns.
//
// It does not hold: when both tenure and the watchdog are stopped by SIGSTOP and none of them is
// killed; for what the command has started beyond itself, when both are killed at once, or one is
// killed while the other is stopped; for a process that has become another user's, which may not be
// killed (sudo, a set-user-ID program); for one in uninterruptible sleep, which dies when the
// kernel lets go of it. A machine that is suspended runs nothing; when it resumes, the command may
// run for the moment until the watchdog runs. A resource that checks the fencing token is safe from
// all of that.
//
// That takes Linux: elsewhere Run returns [ErrUnsupported].
package supervise
