package redlock_test

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// distant puts a client at a distance from each node, one way and the same back.
func distant(fleet *redlocktest.Fleet, oneWay ...time.Duration) redlock.Option {
	return away(fleet, func(i int) time.Duration { return oneWay[i] })
}

// away has the data of the i-th node take a while that may change.
func away(fleet *redlocktest.Fleet, oneWay func(i int) time.Duration) redlock.Option {
	return redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
		fleet.ClientOption(url, o)
		dial, i := o.DialCtxFn, slices.Index(fleet.URLs(), url)
		o.DialCtxFn = func(ctx context.Context, addr string, dialer *net.Dialer, cfg *tls.Config) (net.Conn, error) {
			conn, err := dial(ctx, addr, dialer, cfg)
			if err != nil {
				return nil, err
			}
			return relay(conn, func(int) time.Duration { return oneWay(i) }), nil
		}
	})
}

// relay is a connection whose data take a while, one way and the same back.
func relay(conn net.Conn, d func(size int) time.Duration) net.Conn {
	near, end := net.Pipe()
	go carry(conn, end, d)
	go carry(end, conn, d)
	return near
}

// carry copies what is written to one connection to another one, d later.
func carry(from, to net.Conn, d func(size int) time.Duration) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 1024)
	go func() {
		defer to.Close()
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.data); err != nil {
				break
			}
		}
		for range pieces {
		}
	}()
	defer close(pieces)
	defer from.Close()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			pieces <- piece{slices.Clone(buffer[:n]), time.Now().Add(d(n))}
		}
		if err != nil {
			return
		}
	}
}

// race is how an attempt of several at the same moment to acquire a key ended, in the order of the
// rivals.
type race struct {
	rivals []*redlock.Quorum
	leases []*redlock.Lease
	errs   []error
	took   []time.Duration
}

func raceFor(t *testing.T, key string, rivals []*redlock.Quorum, opts ...redlock.LeaseOption) race {
	t.Helper()
	n := len(rivals)
	r := race{rivals, make([]*redlock.Lease, n), make([]error, n), make([]time.Duration, n)}
	var work sync.WaitGroup
	start := time.Now()
	for i, q := range rivals {
		work.Go(func() {
			r.leases[i], r.errs[i] = q.TryAcquire(t.Context(), key, opts...)
			r.took[i] = time.Since(start)
		})
	}
	work.Wait()
	return r
}

// squat gives a key to an owner value that ranks behind all others, or before them, and is never
// released.
func squat(t *testing.T, n *redlocktest.Node, random string) {
	t.Helper()
	set(t, n, "tenure:{key}", "squatter/"+strings.Repeat(random, 22))
}

func unsquat(n *redlocktest.Node) { n.FlushAll() }

// With a dead node beside it, what a rival left behind may be a holder's: it is reported as one
// until it has gone.
func TestOneThatDiedBesideADeadNodeIsAHolder(t *testing.T) {
	for _, random := range []string{"-", "z"} {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			const oneWay = 5 * time.Millisecond
			q := open(t, fleet, distant(fleet, oneWay, oneWay, oneWay))
			require.NoError(t, fleet.Node(2).Kill())
			squat(t, fleet.Node(1), random)
			time.Sleep(time.Second)
			start := time.Now()
			_, err := q.TryAcquire(t.Context(), "key")
			var held *redlock.HeldError
			require.ErrorAs(t, err, &held)
			require.Equal(t, []any{"squatter", 1}, []any{held.Holder.Identity, held.Holder.Nodes})
			require.LessOrEqual(t, time.Since(start), 20*2*oneWay)
			time.Sleep(time.Second)
			require.Equal(t, 1, on(fleet, "key"), "what the attempt was granted was not taken back")
			unsquat(fleet.Node(1))
			acquire(t, q)
		})
	}
}

// Two owners who died keep a node each of three, so that nobody can have a quorum. A vote that stays
// split is reported as that. Nothing is left behind, and nobody is said to hold the key.
func TestAVoteThatStaysSplit(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		const oneWay = 5 * time.Millisecond
		q := open(t, fleet, distant(fleet, oneWay, oneWay, oneWay))
		squat(t, fleet.Node(1), "-")
		set(t, fleet.Node(2), "tenure:{key}", "other/"+strings.Repeat("z", 22))
		start := time.Now()
		_, err := q.TryAcquire(t.Context(), "key")
		require.NotErrorIs(t, err, redlock.ErrHeld)
		var split *redlock.SplitError
		require.ErrorAs(t, err, &split)
		require.Equal(t, 8, split.Rounds)
		require.Equal(t, redlock.Holder{Key: "key", Identity: "squatter", Nodes: 1}, split.Rival)
		require.LessOrEqual(t, time.Since(start), 90*2*oneWay)
		time.Sleep(time.Second)
		require.Equal(t, 2, on(fleet, "key"), "what the attempt was granted was not taken back")
	})
}

