package main

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

// fake is a Rival that is no lock: everybody has every key, unless an operation fails.
type fake struct {
	try, release, lost, extended error
	extensions                   *atomic.Int32
}

func (f fake) Try(context.Context, string) (rival.Held, error)     { return f, f.try }
func (f fake) Acquire(context.Context, string) (rival.Held, error) { return f, f.try }
func (f fake) Release(context.Context) error                       { return f.release }
func (f fake) Close() error                                        { return nil }
func (f fake) Err() error                                          { return f.lost }
func (f fake) Extend(context.Context) error {
	f.extensions.Add(1)
	return f.extended
}

var errFailed = errors.New("failure")

// TestFailureIsNoNumber has each of the loops that measure meet an operation that fails.
func TestFailureIsNoNumber(t *testing.T) {
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
		for _, f := range []fake{{try: errFailed}, {release: errFailed}} {
			require.ErrorIs(t, loop(f), errFailed, "%s %+v", name, f)
		}
	}
}

// TestContestSeesTwo shows that the row contended does not take a broken lock's numbers.
func TestContestSeesTwo(t *testing.T) {
	end, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c := &contest{began: time.Now(), end: end}
	err := atOnce(3, func(int) error {
		_, err := c.run(t.Context(), fake{})
		cancel()
		return err
	})
	require.ErrorContains(t, err, "two had the key at once")
}

// TestHolderTellsLosses shows that who loses what it holds has no numbers.
func TestHolderTellsLosses(t *testing.T) {
	for name, f := range map[string]fake{"held": {}, "lost": {lost: errFailed}, "not extended": {extended: errFailed}} {
		t.Run(name, func(t *testing.T) {
			f.extensions = new(atomic.Int32)
			h := &holder{kind: rival.Redsync, rival: f, ttl: 3 * time.Millisecond}
			require.NoError(t, h.take(t.Context(), keys("held", 100)))
			require.Eventually(t, func() bool { return f.extensions.Load() >= 100 }, 10*time.Second, time.Millisecond)
			require.ErrorIs(t, h.release(t.Context()), cmp.Or(f.lost, f.extended))
		})
	}
}
