package node

import (
	"bufio"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeServer is what a node talks to: it knows the scripts whose text it was sent, and answers each
// with 1 without running it. Connections are pipes, so it works on the time of testing/synctest.
type fakeServer struct {
	mu      sync.Mutex
	runID   string
	uptime  int
	scripts map[string]string // guarded by mu; by their hashes
	hangs   bool              // guarded by mu; INFO is not answered
	slow    time.Duration     // guarded by mu; before each answer
	ran     int               // guarded by mu; how many scripts
}

func newServer(runID string) *fakeServer {
	return &fakeServer{runID: strings.Repeat(runID, wire.RunIDLength), uptime: 1000, scripts: make(map[string]string)}
}

// set changes it.
func (s *fakeServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *fakeServer) connect(ctx context.Context, changed func()) (valkey.Client, error) {
	return NewClient(ctx, optionOf(s.dial), changed)
}

func (s *fakeServer) dial(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	near, far := net.Pipe()
	go s.serve(far)
	return near, nil
}

// optionOf has a server dialed.
func optionOf(dial dialFunc) valkey.ClientOption {
	return valkey.ClientOption{
		InitAddress: []string{"server:1"}, ForceSingleClient: true, DisableCache: true, DisableRetry: true, AlwaysRESP2: true, PipelineMultiplex: -1,
		ClientSetInfo: valkey.DisableClientSetInfo, DialCtxFn: dial,
	}
}

// serve reads commands and answers them, each at its own pace: a pipe has no room for either.
func (s *fakeServer) serve(conn net.Conn) {
	defer conn.Close()
	asked := make(chan []string, 1024)
	go func() {
		defer close(asked)
		for in := bufio.NewReader(conn); ; {
			words, err := command(in)
			if err != nil {
				return
			}
			asked <- words
		}
	}()
	silent := false
	for words := range asked {
		answer, ok := s.answer(words)
		if silent = silent || !ok; silent {
			continue // until the other end gives up
		}
		if _, err := conn.Write([]byte(answer)); err != nil {
			silent = true
		}
	}
}

// answer is what it says to a command; false for nothing.
func (s *fakeServer) answer(words []string) (string, bool) {
	s.mu.Lock()
	slow := s.slow
	s.mu.Unlock()
	time.Sleep(slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch strings.ToUpper(words[0]) {
	case "INFO":
		info := fmt.Sprintf("redis_version:7.2.4\r\nrun_id:%s\r\nuptime_in_seconds:%d\r\nserver_time_usec:%d\r\nrole:master\r\n", s.runID, s.uptime, time.Now().UnixMicro())
		return bulk(info), !s.hangs
	case "TIME":
		now := time.Now()
		return "*2\r\n" + bulk(strconv.FormatInt(now.Unix(), 10)) + bulk(strconv.Itoa(now.Nanosecond()/1000)), true
	case "EVAL", "EVAL_RO":
		sum := sha1.Sum([]byte(words[1]))
		words = slices.Clone(words)
		words[1] = hex.EncodeToString(sum[:])
		s.scripts[words[1]] = texts[words[1]]
		fallthrough
	case "EVALSHA", "EVALSHA_RO":
		text, known := s.scripts[words[1]]
		if !known {
			return "-NOSCRIPT No matching script.\r\n", true
		}
		answer := bulk("1")
		if strings.Contains(text, "redis.pcall(...)") { // the trial
			answer = enrolled(slices.Repeat([]string{":1\r\n"}, len(wire.Trials)))
		} else {
			s.ran++
		}
		return answer, true
	case "PING":
		return "+PONG\r\n", true
	default:
		return "+OK\r\n", true
	}
}

// enrolled is the answer to an Enroll, with those of the trial.
func enrolled(trial []string) string {
	return fmt.Sprintf("*4\r\n*%d\r\n%s%s*0\r\n:0\r\n", len(trial), strings.Join(trial, ""), bulk("1"))
}

// texts are those of all scripts, by their hashes.
var texts = func() map[string]string {
	all := make(map[string]string)
	for _, s := range wire.Scripts() {
		sum := sha1.Sum([]byte(s.Text()))
		all[hex.EncodeToString(sum[:])] = s.Text()
	}
	return all
}()

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// command reads a command.
func command(in *bufio.Reader) (words []string, err error) {
	count, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(count[1:]))
	if err != nil {
		return nil, err
	}
	for range n {
		size, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		length, err := strconv.Atoi(strings.TrimSpace(size[1:]))
		if err != nil {
			return nil, err
		}
		word := make([]byte, length+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words = append(words, string(word[:length]))
	}
	return words, nil
}

// observed keeps what it is told.
type observed struct {
	mu        sync.Mutex
	exchanged []error
	looked    []error
	statuses  []*Status
	elsewhere int
	sampled   int
	another   int
}

func (o *observed) Exchanged(err error)          { o.add(func() { o.exchanged = append(o.exchanged, err) }) }
func (o *observed) Looked(err error)             { o.add(func() { o.looked = append(o.looked, err) }) }
func (o *observed) Refused(error)                {}
func (o *observed) Status(_, is *Status)         { o.add(func() { o.statuses = append(o.statuses, is) }) }
func (o *observed) Sampled(Watch, time.Duration) { o.add(func() { o.sampled++ }) }
func (o *observed) Due()                         {}
func (o *observed) Another()                     { o.add(func() { o.another++ }) }
func (o *observed) Elsewhere()                   { o.add(func() { o.elsewhere++ }) }

func (o *observed) add(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

const (
	timeout    = time.Second
	quarantine = 5 * time.Second
)

// config is that of a node of a server.
func config(s *fakeServer) Config {
	return Config{
		Connect: s.connect, Timeout: timeout, Clock: clock.New(),
		Keys:        new(wire.RosterKeys("p")),
		RestartGate: true, Quarantine: func() time.Duration { return quarantine }, Longer: func() string { return "" }, Absence: time.Hour, Drift: 0.01, SampleEvery: 10 * time.Second, LookEvery: 10 * time.Second,
		Join:   func(context.Context, string, time.Duration) (time.Duration, error) { return 0, nil },
		Counts: func() bool { return true }, Observer: &observed{},
	}
}

// started is a node that runs until the test ends.
func started(t *testing.T, s *fakeServer) *Node {
	n := New(config(s))
	go n.Run()
	t.Cleanup(func() {
		n.Close()
		n.Wait()
	})
	return n
}

// answers gets the answers of requests.
type answers struct {
	mu  sync.Mutex
	got map[*Request][]Answer
}

func (a *answers) Answered(r *Request, got Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.got == nil {
		a.got = make(map[*Request][]Answer)
	}
	a.got[r] = append(a.got[r], got)
}

// of are the answers to a request.
func (a *answers) of(r *Request) []Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.got[r]
}

// send sends a call.
func (a *answers) send(t *testing.T, n *Node, op wire.Op, key string) *Request {
	r := &Request{Call: callOf(op, key), To: a, Expires: n.cfg.Clock.Now().Add(time.Minute), TTL: 10 * time.Second}
	n.Send(r)
	return r
}

func callOf(op wire.Op, key string) *wire.Call {
	k := wire.NewKeys("p", key)
	k.Lock = key
	c := &wire.Call{Op: op, Keys: &k, Lock: "1 owner", TTL: "10000"}
	if op == wire.Release {
		c.Keep, c.Turn, c.Channel = "1", "1", "p:call:"
	}
	return c
}

// requireOne requires that a request has one answer, of that verdict.
func requireOne(t *testing.T, a *answers, r *Request, want wire.Verdict, why string) Answer {
	t.Helper()
	got := a.of(r)
	require.Len(t, got, 1, why)
	require.Equal(t, want, got[0].Verdict, "%s: %v", why, got[0].Err)
	return got[0]
}

// fakeClient is a client without connections. It answers at once what say does, or else what its
// server does.
type fakeClient struct {
	valkey.Client // makes commands and results

	server *fakeServer
	result *result
	dead   valkey.Client

	changed func() // its connection has

	mu        sync.Mutex
	say       func(words []string) string // guarded by mu; RESP, or one of the words below; may be nil
	commands  [][]string                  // guarded by mu
	dedicated [][]string                  // guarded by mu; likewise, over connections of their own
	closed    bool                        // guarded by mu
	refuses   bool                        // guarded by mu; connections of their own
}

// What a fakeClient says besides: nothing of its own, what a connection does that breaks, and what
// a server does that hangs.
const (
	asServer = ""
	breaks   = "breaks"
	hangs    = "hangs"
)

// result turns what a server says into results.
type result struct {
	client valkey.Client
	mu     sync.Mutex
	next   chan string
}

func newFake(t *testing.T, s *fakeServer) *fakeClient {
	r := &result{next: make(chan string, 1)}
	client, err := valkey.NewClient(optionOf(func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
		near, far := net.Pipe()
		go r.serve(far)
		return near, nil
	}))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	r.client = client
	dead, err := valkey.NewClient(optionOf(func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return nil, io.EOF }))
	require.ErrorIs(t, err, io.EOF)
	t.Cleanup(dead.Close)
	return &fakeClient{Client: client, server: s, result: r, dead: dead}
}

