package elector_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// seen is what an observer has yielded.
type seen struct {
	leader elector.Leader
	err    error
	at     time.Time
}

// observe ranges over Observe until ctx ends.
func observe(ctx context.Context, q *redlock.Quorum, election string) (all chan seen, done chan struct{}) {
	all, done = make(chan seen, 1000), make(chan struct{})
	go func() {
		defer close(done)
		for l, err := range elector.Observe(ctx, q, election) {
			all <- seen{l, err, time.Now()}
		}
	}()
	return all, done
}

// client is one of a node.
func client(t *testing.T, fleet *redlocktest.Fleet, i int) valkey.Client {
	t.Helper()
	o := valkey.MustParseURL(fleet.Node(i).URL())
	o.ForceSingleClient, o.DisableRetry, o.PipelineMultiplex = true, true, -1
	o.Dialer.KeepAlive = -1 // no PING of its own
	fleet.ClientOption(fleet.Node(i).URL(), &o)
	client, err := valkey.NewClient(o)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// listeners is how many connections to a node hear entries of a kind.
func listeners(t *testing.T, fleet *redlocktest.Fleet, kind string) int64 {
	t.Helper()
	c := client(t, fleet, 0)
	n, err := c.Do(t.Context(), c.B().Publish().Channel("tenure:news:"+kind).Message("no entry").Build()).AsInt64()
	require.NoError(t, err)
	return n
}

// watcher is an onlooker of which is counted what it sends for leases and readers.
func watcher(t *testing.T, fleet *redlocktest.Fleet) (*redlock.Quorum, *atomic.Int64) {
	t.Helper()
	operations := new(atomic.Int64)
	return onlooker(t, fleet, redlock.WithTracer(counting(operations))), operations
}

// An observer sees who leads, and each change at once, and asks about once a TTL.
func TestObserve(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, operations := watcher(t, fleet)
		ctx, cancel := context.WithCancel(t.Context())
		all, done := observe(ctx, q, "test")
		synctest.Wait()
		require.Equal(t, elector.Leader{}, (<-all).leader)
		time.Sleep(2 * time.Second)

		a := candidate(t, fleet, elector.WithIdentity("a"), elector.WithPayload("at a"))
		began := time.Now()
		terms := make(chan *elector.Term, 10)
		ra := run(t, a, tells(terms))
		term := <-terms
		s := <-all
		require.NoError(t, s.err)
		require.Less(t, s.at.Sub(began), 50*time.Millisecond)
		require.Equal(t, "a", s.leader.Identity)
		require.Equal(t, "at a", s.leader.Payload)
		require.Equal(t, term.Number(), s.leader.Term)
		require.Positive(t, s.leader.TTL)

		b := candidate(t, fleet, elector.WithIdentity("b"))
		rb := run(t, b, nil)
		before, since := operations.Load(), time.Now()
		time.Sleep(8 * ttl)
		require.Empty(t, all, "the same leader is no change")
		perRead := 3.0
		reads := float64(operations.Load()-before) / perRead
		require.LessOrEqual(t, reads, 1+time.Since(since).Seconds()/(ttl-ttl/3).Seconds()*1.1)

		require.NoError(t, term.Resign(t.Context()))
		resigned := time.Now()
		for s = <-all; s.leader == (elector.Leader{}); s = <-all {
		}
		require.Equal(t, "b", s.leader.Identity)
		require.Less(t, s.at.Sub(resigned), 50*time.Millisecond)
		time.Sleep(10 * time.Second)
		require.NoError(t, ra.end())
		resigned = time.Now()
		require.NoError(t, rb.end())
		s = <-all
		require.Equal(t, elector.Leader{}, s.leader)
		require.Less(t, s.at.Sub(resigned), 50*time.Millisecond)
		cancel()
		<-done
		require.Empty(t, all)
	})
}

