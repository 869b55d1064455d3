package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/redlock"
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
			require.NoError(t, h.take(t.Context(), (&holderTask{Keys: 100}).names()))
			require.Eventually(t, func() bool { return test.f.extensions.Load() >= 100 }, 10*time.Second, time.Millisecond)
			require.ErrorIs(t, h.release(t.Context()), test.want)
		})
	}
}

// busy is a Rival that has no quorum in time now and then.
type busy struct {
	everybody
	failures atomic.Int32
}

func (b *busy) Try(context.Context, string) (rival.Held, error) {
	if b.failures.Add(-1) >= 0 {
		return nil, redlock.ErrNoQuorum
	}
	return b, nil
}

func TestHolderTriesAgainAndCounts(t *testing.T) {
	b := &busy{}
	b.failures.Store(5)
	h := &holder{kind: rival.Tenure, rival: b}
	require.NoError(t, h.take(t.Context(), []string{"a", "b"}))
	require.EqualValues(t, 5, h.repeated.Load())
	require.NoError(t, h.release(t.Context()))

	b.failures.Store(1000)
	h = &holder{kind: rival.Tenure, rival: b}
	require.ErrorIs(t, h.take(t.Context(), []string{"a"}), redlock.ErrNoQuorum)
	h.end()
}

func TestMargins(t *testing.T) {
	tracer := &marginTracer{}
	trace := func(margin time.Duration, err error) {
		tracer.TraceExtend(t.Context(), redlock.TraceExtendData{Margin: margin, Err: err})
	}
	trace(time.Microsecond, nil) // before the start
	tracer.start()
	for i := range 200 {
		trace(time.Duration(i+1)*time.Millisecond, nil)
	}
	trace(0, errors.New("late"))
	var r holderReport
	tracer.report(&r)
	require.Equal(t, holderReport{Extensions: 200, Failed: 1, MarginP1: 2, MarginWorst: 1}, r)
}
