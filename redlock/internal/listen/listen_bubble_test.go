package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

const timeout = time.Second

// speaker is a Node that can be subscribed to.
type speaker struct {
	refuser valkey.Client // makes commands, and errors of a server

	mu      sync.Mutex
	mute    bool            // guarded by mu; no connection can be had
	silent  bool            // guarded by mu; commands are not answered
	delay   time.Duration   // guarded by mu; before a connection is there
	refuses map[string]bool // guarded by mu; channels
	tries   int             // guarded by mu
	made    []*line         // guarded by mu
}

// line is a connection to a speaker.
type line struct {
	valkey.DedicatedClient

	to     *speaker
	hooks  valkey.PubSubHooks
	broken chan error
	did    []string // guarded by to.mu; commands
	closed bool     // guarded by to.mu
}

// failing makes a client whose commands are refused.
func failing(t *testing.T) valkey.Client {
	client, _ := valkey.NewClient(valkey.ClientOption{
		InitAddress: []string{"speaker:1"}, ForceSingleClient: true, DisableCache: true, DisableRetry: true,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return nil, wire.ErrUnexpected
		},
	})
	require.NotNil(t, client)
	t.Cleanup(client.Close)
	return client
}

func (s *speaker) connect() (valkey.DedicatedClient, error) {
	s.mu.Lock()
	s.tries++
	mute, delay := s.mute, s.delay
	s.mu.Unlock()
	time.Sleep(delay)
	if mute {
		return nil, errors.New("no connection")
	}
	l := &line{to: s, broken: make(chan error, 1)}
	s.set(func() { s.made = append(s.made, l) })
	return l, nil
}

func (l *line) B() valkey.Builder { return l.to.refuser.B() }

func (l *line) Do(ctx context.Context, cmd valkey.Completed) valkey.ValkeyResult {
	words := cmd.Commands()
	s := l.to
	s.mu.Lock()
	l.did = append(l.did, strings.Join(words, " "))
	silent, refused := s.silent, words[0] == "SUBSCRIBE" && s.refuses[words[1]]
	s.mu.Unlock()
	if silent {
		<-ctx.Done()
	}
	if silent || refused {
		return s.refuser.Do(ctx, l.B().Ping().Build())
	}
	return valkey.ValkeyResult{}
}

func (l *line) SetPubSubHooks(hooks valkey.PubSubHooks) <-chan error {
	l.hooks = hooks
	return l.broken
}

func (l *line) Close() { l.to.set(func() { l.closed = true }) }

// set changes it.
func (s *speaker) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// commands are those of each connection that there was.
func (s *speaker) commands() (all [][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.made {
		all = append(all, append([]string(nil), l.did...))
	}
	return all
}

// open are the connections that are open.
func (s *speaker) open() (lines []*line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.made {
		if !l.closed {
			lines = append(lines, l)
		}
	}
	return lines
}

func (s *speaker) tried() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tries
}

// publish says something on the only connection.
func (s *speaker) publish(t *testing.T, channel, message string) {
	t.Helper()
	lines := s.open()
	require.Len(t, lines, 1)
	lines[0].hooks.OnMessage(valkey.PubSubMessage{Channel: channel, Message: message})
}

// ear is a hearer that notes what it is told.
type ear struct {
	mu    sync.Mutex
	notes []string // guarded by mu
}

func (e *ear) note(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notes = append(e.notes, fmt.Sprintf(format, args...))
}

func (e *ear) heard(node int, message string) { e.note("%d: %s", node, message) }

func (e *ear) changed(node int, err error) {
	switch err {
	case nil:
		e.note("%d subscribed", node)
	case ErrLost:
		e.note("%d lost", node)
	default:
		e.note("%d refused", node)
	}
}

// taken returns what was noted since it was asked last.
func (e *ear) taken() []string {
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	notes := e.notes
	e.notes = nil
	return notes
}

