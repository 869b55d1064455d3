package scheduler

import (
	"context"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// scheduled is a job that tells what gocron has scheduled.
type scheduled struct {
	gocron.Job
	runs []time.Time
}

func (s *scheduled) NextRuns(int) ([]time.Time, error) { return s.runs, nil }

// gocron calls Lock twice, for a tick and for a run that was waiting. Whichever call gets the run,
// gocron forgets the tick when the run begins, and the other call is for it.
func TestTickBesideAWaitingOne(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	due, next := start.Add(time.Second), start.Add(2*time.Second)
	fake := clockwork.NewFakeClockAt(due)
	known := &scheduled{runs: []time.Time{due, next}}
	j := &job{
		s:    &Scheduler{state: &state{cfg: &config{clock: fake, location: time.UTC}}},
		made: make(chan struct{}), gocron: known, ticks: &ticker{every: time.Second},
	}
	c := &claims{job: j, last: start, tick: start}
	close(j.made)
	c.keep()
	known.runs = []time.Time{next} // the run has begun
	got, err := c.next(context.Background())
	require.NoError(t, err)
	require.Equal(t, due, got.scheduled)
	require.Empty(t, got.missed)
	require.Equal(t, start, got.before)

	fake.Advance(time.Second)
	got, err = c.next(context.Background())
	require.NoError(t, err)
	require.Equal(t, next, got.scheduled, "it is not claimed twice")
	require.Empty(t, got.missed)
	require.Equal(t, due, got.before)
}
