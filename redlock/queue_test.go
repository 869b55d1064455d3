package redlock

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// call has the waiter called by a number of nodes, one after the other.
func call(w *waiter, messages ...string) {
	for _, message := range messages {
		message = strings.Replace(message, "ME", strconv.FormatUint(w.number, 10), 1)
		w.calls.receive(valkey.PubSubMessage{Channel: w.calls.channel, Message: message})
	}
}

func testCalls() *calls {
	return newCalls(&Quorum{cfg: &config{prefix: "tenure"}, need: 3, closed: true})
}

// taken returns what the waiter is woken with, and nil if it is not.
func taken(w *waiter) *wakeUp {
	select {
	case u := <-w.wake:
		return &u
	default:
		return nil
	}
}

// Anybody who may publish can call anything. What no release would say wakes nobody.
func TestCallsThatAreNone(t *testing.T) {
	for message, wakes := range map[string]bool{
		"0 ME owner":                   true,
		"86400000 ME owner":            true,
		"0 ME an owner":                true,
		"0 2 owner":                    false, // somebody else's
		"86400001 ME owner":            false,
		"9223372036854775 ME owner":    false, // overflows as nanoseconds
		"9223372036854775807 ME owner": false,
		"-1 ME owner":                  false,
		"0 -1 owner":                   false,
		"0 ME":                         false,
		"0":                            false,
		"owner":                        false,
		"1e3 ME owner":                 false,
		"":                             false,
	} {
		t.Run(message, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := testCalls()
				w := c.join("me", false)
				defer w.leave()
				call(w, message)
				time.Sleep(2 * callGrace)
				require.Equal(t, wakes, taken(w) != nil)
			})
		})
	}
}

func TestCallsAreCounted(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name  string
		calls string
		at    time.Duration // when it is woken
		free  time.Duration
	}{
		{"by a quorum", "0 ME a,0 ME a,0 ME a", 0, 0},
		{"by all", "0 ME a,0 ME a,0 ME a,0 ME a,0 ME a", 0, 0},
		{"by two of five", "0 ME a,0 ME a", callGrace, 0},
		{"within a minimum hold, by one", "50 ME a", callGrace, 50*ms - callGrace},
		{"as the second by all", "100 ME a,100 ME a,100 ME a,100 ME a,100 ME a", 0, 100 * ms},
		{"as the first by most", "100 ME a,0 ME a,100 ME a,0 ME a,0 ME a", 0, 0},
		{"of releases that do not belong together", "0 ME a,0 ME b,0 ME a,0 ME b", callGrace, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := testCalls()
				w := c.join("me", false)
				defer w.leave()
				call(w, strings.Split(test.calls, ",")...)
				if test.at > 0 {
					require.Nil(t, taken(w))
					time.Sleep(test.at)
					synctest.Wait()
				}
				require.Equal(t, &wakeUp{released: true, freeIn: test.free}, taken(w))
				time.Sleep(2 * callGrace)
				require.Nil(t, taken(w), "twice")
			})
		})
	}
}

// Who has left is not woken, and holds nothing up.
func TestCallForOneThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testCalls()
		w := c.join("me", false)
		call(w, "0 ME a")
		w.leave()
		call(w, "0 ME a", "0 ME a")
		time.Sleep(2 * callGrace)
		require.Nil(t, taken(w))
		require.False(t, c.awaited())
	})
}

func TestMembers(t *testing.T) {
	process := wire.NewProcess()
	for _, identity := range []string{"", "me", "host 1/a b"} {
		member := wire.NewMember(17, process, identity)
		require.True(t, strings.HasPrefix(member, "0000000000000017 "+process))
		got, ok := wire.MemberIdentity(member)
		require.True(t, ok)
		require.Equal(t, identity, got)
		require.Equal(t, identity, wire.OwnerIdentity(member))
	}
	require.Less(t, wire.NewMember(9, process, ""), wire.NewMember(10, process, ""), "in the order of their numbers")
	for _, owner := range []string{wire.NewOwner("me"), wire.NewOwner("1 2 3"), "", "0000000000000001", "0000000000000001 p me", "000000000000000x " + process + " me"} {
		_, ok := wire.MemberIdentity(owner)
		require.False(t, ok, owner)
	}
}

// clocks is a Quorum whose nodes' clocks are known to be ahead by so much; 0 for those that are not
// known.
func clocks(ahead ...time.Duration) *Quorum {
	q := &Quorum{cfg: &config{prefix: "tenure"}, need: len(ahead)/2 + 1, closed: true}
	for _, by := range ahead {
		n := &node{}
		n.ahead.Store(int64(by))
		q.nodes = append(q.nodes, n)
	}
	return q
}

// A waiter's place is by the clocks of most nodes, not by its own.
func TestPlaceIsByTheNodesClocks(t *testing.T) {
	for _, test := range []struct {
		ahead []time.Duration
		want  time.Duration
	}{
		{[]time.Duration{0, 0, 0}, 0},
		{[]time.Duration{time.Hour, time.Hour, time.Hour}, time.Hour},
		{[]time.Duration{-time.Hour, -time.Hour, 0}, -time.Hour},
		{[]time.Duration{time.Hour, 1000, -time.Hour}, time.Microsecond},
		{[]time.Duration{1000, time.Second, 1000, time.Hour, 2000}, 2 * time.Microsecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCalls(clocks(test.ahead...))
			w := c.join("me", false)
			defer w.leave()
			require.Equal(t, uint64(time.Now().Add(test.want).UnixMicro()), w.number, "%v", test.ahead)
			next := c.join("me", false)
			defer next.leave()
			require.Equal(t, w.number+1, next.number, "of two that come together one is the first")
		})
	}
}

// A node may call as often as it likes.
func TestManyCallsOfOneRelease(t *testing.T) {
	const need = 3
	w := &waiter{calls: &calls{}, wake: make(chan wakeUp, 1)}
	w.calls.mu.Lock()
	defer w.calls.mu.Unlock()
	for i := range 10_000 {
		w.count("release", time.Duration(10_000-i)*time.Millisecond, need)
	}
	w.grace.Stop()
	require.LessOrEqual(t, len(w.delays), need)
	require.Equal(t, []time.Duration{time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond}, w.delays)
}
