package register_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
)

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
