package listen

import (
	"bufio"
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

	"github.com/alicebob/miniredis/v2/proto"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/resp"
	"github.com/tenure-dev/tenure/redlock/internal/node"
)

const timeout = time.Second

// speaker is a node that can be subscribed to.
type speaker struct {
	mu       sync.Mutex
	mute     bool            // guarded by mu; no connection can be had
	breaks   bool            // guarded by mu; a connection ends with a subscription
	silent   bool            // guarded by mu; no subscription is answered
	refuses  map[string]bool // guarded by mu; channels
	tries    int             // guarded by mu
	open     []net.Conn      // guarded by mu
	commands []string        // guarded by mu
}

func (s *speaker) connect(life context.Context) *node.Lasting {
	o := valkey.ClientOption{
		InitAddress: []string{"speaker:1"}, ForceSingleClient: true, DisableCache: true, DisableRetry: true, PipelineMultiplex: -1,
		ClientSetInfo: valkey.DisableClientSetInfo, ConnWriteTimeout: timeout,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.tries++; s.mute {
				return nil, errors.New("no connection")
			}
			near, far := net.Pipe()
			s.open = append(s.open, far)
			go s.serve(far)
			return near, nil
		},
	}
	o.Dialer.KeepAlive = time.Hour // valkey-go sends a PING that often
	resp.GuardClient(&o)
	return node.NewLasting(life, o)
}

func (s *speaker) serve(conn net.Conn) {
	defer func() { s.end(conn) }()
	for in := bufio.NewReader(conn); ; {
		text, err := proto.Read(in)
		if err != nil {
			return
		}
		words, _ := proto.ReadStrings(text)
		s.mu.Lock()
		breaks, answer := s.breaks, "+OK\r\n"
		switch words[0] {
		case "HELLO":
			answer = "%1\r\n+proto\r\n:3\r\n"
		case "SUBSCRIBE":
			s.commands = append(s.commands, strings.Join(words, " "))
			answer = fmt.Sprintf(">3\r\n+subscribe\r\n+%s\r\n:1\r\n", words[1])
			if s.silent {
				answer = ""
			} else if s.refuses[words[1]] {
				answer = "-NOPERM no\r\n"
			}
		}
		s.mu.Unlock()
		if _, err := conn.Write([]byte(answer)); err != nil || breaks && words[0] == "SUBSCRIBE" {
			return
		}
	}
}

// end ends a connection.
func (s *speaker) end(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(c net.Conn) bool { return c == conn })
	_ = conn.Close()
}

// set changes it.
func (s *speaker) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// seen returns how often a connection was asked for, the connections that are open, and the
// commands.
func (s *speaker) seen() (tries int, open []net.Conn, commands []string) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tries, slices.Clone(s.open), slices.Clone(s.commands)
}

// publish says something on the only connection.
func (s *speaker) publish(t *testing.T, channel, message string) {
	t.Helper()
	_, open, _ := s.seen()
	require.Len(t, open, 1)
	_, err := fmt.Fprintf(open[0], ">3\r\n+message\r\n+%s\r\n+%s\r\n", channel, message)
	require.NoError(t, err)
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
		var speakers []*speaker
		for range nodes {
			speakers = append(speakers, &speaker{refuses: make(map[string]bool)})
		}
		l := New(nodes, timeout, func(life context.Context, i int) *node.Lasting { return speakers[i].connect(life) })
		defer func() {
			l.Close()
			l.Wait()
			for _, s := range speakers {
				_, open, _ := s.seen()
				require.Empty(t, open, "connections end with the Listener")
			}
		}()
		test(t, l, speakers)
	})
}

// No connection is opened before the first subscription. Then one to each node serves all channels.
// Two subscriptions of one channel are each told.
func TestChannelsComeAndGo(t *testing.T) {
	bubble(t, 2, func(t *testing.T, l *Listener, speakers []*speaker) {
		var a, b, again ear
		time.Sleep(time.Minute)
		tries, _, _ := speakers[0].seen()
		require.Zero(t, tries)
		endA := l.Subscribe("a", a.heard, a.changed)
		require.ElementsMatch(t, []string{"0 subscribed", "1 subscribed"}, a.taken())
		endB := l.Subscribe("b", b.heard, b.changed)
		require.ElementsMatch(t, []string{"0 subscribed", "1 subscribed"}, b.taken())
		l.Subscribe("a", again.heard, again.changed)
		require.ElementsMatch(t, []string{"0 subscribed", "1 subscribed"}, again.taken())
		require.Empty(t, a.taken(), "it was told before")
		for i, s := range speakers {
			s.publish(t, "a", "x")
			s.publish(t, "b", "y")
			s.publish(t, "c", "z")
			require.Equal(t, []string{fmt.Sprint(i, ": x")}, a.taken())
			require.Equal(t, []string{fmt.Sprint(i, ": x")}, again.taken())
			require.Equal(t, []string{fmt.Sprint(i, ": y")}, b.taken())
		}

		endA()
		endA()
		endB()
		for _, s := range speakers {
			tries, _, commands := s.seen()
			require.Equal(t, 1, tries)
			require.Equal(t, []string{"SUBSCRIBE a", "SUBSCRIBE b", "SUBSCRIBE a"}, commands)
			for range 50 { // more than is kept for a hearer
				s.publish(t, "a", "late")
				s.publish(t, "b", "late")
			}
		}
		require.Len(t, again.taken(), 100)
		require.Empty(t, append(a.taken(), b.taken()...), "nothing is heard, and nothing lost, after the end")
	})
}

