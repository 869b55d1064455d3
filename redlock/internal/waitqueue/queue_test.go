package waitqueue

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/redlock/internal/listen"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// call has the waiter called by a number of nodes, one after the other.
func call(q *Queue, t *Ticket, messages ...string) {
	for _, message := range messages {
		message = strings.Replace(message, "ME", strconv.FormatUint(t.number, 10), 1)
		q.heard(0, "1 "+message)
	}
}

// testQueue is a queue of which a quorum is 3, and that listens to nobody.
func testQueue() *Queue {
	return New(Config{Now: time.Now, Need: 3, MaxDelay: 24 * time.Hour, Listener: listen.New(0, time.Second, nil)})
}

// taken returns what the waiter is woken with, and nil if it is not.
func taken(t *Ticket) *Notice {
	select {
	case n := <-t.Notices:
		return &n
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
				q := testQueue()
				w := q.Join(q.Place(), "me", false)
				defer q.Leave(w)
				call(q, w, message)
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
				q := testQueue()
				w := q.Join(q.Place(), "me", false)
				defer q.Leave(w)
				call(q, w, strings.Split(test.calls, ",")...)
				if test.at > 0 {
					require.Nil(t, taken(w))
					time.Sleep(test.at)
					synctest.Wait()
				}
				require.Equal(t, &Notice{Released: true, FreeIn: test.free}, taken(w))
				time.Sleep(2 * callGrace)
				require.Nil(t, taken(w), "twice")
			})
		})
	}
}

// Who has left is not woken, and holds nothing up; nor is a waiter woken for the release before.
func TestCallForOneThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue()
		w := q.Join(q.Place(), "me", false)
		call(q, w, "0 ME before")
		time.Sleep(callGrace / 2)
		call(q, w, "0 ME a")
		time.Sleep(callGrace - 1)
		require.Nil(t, taken(w), "that release is past")
		q.Leave(w)
		call(q, w, "0 ME a", "0 ME a")
		time.Sleep(2 * callGrace)
		require.Nil(t, taken(w))
		require.Empty(t, q.tickets)
	})
}

// Each has a place of its own, also of those that come together.
func TestPlaceOfEach(t *testing.T) {
	q := testQueue()
	at := time.Now()
	q.cfg.Now = func() time.Time { return at }
	first := uint64(at.UnixMicro())
	require.Equal(t, []uint64{first, first + 1, first + 2}, []uint64{q.Place(), q.Place(), q.Place()})
	at = time.Unix(-1, 0)
	require.Zero(t, q.Place())
}

// A node may call as often as it likes.
func TestManyCallsOfOneRelease(t *testing.T) {
	q := testQueue()
	w := q.Join(q.Place(), "me", false)
	for i := range 10_000 {
		call(q, w, fmt.Sprint(10_000-i, " ME release"))
	}
	q.Leave(w)
	require.Equal(t, []time.Duration{time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond}, w.delays)
}

// A process that once had a wrong idea of the time is not behind everybody else for as long as it
// was wrong.
func TestPlaceForgetsAWrongClock(t *testing.T) {
	q := testQueue()
	at := time.Now().Add(time.Hour)
	q.cfg.Now = func() time.Time { return at }
	q.Place()
	at = at.Add(-time.Hour)
	require.Equal(t, uint64(at.UnixMicro()), q.Place())
}

// What takes a member out of the queues is not sent while something is sent for a ticket that is
// there; and nothing is sent for one that has left.
func TestWhileATicketIsThere(t *testing.T) {
	q := testQueue()
	w := q.Join(q.Place(), "me", false)
	sent := 0
	send := func() { sent++; require.False(t, q.mu.TryLock(), "it may leave meanwhile") }
	q.While(w.Member, send)
	q.Leave(w)
	q.While(w.Member, send)
	require.Equal(t, 1, sent)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listening tests a queue of three nodes.
func listening(t *testing.T, test func(t *testing.T, fleet *redlocktest.Fleet, q *Queue)) {
	synctest.Test(t, func(t *testing.T) {
		fleet := redlocktest.StartPipes(t, 3)
		l := listen.New(3, time.Second, func(ctx context.Context, i int) *node.Lasting {
			o := valkey.MustParseURL(fleet.URLs()[i])
			o.ForceSingleClient, o.DisableCache, o.DisableRetry, o.PipelineMultiplex, o.ConnWriteTimeout = true, true, true, -1, time.Second
			fleet.ClientOption(fleet.URLs()[i], &o)
			return node.NewLasting(ctx, o)
		})
		defer func() { l.Close(); l.Wait() }()
		test(t, fleet, New(Config{Now: time.Now, Need: 2, Channel: "p:call:", MaxDelay: time.Hour, Listener: l, Subscribed: func(int, error) {}}))
	})
}

// A waiter is told to try when a quorum of nodes can call: what was released before that is not
// heard. The others change nothing.
func TestWaiterIsToldWhenAQuorumCanCall(t *testing.T) {
	listening(t, func(t *testing.T, fleet *redlocktest.Fleet, q *Queue) {
		for _, n := range fleet.Nodes() {
			require.NoError(t, n.Freeze())
		}
		w := q.Join(q.Place(), "me", false)
		defer q.Leave(w)
		for i, n := range fleet.Nodes() {
			time.Sleep(10 * time.Second)
			require.Equal(t, i > 1, q.IsHeard(), "%d nodes can call", i)
			require.NoError(t, n.Thaw())
			time.Sleep(10 * time.Second)
			require.Equal(t, map[int]*Notice{1: {}}[i], taken(w), "the %d. of three", i+1)
		}
	})
}

// Who comes when a quorum can call already tries at once, if it has been refused before it joined.
func TestWaiterThatWasRefusedBeforeItJoined(t *testing.T) {
	listening(t, func(t *testing.T, _ *redlocktest.Fleet, q *Queue) {
		first := q.Join(q.Place(), "me", true)
		defer q.Leave(first)
		require.Nil(t, taken(first), "nobody can call yet")
		synctest.Wait()
		require.Equal(t, &Notice{}, taken(first))
		for refused, want := range map[bool]*Notice{true: {}, false: nil} {
			w := q.Join(q.Place(), "me", refused)
			require.Equal(t, want, taken(w), "refused: %v", refused)
			q.Leave(w)
		}
	})
}