// The keys of a lease that was granted by its third round live since the first on one of its nodes,
// and so long lasts the lease: one node of three is dead, and another one refuses for 250 ms. A minimum
// hold counts from the round that brought the lease.
func TestALeaseOfSeveralRoundsCountsFromTheFirst(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		require.NoError(t, fleet.Node(2).Kill())
		time.Sleep(time.Second)
		squat(t, fleet.Node(1), "z")
		for i := range 2 {
			fleet.Node(i).SetDelay(100 * time.Millisecond)
		}
		start := time.Now()
		time.AfterFunc(250*time.Millisecond, func() { unsquat(fleet.Node(1)) })
		l := acquire(t, q, redlock.WithMinHold(3*ttl/4))
		// The rounds begin after 0, 100 + 25 and 225 + 50 ms.
		require.Equal(t, 375*time.Millisecond, time.Since(start))
		require.Equal(t, start.Add(validity), l.Deadline())
		for i := range 2 {
			fleet.Node(i).SetDelay(0)
		}
		time.Sleep(ttl / 4)
		require.NoError(t, l.Err())
		require.NoError(t, l.Release(t.Context()))
		third := start.Add(275 * time.Millisecond)
		time.Sleep(time.Until(third.Add(3*ttl/4 - 10*time.Millisecond)))
		require.Equal(t, 2, on(fleet, "key"))
		time.Sleep(time.Second)
		require.Zero(t, on(fleet, "key"))
	})
}

// A grant that comes when less than half of the TTL is left since the first round is no lease.
func TestACandidateDoesNotStayBeyondHalfOfTheTTL(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, redlock.WithNodeTimeout(ttl/4))
		squat(t, fleet.Node(1), "z")
		require.NoError(t, fleet.Node(2).Kill())
		time.Sleep(time.Second)
		for i := range 2 {
			fleet.Node(i).SetDelay(600 * time.Millisecond)
		}
		// The second round ends after 600 + 150 + 600 ms. A third would end after 300 + 600 more.
		done := make(chan error)
		go func() {
			_, err := q.TryAcquire(t.Context(), "key")
			done <- err
		}()
		began := make(map[string]time.Time)
		var longest time.Duration
		for watching := true; watching; {
			select {
			case err := <-done:
				require.Error(t, err)
				watching = false
			case <-time.After(10 * time.Millisecond):
				if owner, there := fleet.Node(0).Get("tenure:{key}"); there {
					if began[owner].IsZero() {
						began[owner] = time.Now()
					}
					longest = max(longest, time.Since(began[owner]))
				}
			}
		}
		require.Greater(t, longest, 1300*time.Millisecond, "it never stayed")
		require.LessOrEqual(t, longest, ttl/2)
	})
}

// An answer to an earlier round that comes when the candidate has gone on is not taken back: its
// node has granted the lease.
func TestALateGrantOfAnEarlierRoundStays(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		squat(t, fleet.Node(3), "z")
		squat(t, fleet.Node(4), "z")
		fleet.Node(2).SetDelay(ttl / 8)
		time.AfterFunc(ttl/20+time.Microsecond, func() { unsquat(fleet.Node(3)) })
		start := time.Now()
		l := acquire(t, q, redlock.WithoutAutoExtend())
		require.Less(t, time.Since(start), ttl/8)
		time.Sleep(ttl - 100*time.Millisecond - time.Since(start))
		owner, _ := fleet.Node(0).Get("tenure:{key}")
		for i := range 4 {
			now, there := fleet.Node(i).Get("tenure:{key}")
			require.True(t, there, "node %d", i)
			require.Equal(t, owner, now)
		}
		require.NoError(t, l.Release(t.Context()))
	})
}

// A node granted the first round, and answers when the candidate has given up. Its later requests
// to that node have not been sent.
func TestACandidateTakesBackWhatAnEarlierRoundWasGranted(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		squat(t, fleet.Node(3), "z")
		squat(t, fleet.Node(4), "z")
		fleet.Node(2).SetDelay(300 * time.Millisecond)
		start := time.Now()
		_, err := q.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrHeld)
		require.Less(t, time.Since(start), 300*time.Millisecond)
		_, there := fleet.Node(2).Get("tenure:{key}")
		require.True(t, there, "it has not granted the key, so this tests nothing")
		time.Sleep(ttl / 4)
		for i := range 3 {
			_, there := fleet.Node(i).Get("tenure:{key}")
			require.False(t, there, "node %d", i)
		}
	})
}

// A candidate that stays and is given up leaves nothing, neither what it was granted nor what is
// under way. See also TestCloseDuringAnAcquisitionLeavesNothing.
func TestACandidateThatIsGivenUp(t *testing.T) {
	for _, after := range []time.Duration{90, 110, 190, 250, 300} {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			q := open(t, fleet)
			squat(t, fleet.Node(1), "z")
			require.NoError(t, fleet.Node(2).Kill())
			time.Sleep(time.Second)
			for i := range 2 {
				fleet.Node(i).SetDelay(100 * time.Millisecond)
			}
			ctx, cancel := context.WithTimeout(t.Context(), after*time.Millisecond)
			defer cancel()
			_, err := q.TryAcquire(ctx, "key")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			time.Sleep(time.Second)
			require.Equal(t, 1, on(fleet, "key"), "after %d ms", after)
		})
	}
}
