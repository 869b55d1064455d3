//go:build long

package redlock_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Rivals that are each at other distances from each node, from a tenth of a millisecond to 25: in
// each race somebody has the key in the end.
func TestRivalsAtAnyDistance(t *testing.T) {
	for _, test := range []struct{ nodes, dead, rivals int }{{3, 1, 2}, {3, 1, 4}, {5, 2, 3}, {5, 2, 8}} {
		t.Run(fmt.Sprintf("%d of %d dead, %d rivals", test.dead, test.nodes, test.rivals), func(t *testing.T) {
			for seed := range uint64(3) {
				alone(t, test.nodes, func(t *testing.T, fleet *redlocktest.Fleet) {
					random := rand.New(rand.NewPCG(seed, 1))
					var rivals []*redlock.Quorum
					for range test.rivals {
						far := make([]time.Duration, test.nodes)
						for i := range far {
							far[i] = time.Duration((1 + random.Float64()) * float64(100*time.Microsecond<<random.IntN(8)))
						}
						rivals = append(rivals, open(t, fleet, distant(fleet, far...)))
					}
					for i := range test.dead {
						require.NoError(t, fleet.Node(i).Kill())
					}
					for k := range often(20) {
						time.Sleep(time.Second)
						won := 0
						tried := tryAll(len(rivals), func(i int) (*redlock.Lease, error) { return rivals[i].TryAcquire(t.Context(), fmt.Sprint("key", k)) })
						for _, g := range tried {
							if g.err == nil {
								won++
								finish(t, g.lease.Release)
							}
						}
						require.Equal(t, 1, won, "%v", tried)
					}
				})
			}
		})
	}
}

// Whatever a server says, and whenever, the process goes on, and the other nodes decide.
func TestHostileServer(t *testing.T) {
	for p, at := range hostilePoints {
		t.Run(at, func(t *testing.T) {
			alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				var l liar
				q := open(t, fleet, l.option(fleet, 0))
				settleVotes(t, q, 3)
				for i, lie := range lies {
					if (underRace || at != "HELLO" && at != "EVALSHA" && at != "SUBSCRIBE") && i%4 != p%4 {
						continue // the client reads all of them in the same way
					}
					about := fmt.Sprintf("lie %d, at %s: %.40q", i, at, lie.says)
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					l.tell(at, lie.says)
					goOn(t, fleet, q, at, about)
					runtime.ReadMemStats(&after)
					require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(maxHostile+4*l.told()*len(lie.says)), about)
					if at != "PING" { // which is sent when it is quiet for a long time
						require.Positive(t, l.told(), about)
					}
					if lie.ends && (at == "HELLO" || at == "INFO") {
						var why *redlock.ConditionError
						err := q.Nodes(t.Context())[0].Err
						require.ErrorAs(t, err, &why, about)
						require.Equal(t, redlock.Condition(wire.BadReply), why.Condition, about)
						require.ErrorContains(t, err, nodeAddr(fleet.Node(0))+": ", about)
						require.ErrorContains(t, err, "it sent ", about)
					}
					l.tell("", "")
					settleVotes(t, q, 3)
					require.NoError(t, q.Healthy(), about)
				}
			})
		})
	}
}

// liar stands between clients and a node, and answers commands in its place.
type liar struct {
	mu   sync.Mutex
	at   string // the name of the command; "" for none, and accepting for a connection itself
	says string
	lies int // how often it has
}

const accepting = "(accept)"

func (l *liar) tell(at, says string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at, l.says, l.lies = at, says, 0
}

func (l *liar) told() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lies
}

// lie is what to say instead of an answer to these commands.
func (l *liar) lie(commands []byte) (says string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == "" || l.at != accepting && !bytes.Contains(commands, []byte("\r\n"+l.at+"\r\n")) || l.at == accepting && commands != nil {
		return ""
	}
	l.lies++
	return l.says
}

// between returns a client's end of a connection to a node.
func (l *liar) between(node net.Conn) net.Conn {
	near, far := net.Pipe()
	answers, over := make(chan []byte), make(chan struct{})
	say := func(answer []byte) {
		select {
		case answers <- answer:
		case <-over:
		}
	}
	go func() {
		defer node.Close()
		defer far.Close()
		defer close(over)
		for answer := range answers {
			if _, err := far.Write(answer); answer == nil || err != nil {
				return
			}
		}
	}()
	go func() {
		forEach(node, say)
		say(nil)
	}()
	go func() {
		defer node.Close()
		if says := l.lie(nil); says != "" {
			say([]byte(says))
		}
		forEach(far, func(commands []byte) {
			if says := l.lie(commands); says != "" {
				say([]byte(says))
			} else {
				_, _ = node.Write(commands)
			}
		})
	}()
	return near
}

// forEach reads until a connection ends.
func forEach(conn net.Conn, do func([]byte)) {
	buffer := make([]byte, 1<<12)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		do(bytes.Clone(buffer[:n]))
	}
}

