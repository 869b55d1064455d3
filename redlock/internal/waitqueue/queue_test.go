package waitqueue

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/redlock/internal/listen"
	"github.com/tenure-dev/tenure/redlock/internal/node"
)

// call has the waiter called by a number of nodes, one after the other.
func call(q *Queue, t *Ticket, messages ...string) {
	for _, message := range messages {
		message = strings.Replace(message, "ME", strconv.FormatUint(t.number, 10), 1)
		q.receive("1 " + message)
	}
}

// testQueue is a queue of which a quorum is 3, and that listens to nobody.
func testQueue() *Queue {
	return New(Config{Now: time.Now, Need: 3, MaxDelay: 24 * time.Hour, Listener: listen.New(listen.Config{})})
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

// Who has left is not woken, and holds nothing up.
func TestCallForOneThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue()
		w := q.Join(q.Place(), "me", false)
		call(q, w, "0 ME a")
		q.Leave(w)
		call(q, w, "0 ME a", "0 ME a")
		for range 3 {
			w.count("b", 0) // was on its way
		}
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
	w := &Ticket{need: 3, notices: make(chan Notice, 1)}
	for i := range 10_000 {
		w.count("release", time.Duration(10_000-i)*time.Millisecond)
	}
	w.end()
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
	q.While(w.Member, func() { sent++ })
	q.Leave(w)
	q.While(w.Member, func() { sent++ })
	require.Equal(t, 1, sent)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// speaker is a Node that can be subscribed to.
type speaker struct {
	client valkey.Client // makes commands and errors; it has no connection

	mu     sync.Mutex
	mute   bool          // guarded by mu; no connection can be had
	stuck  bool          // guarded by mu; no connection comes
	silent bool          // guarded by mu; a subscription is not answered
	delay  time.Duration // guarded by mu; before a subscription is
	made   []*line       // guarded by mu
	tries  int           // guarded by mu
}

// line is a connection to a speaker.
type line struct {
	valkey.DedicatedClient

	to      *speaker
	channel string
	hooks   valkey.PubSubHooks
	broken  chan error
	closed  bool // guarded by to.mu
}

func newSpeaker(t *testing.T) *speaker {
	client, err := valkey.NewClient(valkey.ClientOption{
		InitAddress: []string{"speaker:1"}, ForceSingleClient: true, DisableCache: true, DisableRetry: true,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return nil, errors.New("connection refused")
		},
	})
	require.Error(t, err)
	t.Cleanup(client.Close)
	return &speaker{client: client}
}

// set changes it.
func (s *speaker) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *speaker) Dedicate(ctx context.Context) (valkey.DedicatedClient, error) {
	s.mu.Lock()
	s.tries++
	mute, stuck := s.mute, s.stuck
	s.mu.Unlock()
	if stuck {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if mute {
		return nil, errors.New("no connection")
	}
	l := &line{to: s, broken: make(chan error, 1)}
	s.set(func() { s.made = append(s.made, l) })
	return l, nil
}

func (l *line) B() valkey.Builder { return l.to.client.B() }

func (l *line) Do(ctx context.Context, cmd valkey.Completed) valkey.ValkeyResult {
	l.channel = cmd.Commands()[1]
	l.to.mu.Lock()
	silent, delay := l.to.silent, l.to.delay
	l.to.mu.Unlock()
	time.Sleep(delay)
	if silent {
		<-ctx.Done()
		return l.to.client.Do(ctx, l.B().Ping().Build())
	}
	return valkey.ValkeyResult{}
}

func (l *line) SetPubSubHooks(hooks valkey.PubSubHooks) <-chan error {
	l.hooks = hooks
	return l.broken
}

func (l *line) Close() { l.to.set(func() { l.closed = true }) }

// last is the connection that was made last.
func (s *speaker) last() *line {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made[len(s.made)-1]
}

// open is how many connections are open.
func (s *speaker) open() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.made {
		if !l.closed {
			n++
		}
	}
	return n
}

func (s *speaker) tried() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tries
}

// listening is a queue of speakers, which ends with the test. It tells how subscriptions went.
type listening struct {
	*Queue

	listener *listen.Listener
	speakers []*speaker
	mu       sync.Mutex
	errs     [][]error // guarded by mu; of each node
}

