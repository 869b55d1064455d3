package register_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
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

// known has all nodes know a value.
func known(t *testing.T, f *fleet, q *redlock.Quorum, value string) {
	t.Helper()
	write(t, q, value)
	synctest.Wait() // until the nodes behind the quorum have it too
	for i := range f.Nodes() {
		require.True(t, f.knows(i))
		require.True(t, strings.HasSuffix(f.text(i), " 1 "+value), f.text(i))
	}
}

// A write has a node know that answered the read that it does not, and its answer counts.
func TestWriteRestores(t *testing.T) {
	bubble(t, 3, func(t *testing.T, f *fleet) {
		q := f.open()
		known(t, f, q, "one")
		f.restart(false, 1)
		time.Sleep(2 * quarantine)
		l := acquire(t, q)
		turn, s := begin(t, q, l)
		require.Equal(t, "one", string(s.Value))
		require.Equal(t, 2, s.Nodes)
		synctest.Wait()
		require.False(t, f.knows(1), "it has promised nothing")
		f.kill(2)
		require.NoError(t, turn.Write(t.Context(), []byte("two")))
		require.True(t, f.knows(1))
		require.Equal(t, fmt.Sprintf("%d %d 1 two", l.FencingToken(), l.FencingToken()), f.text(1))
		require.NoError(t, turn.Write(t.Context(), []byte("three")))
	})
}

// A node that has forgotten a register since it was read takes no write of it: it has forgotten
// what it promised, too, and maybe a later value.
func TestWriteHasNoNodeKnowThatHasForgottenSince(t *testing.T) {
	bubble(t, 3, func(t *testing.T, f *fleet) {
		q := f.open()
		known(t, f, q, "one")
		l := acquire(t, q, redlock.WithoutAutoExtend())
		turn, _ := begin(t, q, l)
		time.Sleep(100 * time.Millisecond) // until all three were read, and not only a quorum
		f.Node(1).FlushAll()
		f.kill(2)
		err := turn.Write(t.Context(), []byte("two"))
		require.ErrorIs(t, err, register.ErrUnknown)
		require.ErrorContains(t, err, "does not know the register yet")
		require.False(t, f.knows(1))
	})
}

// A node that is merely late may know what no other does: without it Q - 1 are not enough. With one
// that is known not to vote they have to be, and it is said.
func TestOneMissingAndOneForgotten(t *testing.T) {
	for _, ask := range []string{"read", "begin"} {
		bubble(t, 3, func(t *testing.T, f *fleet) {
			var log journal
			q := f.open(log.option())
			known(t, f, q, "one")
			f.Node(1).FlushAll()
			f.freeze(2)
			_, err := of(q).Read(t.Context())
			var qe *redlock.QuorumError
			require.ErrorAs(t, err, &qe)
			require.Equal(t, 1, qe.Succeeded)
			require.ErrorContains(t, err, "does not know the register yet")
			require.False(t, f.knows(1))
			time.Sleep(2 * ttl) // it is noticed that it does not answer
			require.NotContains(t, log.String(), "too few nodes know a register")
			if ask == "read" {
				require.Equal(t, "one", string(read(t, q).Value))
			} else {
				turn, s := begin(t, q, acquire(t, q))
				require.Equal(t, "one", string(s.Value))
				require.NoError(t, turn.Write(t.Context(), []byte("two")))
			}
			require.True(t, f.knows(1))
			require.Contains(t, log.String(), `level=WARN msg="register: too few nodes know a register`)
			require.NotContains(t, log.String(), "level=ERROR")
			f.thaw(2)
		})
	}
}

