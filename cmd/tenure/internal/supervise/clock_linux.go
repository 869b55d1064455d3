package supervise

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// suspendAware is the clock that goes on while the machine is suspended (clock_gettime(2)). All
// processes of the machine share it.
const suspendAware = unix.CLOCK_BOOTTIME

// timer ends at an instant: also while the machine was suspended, as soon as it resumes, for which
// timers of Go are late.
type timer struct{ fd int }

func newTimer() (timer, error) {
	fd, err := unix.TimerfdCreate(suspendAware, unix.TFD_CLOEXEC)
	if err != nil {
		return timer{}, fmt.Errorf("supervise: timerfd_create: %w", err)
	}
	return timer{fd}, nil
}

// wait returns at an instant, at once if it has passed, or when one of the descriptors can be read
// or has ended, or for no reason. It waits on the thread that calls it: nothing has to be scheduled
// between the instant and what is done then.
func (t timer) wait(until instant, fds ...int) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(int64(until), 1))}
	_ = unix.TimerfdSettime(t.fd, unix.TFD_TIMER_ABSTIME, &spec, nil) // what it has said before is gone by that
	var set []unix.PollFd
	for _, fd := range append(fds, t.fd) {
		set = append(set, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	_, _ = unix.Poll(set, -1)
}

// hurry has the kernel run this thread before others, if this process may ask for that, and not
// what it starts. The thread is the caller's own.
func hurry() {
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK,
	}, 0)
}
