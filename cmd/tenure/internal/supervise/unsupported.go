//go:build !linux

package supervise

import "context"

// IsWatchdog reports false: there are none here.
func IsWatchdog() bool { return false }

// Watch does nothing here.
func Watch() int { return 1 }

// Missing says what this system does not do for a command under a lease.
func Missing() []string { return nil }

// Run fails with ErrUnsupported.
func (c Command) Run(context.Context) (Result, error) { return Result{}, ErrUnsupported }