// Of five nodes one is left that knows: less than Q - 1. What was found goes on, as an error.
func TestNearlyAllForgotten(t *testing.T) {
	bubble(t, 5, func(t *testing.T, f *fleet) {
		var log journal
		q := f.open(log.option())
		known(t, f, q, "one")
		for i := range 4 {
			f.Node(i).FlushAll()
		}
		f.put(1, "1 "+strings.Repeat("a", 40)+" 9 9 1 older")
		time.Sleep(time.Second) // the counters of tokens are gone as well
		f.Node(4).SetDelay(20 * time.Millisecond)
		turn, s := begin(t, q, acquire(t, q))
		require.Equal(t, "one", string(s.Value))
		require.NoError(t, turn.Write(t.Context(), []byte("two")))
		require.Contains(t, log.String(), `level=ERROR msg="register: too few nodes know a register`)
		f.requireKnown(0, 1, 2, 3, 4)
	})
}

// After a power cut nobody knows: what the servers have kept on disk goes on, as an error; nothing
// is said of a fleet that was emptied.
func TestNobodyKnows(t *testing.T) {
	for _, kept := range []bool{true, false} {
		for _, ask := range []string{"read", "begin"} {
			bubble(t, 3, func(t *testing.T, f *fleet) {
				var log journal
				q := f.open(log.option())
				known(t, f, q, "one")
				f.freeze(0)
				write(t, q, "two")
				f.restart(kept, 0, 1, 2)
				time.Sleep(2 * quarantine)
				want := map[bool]string{true: "two", false: ""}[kept]
				if ask == "read" {
					s := read(t, q)
					require.Equal(t, want, string(s.Value))
					require.Equal(t, 3, s.Nodes)
				} else {
					l := acquire(t, q)
					turn, s := begin(t, q, l)
					require.Equal(t, want, string(s.Value))
					synctest.Wait()
					for i := range 3 {
						require.True(t, strings.HasPrefix(f.text(i), strconv.FormatUint(l.FencingToken(), 10)+" "), "it has promised: %s", f.text(i))
					}
					require.NoError(t, turn.Write(t.Context(), []byte("three")))
				}
				require.Equal(t, kept, strings.Contains(log.String(), `level=ERROR msg="register: too few nodes know a register`), log.String())
				f.requireKnown(0, 1, 2)
			})
		}
	}
}

// Where just one node knows, and what it knows is old, what the others have kept on disk goes on.
func TestOneKnowsWhatIsOld(t *testing.T) {
	bubble(t, 3, func(t *testing.T, f *fleet) {
		q := f.open()
		known(t, f, q, "one")
		f.freeze(0)
		time.Sleep(2 * ttl)
		write(t, q, "two")
		time.Sleep(2 * ttl) // nothing is sent to it any more
		f.thaw(0)
		time.Sleep(2 * ttl)
		f.restart(true, 1, 2)
		time.Sleep(2 * quarantine)
		require.True(t, f.knows(0) && strings.HasSuffix(f.text(0), " one"), f.text(0))
		require.Equal(t, "two", string(read(t, q).Value))
		f.requireKnown(0, 1, 2)
	})
}

// What is left of a register's life is restored with it.
func TestLifetimes(t *testing.T) {
	bubble(t, 3, func(t *testing.T, f *fleet) {
		q := f.open()
		requireLife := func(d time.Duration, nodes ...int) {
			t.Helper()
			synctest.Wait()
			for _, i := range nodes {
				require.InDelta(t, d, f.Node(i).TTL(name), float64(100*time.Millisecond))
			}
		}
		const long, short = 4 * time.Minute, 2 * time.Minute
		using := func(life time.Duration, value string) {
			l := acquire(t, q)
			turn, _, err := register.Of(q, "key", life).Begin(t.Context(), l)
			require.NoError(t, err)
			if value != "" {
				require.NoError(t, turn.Write(t.Context(), []byte(value)))
			}
			release(t, l)
		}
		using(long, "one")
		requireLife(long, 0, 1, 2)
		using(short, "two")
		requireLife(long, 0, 1, 2)
		time.Sleep(long - time.Minute)
		read(t, q)
		requireLife(time.Minute, 0, 1, 2)
		using(short, "")
		requireLife(short, 0, 1, 2)

		stop := keeping(t, q, register.Of(q, "key", time.Second))
		f.restart(false, 0)
		time.Sleep(2 * quarantine)
		require.True(t, f.knows(0))
		requireLife(short-2*quarantine, 0)
		stop()
		require.NoError(t, f.do(1, "PERSIST", name).Error())
		using(short, "three")
		requireLife(short, 0, 2)
		require.Greater(t, f.Node(1).TTL(name), 99*365*24*time.Hour, "something else has taken that away")
		time.Sleep(short + time.Second)
		require.False(t, f.knows(0))
	})
}