func newListening(t *testing.T, nodes, need int) *listening {
	l := &listening{errs: make([][]error, nodes)}
	hears := listen.Config{Timeout: time.Second}
	cfg := Config{Now: time.Now, Need: need, Channel: "p:call:", MaxDelay: time.Hour, Subscribed: func(i int, err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.errs[i] = append(l.errs[i], err)
	}}
	for range nodes {
		s := newSpeaker(t)
		l.speakers = append(l.speakers, s)
		hears.Nodes = append(hears.Nodes, s)
	}
	l.listener = listen.New(hears)
	cfg.Listener = l.listener
	l.Queue = New(cfg)
	t.Cleanup(func() {
		l.listener.Close()
		l.listener.Wait()
		for _, s := range l.speakers {
			require.Zero(t, s.open(), "connections end with the queue")
		}
	})
	return l
}

// told is how subscriptions to a node went.
func (l *listening) told(i int) []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]error(nil), l.errs[i]...)
}

// A waiter is told to try when a quorum of nodes can call: what was released before that is not
// heard. The others change nothing.
func TestWaiterIsToldWhenAQuorumCanCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newListening(t, 3, 2)
		for i, s := range q.speakers {
			s.delay = time.Duration(i+1) * 100 * time.Millisecond
		}
		w := q.Join(q.Place(), "me", false)
		for i := range q.speakers {
			require.Equal(t, i >= 2, q.IsHeard(), "%d nodes can call", i)
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if got := taken(w); i == 1 {
				require.Equal(t, &Notice{}, got)
			} else {
				require.Nil(t, got, "the %d. of three", i+1)
			}
			require.Equal(t, []error{nil}, q.told(i))
			require.Equal(t, "p:call:"+q.process, q.speakers[i].last().channel)
		}

		// What they say reaches it.
		for _, s := range q.speakers[:2] {
			s.last().hooks.OnMessage(valkey.PubSubMessage{Channel: "p:call:" + q.process, Message: "1 0 " + strconv.FormatUint(w.number, 10) + " owner"})
		}
		require.Equal(t, &Notice{Released: true}, taken(w))
		q.Leave(w)
		require.Equal(t, 1, q.speakers[0].open(), "subscriptions stay for the next one")
		for _, s := range q.speakers[:2] {
			s.last().broken <- errors.New("EOF")
		}
		time.Sleep(time.Minute)
		require.True(t, q.IsHeard(), "also while nobody waits")
	})
}

// Who comes when a quorum can call already tries at once, if it has been refused before it joined.
func TestWaiterThatWasRefusedBeforeItJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newListening(t, 3, 2)
		first := q.Join(q.Place(), "me", true)
		require.Nil(t, taken(first), "nobody can call yet")
		synctest.Wait()
		require.Equal(t, &Notice{}, taken(first))
		for refused, want := range map[bool]*Notice{true: {}, false: nil} {
			w := q.Join(q.Place(), "me", refused)
			require.Equal(t, want, taken(w), "refused: %v", refused)
			q.Leave(w)
		}
		q.Leave(first)
	})
}

// A node that gives no connection, or does not answer a subscription, is given up after the time
// for that.
func TestSubscriptionsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newListening(t, 2, 2)
		q.speakers[0].stuck, q.speakers[1].silent = true, true
		w := q.Join(q.Place(), "me", false)
		defer q.Leave(w)
		time.Sleep(time.Second + node.MinPause)
		synctest.Wait()
		require.Equal(t, 2, q.speakers[0].tried())
		require.Empty(t, q.told(0), "there was no connection to subscribe over")
		require.Equal(t, 2, q.speakers[1].tried())
		require.Len(t, q.told(1), 1)
		require.ErrorIs(t, q.told(1)[0], context.DeadlineExceeded)
		require.Equal(t, 1, q.speakers[1].open(), "of the second try")
		require.Nil(t, taken(w))
		for _, s := range q.speakers {
			s.set(func() { s.stuck, s.silent = false, false })
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, &Notice{}, taken(w))
	})
}

// A ticket cannot leave while something is sent for it: what takes its member out of the queues is
// sent after that.
func TestTicketDoesNotLeaveWhileSomethingIsSent(t *testing.T) {
	q := testQueue()
	w := q.Join(q.Place(), "me", false)
	left := make(chan struct{})
	q.While(w.Member, func() {
		go func() {
			defer close(left)
			q.Leave(w)
		}()
		select {
		case <-left:
			t.Error("it has left")
		case <-time.After(20 * time.Millisecond):
		}
	})
	<-left
}
