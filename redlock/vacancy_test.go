package redlock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A key that was free stays free while an attempt of this process, which was given up, is in the
// way; not while somebody else is, and not while nobody knows that it was free.
func TestVacancyGoesOnBesideAnOwnAttempt(t *testing.T) {
	q := testNode().q
	const own, other = "me", "somebody"
	free := func(freeIn time.Duration, vacant vacancy, identity string) vacancy {
		a := &acquisition{q: q, cfg: leaseConfig{identity: own}, freeIn: freeIn, vacancy: vacant}
		a.occupied(identity)
		return a.vacancy
	}
	now := q.clock.Now()
	vacant := vacancy{by: FreedByRelease, since: now.Add(-time.Minute)}
	require.Equal(t, vacant, free(time.Hour, vacant, own))
	for name, v := range map[string]vacancy{
		"somebody has it now":                   free(time.Hour, vacant, other),
		"nobody knows that it was free":         free(time.Hour, vacancy{}, own),
		"it was held, by another lease of ours": free(time.Hour, vacancy{by: FreedByExpiry, since: now.Add(time.Minute)}, own),
	} {
		require.Equal(t, FreedByExpiry, v.by, name)
		require.WithinRange(t, time.Unix(0, int64(v.since)), time.Unix(0, int64(now.Add(time.Hour))), time.Unix(0, int64(now.Add(2*time.Hour))), name)
	}
}
