package ticks_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/internal/ticks"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "job/backup"

// hosts share nodes in process.
type hosts struct {
	t     *testing.T
	fleet *redlocktest.Fleet
	at    time.Time // a tick that is due
}

func inBubble(t *testing.T, f func(t *testing.T, h *hosts)) {
	synctest.Test(t, func(t *testing.T) {
		h := &hosts{t: t, fleet: redlocktest.StartPipes(t, 3)}
		h.host() // by and by the nodes vote
		time.Sleep(time.Minute)
		h.at = time.Now().Truncate(time.Second)
		f(t, h)
	})
}

func (h *hosts) host() *redlock.Quorum {
	q, err := redlock.Open(h.fleet.URLs(), redlock.WithLogger(slog.New(slog.DiscardHandler)), redlock.WithClientOption(h.fleet.ClientOption), redlock.WithTTL(4*time.Second))
	require.NoError(h.t, err)
	h.t.Cleanup(func() { require.NoError(h.t, q.Close()) })
	return q
}

func (h *hosts) taker(d joblog.Delivery, at time.Time) *ticks.Taker {
	return ticks.New(h.host(), ticks.Tick{Key: key, At: at, Keep: 24 * time.Hour, Delivery: d, Attempts: 3})
}

// run takes a tick and ends it.
func (h *hosts) run(d joblog.Delivery, at time.Time, succeeded bool) (attempt int, err error) {
	r, err := h.taker(d, at).Take(h.t.Context(), true)
	if err != nil {
		return 0, err
	}
	require.NoError(h.t, r.End(h.t.Context(), succeeded, time.Second))
	require.NoError(h.t, r.Release(h.t.Context()))
	return r.Attempt, nil
}

// At most once a tick that failed is done, and so are those before it; the next one is not.
func TestAtMostOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, h *hosts) {
		attempt, err := h.run(joblog.AtMostOnce, h.at, false)
		require.NoError(t, err)
		require.Equal(t, 1, attempt)
		for _, at := range []time.Time{h.at, h.at.Add(-time.Second)} {
			_, err = h.run(joblog.AtMostOnce, at, true)
			require.ErrorIs(t, err, ticks.ErrDone)
		}
		_, err = h.run(joblog.AtMostOnce, h.at.Add(time.Second), true)
		require.NoError(t, err)
	})
}

// At least once a tick is begun until it succeeds or has been begun often enough. Once a later one
// was begun it is not any more.
func TestAtLeastOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, h *hosts) {
		for want := 1; want <= 3; want++ {
			attempt, err := h.run(joblog.AtLeastOnce, h.at, false)
			require.NoError(t, err)
			require.Equal(t, want, attempt)
		}
		_, err := h.run(joblog.AtLeastOnce, h.at, true)
		require.ErrorIs(t, err, ticks.ErrDone)

		later := h.at.Add(time.Second)
		time.Sleep(time.Second)
		_, err = h.run(joblog.AtLeastOnce, later, false)
		require.NoError(t, err)
		_, err = h.run(joblog.AtLeastOnce, later.Add(-time.Millisecond), true)
		require.ErrorIs(t, err, ticks.ErrDone, "a later one was begun")
		attempt, err := h.run(joblog.AtLeastOnce, later, true)
		require.NoError(t, err)
		require.Equal(t, 2, attempt)
		_, err = h.run(joblog.AtLeastOnce, later, true)
		require.ErrorIs(t, err, ticks.ErrDone)
	})
}

// A tick whose hosts die is taken over at once when the lease is free, and given up in the end.
func TestHostsThatDie(t *testing.T) {
	inBubble(t, func(t *testing.T, h *hosts) {
		for want := 1; want <= 3; want++ {
			r, err := h.taker(joblog.AtLeastOnce, h.at).Take(t.Context(), false)
			require.NoError(t, err)
			require.Equal(t, want, r.Attempt)
			require.NoError(t, r.Release(t.Context())) // and says nothing
		}
		_, err := h.run(joblog.AtLeastOnce, h.at, true)
		require.ErrorIs(t, err, ticks.ErrGivenUp)
		_, err = h.run(joblog.AtLeastOnce, h.at, true)
		require.ErrorIs(t, err, ticks.ErrDone)
	})
}

// Of hosts that come together one runs the tick, and the others know while it runs, also those that
// do not wait. A host of the next tick waits.
func TestHostsTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, h *hosts) {
		var mu sync.Mutex
		var won []*ticks.Run
		var work sync.WaitGroup
		for i := range 6 {
			taker := h.taker(joblog.AtMostOnce, h.at)
			work.Go(func() {
				r, err := taker.Take(t.Context(), i%2 == 0)
				if err != nil {
					assert.ErrorIs(t, err, ticks.ErrDone)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				won = append(won, r)
			})
		}
		work.Wait()
		require.Len(t, won, 1)
		next := h.taker(joblog.AtMostOnce, h.at.Add(time.Second))
		_, err := next.Take(t.Context(), true)
		require.ErrorIs(t, err, redlock.ErrHeld)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = next.Take(ctx, false)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, redlock.ErrHeld)
		time.AfterFunc(time.Minute, func() { assert.NoError(t, won[0].Release(context.Background())) })
		r, err := next.Take(t.Context(), false)
		require.NoError(t, err)
		require.NoError(t, r.Release(t.Context()))
	})
}

