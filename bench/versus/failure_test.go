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
	loops := map[string]func(r rival.Rival) error{
		"pairsFor": func(r rival.Rival) error {
			_, err := pairsFor(t.Context(), r, keys("x", 1), time.Nanosecond)
			return err
		},
		"manyPairs": func(r rival.Rival) error { _, err := manyPairs(t.Context(), r, time.Nanosecond, ownKeys); return err },
		"contest": func(r rival.Rival) error {
			c := &contest{began: time.Now(), end: t.Context()}
			_, err := c.run(t.Context(), r)
			return err
		},
	}
	for name, loop := range loops {
		for _, b := range []broken{{try: failure}, {release: failure}} {
			require.ErrorIs(t, loop(b), failure, "%s %+v", name, b)
		}
	}
}
