package redlock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/waitqueue"
)

// A key that was free stays free while an attempt of this process, which was given up a moment ago,
// is in the way; not while somebody else is, or a lease of this process, and not while nobody knows
// that it was free.
func TestVacancyGoesOnBesideAnOwnAttempt(t *testing.T) {
	q := testQuorum(1)
	const own, other = "me", "somebody"
	now := q.clock.Now()
	free := func(freeIn time.Duration, vacant vacancy, identity string, missed clock.Instant) vacancy {
		a := &acquisition{q: q, cfg: &leaseConfig{identity: own, ttl: time.Minute}, freeIn: freeIn, vacancy: vacant, missed: missed}
		a.occupied(identity)
		return a.vacancy
	}
	vacant := vacancy{by: FreedByRelease, since: now.Add(-time.Minute)}
	require.Equal(t, vacant, free(time.Hour, vacant, own, now))
	for name, v := range map[string]vacancy{
		"somebody has it now":                    free(time.Hour, vacant, other, now),
		"nobody knows that it was free":          free(time.Hour, vacancy{}, own, now),
		"it was held, by another lease of ours":  free(time.Hour, vacancy{by: FreedByExpiry, since: now.Add(time.Minute)}, own, now),
		"all nodes have answered":                free(time.Hour, vacant, own, 0),
		"what they had not has been rolled back": free(time.Hour, vacant, own, now.Add(-2*time.Minute)),
	} {
		require.Equal(t, FreedByExpiry, v.by, name)
		require.WithinRange(t, time.Unix(0, int64(v.since)), time.Unix(0, int64(now.Add(time.Hour))), time.Unix(0, int64(now.Add(2*time.Hour))), name)
	}
}

// Who is told to come later does not come at once, also if its poll is nearly due.
func TestCallForLaterIsNotForNow(t *testing.T) {
	const ttl, later = 10 * time.Second, 400 * time.Millisecond
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			notices := make(chan waitqueue.Notice, 1)
			w := &waitqueue.Ticket{Notices: notices}
			a := &acquisition{q: testQuorum(3), cfg: &leaseConfig{ttl: ttl}}
			const called = ttl + ttl/20
			start := time.Now()
			time.AfterFunc(called, func() { notices <- waitqueue.Notice{Released: true, FreeIn: later} })
			require.True(t, a.sleep(t.Context(), w, ttl+ttl/10, false))
			require.GreaterOrEqual(t, time.Since(start), called+later)
			require.LessOrEqual(t, time.Since(start), called+later+10*time.Millisecond)
		})
	}
}

// A call cuts no pause short that nodes are the reason for.
func TestCallDoesNotEndThePauseOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pause = 400 * time.Millisecond
		notices := make(chan waitqueue.Notice, 1)
		w := &waitqueue.Ticket{Notices: notices}
		a := &acquisition{q: testQuorum(3), cfg: &leaseConfig{ttl: 10 * time.Second}}
		start := time.Now()
		for _, at := range []time.Duration{0, pause / 4, pause / 2} {
			time.AfterFunc(at, func() { notices <- waitqueue.Notice{Released: true} })
		}
		require.True(t, a.sleep(t.Context(), w, pause, true))
		require.Equal(t, pause, time.Since(start))
		require.Equal(t, FreedByRelease, a.vacancy.by, "it is known all the same")
	})
}
