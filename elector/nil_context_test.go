package elector_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
)

func TestNilContextIsRefused(t *testing.T) {
	e, err := elector.New(localQuorum(t), "test")
	require.NoError(t, err)
	terms := make(chan *elector.Term, 1)
	r := run(t, e, func(ctx context.Context, term *elector.Term) error {
		terms <- term
		return untilDone(ctx, term)
	})
	term := <-terms
	var none context.Context
	for name, call := range map[string]func() error{
		"Run":    func() error { return e.Run(none, nil) },
		"Leader": func() error { _, err := e.Leader(none); return err },
		"Resign": func() error { return term.Resign(none) },
	} {
		var oe *elector.OptionError
		require.ErrorAs(t, call(), &oe, name)
		require.Equal(t, "ctx", oe.Option, name)
		require.Contains(t, oe.Reason, "context.Background()", name)
	}
	require.NoError(t, e.IsLeader(none))
	for c := range e.Changes(none) {
		require.Equal(t, elector.Elected, c.Kind)
		break
	}
	require.NoError(t, r.end())
}