// A node that refuses a channel is asked again once a minute, on the connection that it has, and
// when that has ended.
func TestEverythingIsRefused(t *testing.T) {
	bubble(t, 1, func(t *testing.T, l *Listener, speakers []*speaker) {
		var a, b ear
		s := speakers[0]
		s.refuses["a"], s.refuses["b"] = true, true
		l.Subscribe("a", a.heard, a.changed)
		require.Equal(t, []string{"0 refused"}, a.taken())
		time.Sleep(time.Hour + retryEvery/2)
		require.Len(t, a.taken(), int(time.Hour/retryEvery))
		l.Subscribe("b", b.heard, b.changed)
		require.Equal(t, []string{"0 refused"}, b.taken(), "it was not asked for that before")

		s.set(func() { s.refuses["a"] = false })
		time.Sleep(retryEvery)
		require.Equal(t, []string{"0 subscribed"}, a.taken())
		s.publish(t, "a", "x")
		require.Equal(t, []string{"0: x"}, a.taken())
		tries, open, _ := s.seen()
		require.Equal(t, 1, tries)

		time.Sleep(retryEvery / 2)
		s.set(func() { s.refuses["b"] = false })
		s.end(open[0])
		time.Sleep(node.MaxPause)
		require.Contains(t, b.taken(), "0 subscribed", "the server may be another, or have other users")
	})
}

// A connection that cannot be made, or that breaks at once, as one does that something in between
// ends, is made anew with ever longer pauses.
func TestConnectionBreaksAtOnce(t *testing.T) {
	for name, how := range map[string]func(*speaker){"none": func(s *speaker) { s.mute = true }, "breaks": func(s *speaker) { s.breaks = true },
		"refuses": func(s *speaker) { s.breaks, s.refuses["a"] = true, true }} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, l *Listener, speakers []*speaker) {
				var a ear
				s := speakers[0]
				how(s)
				l.Subscribe("a", a.heard, a.changed)
				const long = 10 * time.Minute
				time.Sleep(long)
				tries, _, commands := s.seen()
				require.Greater(t, tries, int(long/node.MaxPause))
				require.Less(t, tries, 4*int(long/node.MaxPause), "half of the longest pause, on average")
				if !s.refuses["a"] {
					require.Len(t, a.taken(), 2*len(commands), "each is told of, and of its end")
				}
				s.set(func() { s.mute, s.breaks, s.refuses["a"] = false, false, false })
				a.taken()
				time.Sleep(node.MaxPause)
				require.Equal(t, []string{"0 subscribed"}, a.taken())
			})
		})
	}
}

// A connection that breaks later is made anew at once.
func TestConnectionBreaks(t *testing.T) {
	bubble(t, 1, func(t *testing.T, l *Listener, speakers []*speaker) {
		var a ear
		s := speakers[0]
		l.Subscribe("a", a.heard, a.changed)
		for range 10 {
			time.Sleep(time.Minute)
			_, open, _ := s.seen()
			s.end(open[0])
			time.Sleep(node.MinPause)
			require.Equal(t, []string{"0 subscribed", "0 lost"}, a.taken()[:2])
			_, open, _ = s.seen()
			require.Len(t, open, 1)
			require.Empty(t, a.taken())
			a.changed(0, nil) // of this one, for the next
		}
	})
}

// A connection on which a subscription is not answered is given up after the time for that, and
// made anew: something in between may have swallowed the subscription.
func TestSubscriptionThatHangs(t *testing.T) {
	bubble(t, 1, func(t *testing.T, l *Listener, speakers []*speaker) {
		var a, b ear
		s := speakers[0]
		l.Subscribe("a", a.heard, a.changed)
		time.Sleep(time.Hour)
		require.Equal(t, []string{"0 subscribed"}, a.taken())
		s.set(func() { s.silent = true })
		l.Subscribe("b", b.heard, b.changed)
		time.Sleep(timeout + node.MinPause)
		require.Equal(t, []string{"0 lost"}, a.taken())
		tries, open, _ := s.seen()
		require.Equal(t, 2, tries)
		require.Len(t, open, 1)
		s.set(func() { s.silent = false })
		time.Sleep(timeout + node.MaxPause)
		require.Equal(t, []string{"0 subscribed"}, a.taken())
		require.Equal(t, []string{"0 subscribed"}, b.taken())
	})
}

// Close ends what is there and what comes, also a dial, and nothing begins after it.
func TestClose(t *testing.T) {
	bubble(t, 3, func(t *testing.T, l *Listener, speakers []*speaker) {
		var a, b ear
		speakers[1].refuses["a"], speakers[2].mute = true, true
		end := l.Subscribe("a", a.heard, a.changed)
		require.ElementsMatch(t, []string{"0 subscribed", "1 refused"}, a.taken())
		began := time.Now()
		l.Close()
		l.Close()
		l.Wait()
		require.Zero(t, time.Since(began))
		tries, _, _ := speakers[2].seen()
		l.Subscribe("b", b.heard, b.changed)
		time.Sleep(time.Hour)
		require.Empty(t, b.taken())
		after, _, _ := speakers[2].seen()
		require.Equal(t, tries, after)
		end()
	})

	// One without subscriptions has nothing to wait for, and takes none later.
	bubble(t, 1, func(t *testing.T, l *Listener, speakers []*speaker) {
		l.Close()
		l.Wait()
		l.Subscribe("a", nil, nil)
		time.Sleep(time.Hour)
		tries, _, _ := speakers[0].seen()
		require.Zero(t, tries)
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
