package scheduler_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// A nil context is refused; a lock is freed all the same.
func TestNilContextIsRefused(t *testing.T) {
	q := quorumFor(t)
	s, l := made(t, q), newLocker(t, q)
	lock := mustLock(t, l, "held")
	var none context.Context
	for name, call := range map[string]func() error{
		"Lock":                func() error { _, err := l.Lock(none, "job"); return err },
		"StopJobsWithContext": func() error { return s.StopJobsWithContext(none) },
		"ShutdownWithContext": func() error { return s.ShutdownWithContext(none) },
	} {
		var oe *scheduler.OptionError
		require.ErrorAs(t, call(), &oe, name)
		require.Equal(t, "ctx", oe.Option, name)
	}
	_, ok := scheduler.RunFromContext(none)
	require.False(t, ok)
	require.NoError(t, lock.Unlock(none))
	require.NoError(t, mustLock(t, l, "held").Unlock(t.Context()))
}
