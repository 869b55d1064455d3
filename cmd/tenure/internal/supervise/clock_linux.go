package supervise

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// suspendAware is the clock that goes on while the machine is suspended (clock_gettime(2)). All
// processes of the machine share it.
const suspendAware = unix.CLOCK_BOOTTIME

// alarm rings at an instant: also while the machine was suspended, as soon as it resumes, for which
// timers of Go are late.
type alarm struct {
	fd   int
	file *os.File
	C    chan struct{}
	end  chan struct{}
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(suspendAware, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("supervise: timerfd_create: %w", err)
	}
	a := &alarm{fd: fd, file: os.NewFile(uintptr(fd), "alarm"), C: make(chan struct{}, 1), end: make(chan struct{})}
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

// set has the alarm ring at an instant, at once if it has passed, and at no other.
func (a *alarm) set(at instant) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(int64(at), 1))}
	_ = unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil)
}

func (a *alarm) close() {
	_ = a.file.Close()
	<-a.end
}

// waiter waits for descriptors and for an instant, on the thread that calls it: nothing has to be
// scheduled between the instant and what is done then.
type waiter struct{ fd int }

func newWaiter() (*waiter, error) {
	fd, err := unix.TimerfdCreate(suspendAware, unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("supervise: timerfd_create: %w", err)
	}
	return &waiter{fd}, nil
}

// wait returns at the instant, or when one of the descriptors can be read, or for no reason.
func (w *waiter) wait(until instant, fds ...int) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(int64(until), 1))}
	_ = unix.TimerfdSettime(w.fd, unix.TFD_TIMER_ABSTIME, &spec, nil) // what it has said before is gone by that
	poll(-1, append(fds, w.fd)...)
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
