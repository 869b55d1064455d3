package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pacer waits for short times. A timer of Go's runtime is late by up to a millisecond while all
// goroutines wait, because epoll counts in those; a timerfd(2) is not.
type pacer struct {
	timer *os.File
	fd    int
}

func newPacer() (*pacer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("versus: timerfd: %w", err)
	}
	return &pacer{os.NewFile(uintptr(fd), "timerfd"), fd}, nil
}

// wait returns after that time, which must be more than zero.
func (p *pacer) wait(d time.Duration) error {
	if err := unix.TimerfdSettime(p.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil); err != nil {
		return fmt.Errorf("versus: timerfd: %w", err)
	}
	var count [8]byte
	if _, err := p.timer.Read(count[:]); err != nil {
		return fmt.Errorf("versus: timerfd: %w", err)
	}
	return nil
}

func (p *pacer) Close() error { return p.timer.Close() }
