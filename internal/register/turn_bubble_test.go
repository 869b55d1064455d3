package register_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
)

func TestValueOutlivesItsLease(t *testing.T) {
	for _, nodes := range []int{1, 2, 3, 5} {
		bubble(t, nodes, func(t *testing.T, f *fleet) {
			q := f.open()
			s := read(t, q)
			require.Empty(t, s.Value)
			require.Zero(t, s.Ballot)
			require.Equal(t, nodes, s.Nodes)
			require.Empty(t, write(t, q, "one"))
			require.Equal(t, "one", write(t, f.open(), "two"))
			s = read(t, f.open())
			require.Equal(t, "two", string(s.Value))
			require.GreaterOrEqual(t, s.Nodes, nodes/2+1)
			require.Equal(t, time.Now().UTC(), s.Now.UTC())
			l := acquire(t, q)
			require.Less(t, s.Ballot, l.FencingToken())
			release(t, l)
		})
	}
}

// A read needs a quorum, and so does a write: one node is none.
func TestOneNodeIsNoQuorum(t *testing.T) {
	bubble(t, 3, func(t *testing.T, f *fleet) {
		q := f.open()
		write(t, q, "one")
		l := acquire(t, q, redlock.WithoutAutoExtend())
		turn, _ := begin(t, q, l)
		f.freeze(1, 2)
		_, err := of(q).Read(t.Context())
		var qe *redlock.QuorumError
		require.ErrorAs(t, err, &qe)
		require.Equal(t, 1, qe.Succeeded)
		require.ErrorIs(t, err, redlock.ErrTimeout)
		require.Contains(t, err.Error(), `no quorum to read "key": 1 of 3 nodes`)
		start := time.Now()
		err = turn.Write(t.Context(), []byte("two"))
		require.ErrorIs(t, err, register.ErrUnknown)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NotErrorIs(t, err, register.ErrSuperseded)
		require.ErrorContains(t, err, `no quorum to write "key": 1 of 3 nodes`)
		require.Error(t, l.Err(), "it was tried for as long as the lease lived")
		require.InDelta(t, ttl, time.Since(start), float64(2*time.Second))

		f.thaw(1, 2)
		l = acquire(t, q)
		f.freeze(0, 2)
		_, _, err = of(q).Begin(t.Context(), l)
		require.ErrorAs(t, err, &qe)
		f.thaw(0, 2)
	})
}

func acquireOther(t *testing.T, q *redlock.Quorum, key string) *redlock.Lease {
	t.Helper()
	l, err := q.TryAcquire(t.Context(), key)
	require.NoError(t, err)
	return l
}

// A holder whose lease has ended is refused once a later one has read, and not before: what it says
// of how its run ended is worth to be kept.
func TestStaleHolder(t *testing.T) {
	bubble(t, 3, func(t *testing.T, f *fleet) {
		q, other := f.open(), f.open()
		l := acquire(t, q, redlock.WithoutAutoExtend())
		turn, _ := begin(t, q, l)
		require.NoError(t, turn.Write(t.Context(), []byte("granted")))
		time.Sleep(2 * ttl)
		require.ErrorIs(t, l.Err(), redlock.ErrLost)
		require.NoError(t, turn.Write(t.Context(), []byte("completed")))

		next := acquire(t, other)
		later, s := begin(t, other, next)
		require.Equal(t, "completed", string(s.Value))
		synctest.Wait() // the third node has promised too: until then it takes an earlier holder's write
		err := turn.Write(t.Context(), []byte("again"))
		require.ErrorIs(t, err, register.ErrSuperseded)
		require.Equal(t, "completed", string(read(t, q).Value))
		require.NoError(t, later.Write(t.Context(), []byte("later")))
		require.ErrorIs(t, turn.Write(t.Context(), []byte("again")), register.ErrSuperseded)
		require.Equal(t, "later", string(read(t, q).Value))
		_, _, err = of(q).Begin(t.Context(), l)
		require.ErrorIs(t, err, redlock.ErrLost)
	})
}

