package elector_test

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// In a bubble time passes only while everything waits, so durations here are exact.

const (
	ttl      = 4 * time.Second
	validity = ttl - ttl/100 - 2*time.Millisecond
	key      = "tenure:{election/test}"
)

func bubble(t *testing.T, test func(t *testing.T, fleet *redlocktest.Fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, redlocktest.StartPipes(t, 3)) })
}

// onlooker is a process that takes no part in an election. The minimum hold of its Quorum is for
// other leases: it keeps no leader from being followed by the next one.
func onlooker(t *testing.T, fleet *redlocktest.Fleet, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	q, err := redlock.Open(fleet.URLs(), append([]redlock.Option{redlock.WithClientOption(fleet.ClientOption), redlock.WithTTL(ttl),
		redlock.WithMinHold(ttl * 3 / 4), redlock.WithLogger(slog.New(slog.DiscardHandler))}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	q.Nodes(t.Context())
	return q
}

// candidate is a replica of its own: a Quorum and an Elector.
func candidate(t *testing.T, fleet *redlocktest.Fleet, opts ...elector.Option) *elector.Elector {
	t.Helper()
	return candidateOf(t, onlooker(t, fleet), opts...)
}

func candidateOf(t *testing.T, q *redlock.Quorum, opts ...elector.Option) *elector.Elector {
	t.Helper()
	e, err := elector.New(q, "test", append([]elector.Option{elector.WithLogger(slog.New(slog.DiscardHandler))}, opts...)...)
	require.NoError(t, err)
	return e
}

// running is a call of Run.
type running struct {
	stop context.CancelFunc
	done chan error
}

func run(t *testing.T, e *elector.Elector, lead func(context.Context, *elector.Term) error) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- e.Run(ctx, lead) }()
	t.Cleanup(cancel)
	return r
}

// end stops Run and returns its error.
func (r *running) end() error {
	r.stop()
	return <-r.done
}

func untilDone(ctx context.Context, _ *elector.Term) error {
	<-ctx.Done()
	return nil
}

// tells is a lead that tells its term, and leads until it is told to end.
func tells(terms chan<- *elector.Term) func(context.Context, *elector.Term) error {
	return func(ctx context.Context, term *elector.Term) error {
		terms <- term
		return untilDone(ctx, term)
	}
}

// change is the next one.
func change(t *testing.T, e *elector.Elector) (c elector.Change) {
	t.Helper()
	for c = range e.Changes(t.Context()) {
		break
	}
	return c
}

// most has something done to a quorum of the nodes.
func most(t *testing.T, fleet *redlocktest.Fleet, do func(*redlocktest.Node) error) {
	t.Helper()
	for _, n := range fleet.Nodes()[:2] {
		require.NoError(t, do(n))
	}
}

func leads(e *elector.Elector) bool { return e.IsLeader(context.Background()) == nil }

func held(fleet *redlocktest.Fleet) bool { return holding(fleet) > 0 }

// holding returns how many nodes have the key.
func holding(fleet *redlocktest.Fleet) int {
	n := 0
	for _, node := range fleet.Nodes() {
		if _, ok := node.Get(key); ok {
			n++
		}
	}
	return n
}

func TestOneOfSeveralLeads(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		var all []*elector.Elector
		for range 3 {
			e := candidate(t, fleet)
			require.ErrorIs(t, e.IsLeader(t.Context()), elector.ErrNotLeader)
			require.ErrorIs(t, e.Healthy(), elector.ErrNotRunning)
			run(t, e, untilDone)
			all = append(all, e)
		}
		for range 50 {
			time.Sleep(ttl / 5)
			n := 0
			for _, e := range all {
				require.NoError(t, e.Healthy())
				if leads(e) {
					n++
				}
			}
			require.Equal(t, 1, n)
		}
	})
}

// All replicas read the leader's payload, in each term. No line of the log has it.
func TestPayloadIsTheLeaders(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		addresses := []string{"10.0.0.1:8080", "10.0.0.2:8080 \x00/?%\xff"}
		var log strings.Builder
		logger := slog.New(slog.NewTextHandler(&log, nil)) // one for all: it writes a line at a time
		var all []*elector.Elector
		var stops []*running
		for _, address := range addresses {
			e := candidate(t, fleet, elector.WithPayload(address), elector.WithIdentity("replica at "+address[:8]),
				elector.WithLogger(logger))
			all = append(all, e)
			stops = append(stops, run(t, e, untilDone))
			time.Sleep(ttl / 8)
		}
		for i, address := range addresses {
			time.Sleep(2 * ttl)
			require.True(t, leads(all[i]))
			for _, e := range append(all, candidate(t, fleet)) {
				leader, err := e.Leader(t.Context())
				require.NoError(t, err)
				require.Equal(t, address, leader.Payload)
				require.Equal(t, all[i].Identity(), leader.Identity)
			}
			require.NoError(t, stops[i].end())
		}
		require.Equal(t, 2, strings.Count(log.String(), "elector: elected"))
		require.NotContains(t, log.String(), "8080")
	})
}

