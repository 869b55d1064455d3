package health_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/health"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

const (
	ttl        = redlock.DefaultTTL
	quarantine = 14 * time.Second // of the defaults
)

var silent = slog.New(slog.DiscardHandler)

// open is a replica's Quorum on the nodes of these numbers, all of them without any.
func open(t *testing.T, fleet *redlocktest.Fleet, numbers ...int) *redlock.Quorum {
	t.Helper()
	urls := fleet.URLs()
	if len(numbers) > 0 {
		urls = nil
		for _, i := range numbers {
			urls = append(urls, fleet.Node(i).URL())
		}
	}
	q, err := redlock.Open(urls, redlock.WithClientOption(fleet.ClientOption), redlock.WithLogger(silent))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

func handler(parts ...health.Part) *health.Handler {
	h := health.New(parts...)
	h.Logger = silent
	return h
}

// run campaigns until the test ends.
func run(t *testing.T, q *redlock.Quorum, lead func(context.Context, *elector.Term) error) *elector.Elector {
	t.Helper()
	e, err := elector.New(q, "poller", elector.WithDrainTimeout(2*time.Second), elector.WithLogger(silent))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = e.Run(ctx, lead) // the test looks at what Healthy says
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return e
}

func untilDone(ctx context.Context, _ *elector.Term) error {
	<-ctx.Done()
	return ctx.Err()
}

// A replica that waits to lead is as ready as the leader.
func TestReadinessIsNotLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := redlocktest.StartPipes(t, 5)
		leaders := 0
		for range 3 {
			q := open(t, fleet)
			e := run(t, q, untilDone)
			time.Sleep(ttl)
			requireReady(t, handler(q, e))
			if e.IsLeader(t.Context()) == nil {
				leaders++
			}
		}
		require.Equal(t, 1, leaders)
	})
}

// Nodes that fail take no replica out of service that was ready, and let none in that was not:
// neither lets them kill anything.
func TestQuorumIsLost(t *testing.T) {
	for name, fail := range map[string]func(*redlocktest.Node) error{
		"killed": (*redlocktest.Node).Kill,
		"hung":   (*redlocktest.Node).Freeze,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fleet := redlocktest.StartPipes(t, 5)
				var log strings.Builder
				q := open(t, fleet)
				e := run(t, q, untilDone)
				s, err := scheduler.New(q, scheduler.WithLogger(silent))
				require.NoError(t, err)
				s.Start()
				t.Cleanup(func() { require.NoError(t, s.Shutdown()) })
				h := health.New(q, e, s)
				h.Logger = slog.New(slog.NewTextHandler(&log, nil))
				time.Sleep(time.Second)
				requireReady(t, h)
				require.Empty(t, log.String())

				for i := range 3 {
					require.NoError(t, fail(fleet.Node(i)))
				}
				time.Sleep(3 * ttl)
				begins := handler(open(t, fleet))
				time.Sleep(3 * ttl)
				start := time.Now()
				for range 10 {
					requireReady(t, h)
				}
				require.Zero(t, time.Since(start), "no answer waits for a node")
				is := verbose(t, h, "/readyz")
				require.Len(t, is.Parts, 3)
				for _, p := range is.Parts {
					require.Equal(t, "degraded", p.State, p.Name)
					require.Equal(t, 2, *p.Voting)
					require.Equal(t, 3, *p.Needed)
					require.Len(t, p.Nodes, 3)
					for _, n := range p.Nodes {
						require.Contains(t, []string{"timeout", "connection"}, n.Reason)
					}
				}
				require.Equal(t, 3, strings.Count(log.String(), "ready all the same"), "%s", &log)
				w := probe(begins, "/readyz")
				require.Equal(t, 503, w.Code, w.Body)
				requireLive(t, begins)

				for i := range 3 {
					require.NoError(t, fleet.Node(i).Restart(false))
				}
				time.Sleep(5 * time.Second)
				require.Equal(t, "quarantined", verbose(t, begins, "/readyz").Parts[0].State, "nodes that begin hold nothing up")
				time.Sleep(quarantine + ttl)
				requireReady(t, begins)
				requireReady(t, h)
				require.Equal(t, "ok", verbose(t, h, "/readyz").Parts[0].State)
				require.Equal(t, 3, strings.Count(log.String(), "in order again"), "%s", &log)
			})
		})
	}
}

// Neither a new fleet nor one that is restarted as a whole holds a rollout up: a replica is ready
// before a lease can be had.
func TestQuarantineHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := redlocktest.StartPipes(t, 5)
		for _, n := range fleet.Nodes() {
			require.NoError(t, n.Restart(false))
		}
		q := open(t, fleet)
		e := run(t, q, untilDone)
		h := handler(q, e)
		first := verbose(t, h, "/readyz")
		require.Contains(t, []string{"failed: no_quorum", "quarantined: no_quorum"}, first.states()["quorum"], "the latter if the nodes have answered by now")
		time.Sleep(time.Second)
		requireReady(t, h)
		_, err := q.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrNoQuorum, "and yet there is no lease")
		is := verbose(t, h, "/readyz")
		require.Equal(t, map[string]string{"quorum": "quarantined: no_quorum", "elector": "quarantined: no_quorum"}, is.states())
		for _, n := range is.Parts[0].Nodes {
			require.Equal(t, "quarantined", n.Reason)
			until, err := time.Parse(time.RFC3339, n.Until)
			require.NoError(t, err)
			require.WithinRange(t, until, time.Now(), time.Now().Add(quarantine))
		}
		time.Sleep(quarantine + 3*time.Second)
		require.Equal(t, map[string]string{"quorum": "ok", "elector": "ok"}, new(verbose(t, h, "/readyz")).states())
	})
}

// A replica with another list of nodes than the others' never becomes ready, so its rollout stops;
// the others stay ready.
func TestRefusedReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := redlocktest.StartPipes(t, 5)
		q := open(t, fleet, 0, 1, 2)
		well := handler(q)
		time.Sleep(time.Second)
		requireReady(t, well)
		_, err := q.TryAcquire(t.Context(), "key") // which has others know of its nodes
		require.NoError(t, err)
		other := handler(open(t, fleet, 0, 1, 3))
		for range 10 {
			time.Sleep(ttl)
			requireNotReady(t, other, "[-]quorum failed: no_quorum")
			requireReady(t, well)
		}
		require.Equal(t, "another_list", verbose(t, other, "/readyz").Parts[0].Nodes[0].Reason)
		require.NoError(t, q.Close())
		requireNotReady(t, well, "[-]quorum failed: closed")
		time.Sleep(time.Minute)
		requireReady(t, other)
	})
}

// A replica that shuts down takes no requests any more, and nothing ends it before its time.
func TestShuttingDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := redlocktest.StartPipes(t, 3)
		q := open(t, fleet)
		s, err := scheduler.New(q, scheduler.WithElection("jobs"), scheduler.WithLogger(silent))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Shutdown()) })
		h := handler(q, health.Live(s))
		time.Sleep(time.Second)
		requireNotReady(t, h, "[-]scheduler failed: not_running")
		s.Start()
		time.Sleep(time.Second)
		requireReady(t, h)
		h.Stop()
		requireNotReady(t, h, "[-]shutting down")
		require.Equal(t, "shutting down", verbose(t, h, "/readyz").Reason)
		require.NoError(t, s.Shutdown())
		requireNotReady(t, h, "[-]scheduler failed: not_running\n[-]shutting down")
		require.NoError(t, q.Close())
		requireNotReady(t, h, "[-]quorum failed: closed\n[-]scheduler failed: not_running\n[-]shutting down")
	})
}
