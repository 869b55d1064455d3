package scheduler

import (
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// sequenceOf is a sequence whose last completed tick is at a number of seconds, and took some.
func sequenceOf(completed, began, took float64) redlock.SequenceState {
	at := func(s float64) time.Time { return time.UnixMilli(int64(s * 1000)) }
	return redlock.SequenceState{
		Granted: int64(completed * 1000), Completed: int64(completed * 1000),
		BeganAt: at(began), CompletedAt: at(began + took),
	}
}

// historyOf is that of a job that ticks every ten seconds.
func historyOf(overlap Overlap, now float64) *history {
	cfg := &config{clock: clockwork.NewFakeClockAt(time.UnixMilli(int64(now * 1000))), location: time.UTC}
	ticks := newTicker(gocron.DurationJobSchedule{Duration: 10 * time.Second}, nil, time.Time{}, time.Time{})
	return &history{job: &job{s: &Scheduler{state: &state{cfg: cfg}}, cfg: jobConfig{overlap: overlap}, ticks: ticks}}
}

func TestOverlapped(t *testing.T) {
	unknown := sequenceOf(100, 0, 0)
	unknown.BeganAt, unknown.CompletedAt = time.Time{}, time.Time{}
	for _, tc := range []struct {
		name    string
		s       redlock.SequenceState
		tick    int
		overlap Overlap
		want    bool
	}{
		{"nothing completed", redlock.SequenceState{}, 110, OverlapSkip, false},
		{"shorter than the interval", sequenceOf(100, 100, 9.9), 110, OverlapSkip, false},
		{"as long as the interval", sequenceOf(100, 100, 10), 110, OverlapSkip, true},
		{"longer", sequenceOf(100, 100, 19), 110, OverlapSkip, true},
		{"longer, the tick after that", sequenceOf(100, 100, 19), 120, OverlapSkip, false},
		{"the phase of a duration job", sequenceOf(100, 108.5, 3), 110, OverlapSkip, false},
		{"late, short", sequenceOf(100, 108, 5), 110, OverlapSkip, false},
		{"late, long", sequenceOf(100, 150, 12), 110, OverlapSkip, true},
		{"late, a tick that came during the run", sequenceOf(100, 150, 12), 160, OverlapSkip, false},
		{"the same tick", sequenceOf(100, 100, 19), 100, OverlapSkip, false},
		{"an earlier tick", sequenceOf(100, 100, 19), 90, OverlapSkip, false},
		{"nobody knows how long it took", unknown, 110, OverlapSkip, false},
		{"queue, a later tick is due", sequenceOf(100, 100, 25), 110, OverlapQueue, true},
		{"queue, the last that is due", sequenceOf(100, 100, 25), 120, OverlapQueue, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, historyOf(tc.overlap, 125).overlapped(tc.s, time.Unix(int64(tc.tick), 0)))
		})
	}
}

// A tick that was granted, and whose run was cut short, is to be run again, also after an attempt
// to run the next one.
func TestTickThatWasGrantedIsNotOverlapped(t *testing.T) {
	s := sequenceOf(100, 100, 19)
	require.True(t, historyOf(OverlapSkip, 125).overlapped(s, time.Unix(110, 0)))
	for _, granted := range []int64{110_000, 120_000} {
		s.Granted = granted
		require.False(t, historyOf(OverlapSkip, 125).overlapped(s, time.Unix(110, 0)))
	}
}