// The order of a voluntary end: IsLeader, context, lead returns while the lease is still extended,
// release, Change.
func TestVoluntaryEndIsInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		e := candidate(t, fleet, elector.WithDrainTimeout(10*ttl))
		var events []string
		r := run(t, e, func(ctx context.Context, term *elector.Term) error {
			<-ctx.Done()
			if leads(e) {
				events = append(events, "still the leader when the context ended")
			}
			require.ErrorIs(t, context.Cause(ctx), context.Canceled)
			time.Sleep(5 * ttl) // work winds down
			if !held(fleet) || !term.Deadline().After(time.Now()) {
				events = append(events, "the lease was not extended while draining")
			}
			events = append(events, "returned")
			return nil
		})
		changes := make(chan elector.Change, 10)
		go func() {
			for c := range e.Changes(t.Context()) {
				if c.Kind == elector.Resigned && holding(fleet) > 1 { // a quorum has answered, the rest follows
					t.Error("announced before the release")
				}
				changes <- c
			}
		}()
		time.Sleep(3 * ttl)
		require.True(t, leads(e))
		require.NoError(t, r.end())
		require.Equal(t, []string{"returned"}, events)
		require.Equal(t, elector.Elected, (<-changes).Kind)
		last := <-changes
		require.Equal(t, elector.Resigned, last.Kind)
		require.ErrorIs(t, last.Err, context.Canceled)
		synctest.Wait()
		require.False(t, held(fleet))
	})
}

// Field: the signal comes after the call that hangs, two leaders for up to 4.7 s.
func TestInvoluntaryEndIsAtTheDeadlineAndBeforeTheNextLeader(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		a := candidate(t, fleet)
		var deadline, ended time.Time
		run(t, a, func(ctx context.Context, term *elector.Term) error {
			time.Sleep(2 * ttl)
			most(t, fleet, (*redlocktest.Node).Freeze)
			deadline = term.Deadline()
			<-ctx.Done()
			ended = time.Now()
			require.ErrorIs(t, context.Cause(ctx), redlock.ErrLost)
			require.False(t, leads(a))
			<-t.Context().Done() // does not return, whatever it is told
			return nil
		})
		time.Sleep(ttl)
		b := candidate(t, fleet)
		elected := make(chan time.Time, 1)
		run(t, b, func(ctx context.Context, _ *elector.Term) error {
			elected <- time.Now()
			return untilDone(ctx, nil)
		})
		time.Sleep(2 * ttl)
		require.False(t, leads(a))
		require.Equal(t, deadline, ended)
		most(t, fleet, (*redlocktest.Node).Thaw)
		require.True(t, (<-elected).After(ended))
		require.False(t, leads(a))
	})
}

// Field: release under running work.
func TestOverrunningLeadIsNeverReleasedUnder(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		const limit = time.Second
		a := candidate(t, fleet, elector.WithDrainTimeout(limit))
		var resigned time.Time
		r := run(t, a, func(ctx context.Context, _ *elector.Term) error {
			<-ctx.Done()
			time.Sleep(10 * ttl)
			return nil
		})
		time.Sleep(ttl)
		b := candidate(t, fleet)
		elected := make(chan time.Time, 1)
		rb := run(t, b, func(ctx context.Context, _ *elector.Term) error {
			elected <- time.Now()
			return untilDone(ctx, nil)
		})
		synctest.Wait()
		var changes []elector.Change
		go func() {
			for c := range a.Changes(t.Context()) {
				changes = append(changes, c)
			}
		}()
		resigned = time.Now()
		err := r.end()
		require.ErrorIs(t, err, elector.ErrDrainTimeout)
		require.Equal(t, limit, time.Since(resigned), "Run does not wait for ever")
		require.ErrorIs(t, a.Healthy(), elector.ErrDrainTimeout)
		require.True(t, held(fleet))
		took := (<-elected).Sub(resigned)
		require.Greater(t, took, ttl-ttl/3-ttl/20, "the lease ran out by itself")
		require.LessOrEqual(t, took, ttl+limit+20*time.Millisecond)
		require.ErrorIs(t, a.Run(t.Context(), nil), elector.ErrDrainTimeout, "no second term beside the first one's work")
		synctest.Wait()
		require.Len(t, changes, 2)
		require.Equal(t, elector.Lost, changes[1].Kind)
		require.ErrorIs(t, changes[1].Err, elector.ErrDrainTimeout)
		time.Sleep(10 * ttl)
		require.NoError(t, rb.end())
		require.ErrorIs(t, a.Healthy(), elector.ErrNotRunning, "lead has returned")
		again := run(t, a, nil)
		time.Sleep(2 * ttl)
		require.True(t, leads(a), "once lead has returned Run can be called again")
		require.NoError(t, again.end())
	})
}

