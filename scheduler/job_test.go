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
		made: make(chan struct{}), gocron: known, last: start, tick: start, ticks: &ticker{every: time.Second},
	}
	close(j.made)
	j.remember()
	known.runs = []time.Time{next} // the run has begun
	tick, missed, before, err := j.due(context.Background())
	require.NoError(t, err)
	require.Equal(t, due, tick)
	require.Empty(t, missed)
	require.Equal(t, start, before)

	fake.Advance(time.Second)
	tick, missed, before, err = j.due(context.Background())
	require.NoError(t, err)
	require.Equal(t, next, tick, "it is not owed twice")
	require.Empty(t, missed)
	require.Equal(t, due, before)
}
