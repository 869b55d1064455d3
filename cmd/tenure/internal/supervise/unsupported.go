//go:build !linux

package supervise

import "context"

// IsWatchdog reports false: there are no watchdogs on this system.
func IsWatchdog() bool { return false }

// Watch does nothing here.
func Watch() int { return 1 }

// Missing returns nil: Run fails on this system.
func Missing() []string { return nil }

// Run fails with ErrUnsupported.
func (c Command) Run(context.Context) (Result, error) { return Result{}, ErrUnsupported }