// A leader that crashes says nothing, and is seen to be gone when its lease has expired.
func TestObserveSeesACrash(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, _ := watcher(t, fleet)
		leading := onlooker(t, fleet)
		a := candidateOf(t, leading, elector.WithIdentity("a"))
		over := make(chan struct{})
		ra := run(t, a, func(context.Context, *elector.Term) error {
			<-over
			return nil
		})
		time.Sleep(ttl)
		all, done := observe(t.Context(), q, "test")
		require.Equal(t, "a", (<-all).leader.Identity)
		time.Sleep(10 * ttl)
		require.NoError(t, leading.Close())
		crashed := time.Now()
		s := <-all
		require.Equal(t, elector.Leader{}, s.leader)
		require.NoError(t, s.err)
		require.LessOrEqual(t, s.at.Sub(crashed), 2*ttl)
		require.False(t, held(fleet))
		b := candidate(t, fleet, elector.WithIdentity("b"))
		time.Sleep(time.Minute)
		began := time.Now()
		rb := run(t, b, nil)
		s = <-all
		require.Equal(t, "b", s.leader.Identity)
		require.Less(t, s.at.Sub(began), 50*time.Millisecond)
		require.NoError(t, rb.end())
		close(over)
		require.ErrorIs(t, <-ra.done, redlock.ErrClosed)
		require.NoError(t, q.Close())
		<-done
	})
}

// The first node that tells of a change is not a quorum: an observer that reads too early reads
// again.
func TestObserveThatHearsTooEarly(t *testing.T) {
	for _, late := range []time.Duration{10 * time.Millisecond, 500 * time.Millisecond} {
		t.Run(late.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
				q, _ := watcher(t, fleet)
				a := candidate(t, fleet, elector.WithIdentity("a"), elector.WithoutHistory())
				ra := run(t, a, nil)
				time.Sleep(ttl)
				all, done := observe(t.Context(), q, "test")
				leader := (<-all).leader
				require.Equal(t, "a", leader.Identity)
				e, ok := bulletin.Term{Term: leader.Term, By: "a", Event: "resigned"}.Entry("test")
				require.True(t, ok)
				// When the lease has just been extended, so that its expiry is far away.
				time.Sleep(10 * ttl)
				for was, is := time.Hour, time.Duration(0); is <= was; time.Sleep(50 * time.Millisecond) {
					was, is = is, fleet.Node(0).TTL(key)
					if was == 0 {
						was = is
					}
				}
				require.NoError(t, board.Of(q).Post(t.Context(), nil, e))
				heard := time.Now()
				time.Sleep(late)
				require.NoError(t, ra.end())
				s := <-all
				require.Equal(t, elector.Leader{}, s.leader)
				require.LessOrEqual(t, s.at.Sub(heard), 2*late+50*time.Millisecond)
				require.NoError(t, q.Close())
				<-done
			})
		})
	}
}

// Without a quorum an observer says so once, and goes on when there is one.
func TestObserveWithoutAQuorum(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, operations := watcher(t, fleet)
		a := candidate(t, fleet, elector.WithIdentity("a"))
		ra := run(t, a, nil)
		time.Sleep(ttl)
		all, done := observe(t.Context(), q, "test")
		require.Equal(t, "a", (<-all).leader.Identity)
		time.Sleep(ttl)
		for range 2 {
			most(t, fleet, (*redlocktest.Node).Kill)
			s := <-all
			require.ErrorIs(t, s.err, redlock.ErrNoQuorum)
			require.Equal(t, elector.Leader{}, s.leader)
			before := operations.Load()
			time.Sleep(20 * time.Second)
			require.Empty(t, all, "once is enough")
			require.LessOrEqual(t, operations.Load()-before, int64(3*5))
			most(t, fleet, func(n *redlocktest.Node) error { return n.Restart(true) })
			for s = <-all; s.err == nil && s.leader == (elector.Leader{}); s = <-all { // not elected yet
			}
			require.NoError(t, s.err)
			require.Equal(t, "a", s.leader.Identity)
			time.Sleep(20 * time.Second)
		}
		require.NoError(t, ra.end())
		time.Sleep(3 * time.Second)
		require.NoError(t, q.Close())
		closed := time.Now()
		<-done
		require.LessOrEqual(t, time.Since(closed), time.Second)
	})
}