// A text that is none is as if there were none; one of another version stays, and its node has no
// vote.
func TestHostileTexts(t *testing.T) {
	ahead := func(d time.Duration) string { return strconv.FormatInt(time.Now().Add(d).UnixMicro(), 10) }
	for what, text := range map[string]func(process string) string{
		"nothing":       func(string) string { return "" },
		"words":         func(string) string { return "hello" },
		"too few":       func(p string) string { return "1 " + p + " 5 5 1" },
		"no numbers":    func(p string) string { return "1 " + p + " 5 x 1 value" },
		"signs":         func(p string) string { return "1 " + p + " -5 5 1 value" },
		"too large":     func(p string) string { return "1 " + p + " 9007199254740992 5 1 value" },
		"digits":        func(p string) string { return "1 " + p + " 00000000000000001 5 1 value" },
		"too long":      func(p string) string { return "1 " + p + " 5 5 1 " + strings.Repeat("x", register.MaxValue+1) },
		"promise leads": func(p string) string { return "1 " + p + " " + ahead(25*time.Hour) + " 5 1 value" },
		"ballot leads":  func(p string) string { return "1 " + p + " 5 " + ahead(25*time.Hour) + " 1 value" },
		"another process": func(string) string {
			return "1 " + strings.Repeat("b", 40) + " " + ahead(time.Hour) + " " + ahead(time.Hour) + " 7 value"
		},
		"megabytes":        func(p string) string { return "1 " + p + " 5 5 1 " + strings.Repeat("x", 1<<20) },
		"another one's":    func(string) string { return "list" },
		"version":          func(p string) string { return "2 " + p + " 5 5 1 value" },
		"version of three": func(p string) string { return "999 anything" },
	} {
		bubble(t, 3, func(t *testing.T, f *fleet) {
			q := f.open()
			known(t, f, q, "one")
			text := text(f.process(1))
			f.put(1, text)
			if text == "list" {
				require.NoError(t, f.do(1, "DEL", name).Error())
				require.NoError(t, f.do(1, "RPUSH", name, "x").Error())
			}
			f.Node(2).SetDelay(20 * time.Millisecond)
			s := read(t, q)
			require.Equal(t, "one", string(s.Value), what)
			require.Equal(t, 2, s.Nodes, what)
			other := strings.HasPrefix(what, "version")
			if other {
				f.freeze(2)
				_, err := of(q).Read(t.Context())
				require.ErrorContains(t, err, "other_version: the register has version", what)
				f.thaw(2)
			}
			f.Node(2).SetDelay(0)
			time.Sleep(time.Second)
			turn, s := begin(t, q, acquire(t, q))
			require.Equal(t, "one", string(s.Value), what)
			synctest.Wait()
			require.NoError(t, turn.Write(t.Context(), []byte("two")))
			synctest.Wait()
			require.Equal(t, !other, f.knows(1), what)
			require.Equal(t, "two", string(read(t, q).Value), what)
			if other {
				kept, _ := f.Node(1).Get(name)
				require.Equal(t, text, kept)
			}
		})
	}
}

// A node that has another version's text may be the one that knows: the others are not taken for
// all there is.
func TestNothingIsRestoredBesideAnotherVersion(t *testing.T) {
	bubble(t, 3, func(t *testing.T, f *fleet) {
		q := f.open()
		f.put(2, "2 what is to come")
		_, err := of(q).Read(t.Context())
		require.ErrorContains(t, err, "other_version")
		_, _, err = of(q).Begin(t.Context(), acquire(t, q))
		require.ErrorContains(t, err, "other_version")
		require.False(t, f.knows(0))
	})
}

