package redlock_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
)

var fleetKeys atomic.Int64

// fleetOf is replicas of one list that hold a lease each.
func fleetOf(t *testing.T, urls []string, n int, opts ...redlock.Option) (replicas []*redlock.Quorum, held []*redlock.Lease) {
	t.Helper()
	for i := range n {
		q := gatedURLs(t, urls, append([]redlock.Option{redlock.WithTTL(longTTL), redlock.WithIdentity(fmt.Sprint("replica ", i))}, opts...)...)
		l, err := tryUntilAnswered(t, q, fmt.Sprint("key of a replica ", fleetKeys.Add(1)))
		require.NoError(t, err)
		replicas, held = append(replicas, q), append(held, l)
	}
	return replicas, held
}

// requireIntruder demands that a process is refused, and that it says with whom it does not agree.
func requireIntruder(t *testing.T, q *redlock.Quorum, want redlock.Condition) {
	t.Helper()
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(q.Nodes(t.Context()), func(n redlock.NodeStatus) bool {
			return redlock.ErrorType(n.Err) == string(want) && strings.Contains(n.Err.Error(), "replica ")
		})
	}, patience, pollTick, "%v", q.Healthy())
	require.ErrorIs(t, q.Healthy(), redlock.ErrNoQuorum)
	_, err := q.TryAcquire(t.Context(), "intruder")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
}

// intruderTime is for how long a process with another list is started beside a fleet again and
// again.
const intruderTime = "TENURE_INTRUDER_TIME"

// turns is an address behind which servers take turns, by connection.
func turns(t *testing.T, addrs ...string) string {
	t.Helper()
	d := startDetour(t, addrs[0])
	var n atomic.Int64
	d.next.Store(new(func() string { return addrs[int(n.Add(1))%len(addrs)] }))
	return d.Addr().String()
}

// nameOfTwo is a name that resolves to two addresses, in turns, with a server on each; and what has
// a client resolve it.
func nameOfTwo(t *testing.T, one, other string) (addr string, resolve redlock.Option) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("127.0.0.2 is an address of a Linux machine")
	}
	_, port, err := net.SplitHostPort(one)
	require.NoError(t, err)
	startDetourAt(t, "127.0.0.2:"+port, other)
	dns, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	t.Cleanup(func() {
		assert.NoError(t, dns.Close())
		<-done
	})
	go func() {
		defer close(done)
		packet := make([]byte, 512)
		for turn := byte(0); ; {
			n, from, err := dns.ReadFrom(packet)
			if err != nil {
				return
			}
			// A header of 12 bytes, and a question: the name, its type and its class. RFC 1035,
			// 4.1.
			end := 12
			for end < n && packet[end] != 0 {
				end += 1 + int(packet[end])
			}
			if end += 5; end > n {
				continue
			}
			answer := append([]byte{packet[0], packet[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, packet[12:end]...)
			if isA := packet[end-3] == 1; isA {
				answer[7] = 2
				for i := range byte(2) {
					answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1+(turn+i)%2)
				}
				turn++
			}
			if _, err := dns.WriteTo(answer, from); err != nil {
				return
			}
		}
	}()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", dns.LocalAddr().String())
	}}
	return "servers.test:" + port, redlock.WithClientOption(func(_ string, o *valkey.ClientOption) { o.Dialer.Resolver = resolver })
}

// Behind a balancer that keeps a client with its server, the second client that finds another one
// is refused.
func TestBalancerByClient(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]redlock.Option{"gate": nil, "no gate": {redlock.WithoutRestartGate()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 4)
			way := startDetour(t, s.Node(0).Addr())
			urls := []string{"valkey://" + way.Addr().String(), s.Node(1).URL(), s.Node(2).URL()}
			_, held := fleetOf(t, urls, 1, opts...)
			way.lead(s.Node(3).Addr())
			q, err := redlock.Open(urls, append([]redlock.Option{redlock.WithTTL(longTTL), redlock.WithLogger(slog.New(slog.DiscardHandler))}, opts...)...)
			require.NoError(t, err)
			requireIntruder(t, q, redlock.ConditionSeveralServers)
			require.NoError(t, q.Close())
			require.NoError(t, held[0].Err())
		})
	}
}

// One server under two names is one node, also for a process that may not ask it for its run_id.
func TestServerCountedTwiceWithoutInfo(t *testing.T) {
	t.Parallel()
	s := startServers(t, 2)
	s.do(append([]string{"ACL", "SETUSER", "blind", "on", ">pass", "~*", "&*", "+@all"}, "-info"))
	url := func(host string, node int) string {
		_, port, err := net.SplitHostPort(s.Node(node).Addr())
		require.NoError(t, err)
		return "valkey://blind:pass@" + net.JoinHostPort(host, port)
	}
	var log bytes.Buffer
	q, err := redlock.Open([]string{url("127.0.0.1", 0), url("localhost", 0), url("127.0.0.1", 1)},
		redlock.WithTTL(longTTL), redlock.WithoutRestartGate(), redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close()) })
	twice := func() (n int) {
		for _, status := range q.Nodes(t.Context()) {
			if redlock.ErrorType(status.Err) == string(redlock.ConditionDuplicate) {
				n++
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return twice() == 1 }, patience, pollTick, "%v", q.Nodes(t.Context()))
	l, err := tryUntilAnswered(t, q, "key")
	require.NoError(t, err, "the other two are a quorum")
	require.NoError(t, l.Release(t.Context()))
}
