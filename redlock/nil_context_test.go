package redlock_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A nil context is refused, with what to use; a release is carried out all the same.
func TestNilContextIsRefused(t *testing.T) {
	fleet := redlocktest.Start(t, 3)
	q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer q.Close()
	l, err := q.Acquire(t.Context(), "held")
	require.NoError(t, err)

	var none context.Context
	for name, call := range map[string]func() error{
		"TryAcquire": func() error { _, err := q.TryAcquire(none, "key"); return err },
		"Acquire":    func() error { _, err := q.Acquire(none, "key"); return err },
		"Holder":     func() error { _, err := q.Holder(none, "key"); return err },
		"Extend":     func() error { return l.Extend(none) },
	} {
		var oe *redlock.OptionError
		require.ErrorAs(t, call(), &oe, name)
		require.Equal(t, "ctx", oe.Option, name)
		require.Contains(t, oe.Reason, "context.Background()", name)
	}
	require.NoError(t, l.Err())
	require.Len(t, q.Nodes(none), 3)
	require.NoError(t, l.Release(none))
	_, err = q.Holder(t.Context(), "held")
	require.ErrorIs(t, err, redlock.ErrNotHeld)
}