func TestLeadThatOverrunsWithoutShutdownBlocksTheNextCampaign(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		e := candidate(t, fleet, elector.WithDrainTimeout(time.Second))
		var inside, most atomic.Int32
		r := run(t, e, func(ctx context.Context, term *elector.Term) error {
			most.Store(max(most.Load(), inside.Add(1)))
			defer inside.Add(-1)
			require.ErrorIs(t, term.Resign(context.Background()), elector.ErrDrainTimeout, "it cannot wait for itself for ever")
			time.Sleep(3 * ttl)
			return nil
		})
		time.Sleep(20 * ttl)
		require.ErrorIs(t, r.end(), elector.ErrDrainTimeout)
		require.EqualValues(t, 1, most.Load())
		time.Sleep(4 * ttl)
	})
}

func TestFailingLeadBacksOff(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		e := candidate(t, fleet, elector.WithBackoff(time.Second, 8*time.Second))
		boom := errors.New("boom")
		var starts []time.Time
		r := run(t, e, func(context.Context, *elector.Term) error {
			starts = append(starts, time.Now())
			if len(starts) == 6 {
				time.Sleep(10 * time.Second) // longer than the longest pause
			}
			return boom
		})
		changes := e.Changes(t.Context())
		time.Sleep(60 * time.Second)
		require.NoError(t, r.end())
		for i, want := range []time.Duration{1, 2, 4, 8, 8} {
			gap := starts[i+1].Sub(starts[i])
			require.LessOrEqual(t, gap, want*time.Second)
			require.GreaterOrEqual(t, gap, want*time.Second*3/4)
		}
		require.LessOrEqual(t, starts[6].Sub(starts[5]), 11*time.Second, "a long term resets the pause")
		for c := range changes {
			if c.Kind != elector.Elected {
				require.Equal(t, elector.Resigned, c.Kind)
				require.ErrorIs(t, c.Err, boom)
				break
			}
		}
	})
}

func TestPanicOfLeadReleasesAndGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		e := candidate(t, fleet)
		require.PanicsWithError(t, "boom", func() {
			defer func() {
				text, _ := recover().(string)
				require.Contains(t, text, "boom")
				require.Contains(t, text, "lead panicked")
				require.Contains(t, text, "TestPanicOfLeadReleasesAndGoesOn", "the stack of the panic")
				panic(errors.New("boom"))
			}()
			_ = e.Run(t.Context(), func(context.Context, *elector.Term) error { panic("boom") })
		})
		synctest.Wait()
		require.False(t, held(fleet))
		require.False(t, leads(e))
	})
}

func TestResign(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		e := candidate(t, fleet)
		terms := make(chan *elector.Term, 10)
		r := run(t, e, func(ctx context.Context, term *elector.Term) error {
			terms <- term
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), elector.ErrResigned)
			time.Sleep(time.Second)
			return nil
		})
		term := <-terms
		start := time.Now()
		require.NoError(t, term.Resign(t.Context()))
		require.Equal(t, time.Second, time.Since(start), "it waits for lead")
		synctest.Wait()
		require.False(t, held(fleet))
		require.NoError(t, term.Resign(t.Context()), "again is fine")

		second := <-terms
		require.Greater(t, second.Number(), term.Number())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, second.Resign(ctx), context.Canceled)
		r.stop()
		<-r.done
	})
}

func TestHealthyTellsOfNodesOutOfReach(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		e := candidate(t, fleet)
		r := run(t, e, nil)
		time.Sleep(ttl)
		for _, n := range fleet.Nodes() {
			require.NoError(t, n.Kill())
		}
		require.NoError(t, e.Healthy(), "it leads until the deadline")
		time.Sleep(validity)
		require.ErrorIs(t, e.Healthy(), redlock.ErrNoQuorum)
		for _, n := range fleet.Nodes() {
			require.NoError(t, n.Restart(true))
		}
		time.Sleep(4 * ttl) // restarted nodes do not vote at once
		require.NoError(t, e.Healthy())
		require.True(t, leads(e))
		require.NoError(t, r.end())
	})
}