// Servers that keep what they have are not asked which process they are.
func TestWithoutRestartGate(t *testing.T) {
	bubble(t, 3, func(t *testing.T, f *fleet) {
		q := f.open(redlock.WithoutRestartGate())
		write(t, q, "one")
		synctest.Wait()
		text, _ := f.Node(0).Get(name)
		require.True(t, strings.HasPrefix(text, "1 - "), text)
		f.restart(true, 0, 1, 2)
		time.Sleep(time.Second)
		require.Equal(t, "one", write(t, q, "two"))
		keeping(t, q, of(q))()
		require.Equal(t, "two", string(read(t, q).Value))
	})
}

// restartsOneByOne empties the nodes one after the other, as an operator does who keeps to the
// documents.
func restartsOneByOne(f *fleet) {
	for i := range f.Nodes() {
		f.restart(false, i)
		time.Sleep(2 * quarantine)
	}
}

// A register that rests while all nodes are restarted one after the other, without data, is not
// forgotten, and neither is what was promised.
func TestKeptRegisterOutlivesRestartsOneAfterTheOther(t *testing.T) {
	for _, nodes := range []int{3, 5} {
		bubble(t, nodes, func(t *testing.T, f *fleet) {
			var log journal
			var replicas []*redlock.Quorum
			for range 3 {
				q := f.open(log.option())
				defer keeping(t, q, of(q), register.Of(q, "never", keep))()
				replicas = append(replicas, q)
				time.Sleep(time.Second) // so that they do not all look at the same time
			}
			l := acquire(t, replicas[0], redlock.WithoutAutoExtend())
			turn, _ := begin(t, replicas[0], l)
			require.NoError(t, turn.Write(t.Context(), []byte("one")))
			time.Sleep(ttl)
			later := acquire(t, replicas[1], redlock.WithoutAutoExtend())
			begin(t, replicas[1], later)
			restartsOneByOne(f)
			f.restart(false, 0) // which had it from one that was restarted as well
			time.Sleep(2 * quarantine)
			for i := range nodes {
				require.True(t, f.knows(i))
				require.Equal(t, fmt.Sprintf("%d %d 1 one", later.FencingToken(), l.FencingToken()), f.text(i))
				_, there := f.Node(i).Get("tenure:{never}:register")
				require.False(t, there, "there is nothing to know")
			}
			require.ErrorIs(t, turn.Write(t.Context(), []byte("two")), register.ErrSuperseded)
			require.Equal(t, "one", string(read(t, replicas[2]).Value))
			require.NotContains(t, log.String(), "too few nodes know a register")
		})
	}
}

// Without anybody who keeps it, or once nobody does any more, it is.
func TestRegisterThatNobodyKeepsIsForgotten(t *testing.T) {
	for _, keeps := range []string{"never", "once", "twice", "closed"} {
		bubble(t, 3, func(t *testing.T, f *fleet) {
			q, other := f.open(), f.open()
			known(t, f, q, "one")
			if keeps != "never" {
				stop := keeping(t, other, of(other), of(other))
				defer keeping(t, other, register.Of(other, "another", keep))()
				again := func() {}
				if keeps == "twice" {
					again = keeping(t, other, of(other))
				}
				restartsOneByOne(f)
				require.Equal(t, "one", string(read(t, q).Value))
				stop()
				stop()
				if keeps == "closed" {
					defer keeping(t, other, of(other))()
					require.NoError(t, other.Close())
				}
				defer again()
			}
			restartsOneByOne(f)
			want := map[bool]string{true: "one", false: ""}[keeps == "twice"]
			require.Equal(t, want, string(read(t, q).Value), keeps)
		})
	}
}

// What is restored is what those know who know it, and not what a text of an earlier process has.
func TestKeepRestoresFromWhoKnows(t *testing.T) {
	bubble(t, 3, func(t *testing.T, f *fleet) {
		q := f.open()
		defer keeping(t, q, of(q))()
		known(t, f, q, "one")
		f.put(0, "1 "+f.process(0)+" 946684800900000 946684800900000 2 two") // which no quorum has
		f.restart(true, 0)
		time.Sleep(2 * quarantine)
		require.True(t, f.knows(0))
		require.Equal(t, f.text(1), f.text(0))
	})
}