func (r *result) serve(conn net.Conn) {
	defer conn.Close()
	for in := bufio.NewReader(conn); ; {
		words, err := command(in)
		if err != nil {
			return
		}
		answer := "+OK\r\n"
		if words[0] == "SAY" {
			answer = <-r.next
		}
		if _, err := conn.Write([]byte(answer)); err != nil {
			return
		}
	}
}

// of is the result that a text is.
func (r *result) of(text string) valkey.ValkeyResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next <- text
	return r.client.Do(context.Background(), r.client.B().Arbitrary("SAY").Build())
}

func (c *fakeClient) ask(ctx context.Context, words []string, own bool) valkey.ValkeyResult {
	c.mu.Lock()
	say, refuses := c.say, c.refuses
	if own {
		c.dedicated = append(c.dedicated, words)
	} else {
		c.commands = append(c.commands, words)
	}
	c.mu.Unlock()
	text := asServer
	if own && refuses {
		text = breaks
	} else if say != nil {
		text = say(words)
	}
	if text == asServer {
		var ok bool
		if text, ok = c.server.answer(words); !ok {
			text = hangs
		}
	}
	switch text {
	case breaks:
		if c.changed != nil && !own {
			c.changed()
		}
		return c.dead.Do(ctx, c.dead.B().Ping().Build())
	case hangs:
		<-ctx.Done()
		return c.Client.Do(ctx, c.B().Ping().Build())
	}
	return c.result.of(text)
}