// Who does not wait gives a holder that has granted nothing yet the time to do so.
func TestHolderThatIsAboutToGrant(t *testing.T) {
	inBubble(t, func(t *testing.T, h *hosts) {
		q := h.host()
		time.Sleep(time.Second)
		for _, of := range []struct {
			granted time.Time
			want    error
		}{{h.at, ticks.ErrDone}, {h.at.Add(time.Second), redlock.ErrHeld}, {time.Time{}, redlock.ErrHeld}} {
			l, err := q.TryAcquire(t.Context(), key)
			require.NoError(t, err)
			turn, _, err := register.Of(q, key, time.Hour).Begin(t.Context(), l)
			require.NoError(t, err)
			taker := h.taker(joblog.AtMostOnce, h.at)
			if of.granted.After(h.at) {
				taker = h.taker(joblog.AtMostOnce, of.granted.Add(time.Second))
			} else if of.granted.IsZero() {
				taker = h.taker(joblog.AtMostOnce, h.at.Add(3*time.Second))
			}
			var work sync.WaitGroup
			began := time.Now()
			work.Go(func() {
				_, err := taker.Take(t.Context(), true)
				assert.ErrorIs(t, err, of.want)
				assert.LessOrEqual(t, time.Since(began), 3*time.Second)
			})
			time.Sleep(500 * time.Millisecond)
			if !of.granted.IsZero() {
				value, err := joblog.Record{Cursor: of.granted, Run: joblog.Run{Tick: of.granted, Token: l.FencingToken(), Began: time.Now()}}.Encode()
				require.NoError(t, err)
				require.NoError(t, turn.Write(t.Context(), value))
			}
			work.Wait()
			require.NoError(t, l.Release(t.Context()))
		}
	})
}

// A paused tick is not run, also later; one that is due after the end is. One that was granted and
// not begun is as if it had not been.
func TestPausedAndUndone(t *testing.T) {
	inBubble(t, func(t *testing.T, h *hosts) {
		q := h.host()
		_, _, err := pause.Set(t.Context(), q, "", pause.Pause{By: "ann"})
		require.NoError(t, err)
		_, err = h.run(joblog.AtMostOnce, h.at, true)
		require.ErrorIs(t, err, ticks.ErrPaused)
		require.ErrorContains(t, err, "ann")
		time.Sleep(time.Minute)
		_, _, err = pause.Resume(t.Context(), q, "", "ann", "")
		require.NoError(t, err)
		_, err = h.run(joblog.AtMostOnce, h.at, true)
		require.ErrorIs(t, err, ticks.ErrPaused)

		time.Sleep(time.Second)
		at := time.Now()
		r, err := h.taker(joblog.AtMostOnce, at).Take(t.Context(), true)
		require.NoError(t, err)
		require.NoError(t, r.Undo(t.Context()))
		require.NoError(t, r.Release(t.Context()))
		attempt, err := h.run(joblog.AtMostOnce, at, true)
		require.NoError(t, err)
		require.Equal(t, 1, attempt)
	})
}

// A tick that is ahead of the nodes' clocks uses up none of those before it.
func TestTickOfTheFuture(t *testing.T) {
	inBubble(t, func(t *testing.T, h *hosts) {
		var ahead *redlock.ClockError
		_, err := h.taker(joblog.AtMostOnce, h.at.Add(time.Minute)).Take(t.Context(), false)
		require.ErrorAs(t, err, &ahead)
		_, err = h.run(joblog.AtMostOnce, h.at, true)
		require.NoError(t, err)
	})
}

// A grant that may be in force, and was not acted on, is taken back by the host that had it.
func TestGrantThatIsNotKnown(t *testing.T) {
	inBubble(t, func(t *testing.T, h *hosts) {
		taker := h.taker(joblog.AtMostOnce, h.at)
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		h.fleet.Node(1).Freeze()
		h.fleet.Node(2).Freeze()
		time.AfterFunc(20*time.Second, func() { h.fleet.Node(1).Thaw(); h.fleet.Node(2).Thaw() })
		defer cancel()
		r, err := taker.Take(ctx, false)
		require.NoError(t, err)
		require.Equal(t, 1, r.Attempt)
		require.NoError(t, r.Release(t.Context()))
	})
}

// slow is a link on which each answer comes late.
type slow struct{ net.Conn }

func (s slow) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	time.Sleep(220 * time.Millisecond)
	return n, err
}

// Nothing begins after a pause has returned, also on a host that is far from the nodes.
func TestNothingBeginsAfterPause(t *testing.T) {
	inBubble(t, func(t *testing.T, h *hosts) {
		far, err := redlock.Open(h.fleet.URLs(), redlock.WithLogger(slog.New(slog.DiscardHandler)), redlock.WithTTL(10*time.Second),
			redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
				h.fleet.ClientOption(url, o)
				dial := o.DialCtxFn
				o.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
					conn, err := dial(ctx, address, d, c)
					return slow{conn}, err
				}
			}))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, far.Close()) })
		time.Sleep(time.Minute)
		operator, paused := h.host(), 0
		for before := 560 * time.Millisecond; before < 740*time.Millisecond; before += 15 * time.Millisecond {
			at := time.Now()
			returned := make(chan time.Time, 1)
			time.AfterFunc(before, func() {
				_, _, err := pause.Set(t.Context(), operator, key, pause.Pause{By: "ann"})
				require.NoError(t, err)
				returned <- time.Now()
			})
			r, err := ticks.New(far, ticks.Tick{Key: key, At: at, Keep: 24 * time.Hour}).Take(t.Context(), false)
			began := time.Now()
			if end := <-returned; err == nil {
				require.False(t, began.After(end), "paused after %v: it began %v after that", before, began.Sub(end))
				require.NoError(t, r.End(t.Context(), true, 0))
				require.NoError(t, r.Release(t.Context()))
			} else {
				require.ErrorIs(t, err, ticks.ErrPaused)
				paused++
			}
			_, _, err = pause.Resume(t.Context(), operator, key, "ann", "")
			require.NoError(t, err)
			time.Sleep(10 * time.Second)
		}
		require.NotZero(t, paused)
	})
}