// option puts the liar in front of a node.
func (l *liar) option(fleet *redlocktest.Fleet, node int) redlock.Option {
	return redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
		fleet.ClientOption(url, o)
		o.ReadBufferEachConn, o.WriteBufferEachConn, o.RingScaleEachConn = 1<<12, 1<<12, 6 // half a mebibyte each, usually
		if dial := o.DialCtxFn; url == fleet.Node(node).URL() {
			o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
				conn, err := dial(ctx, addr, d, c)
				if err != nil {
					return nil, err
				}
				return l.between(conn), nil
			}
		}
	})
}

// lies are what no server answers, and whether the first of it ends the connection; others are
// answers of a wrong kind, or too many of them.
var lies = []struct {
	says string
	ends bool
}{
	{"$-2\r\n", true}, {"*-2\r\n", true}, {"%-1\r\n", true}, {"$9000000000000000000\r\n", true}, {"*100000000000\r\n", true},
	{"*99999999\r\n", true}, {"%4611686018427387904\r\n", true}, {"$900000000\r\n", true}, {"=-2\r\n", true}, {"!-2\r\n", true},
	{"$?\r\n;-2\r\n", true}, {"$?\r\n;9000000000000000000\r\n", true}, {"*?\r\n:1\r\n.\r\n", true}, {"|1\r\n+a\r\n+b\r\n+OK\r\n", true},
	{strings.Repeat("*1\r\n", 100_000), true}, {"*1\r\n>2\r\n+message\r\n+a\r\n", true},
	{">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", true}, {">-1\r\n", true}, {">0\r\n", true},
	{"HTTP/1.1 400 Bad Request\r\n\r\n", true}, {"\x15\x03\x03\x00\x02\x02\x28", true}, {"\x00\x00\x00\x00", true},
	{"+" + strings.Repeat("x", 1<<20) + "\r\n", true}, {"_no\r\n", true}, {"#maybe\r\n", true}, {":x\r\n", true}, {"+\n", true},
	{strings.Repeat("+OK\r\n", 1000), false}, {strings.Repeat("-ERR no\r\n", 1000), false}, {strings.Repeat("$-1\r\n", 1000), false},
	{"*0\r\n", false}, {"*3\r\n*0\r\n*0\r\n*0\r\n", false}, {"%1\r\n:1\r\n:2\r\n", false}, {":9223372036854775807\r\n", false},
	{"$0\r\n\r\n", false}, {"_\r\n", false}, {"#t\r\n", false}, {",nan\r\n", false}, {"(12345678901234567890\r\n", false}, {"~1\r\n+x\r\n", false},
	{"+QUEUED\r\n", false}, {"+PONG\r\n", false}, {"-LOADING a\r\n", false}, {"-MOVED 1 h:1\r\n", false}, {"-ERR 'ping'\r\n", false}, {"-\r\n", false},
	{strings.Repeat(">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n", 1000), false}, {">2\r\n$10\r\ninvalidate\r\n*1\r\n*1\r\n+a\r\n", false},
}

// hostilePoints are the commands at which a server may begin to lie.
var hostilePoints = []string{accepting, "HELLO", "INFO", "EVAL", "EVALSHA", "SUBSCRIBE", "PING"}

// maxHostile is what a lie may cost a process that goes on as ever for a while, in bytes: all that
// is allocated meanwhile is counted, which is far more than is in use at any moment. Where lies
// announce too much, it is three times as much at least.
const maxHostile = 256 << 20

// goOn has a lease held and waited for, and others acquired, while a node lies to new connections.
func goOn(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum, at, about string) {
	t.Helper()
	if at != "EVALSHA" && at != "SUBSCRIBE" { // the others are said when a connection is new
		require.NoError(t, fleet.Node(0).Restart(true), about)
	}
	// Acquire tries again if the node lies between its vote and the agreement on the token.
	held, err := q.Acquire(t.Context(), "held")
	require.NoError(t, err, about)
	if at == "SUBSCRIBE" {
		require.NoError(t, fleet.Node(0).Restart(true), about)
	}
	waited := acquiring(t.Context(), q, "held")
	for range 8 {
		time.Sleep(ttl / 2)
		lease, err := q.TryAcquire(t.Context(), "key")
		require.NoError(t, err, about)
		require.NoError(t, lease.Release(t.Context()), about)
	}
	require.NoError(t, held.Err(), about)
	require.NoError(t, held.Release(t.Context()), about)
	g := <-waited
	require.NoError(t, g.err, about)
	require.NoError(t, g.lease.Release(t.Context()), about)
}

// settleVotes waits until so many nodes vote.
func settleVotes(t *testing.T, q *redlock.Quorum, want int) {
	t.Helper()
	for range 60 {
		votes := 0
		for _, n := range q.Nodes(t.Context()) {
			if n.Votes {
				votes++
			}
		}
		if votes == want {
			return
		}
		time.Sleep(time.Second)
	}
	t.Fatalf("the nodes do not vote: %+v", q.Nodes(t.Context()))
}