// Entries of other elections, and what is no entry, cost no read. Entries that anybody may write of
// this one cost a read a second.
func TestObserveIsNotMadeToRead(t *testing.T) {
	long := strings.Repeat("very long ", 60)
	for name, test := range map[string]struct {
		election string
		storm    func(i int) bulletin.Term // and of which election
		of       string
		most     int // reads in 15 seconds, besides the regular ones
	}{
		"others":        {"test", func(i int) bulletin.Term { return bulletin.Term{Term: uint64(i), Event: "elected"} }, "tes", 0},
		"longer":        {"test", func(i int) bulletin.Term { return bulletin.Term{Term: uint64(i), Event: "elected"} }, "testing", 0},
		"none":          {"test", func(i int) bulletin.Term { return bulletin.Term{Term: uint64(i)} }, "test", 0},
		"this":          {"test", func(i int) bulletin.Term { return bulletin.Term{Term: uint64(i), Event: "elected"} }, "test", 16},
		"this, if long": {long, func(i int) bulletin.Term { return bulletin.Term{Term: uint64(i), Event: "elected"} }, long, 16},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
				q, operations := watcher(t, fleet)
				enemy := onlooker(t, fleet)
				ctx, cancel := context.WithCancel(t.Context())
				all, done := observe(ctx, q, test.election)
				require.NoError(t, (<-all).err)
				time.Sleep(5 * time.Second)
				before := operations.Load()
				for i := range 150 {
					e, ok := test.storm(i).Entry(test.of)
					require.True(t, ok)
					require.NoError(t, board.Of(enemy).Post(t.Context(), nil, e))
					time.Sleep(100 * time.Millisecond)
				}
				reads := int(operations.Load()-before) / 3
				require.LessOrEqual(t, reads, test.most+6)
				require.GreaterOrEqual(t, reads, test.most-6)
				require.Empty(t, all)
				cancel()
				<-done
			})
		})
	}
}

// A key that something else wrote, and that does not expire, costs a read now and then.
func TestObserveAKeyWithoutExpiry(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		a := candidate(t, fleet)
		r := run(t, a, nil)
		time.Sleep(ttl)
		require.NoError(t, r.end()) // terms are counted
		for i := range 3 {
			c := client(t, fleet, i)
			require.NoError(t, c.Do(t.Context(), c.B().Set().Key(key).Value("something else").Build()).Error())
		}
		q, operations := watcher(t, fleet)
		all, done := observe(t.Context(), q, "test")
		s := <-all
		require.Equal(t, "something else", s.leader.Identity)
		require.Zero(t, s.leader.Term, "whose token is not known")
		require.Equal(t, redlock.NoExpiry, s.leader.TTL)
		before := operations.Load()
		time.Sleep(time.Minute)
		require.LessOrEqual(t, operations.Load()-before, int64(3*8))
		require.GreaterOrEqual(t, operations.Load()-before, int64(3*5))
		require.NoError(t, q.Close())
		<-done
	})
}

// A consumer that breaks may begin again.
func TestObserverThatBreaks(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, _ := watcher(t, fleet)
		changes := elector.Observe(t.Context(), q, "test")
		for range 3 {
			for l, err := range changes {
				require.NoError(t, err)
				require.Equal(t, elector.Leader{}, l)
				time.Sleep(time.Second)
				require.EqualValues(t, 1, listeners(t, fleet, "terms"))
				break
			}
			time.Sleep(time.Second)
			require.EqualValues(t, 1, listeners(t, fleet, "terms"), "that of the Quorum stays, for the next")
		}
	})
}

// What cannot be observed is named, once; and nothing is observed that has ended.
func TestObserveRefusesArguments(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := onlooker(t, fleet)
		var none context.Context
		for option, changes := range map[string]func(func(elector.Leader, error) bool){
			"ctx":      elector.Observe(none, q, "test"),
			"q":        elector.Observe(t.Context(), nil, "test"),
			"election": elector.Observe(t.Context(), q, ""),
			"lease":    elector.Observe(t.Context(), q, strings.Repeat("e", 1024)),
		} {
			var errs []error
			for _, err := range changes {
				errs = append(errs, err)
			}
			require.Len(t, errs, 1)
			var oe *elector.OptionError
			require.ErrorAs(t, errs[0], &oe, option)
			require.Equal(t, option, oe.Option)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for l, err := range elector.Observe(ctx, q, "test") {
			t.Error("observed after the end of ctx: ", l, err)
		}
		require.NoError(t, q.Close())
		for l, err := range elector.Observe(t.Context(), q, "test") {
			t.Error("observed after Close: ", l, err)
		}
	})
}
