package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

// fickle is a Rival whose locks may be lost.
type fickle struct {
	everybody
	lost, extended error
	extensions     atomic.Int32
}

func (f *fickle) Try(context.Context, string) (rival.Held, error) { return f, nil }
func (f *fickle) Err() error                                      { return f.lost }
func (f *fickle) Extend(context.Context) error {
	f.extensions.Add(1)
	return f.extended
}

// TestHolderTellsLosses shows that who loses what it holds has no numbers.
func TestHolderTellsLosses(t *testing.T) {
	gone := errors.New("gone")
	for _, test := range []struct {
		name string
		f    *fickle
		want error
	}{
		{"held", &fickle{}, nil},
		{"lost", &fickle{lost: gone}, gone},
		{"not extended", &fickle{extended: gone}, gone},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &holder{kind: rival.Redsync, rival: test.f, ttl: 3 * time.Millisecond}
			require.NoError(t, h.take(t.Context(), keys("held", 100)))
			require.Eventually(t, func() bool { return test.f.extensions.Load() >= 100 }, 10*time.Second, time.Millisecond)
			require.ErrorIs(t, h.release(t.Context()), test.want)
		})
	}
}
