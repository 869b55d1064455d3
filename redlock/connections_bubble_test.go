package redlock

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/internal/node"
)

// A connection that is dialed while its client is closed is ended with it, whenever the dial comes
// to its end.
func TestConnectionDialedWhileTheClientCloses(t *testing.T) {
	for name, after := range map[string]time.Duration{"closed before the dial ends": -time.Second, "closed after": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dials, ended := 0, make(chan struct{})
				first := make(chan net.Conn, 1)
				o := valkey.ClientOption{
					InitAddress: []string{"a:1"}, ForceSingleClient: true, DisableCache: true, DisableRetry: true, PipelineMultiplex: -1,
					DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
						near, far := net.Pipe()
						if dials++; dials == 1 {
							first <- far
							go answerHonestly(far)
							return near, nil
						}
						time.Sleep(2 * time.Second)
						go func() {
							defer close(ended)
							answerHonestly(far)
						}()
						return near, nil
					},
				}
				client, err := node.NewClient(t.Context(), o, nil)
				require.NoError(t, err)
				require.NoError(t, (<-first).Close())
				require.Error(t, client.Do(t.Context(), client.B().Ping().Build()).Error(), "it has broken")
				asked := make(chan struct{})
				go func() {
					defer close(asked)
					_ = client.Do(context.Background(), client.B().Ping().Build()).Error()
				}()
				time.Sleep(2*time.Second + after)
				client.Close()
				<-asked
				select {
				case <-ended:
				case <-time.After(time.Minute):
					require.Fail(t, "the connection is still there")
				}
			})
		})
	}
}

// answerHonestly answers each command, until the connection ends.
func answerHonestly(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		name, err := readCommand(in)
		if err != nil {
			return
		}
		if _, err := conn.Write([]byte(honest(name, true))); err != nil {
			return
		}
	}
}
