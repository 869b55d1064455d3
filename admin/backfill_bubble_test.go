package admin_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/register"
)

// Ticks that are past are run again, each once, and beside them those that are due; what is left is
// shown, and an order says who wanted it.
func TestBackfill(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		c := r.client(t)
		_, err := c.Backfill(t.Context(), "job", time.Now().Add(-time.Hour), time.Now(), "")
		require.ErrorIs(t, err, admin.ErrNoJob)
		_, err = c.Backfill(t.Context(), "job", time.Now(), time.Now().Add(-time.Hour), "")
		require.ErrorAs(t, err, new(*admin.OptionError))

		r.start(t, "a", time.Second)
		time.Sleep(35 * time.Second)
		before := len(r.began())
		from := r.began()[0].Truncate(10 * time.Second)
		b, err := c.Backfill(t.Context(), "job", from, from.Add(20*time.Second), "the source was late")
		require.NoError(t, err)
		require.True(t, b.From.Equal(from) && b.To.Equal(from.Add(20*time.Second)), "%v", b)
		j, err := c.Job(t.Context(), "job")
		require.NoError(t, err)
		require.Equal(t, b, *j.Backfill)
		time.Sleep(80 * time.Second)
		require.InDelta(t, before+8+3, len(r.began()), 1)
		runs, err := c.Runs(t.Context(), "job", 20)
		require.NoError(t, err)
		var filled []time.Duration
		for _, run := range slices.Backward(runs) {
			if run.Why == "backfill" {
				filled = append(filled, run.Tick.Sub(from))
			}
		}
		require.Equal(t, []time.Duration{0, 10 * time.Second, 20 * time.Second}, filled)
		j, err = c.Job(t.Context(), "job")
		require.NoError(t, err)
		require.Nil(t, j.Backfill)
		orders, err := c.Orders(t.Context(), 10)
		require.NoError(t, err)
		i := slices.IndexFunc(orders, func(o admin.Order) bool { return o.Result == "done" })
		require.Equal(t, []string{"backfill", "job", "ann", "the source was late", b.String()},
			[]string{string(orders[i].Kind), orders[i].Target, orders[i].By, orders[i].Why, orders[i].Detail})
	})
}

// A run that goes on is waited for, for a while.
func TestBackfillBesideARun(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		q, c := r.quorum(t, "a"), r.client(t, admin.WithOrderTimeout(3*time.Second))
		runUntilVotes(t, q)
		r.told(t, q, []bulletin.Card{jobCard(t, bulletin.Job{Job: "job", Key: "job/job", By: "a"})})
		_, err := c.Backfill(t.Context(), "job", time.Now().Add(-time.Hour), time.Now(), "")
		require.ErrorIs(t, err, admin.ErrNoBackfill, "it has no record")
		l, err := q.TryAcquire(t.Context(), "job/job")
		require.NoError(t, err)
		_, err = c.Backfill(t.Context(), "job", time.Now().Add(-time.Hour), time.Now(), "")
		require.ErrorIs(t, err, admin.ErrRefused)
		var told *admin.OrderError
		require.ErrorAs(t, err, &told)
		require.Equal(t, []string{"overlap", "a"}, []string{told.Reason, told.By})

		turn, _, err := register.Of(q, "job/job", time.Hour).Begin(t.Context(), l)
		require.NoError(t, err)
		value, err := joblog.Record{Words: "every 1h0m0s", Since: time.Now(), Runs: 7}.Encode()
		require.NoError(t, err)
		require.NoError(t, turn.Write(t.Context(), value))
		time.AfterFunc(2*time.Second, func() { _ = l.Release(t.Context()) })
		began, from, to := time.Now(), time.Now().Add(-3*time.Hour), time.Now().Add(time.Hour)
		b, err := c.Backfill(t.Context(), "job", from, to, "")
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(began), 2*time.Second)
		require.True(t, b.From.Equal(from) && b.To.Before(to), "no tick is run before its time: %v", b)
		states, err := register.Of(q, "job/job", time.Hour).Read(t.Context())
		require.NoError(t, err)
		rec, err := joblog.Parse(states[0].Value, states[0].Now)
		require.NoError(t, err)
		require.Equal(t, 7, rec.Runs)
		none, err := c.Backfill(t.Context(), "job", time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), to, "")
		require.ErrorContains(t, err, "cannot be written")
		require.Zero(t, none)
		was, err := c.StopBackfill(t.Context(), "job", "")
		require.NoError(t, err)
		require.Equal(t, b, was)
		_, err = c.StopBackfill(t.Context(), "job", "")
		require.ErrorIs(t, err, admin.ErrNoBackfill)
	})
}
