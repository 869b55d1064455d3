package supervise

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// suspendAware is the clock that also runs while the machine is suspended (clock_gettime(2)). All
// processes of the machine share it.
const suspendAware = unix.CLOCK_BOOTTIME

// timer is a kernel timer on the suspendAware clock. If its instant passes while the machine is
// suspended, it ends as soon as the machine resumes. A timer of Go would be late.
type timer struct{ fd int }

func newTimer() (timer, error) {
	fd, err := unix.TimerfdCreate(suspendAware, unix.TFD_CLOEXEC)
	if err != nil {
		return timer{}, fmt.Errorf("supervise: timerfd_create: %w", err)
	}
	return timer{fd}, nil
}

// wait returns at an instant, or at once if the instant has passed. It returns earlier when one of
// the descriptors can be read or has ended, and may return earlier for no reason. It blocks the
// calling thread, so no goroutine has to be scheduled between the instant and the caller's next
// step.
func (t timer) wait(until instant, fds ...int) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(int64(until), 1))}
	_ = unix.TimerfdSettime(t.fd, unix.TFD_TIMER_ABSTIME, &spec, nil) // clears an earlier expiration
	var set []unix.PollFd
	for _, fd := range append(fds, t.fd) {
		set = append(set, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	_, _ = unix.Poll(set, -1)
}

// hurry asks the kernel to run the calling thread before others, if this process may ask for that.
// Processes that the thread starts do not inherit the priority. The caller has locked its goroutine
// to the thread.
func hurry() {
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK,
	}, 0)
}
