package supervise

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// suspendAware is the clock that goes on while the machine is suspended (clock_gettime(2)). All
// processes of the machine share it.
const suspendAware = unix.CLOCK_BOOTTIME

// timer ends at an instant: also while the machine was suspended, as soon as it resumes, for which
// timers of Go are late.
type timer struct{ fd int }

func newTimer(flags int) (timer, error) {
	fd, err := unix.TimerfdCreate(suspendAware, unix.TFD_CLOEXEC|flags)
	if err != nil {
		return timer{}, fmt.Errorf("supervise: timerfd_create: %w", err)
	}
	return timer{fd}, nil
}

// set has the timer end at an instant, at once if it has passed, and at no other. What it has said
// before is gone by that.
func (t timer) set(at instant) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(int64(at), 1))}
	_ = unix.TimerfdSettime(t.fd, unix.TFD_TIMER_ABSTIME, &spec, nil)
}

// wait returns at an instant, or when one of the descriptors can be read or has ended, or for no
// reason. It waits on the thread that calls it: nothing has to be scheduled between the instant and
// what is done then.
func (t timer) wait(until instant, fds ...int) {
	t.set(until)
	var set []unix.PollFd
	for _, fd := range append(fds, t.fd) {
		set = append(set, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	_, _ = unix.Poll(set, -1)
}

// alarm rings on a channel.
type alarm struct {
	timer

	file *os.File
	C    chan struct{}
	end  chan struct{}
}

func newAlarm() (*alarm, error) {
	t, err := newTimer(unix.TFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	a := &alarm{timer: t, file: os.NewFile(uintptr(t.fd), "alarm"), C: make(chan struct{}, 1), end: make(chan struct{})}
	go func() {
		defer close(a.end)
		for expirations := make([]byte, 8); ; {
			if _, err := a.file.Read(expirations); err != nil {
				return
			}
			select {
			case a.C <- struct{}{}:
			default:
			}
		}
	}()
	return a, nil
}

func (a *alarm) close() {
	_ = a.file.Close()
	<-a.end
}

// hurry has the kernel run this thread before others, if this process may ask for that, and not
// what it starts. The thread is the caller's own.
func hurry() {
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: schedFIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK,
	}, 0)
}

// schedFIFO is SCHED_FIFO (sched(7)).
const schedFIFO = 1
