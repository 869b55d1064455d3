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
