//go:build long

package redlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

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

// A server that is full says so to each connection before it is asked. On a busy machine the time
// for the handshake is over by then, and the client hears of it with no command under way.
func TestRefusalBeforeTheHandshake(t *testing.T) {
	for _, test := range []struct {
		says string
		want redlock.Condition
	}{
		{"-ERR max number of clients reached\r\n", redlock.Condition(wire.TooManyUsers)},
		{"-DENIED Redis is running in protected mode because ...\r\n", redlock.Condition(wire.Protected)},
		{"$-2\r\n", redlock.Condition(wire.BadReply)},
	} {
		for _, late := range []time.Duration{0, time.Minute} {
			t.Run(fmt.Sprintf("%.15s %v", test.says, late), func(t *testing.T) {
				bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
					t.Cleanup(func() { time.Sleep(2 * late) }) // a dial may be under way, for which Close does not wait
					q := open(t, fleet, redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
						fleet.ClientOption(url, o)
						if url == fleet.Node(0).URL() {
							o.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
								near, far := net.Pipe()
								var heard sync.WaitGroup
								heard.Go(func() { _, _ = far.Read(make([]byte, 1<<10)) })
								go func() {
									defer far.Close()
									_, _ = far.Write([]byte(test.says))
									heard.Wait()
								}()
								time.Sleep(late)
								return near, nil
							}
						}
					}))
					lease := acquire(t, q)
					time.Sleep(5 * time.Minute)
					require.NoError(t, lease.Err())
					err := q.Nodes(t.Context())[0].Err
					if late > 0 && errors.Is(err, redlock.ErrTimeout) {
						return // the connection itself took too long
					}
					require.Equal(t, string(test.want), redlock.ErrorType(err), "%v", err)
				})
			})
		}
	}
}
