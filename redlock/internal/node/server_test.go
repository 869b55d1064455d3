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

	"github.com/alicebob/miniredis/v2/proto"
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
	changed func() // tells the node of voting of another connection

	mu        sync.Mutex
	runID     string
	uptime    int
	scripts   map[string]string           // guarded by mu; by their hashes
	say       func(words []string) string // guarded by mu; RESP, or one of the words below; may be nil
	hangs     bool                        // guarded by mu; INFO is not answered
	login     string                      // guarded by mu; RESP, what HELLO is refused with; empty for not
	refuses   bool                        // guarded by mu; connections of looks
	slow      time.Duration               // guarded by mu; before each answer
	ran       int                         // guarded by mu; how many scripts
	commands  [][]string                  // guarded by mu; of writers
	dedicated [][]string                  // guarded by mu; likewise, of looks
}

// What a fakeServer says besides: what it knows itself, and nothing, with which it hangs or ends
// the connection.
const (
	asServer = ""
	breaks   = "breaks"
	hangs    = "hangs"
)

func newServer(runID string) *fakeServer {
	return &fakeServer{runID: strings.Repeat(runID, wire.RunIDLength), uptime: 1000, scripts: make(map[string]string)}
}

// set changes it.
func (s *fakeServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// connect makes the connection of a writer, or that of a look, which is not told of changes.
func (s *fakeServer) connect(ctx context.Context, changed func()) (valkey.Client, error) {
	dial := s.dial
	if changed == nil {
		dial = s.dialForALook
	}
	return NewClient(ctx, optionOf(dial), changed)
}

func (s *fakeServer) dial(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	near, far := net.Pipe()
	go s.serve(far, &s.commands)
	return near, nil
}

func (s *fakeServer) dialForALook(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses {
		return nil, io.EOF
	}
	near, far := net.Pipe()
	go s.serve(far, &s.dedicated)
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
func (s *fakeServer) serve(conn net.Conn, came *[][]string) {
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
		s.mu.Lock()
		say, slow, answer := s.say, s.slow, asServer
		isOwn := words[0] == "HELLO" // with which valkey-go begins
		if isOwn {
			answer = s.login
		} else {
			*came = append(*came, words)
		}
		s.mu.Unlock()
		time.Sleep(slow)
		if say != nil && !isOwn {
			answer = say(words)
		}
		if answer == asServer {
			answer = s.answer(words)
		}
		if silent = silent || answer == hangs; silent {
			continue // until the other end gives up
		}
		if answer == breaks {
			return
		}
		if _, err := conn.Write([]byte(answer)); err != nil {
			silent = true
		}
	}
}

// answer is what it says to a command by itself.
func (s *fakeServer) answer(words []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch strings.ToUpper(words[0]) {
	case "INFO":
		if s.hangs {
			return hangs
		}
		info := fmt.Sprintf("redis_version:7.2.4\r\nrun_id:%s\r\nuptime_in_seconds:%d\r\nserver_time_usec:%d\r\nrole:master\r\n", s.runID, s.uptime, time.Now().UnixMicro())
		return bulk(info)
	case "TIME":
		now := time.Now()
		return "*2\r\n" + bulk(strconv.FormatInt(now.Unix(), 10)) + bulk(strconv.Itoa(now.Nanosecond()/1000))
	case "EVAL", "EVAL_RO":
		sum := sha1.Sum([]byte(words[1]))
		words = slices.Clone(words)
		words[1] = hex.EncodeToString(sum[:])
		s.scripts[words[1]] = texts[words[1]]
		fallthrough
	case "EVALSHA", "EVALSHA_RO":
		text, known := s.scripts[words[1]]
		if !known {
			return "-NOSCRIPT No matching script.\r\n"
		}
		answer := bulk("1")
		if strings.Contains(text, "redis.pcall(...)") { // the trial
			answer = enrolled(slices.Repeat([]string{":1\r\n"}, len(wire.Trials)))
		} else {
			s.ran++
		}
		return answer
	case "PING":
		return "+PONG\r\n"
	default:
		return "+OK\r\n"
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
	text, err := proto.Read(in)
	if err != nil {
		return nil, err
	}
	return proto.ReadStrings(text)
}

// observed keeps what it is told, and has the roster of its node read.
type observed struct {
	n *Node // nil for none

	mu        sync.Mutex
	exchanged []error
	refused   []error
	looked    []error
	statuses  []*Status
	elsewhere int
	sampled   int
	another   int
}

func (o *observed) Exchanged(err error)          { o.add(func() { o.exchanged = append(o.exchanged, err) }) }
func (o *observed) Looked(err error)             { o.add(func() { o.looked = append(o.looked, err) }) }
func (o *observed) Refused(err error)            { o.add(func() { o.refused = append(o.refused, err) }) }
func (o *observed) Status(_, is *Status)         { o.add(func() { o.statuses = append(o.statuses, is) }) }
func (o *observed) Sampled(Watch, time.Duration) { o.add(func() { o.sampled++ }) }
func (o *observed) Another()                     { o.add(func() { o.another++ }) }
func (o *observed) Elsewhere()                   { o.add(func() { o.elsewhere++ }) }

func (o *observed) Due() {
	if o.n != nil {
		o.n.probe(wire.Enroll)
	}
}

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
		Join:   func(context.Context, string, clock.Instant, time.Duration) (time.Duration, error) { return 0, nil },
		Counts: func() bool { return true }, Observer: &observed{},
	}
}

// started is a node that runs until the test ends.
func started(t *testing.T, s *fakeServer, change ...func(*Config)) *Node {
	cfg := config(s)
	for _, c := range change {
		c(&cfg)
	}
	n := New(cfg)
	if o, is := cfg.Observer.(*observed); is {
		o.n = n
	}
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

// sent is how many commands of that name were sent over the connections of writers since the last
// time that it was asked for any, and forgets all of them.
func (s *fakeServer) sent() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := make(map[string]int)
	for _, words := range s.commands {
		count[words[0]]++
	}
	s.commands = nil
	return count
}

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

// voting is a node of a server that votes, and does not run: its requests are sent by send.
func voting(t *testing.T) (*Node, *fakeServer) {
	s := newServer("a")
	n := New(config(s))
	s.changed = func() { n.generation.Add(1) }
	client, err := s.connect(t.Context(), s.changed)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	n.client.Store(&client)
	n.vote(s)
	s.sent()
	return n, s
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