// A write that one node has taken, and no quorum, is found or not by the next reader, and not both.
func TestUnfinishedWriteIsDecidedByTheNextReader(t *testing.T) {
	for _, found := range []bool{true, false} {
		bubble(t, 3, func(t *testing.T, f *fleet) {
			q, other := f.open(), f.open()
			write(t, q, "old")
			l := acquire(t, q, redlock.WithoutAutoExtend())
			turn, _ := begin(t, q, l)
			f.kill(1, 2)
			require.ErrorIs(t, turn.Write(t.Context(), []byte("new")), register.ErrUnknown)
			f.restart(true, 1, 2) // they have forgotten
			if !found {
				f.kill(0)
			}
			time.Sleep(time.Minute) // the others do without a dead node by then
			want := map[bool]string{true: "new", false: "old"}[found]
			next := acquire(t, other)
			later, s := begin(t, other, next)
			require.Equal(t, want, string(s.Value))
			require.NoError(t, later.Write(t.Context(), []byte("decided")))
			if !found {
				f.restart(true, 0)
				time.Sleep(2 * quarantine)
			}
			require.Equal(t, "decided", string(read(t, q).Value))
			release(t, next)
		})
	}
}

// A lease reads once: a promise is strict, so that of two with one token only one can read.
func TestLeaseHasOneTurn(t *testing.T) {
	bubble(t, 3, func(t *testing.T, f *fleet) {
		q := f.open()
		l := acquire(t, q)
		turn, _ := begin(t, q, l)
		_, _, err := of(q).Begin(t.Context(), l)
		require.ErrorIs(t, err, register.ErrSuperseded)
		require.NoError(t, turn.Write(t.Context(), []byte("one")))
		_, _, err = of(q).Begin(t.Context(), nil)
		require.ErrorIs(t, err, redlock.ErrNotHeld)
	})
}

// The old value, written again, takes the place of one of which it is not known whether it was
// written, also of one that comes late.
func TestLaterWriteOfATurnTakesThePlaceOfAnUnknownOne(t *testing.T) {
	bubble(t, 3, func(t *testing.T, f *fleet) {
		q := f.open()
		write(t, q, "old")
		l := acquire(t, q)
		turn, s := begin(t, q, l)
		f.freeze(0, 1, 2)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		err := turn.Write(ctx, []byte("new"))
		require.ErrorIs(t, err, register.ErrUnknown)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		f.thaw(0)
		synctest.Wait()
		require.Contains(t, f.text(0), "new", "it comes late")
		f.freeze(0)
		f.thaw(1, 2) // where it comes before the next one, or not at all
		require.NoError(t, turn.Write(t.Context(), s.Value))
		f.thaw(0)
		time.Sleep(time.Second)
		require.Equal(t, "old", string(read(t, q).Value))
		require.NoError(t, turn.Write(t.Context(), []byte("third")))
		require.Equal(t, "third", string(read(t, q).Value))
		release(t, l)
	})
}

// No node can have taken what was not sent.
func TestWriteThatNoNodeCanHaveTaken(t *testing.T) {
	bubble(t, 3, func(t *testing.T, f *fleet) {
		q := f.open()
		l := acquire(t, q, redlock.WithoutAutoExtend())
		turn, _ := begin(t, q, l)
		f.restart(false, 0, 1, 2)
		q.Nodes(t.Context()) // which has it noticed
		time.Sleep(ttl)      // they are in quarantine, and are not asked
		err := turn.Write(t.Context(), []byte("one"))
		require.NotErrorIs(t, err, register.ErrUnknown)
		var qe *redlock.QuorumError
		require.ErrorAs(t, err, &qe)
		require.Len(t, qe.Errs, 3)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err = turn.Write(ctx, []byte("one"))
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, register.ErrUnknown)
	})
}

// A write is one of any bytes, blanks and zeros included.
func TestValues(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	bubble(t, 3, func(t *testing.T, f *fleet) {
		q := f.open()
		l := acquire(t, q)
		turn, _ := begin(t, q, l)
		for _, value := range []string{" ", "", "  a b ", "\n1 2 3\r\n", "\x00", string(every), strings.Repeat("x", register.MaxValue), strings.Repeat(" ", register.MaxValue)} {
			require.NoError(t, turn.Write(t.Context(), []byte(value)))
			s := read(t, q)
			require.Equal(t, value, string(s.Value))
			require.Equal(t, l.FencingToken(), s.Ballot)
		}
		err := turn.Write(t.Context(), make([]byte, register.MaxValue+1))
		var oe *redlock.OptionError
		require.ErrorAs(t, err, &oe)
		release(t, l)
	})
}