// A thousand registers are kept with few commands, and one that cannot be restored is in no other's
// way.
func TestKeepMany(t *testing.T) {
	bubble(t, 3, func(t *testing.T, f *fleet) {
		q := f.open()
		var all []register.Register
		for i := range 1000 {
			all = append(all, register.Of(q, fmt.Sprint("job", i), keep))
		}
		_, err := all[0].Read(t.Context(), all[1:]...) // which restores them
		require.NoError(t, err)
		for i := range 3 {
			require.NoError(t, f.do(i, "SET", "tenure:{job7}:register", "2 version", "PX", "3600000").Error())
		}
		f.restart(false, 1)
		before := f.Node(2).Commands()
		defer keeping(t, q, all...)()
		time.Sleep(2 * quarantine)
		n := 0
		for _, key := range f.Node(1).Keys() {
			if strings.HasSuffix(key, ":register") {
				n++
			}
		}
		require.Equal(t, 999, n)
		synctest.Wait()
		require.Less(t, f.Node(2).Commands()-before, 200)
	})
}

// Each holder adds its name to what it has read, whether its lease lives or not, on nodes that are
// frozen, and emptied one after the other. A name whose write has returned nil is in all that is
// read from then on, in its place.
func TestNoWriteThatStandsIsLost(t *testing.T) {
	for seed := range uint64(2) {
		bubble(t, 3, func(t *testing.T, f *fleet) {
			random := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			stands := "" // guarded by mu; what the write has that has stood last
			stood, superseded := 0, 0
			check := func(before, value string, ballot uint64) {
				require.True(t, strings.HasPrefix(value, before), "seed %d, ballot %d: %q stood, and %q is read", seed, ballot, before, value)
			}
			done := make(chan struct{})
			var work sync.WaitGroup
			for i := range 4 {
				q := f.open()
				defer keeping(t, q, of(q))()
				pauses := make([]time.Duration, 400)
				for i := range pauses {
					pauses[i] = time.Duration(random.Int64N(int64(2 * time.Second)))
				}
				work.Go(func() {
					for n, pause := range pauses {
						select {
						case <-done:
							return
						case <-time.After(pause / 4):
						}
						l, err := q.TryAcquire(t.Context(), "key", redlock.WithTTL(time.Second), redlock.WithoutAutoExtend())
						if err != nil {
							continue
						}
						mu.Lock()
						before := stands
						mu.Unlock()
						turn, states, err := of(q).Begin(t.Context(), l)
						if err != nil {
							continue
						}
						check(before, string(states[0].Value), l.FencingToken())
						time.Sleep(pause) // its lease may be over
						value := fmt.Sprintf("%s%d.%d ", states[0].Value, i, n)
						err = turn.Write(t.Context(), []byte(value))
						mu.Lock()
						if err == nil {
							check(stands, value, l.FencingToken())
							stands = value
							stood++
						} else if errors.Is(err, register.ErrSuperseded) {
							superseded++
						}
						mu.Unlock()
						if l.Err() == nil {
							_ = l.Release(t.Context())
						}
					}
				})
			}
			for round := range 3 {
				node := int(random.Int64N(3))
				switch round % 3 {
				case 0:
					f.freeze(node)
					time.Sleep(3 * time.Second)
					f.thaw(node)
				case 1:
					f.restart(false, node)
					time.Sleep(2 * quarantine)
				case 2:
					f.Node(node).SetDelay(150 * time.Millisecond)
					time.Sleep(3 * time.Second)
					f.Node(node).SetDelay(0)
				}
				time.Sleep(2 * time.Second)
			}
			close(done)
			work.Wait()
			q := f.open()
			check(stands, string(read(t, q).Value), 0)
			require.Greater(t, stood, 10)
			require.Positive(t, superseded, "none was stale")
		})
	}
}
