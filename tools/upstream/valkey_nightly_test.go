//go:build nightly

package upstream

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// server names the server to the process of a test that ends with a panic.
const server = "TENURE_UPSTREAM_SERVER"

// dialed are options whose connections are passed through pass.
func dialed(addr string, pass func(net.Conn) net.Conn) valkey.ClientOption {
	return valkey.ClientOption{
		InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true, DisableRetry: true, PipelineMultiplex: -1,
		DialCtxFn: func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			conn, err := d.DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return pass(conn), nil
		},
	}
}

// A pipeline of 2,000 commands takes another connection.
func TestLongPipeline(t *testing.T) {
	addr := valkeytest.Start(t, 1).Node(0).Addr()
	for blocking, connections := range map[int]int32{0: 2, -1: 1} {
		var dials atomic.Int32
		o := dialed(addr, func(c net.Conn) net.Conn { dials.Add(1); return c })
		o.BlockingPipeline = blocking
		client, err := valkey.NewClient(o)
		require.NoError(t, err)
		pings := make(valkey.Commands, 2000)
		for i := range pings {
			pings[i] = client.B().Ping().Build()
		}
		client.DoMulti(t.Context(), pings...)
		client.Close()
		require.Equal(t, connections, dials.Load(), "BlockingPipeline %d", blocking)
	}
}

// closes reports that it was closed.
type closes struct {
	net.Conn
	closed atomic.Bool
}

func (c *closes) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// A connection that is dialed while the client is closed is left open.
func TestDialWhileClosing(t *testing.T) {
	addr := valkeytest.Start(t, 1).Node(0).Addr()
	var last atomic.Pointer[closes]
	dialing, goOn := make(chan struct{}, 1), make(chan struct{})
	client, err := valkey.NewClient(dialed(addr, func(c net.Conn) net.Conn {
		if last.Swap(&closes{Conn: c}) != nil { // not the first
			dialing <- struct{}{}
			<-goOn
		}
		return last.Load()
	}))
	require.NoError(t, err)
	first := last.Load()
	require.NoError(t, first.Conn.Close())
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for last.Load() == first { // until it has noticed that the connection is broken
			client.Do(t.Context(), client.B().Ping().Build())
		}
	}()
	<-dialing
	client.Close()
	close(goOn)
	<-asked
	require.Never(t, last.Load().closed.Load, time.Second, 50*time.Millisecond)
	require.NoError(t, last.Load().Close())
}

// inject has a client that is at rest get a text that a server sends unasked.
func inject(t *testing.T, text string) {
	client, err := valkey.NewClient(dialed(os.Getenv(server), func(c net.Conn) net.Conn {
		ours, its := net.Pipe()
		go func() { _, _ = io.Copy(c, ours) }()
		go func() { _, _ = io.Copy(ours, c) }()
		time.AfterFunc(500*time.Millisecond, func() { _, _ = io.WriteString(ours, text) })
		return its
	}))
	require.NoError(t, err)
	for range 3 { // pipelined, so that a goroutine reads
		go client.Do(t.Context(), client.B().Ping().Build())
	}
	<-t.Context().Done()
}

// A refusal that nobody asked for, as a server at maxclients sends one, and a negative length end
// the process.
func TestProcessEnds(t *testing.T) {
	texts := map[string]string{"refusal": "-ERR max number of clients reached\r\n", "negative length": "$-7\r\n", "large length": "*9000000000000000000\r\n"}
	if name := os.Getenv("TENURE_UPSTREAM_CASE"); name != "" {
		inject(t, texts[name])
	}
	addr := valkeytest.Start(t, 1).Node(0).Addr()
	for name := range texts {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestProcessEnds$", "-test.timeout", "20s")
		cmd.Env = append(os.Environ(), server+"="+addr, "TENURE_UPSTREAM_CASE="+name)
		out, err := cmd.CombinedOutput()
		require.Error(t, err, name)
		require.Regexp(t, `panic: (protocol bug|runtime error|unexpected)|runtime: out of memory|makeslice`, string(out), name)
		t.Logf("%s: %.200s", name, out)
	}
}