// It is one command a node to read, one to begin, and one to write, whatever is read beside.
func TestCost(t *testing.T) {
	bubble(t, 3, func(t *testing.T, f *fleet) {
		q := f.open()
		mine, job, all := of(q), register.Of(q, "pause/key", keep), register.Of(q, "pause", keep)
		_, err := mine.Read(t.Context(), job, all)
		require.NoError(t, err)
		l := acquire(t, q)
		time.Sleep(time.Second)
		count := func(what string, f3 func() error) {
			t.Helper()
			before := [3]int{}
			for i := range before {
				before[i] = f.Node(i).Commands()
			}
			require.NoError(t, f3())
			synctest.Wait()
			for i := range before {
				require.Equal(t, 1, f.Node(i).Commands()-before[i], "%s, node %d", what, i)
			}
		}
		count("read", func() error { _, err := mine.Read(t.Context(), job, all); return err })
		var turn *register.Turn
		count("begin", func() (err error) { turn, _, err = mine.Begin(t.Context(), l, job, all); return err })
		count("write", func() error { return turn.Write(t.Context(), []byte("one")) })
		count("write", func() error { return turn.Write(t.Context(), []byte("two")) })
		release(t, l)
	})
}

// A Begin reads others beside, which promise nothing.
func TestOtherRegistersAreReadBeside(t *testing.T) {
	bubble(t, 3, func(t *testing.T, f *fleet) {
		q := f.open()
		write(t, q, "mine")
		pause := acquireOther(t, q, "pause/key")
		holder, _, err := register.Of(q, "pause/key", keep).Begin(t.Context(), pause)
		require.NoError(t, err)
		l := acquire(t, q)
		turn, states, err := of(q).Begin(t.Context(), l, register.Of(q, "pause/key", keep), register.Of(q, "pause", keep))
		require.NoError(t, err)
		require.Equal(t, "mine", string(states[0].Value))
		require.Empty(t, states[1].Value)
		require.NoError(t, holder.Write(t.Context(), []byte("floor")))
		require.NoError(t, turn.Write(t.Context(), []byte("next")))
		many := make([]register.Register, 100)
		for i := range many {
			many[i] = register.Of(q, "many"+strconv.Itoa(i), keep)
		}
		many[99] = register.Of(q, "pause/key", keep)
		states, err = of(q).Read(t.Context(), many...)
		require.NoError(t, err)
		require.Len(t, states, 101)
		require.Equal(t, "next", string(states[0].Value))
		require.Equal(t, "floor", string(states[100].Value))
		require.Equal(t, states[0].Now, states[1].Now)
	})
}

func TestArguments(t *testing.T) {
	bubble(t, 1, func(t *testing.T, f *fleet) {
		q, other := f.open(), f.open()
		l := acquire(t, q)
		for _, r := range []register.Register{
			register.Of(q, "", keep), register.Of(q, "}", keep), register.Of(q, "key", 0), register.Of(q, "key", redlock.MaxKeep+1),
		} {
			var oe *redlock.OptionError
			_, err := r.Read(t.Context())
			require.ErrorAs(t, err, &oe)
			_, err = of(q).Read(t.Context(), r)
			require.ErrorAs(t, err, &oe)
			_, _, err = r.Begin(t.Context(), l)
			require.ErrorAs(t, err, &oe)
			keeping(t, q, r)()
		}
		var oe *redlock.OptionError
		_, err := of(q).Read(t.Context(), of(other))
		require.ErrorAs(t, err, &oe)
		_, err = register.Register{}.Read(t.Context())
		require.ErrorIs(t, err, redlock.ErrClosed)
		require.NoError(t, other.Close())
		_, err = of(other).Read(t.Context())
		require.ErrorIs(t, err, redlock.ErrClosed)
		keeping(t, other, of(other))()
		keeping(t, nil, register.Register{})()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = of(q).Read(ctx)
		require.True(t, errors.Is(err, context.Canceled), err)
	})
}
