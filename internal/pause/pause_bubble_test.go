package pause_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "job/report"

func onNodes(t *testing.T, test func(t *testing.T, f *redlocktest.Fleet, q *redlock.Quorum)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := redlocktest.StartPipes(t, 3)
		q, err := redlock.Open(f.URLs(), redlock.WithLogger(slog.New(slog.DiscardHandler)), redlock.WithoutRestartGate(), redlock.WithClientOption(f.ClientOption))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, q.Close()) })
		time.Sleep(time.Second)
		test(t, f, q)
	})
}

func read(t *testing.T, q *redlock.Quorum, key string) pause.Pause {
	t.Helper()
	all, err := pause.Read(t.Context(), q, key)
	require.NoError(t, err)
	return all[0]
}

func TestPauseAndResume(t *testing.T) {
	for _, test := range []struct {
		name  string
		until time.Duration // zero for none
	}{{"without an end", 0}, {"with an end", time.Hour}, {"with one that nobody lives to see", 200 * 365 * 24 * time.Hour}} {
		t.Run(test.name, func(t *testing.T) {
			onNodes(t, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum) {
				p := pause.Pause{By: "ann", Why: "the database moves"}
				began := time.Now()
				if test.until > 0 {
					p.Until = began.Add(test.until)
				}
				is, was, err := pause.Set(t.Context(), q, key, p)
				require.NoError(t, err)
				require.GreaterOrEqual(t, time.Since(began), pause.Fresh)
				require.False(t, was.Active(time.Now()))
				require.WithinDuration(t, began, is.Since, time.Second)
				got := read(t, q, key)
				require.True(t, got.Active(time.Now()))
				require.Equal(t, "ann", got.By)
				require.GreaterOrEqual(t, got.Nodes, 2) // that were heard
				require.Equal(t, test.until != time.Hour, got.Active(time.Now().Add(2*time.Hour)))
				require.False(t, read(t, q, "").Active(time.Now()), "that of all jobs is another one")

				_, was, err = pause.Resume(t.Context(), q, key, "bob", "it has")
				require.NoError(t, err)
				require.Equal(t, "ann", was.By)
				got = read(t, q, key)
				require.True(t, got.Resumed)
				require.Equal(t, "bob", got.By)
				require.True(t, got.Active(began), "ticks of the pause are not run later")
				require.False(t, got.Active(time.Now().Add(time.Millisecond)))
				_, was, err = pause.Resume(t.Context(), q, key, "eve", "again")
				require.NoError(t, err)
				require.False(t, was.Active(time.Now().Add(time.Millisecond)))
				require.Equal(t, "bob", read(t, q, key).By)
			})
		})
	}
}

// A pause whose caller does not wait stands all the same, and one that no quorum takes does not.
func TestPauseThatIsNotWaitedFor(t *testing.T) {
	onNodes(t, func(t *testing.T, f *redlocktest.Fleet, q *redlock.Quorum) {
		ctx, cancel := context.WithTimeout(t.Context(), pause.Fresh/2)
		defer cancel()
		_, _, err := pause.Set(ctx, q, key, pause.Pause{By: "ann"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, read(t, q, key).Active(time.Now()))
		for _, n := range f.Nodes()[:2] {
			require.NoError(t, n.Freeze())
		}
		ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, _, err = pause.Resume(ctx, q, key, "bob", "")
		require.Error(t, err)
		for _, n := range f.Nodes() {
			require.NoError(t, n.Thaw())
		}
		time.Sleep(15 * time.Second)
		require.True(t, read(t, q, key).Active(time.Now()))
	})
}

func TestParse(t *testing.T) {
	for _, text := range []string{"2{}", "1", "1{", "x"} {
		_, err := pause.Parse(register.State{Value: []byte(text)})
		require.Error(t, err, "%q", text)
	}
	p, err := pause.Parse(register.State{})
	require.NoError(t, err)
	require.False(t, p.Active(time.Time{}.Add(1)))
}
