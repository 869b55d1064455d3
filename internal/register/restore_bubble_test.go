package register_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
)

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