// bubble tests a Listener of so many speakers, which ends with the test.
func bubble(t *testing.T, nodes int, test func(t *testing.T, l *Listener, speakers []*speaker)) {
	synctest.Test(t, func(t *testing.T) {
		refuser := failing(t)
		var speakers []*speaker
		for range nodes {
			speakers = append(speakers, &speaker{refuser: refuser, refuses: make(map[string]bool)})
		}
		l := New(Config{Nodes: nodes, Timeout: timeout, Connect: func(_ context.Context, i int) (valkey.DedicatedClient, error) { return speakers[i].connect() }})
		defer func() {
			l.Close()
			l.Wait()
			for _, s := range speakers {
				require.Empty(t, s.open(), "connections end with the Listener")
			}
		}()
		test(t, l, speakers)
	})
}

// No connection is opened before the first subscription. Two of one channel are each told, and the
// channel is left when both have ended.
func TestTwoSubscriptionsOfAChannel(t *testing.T) {
	bubble(t, 1, func(t *testing.T, l *Listener, speakers []*speaker) {
		var a, b, other ear
		time.Sleep(time.Hour)
		require.Zero(t, speakers[0].tried(), "nothing is asked for")
		first, second := l.Subscribe("a", a.heard, a.changed), l.Subscribe("a", b.heard, b.changed)
		l.Subscribe("b", other.heard, other.changed)
		require.Equal(t, []string{"0 subscribed"}, a.taken())
		require.Equal(t, []string{"0 subscribed"}, b.taken())
		speakers[0].publish(t, "a", "x")
		require.Equal(t, []string{"0: x"}, a.taken())
		require.Equal(t, []string{"0: x"}, b.taken())

		first.End()
		first.End()
		synctest.Wait()
		require.NotContains(t, speakers[0].commands()[0], "UNSUBSCRIBE a")
		speakers[0].publish(t, "a", "y")
		require.Empty(t, a.taken())
		require.Equal(t, []string{"0: y"}, b.taken())

		second.End()
		synctest.Wait()
		commands := speakers[0].commands()[0]
		require.Equal(t, "UNSUBSCRIBE a", commands[len(commands)-1])
		l.Subscribe("a", a.heard, a.changed)
		require.Equal(t, []string{"0 subscribed"}, a.taken())
		require.Equal(t, 1, speakers[0].tried())
	})
}

// A node that refuses all that it is asked for is asked again once a minute, on the connection that
// it has. When it takes a channel, that is heard there.
func TestEverythingIsRefused(t *testing.T) {
	bubble(t, 1, func(t *testing.T, l *Listener, speakers []*speaker) {
		var a, b ear
		s := speakers[0]
		s.refuses["a"], s.refuses["b"] = true, true
		l.Subscribe("a", a.heard, a.changed)
		require.Equal(t, []string{"0 refused"}, a.taken())
		time.Sleep(time.Hour + retryEvery/2)
		require.Equal(t, int(time.Hour/retryEvery), len(a.taken()))
		l.Subscribe("b", b.heard, b.changed)
		require.Equal(t, []string{"0 refused"}, b.taken(), "it was not asked for that before")
		require.Equal(t, 1, s.tried())

		s.set(func() { s.refuses["a"] = false })
		time.Sleep(retryEvery)
		require.Equal(t, []string{"0 subscribed"}, a.taken())
		s.publish(t, "a", "x")
		require.Equal(t, []string{"0: x"}, a.taken())
		require.Equal(t, 1, s.tried())
	})
}