// A loss is worth a warning; what was done on purpose is not.
func TestOnlyLossesAndFailuresAreWarnings(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log strings.Builder
		e := candidate(t, fleet, elector.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))))
		r := run(t, e, untilDone)
		time.Sleep(ttl)
		require.NoError(t, r.end())
		require.Empty(t, log.String())
		r = run(t, e, untilDone)
		time.Sleep(ttl)
		for _, n := range fleet.Nodes() {
			n.FlushAll()
		}
		time.Sleep(ttl)
		require.NoError(t, r.end())
		require.Contains(t, log.String(), "elector: lost")
		require.Contains(t, log.String(), "reason=refused")
	})
}

// events is a tracer of leases and of elections, of which a function hears: as what it is called,
// less Trace, and what it is told. The context that it returns counts where a method returns one.
type events func(ctx context.Context, kind string, data any) context.Context

func (e events) TraceAcquireStart(ctx context.Context, data redlock.TraceAcquireStartData) context.Context {
	return e(ctx, "AcquireStart", data)
}

func (e events) TraceAcquireEnd(ctx context.Context, data redlock.TraceAcquireEndData) {
	e(ctx, "AcquireEnd", data)
}

func (e events) TraceNodeStart(ctx context.Context, data redlock.TraceNodeStartData) context.Context {
	return e(ctx, "NodeStart", data)
}

func (e events) TraceNodeEnd(ctx context.Context, data redlock.TraceNodeEndData) {
	e(ctx, "NodeEnd", data)
}

func (e events) TraceCampaignStart(ctx context.Context, data elector.TraceCampaignStartData) context.Context {
	return e(ctx, "CampaignStart", data)
}

func (e events) TraceCampaignEnd(ctx context.Context, data elector.TraceCampaignEndData) {
	e(ctx, "CampaignEnd", data)
}

func (e events) TraceChange(ctx context.Context, data elector.TraceChangeData) {
	e(ctx, "Change", data)
}

// at is a tracer that does something at each event of a kind.
func at(kind string, do func()) events {
	return func(ctx context.Context, is string, _ any) context.Context {
		if is == kind {
			do()
		}
		return ctx
	}
}

// Run's context ends at the moment of the election.
func TestElectionThatComesTooLateIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		ctx, cancel := context.WithCancel(t.Context())
		e := candidate(t, fleet, elector.WithTracer(at("CampaignEnd", cancel)))
		require.NoError(t, e.Run(ctx, func(context.Context, *elector.Term) error {
			t.Error("it is too late to lead")
			return nil
		}))
		synctest.Wait()
		require.False(t, held(fleet))
	})
}

// candidates is how many take part in TestCrowd: go test ./elector -run TestCrowd -v -timeout 30m
// -args -candidates 10000
var candidates = flag.Int("candidates", 100, "how many candidates TestCrowd has")

const (
	crowdTTL       = 10 * time.Second
	crowdProcesses = 20 // that the candidates are spread over
)

// crowd is many candidates of one election.
type crowd struct {
	fleet  *redlocktest.Fleet
	quorum []*redlock.Quorum
	led    chan *leadership // receives each that is elected
	sent   atomic.Int64     // operations on nodes
}

type leadership struct {
	process int
	term    *elector.Term
}

// during returns how many commands for leases were sent to all nodes together while f ran, how many
// there were with those that look after the servers, and how long that took.
func (c *crowd) during(f func()) (leases, all int, took time.Duration) {
	leases, all, began := -int(c.sent.Load()), -c.commands(), time.Now()
	f()
	synctest.Wait()
	return leases + int(c.sent.Load()), all + c.commands(), time.Since(began)
}

func (c *crowd) commands() (n int) {
	for _, node := range c.fleet.Nodes() {
		n += node.Commands()
	}
	return n
}

// counting is a tracer that counts operations on nodes.
func counting(n *atomic.Int64) events { return at("NodeStart", func() { n.Add(1) }) }

// A tracer that was given to the Quorum alone hears of elections too, unless the Elector has its
// own.
func TestTracerOfTheQuorumHearsOfElections(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		var quorums, own int // campaigns
		q := onlooker(t, fleet, redlock.WithTracer(at("CampaignStart", func() { quorums++ })))
		for i, opts := range [][]elector.Option{nil, {elector.WithTracer(at("CampaignStart", func() { own++ }))}} {
			e := candidateOf(t, q, opts...)
			r := run(t, e, untilDone)
			time.Sleep(time.Second)
			require.True(t, leads(e))
			require.NoError(t, r.end())
			require.Equal(t, []int{1, i}, []int{quorums, own})
		}
	})
}

// journal is a log that a test reads.
type journal struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// lines are those that contain part.
func (j *journal) lines(part string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.DeleteFunc(strings.Split(j.text.String(), "\n"), func(line string) bool { return !strings.Contains(line, part) })
}
