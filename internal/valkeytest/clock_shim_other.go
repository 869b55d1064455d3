//go:build !linux

package valkeytest

import (
	"errors"
	"time"
)

// clockShim is not available: it needs Linux's LD_PRELOAD.
type clockShim struct{}

var errClockLinux = errors.New("valkeytest: a server's clock can be moved on Linux only: leave out WithClock and WithAge")

func writeClockLibrary(string) (string, error) { return "", errClockLinux }

func newClockShim(string, string) (*clockShim, error) { return nil, errClockLinux }

func (*clockShim) add(time.Duration) {}

func (*clockShim) reader() int { return 0 }

func (*clockShim) environment() []string { return nil }

func (*clockShim) close() error { return nil }
