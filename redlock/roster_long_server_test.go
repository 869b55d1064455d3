//go:build long

package redlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
)

// A server that keeps no list votes all the same, and that is said.
func TestRosterThatCannotBeKept(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	s.do([]string{"SET", "tenure:roster", "somebody else's"}, 1)
	var log lockedBuffer
	q := s.gated(redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	s.hold(q, "key")
	require.Eventually(t, func() bool { return q.Nodes(t.Context())[1].Votes }, longTTL, pollTick, "%v", q.Nodes(t.Context())[1])
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), "cannot keep who uses it") && strings.Contains(log.String(), s.Node(1).Addr())
	}, 2*longTTL, pollTick, "%s", &log)

	n := q.Nodes(t.Context())[1]
	require.Len(t, n.Warnings, 1)
	require.ErrorContains(t, n.Warnings[0], "\"tenure:roster\": TENUREDAMAGED the roster is no hash")
	require.ErrorContains(t, n.Warnings[0], "DEL the key")
	require.NotContains(t, n.Warnings[0].Error(), "counter")
	require.NotContains(t, log.String(), "for a key", "it has a vote for all of them")
	s.do([]string{"DEL", "tenure:roster"}, 1)
	require.Eventually(t, func() bool { return len(q.Nodes(t.Context())[1].Warnings) == 0 }, 2*longTTL, pollTick, "it is right again")
	require.NotContains(t, log.String(), "for a key")
}

// A deploy that raises TTL and skew needs no stop: the old processes keep a server out for as long
// as the new ones need.
func TestDeployThatRaisesTTLAndSkew(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	old, held := fleetOf(t, s.URLs(), 1, redlock.WithTTL(serverTTL))
	fleetOf(t, s.URLs(), 1, redlock.WithTTL(longTTL), redlock.WithMaxTTL(time.Hour), redlock.WithClockSkew(time.Minute), redlock.WithIdentity("new"))
	require.Eventually(t, func() bool { // a look of the old one
		r, err := redlock.ReadRoster(t.Context(), s.Node(0).Client(), "tenure")
		return err == nil && len(r) == 2 && max(r[0].MaxTTL, r[1].MaxTTL) == time.Hour
	}, longTTL, pollTick)
	time.Sleep(2 * longTTL / 4)
	s.restart(0)
	require.Eventually(t, func() bool {
		return time.Until(old[0].Nodes(t.Context())[0].QuarantinedUntil) > 50*time.Minute
	}, longTTL, pollTick, "%v", old[0].Nodes(t.Context())[0].Err)
	require.NoError(t, held[0].Err())
}

// A process with a stale list that is started and stopped again and again costs the others nothing.
func TestIntruderBesideABusyFleet(t *testing.T) {
	t.Parallel()
	lasts := 4 * time.Second
	if text := os.Getenv(intruderTime); text != "" {
		var err error
		lasts, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	s := startAged(t, 4)
	replicas, held := fleetOf(t, s.three(0, 1, 2), 3)
	measure := func() (failed int, median, most time.Duration) {
		var took []time.Duration
		for end, i := time.Now().Add(lasts), 0; time.Now().Before(end); i++ {
			start := time.Now()
			l, err := replicas[i%3].TryAcquire(t.Context(), fmt.Sprint("key", i%10))
			if err != nil {
				failed++
				continue
			}
			took = append(took, time.Since(start))
			assert.NoError(t, l.Release(t.Context()))
		}
		slices.Sort(took)
		return failed, took[len(took)/2], took[len(took)*99/100]
	}
	failed, median, most := measure()
	t.Logf("alone: %d failed, median %v, 99 %% %v", failed, median, most)
	stop := make(chan struct{})
	times := make(chan int, 1)
	go func() {
		n := 0
		defer func() { times <- n }()
		for ; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			q, err := redlock.Open(s.three(0, 1, 3), redlock.WithTTL(longTTL), redlock.WithLogger(slog.New(slog.DiscardHandler)))
			if assert.NoError(t, err) {
				_, err = q.TryAcquire(context.Background(), "intruder")
				assert.ErrorIs(t, err, redlock.ErrNoQuorum)
				time.Sleep(time.Duration(n%7) * 10 * time.Millisecond)
				assert.NoError(t, q.Close())
			}
		}
	}()
	failed2, median, most := measure()
	close(stop)
	t.Logf("beside %d intruders: %d failed, median %v, 99 %% %v", <-times, failed2, median, most)
	require.LessOrEqual(t, failed2, failed+3, "on a machine that is too slow some fail")
	for i, l := range held {
		require.NoError(t, l.Err())
		require.NoError(t, replicas[i].Healthy())
	}
}

// Behind one that takes the next server for each connection, and behind a name that resolves to two
// servers, the node has no vote, and the others are a quorum.
func TestBalancerByConnection(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]func(t *testing.T, one, other string) (string, redlock.Option){
		"round robin": func(t *testing.T, one, other string) (string, redlock.Option) {
			return turns(t, one, other), redlock.WithClientOption(func(string, *valkey.ClientOption) {})
		},
		"a name of two servers": nameOfTwo,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 4)
			addr, resolve := way(t, s.Node(0).Addr(), s.Node(3).Addr())
			urls := []string{"valkey://" + addr, s.Node(1).URL(), s.Node(2).URL()}
			q, err := redlock.Open(urls, redlock.WithTTL(serverTTL), redlock.WithClockSkew(time.Millisecond), redlock.WithLogger(slog.New(slog.DiscardHandler)), resolve)
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, q.Close()) })
			var said error
			require.Eventually(t, func() bool {
				said = q.Nodes(t.Context())[0].Err
				return redlock.ErrorType(said) == string(redlock.ConditionSeveralServers)
			}, 12*longTTL, pollTick)
			require.ErrorContains(t, said, addr)
			l, err := tryUntilAnswered(t, q, "key")
			require.NoError(t, err)
			require.NoError(t, l.Release(t.Context()))
		})
	}
}

// A rolling deploy of an edited list: the first process with it is refused, and the others hear
// nothing of it.
func TestRollingDeployWithAnotherList(t *testing.T) {
	t.Parallel()
	s := startAged(t, 5)
	_, held := fleetOf(t, s.three(0, 1, 2), 3)
	for _, list := range [][]int{{0, 1, 3}, {0, 1, 2, 3, 4}, {0, 3, 4}, {0}} {
		q, err := redlock.Open(s.three(list...), redlock.WithTTL(longTTL), redlock.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		start := time.Now()
		requireIntruder(t, q, redlock.ConditionAnotherList)
		t.Logf("%v: refused after %v", list, time.Since(start))
		require.NoError(t, q.Close())
	}
	for _, l := range held {
		require.NoError(t, l.Err())
		require.NoError(t, l.Extend(t.Context()))
	}
	fleetOf(t, s.three(0, 1, 2), 1)
	for _, i := range []int{3, 4} {
		require.NoError(t, s.Node(i).Do(t, "PING").Error())
		r, err := redlock.ReadRoster(t.Context(), s.Node(i).Client(), "tenure")
		require.NoError(t, err)
		require.False(t, slices.ContainsFunc(r, func(l redlock.RosterList) bool { return l.Refused == "" }), "who is refused says only that it was")
	}
}
