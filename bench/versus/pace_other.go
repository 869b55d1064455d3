//go:build !linux

package main

import "time"

// pacer waits for short times, as well as Go's runtime does.
type pacer struct{}

func newPacer() (*pacer, error) { return &pacer{}, nil }

func (*pacer) wait(d time.Duration) error {
	time.Sleep(d)
	return nil
}

func (*pacer) Close() error { return nil }