// A connection that breaks at once, as one does that was refused itself or that something in
// between ends, is opened anew with ever longer pauses.
func TestConnectionBreaksAtOnce(t *testing.T) {
	bubble(t, 2, func(t *testing.T, l *Listener, speakers []*speaker) {
		var a ear
		speakers[0].refuses["a"] = true
		l.Subscribe("a", a.heard, a.changed)
		const long = 10 * time.Minute
		for began := time.Now(); time.Since(began) < long; time.Sleep(node.MinPause) {
			for _, line := range slices.Concat(speakers[0].open(), speakers[1].open()) {
				line.broken <- errors.New("EOF")
			}
			synctest.Wait()
		}
		synctest.Wait()
		for _, s := range speakers {
			require.Greater(t, s.tried(), int(long/node.MaxPause))
			require.Less(t, s.tried(), 4*int(long/node.MaxPause), "half of the longest pause, on average")
		}
		require.Len(t, a.taken(), speakers[0].tried()+2*speakers[1].tried()-len(speakers[1].open()), "each is told of, and of its end")
	})
}

// A connection on which nothing is answered is given up after the time for that, and opened anew.
func TestSubscriptionThatHangs(t *testing.T) {
	bubble(t, 1, func(t *testing.T, l *Listener, speakers []*speaker) {
		var a ear
		s := speakers[0]
		s.silent = true
		l.Subscribe("a", a.heard, a.changed)
		time.Sleep(timeout + node.MinPause)
		require.Equal(t, []string{"0 refused"}, a.taken())
		require.Len(t, s.open(), 1, "of the second try")
		require.Equal(t, 2, s.tried())
		s.set(func() { s.silent = false })
		time.Sleep(2 * timeout)
		require.Contains(t, a.taken(), "0 subscribed")
	})
}

// A connection that breaks is opened anew while there are subscriptions, and otherwise with the
// next one.
func TestBrokenConnectionWithoutSubscriptions(t *testing.T) {
	bubble(t, 1, func(t *testing.T, l *Listener, speakers []*speaker) {
		var a ear
		s := speakers[0]
		sub := l.Subscribe("a", a.heard, a.changed)
		require.Equal(t, []string{"0 subscribed"}, a.taken())
		breakIt := func() {
			s.open()[0].broken <- errors.New("EOF")
			synctest.Wait()
			require.Empty(t, s.open())
			time.Sleep(node.MinPause)
		}
		breakIt()
		require.Equal(t, []string{"0 lost", "0 subscribed"}, a.taken(), "it worked, so the pause is short")

		sub.End()
		time.Sleep(time.Hour)
		require.Len(t, s.open(), 1, "it stays")
		breakIt()
		time.Sleep(time.Hour)
		require.Empty(t, a.taken())
		require.Equal(t, 2, s.tried())

		l.Subscribe("a", a.heard, a.changed)
		require.Equal(t, []string{"0 subscribed"}, a.taken(), "at once")
		require.Equal(t, 3, s.tried())
	})
}

// Close tells those who heard that it is over, ends what is there and what comes, and nothing
// begins after it.
func TestClose(t *testing.T) {
	bubble(t, 3, func(t *testing.T, l *Listener, speakers []*speaker) {
		var a, b ear
		speakers[1].delay, speakers[2].mute = timeout/2, true
		sub := l.Subscribe("a", a.heard, a.changed)
		require.Equal(t, []string{"0 subscribed"}, a.taken())
		began := time.Now()
		l.Close()
		l.Close()
		l.Wait()
		require.LessOrEqual(t, time.Since(began), timeout)
		require.Contains(t, a.taken(), "0 lost")
		tried := speakers[2].tried()
		l.Subscribe("b", b.heard, b.changed)
		time.Sleep(time.Hour)
		for _, s := range speakers {
			require.Empty(t, s.open())
		}
		require.Empty(t, b.taken())
		require.Equal(t, tried, speakers[2].tried())
		sub.End()
	})

	// One without subscriptions has nothing to wait for, and takes none later.
	bubble(t, 1, func(t *testing.T, l *Listener, speakers []*speaker) {
		l.Close()
		l.Wait()
		l.Subscribe("a", nil, nil)
		time.Sleep(time.Hour)
		require.Zero(t, speakers[0].tried())
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