func (c *fakeClient) Do(ctx context.Context, cmd valkey.Completed) valkey.ValkeyResult {
	return c.ask(ctx, cmd.Commands(), false)
}

func (c *fakeClient) DoMulti(ctx context.Context, commands ...valkey.Completed) (results []valkey.ValkeyResult) {
	for _, cmd := range commands {
		results = append(results, c.ask(ctx, cmd.Commands(), false))
	}
	return results
}

func (c *fakeClient) Close() { c.set(func() { c.closed = true }) }

// set changes it.
func (c *fakeClient) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// sent is how many commands of that name were sent over the connection of the writer since the last
// time that it was asked for any, and forgets all of them.
func (c *fakeClient) sent() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := make(map[string]int)
	for _, words := range c.commands {
		count[words[0]]++
	}
	c.commands = nil
	return count
}

// connect makes the connection of the writer, or one of a look, which is nobody's but its own.
func (c *fakeClient) connect(_ context.Context, changed func()) (valkey.Client, error) {
	if changed == nil {
		return &fakeConn{c, c}, nil
	}
	c.changed = changed
	changed()
	return c, nil
}

// fakeConn is a connection of its own.
type fakeConn struct {
	valkey.Client

	c *fakeClient
}

func (f *fakeConn) Close() {}

func (f *fakeConn) Do(ctx context.Context, cmd valkey.Completed) valkey.ValkeyResult {
	return f.c.ask(ctx, cmd.Commands(), true)
}

func (f *fakeConn) DoMulti(ctx context.Context, commands ...valkey.Completed) (results []valkey.ValkeyResult) {
	for _, cmd := range commands {
		results = append(results, f.c.ask(ctx, cmd.Commands(), true))
	}
	return results
}

// with is a node that is connected by that client.
func with(c *fakeClient) *Node {
	cfg := config(c.server)
	w := &watcher{}
	cfg.Connect, cfg.Observer = c.connect, w
	n := New(cfg)
	w.n = n
	n.client.Store(new(valkey.Client(c)))
	c.changed = func() { n.generation.Add(1) }
	return n
}

// watcher is an observer that keeps more, and has the roster read.
type watcher struct {
	observed

	n       *Node
	refused []error // guarded by mu
}

func (w *watcher) Refused(err error) { w.add(func() { w.refused = append(w.refused, err) }) }

func (w *watcher) Due() { w.n.probe(wire.Enroll) }

// vote opens the gate of a node that does not run, as a look would.
func (n *Node) vote(s *fakeServer) {
	n.gate.follow(&wire.ServerInfo{Version: "7.2.4", RunID: s.runID, Role: "master", Uptime: time.Hour})
	maps.Copy(s.scripts, texts)
	n.gate.lookAt = n.cfg.Clock.Now().Add(time.Hour)
	n.gate.admit(nil, nil)
	n.gate.vouched = n.generation.Load()
	n.knowsIn = n.generation.Load()
	for _, script := range wire.Scripts() {
		n.knows[script] = true
	}
	n.gate.lookAt, n.gate.sampleAt = n.cfg.Clock.Now().Add(time.Hour), never
	n.window.trip = roundTrip{until: never} // near, also on a machine that is busy
}

// voting is a node of a client that votes, and does not run: its requests are sent by send.
func voting(t *testing.T) (*Node, *fakeClient) {
	c := newFake(t, newServer("a"))
	n := with(c)
	n.vote(c.server)
	return n, c
}

// isScript reports whether a command runs a script.
func isScript(words []string) bool { return strings.HasPrefix(words[0], "EVAL") }

// granted is the answer to an acquisition, of a server whose clock is ahead by so much.
func granted(ahead time.Duration) string {
	at := time.Now().Add(ahead)
	return bulk(strconv.FormatInt(at.Unix(), 10) + " " + strconv.Itoa(at.Nanosecond()/1000) + " 17")
}

// infoOf is what a server says of itself, with other lines besides.
func infoOf(runID string, more ...string) string {
	return bulk(fmt.Sprintf("redis_version:7.2.4\r\nrun_id:%s\r\nuptime_in_seconds:1000\r\nserver_time_usec:%d\r\nrole:master\r\n%s\r\n",
		strings.Repeat(runID, wire.RunIDLength), time.Now().UnixMicro(), strings.Join(more, "\r\n")))
}
