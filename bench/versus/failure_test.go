package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

// broken is a Rival whose operations fail.
type broken struct {
	everybody
	try, release error
}

func (b broken) Try(context.Context, string) (rival.Held, error) { return b, b.try }
func (b broken) Acquire(ctx context.Context, key string) (rival.Held, error) {
	return b.Try(ctx, key)
}
func (b broken) Release(context.Context) error { return b.release }

// TestFailureIsNoNumber has each of the loops that measure meet an operation that fails.
func TestFailureIsNoNumber(t *testing.T) {
	failure := errors.New("failure")
	loops := map[string]func(e *entrant) error{
		"pairFor":  func(e *entrant) error { _, err := pairFor(t.Context(), e, time.Nanosecond); return err },
		"pairsFor": func(e *entrant) error { _, err := pairsFor(t.Context(), e, "x", time.Nanosecond); return err },
		"manyPairs": func(e *entrant) error {
			_, err := manyPairs(t.Context(), e, 3, time.Nanosecond, ownKeys)
			return err
		},
		"contest": func(e *entrant) error {
			c := &contest{began: time.Now(), end: t.Context()}
			_, err := c.run(t.Context(), e)
			return err
		},
	}
	for name, loop := range loops {
		for _, b := range []broken{{try: failure}, {release: failure}} {
			require.ErrorIs(t, loop(&entrant{rival.Tenure, b}), failure, "%s %+v", name, b)
		}
	}
}
