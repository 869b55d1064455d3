package backfill_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/backfill"
	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "job/report"

// A backfill is written into the record of a job that there is. It waits for a run, and can be
// cleared.
func TestSetAndClear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := redlocktest.StartPipes(t, 3)
		q, err := redlock.Open(f.URLs(), redlock.WithLogger(slog.New(slog.DiscardHandler)), redlock.WithoutRestartGate(), redlock.WithClientOption(f.ClientOption))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, q.Close()) })
		time.Sleep(time.Second)
		from, to := time.Now().Add(-3*time.Hour), time.Now().Add(time.Hour)
		_, err = backfill.Set(t.Context(), q, key, from, to)
		require.ErrorIs(t, err, backfill.ErrNone, "of a job that there is not")

		run, err := q.TryAcquire(t.Context(), key)
		require.NoError(t, err)
		turn, _, err := register.Of(q, key, time.Hour).Begin(t.Context(), run)
		require.NoError(t, err)
		value, err := joblog.Record{Words: "every 1h0m0s", Since: time.Now(), Runs: 7}.Encode()
		require.NoError(t, err)
		require.NoError(t, turn.Write(t.Context(), value))
		time.AfterFunc(5*time.Second, func() { _ = run.Release(t.Context()) })

		began := time.Now()
		fill, err := backfill.Set(t.Context(), q, key, from, to)
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(began), 5*time.Second)
		require.True(t, fill.To.Before(to), "no tick is run before its time")
		states, err := register.Of(q, key, time.Hour).Read(t.Context())
		require.NoError(t, err)
		rec, err := joblog.Parse(states[0].Value, states[0].Now)
		require.NoError(t, err)
		require.Equal(t, 7, rec.Runs)
		require.True(t, rec.Fill.From.Equal(from.Add(-1)) && rec.Fill.To.Equal(fill.To))

		was, err := backfill.Clear(t.Context(), q, key)
		require.NoError(t, err)
		require.True(t, was.To.Equal(fill.To))
		_, err = backfill.Clear(t.Context(), q, key)
		require.ErrorIs(t, err, backfill.ErrNone)
	})
}
