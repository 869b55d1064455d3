package tenureotel_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/elector"
	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

const (
	broken = "caf\xe9" // a name in another encoding
	whole  = "caf\uFFFD"
)

// typed is an error of a task whose type is no text either.
type typed struct{ error }

func (typed) ErrorType() string { return broken }

// A name that is no UTF-8 would cost all other metrics of the process, and all spans of its batch.
func TestNamesThatAreNoTextAreMadeText(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t, tenureotel.WithAttributes(attribute.String("site", broken), attribute.StringSlice("sites", []string{"one", broken})))
		q := open(t, fleet, redlock.WithTracer(tel))

		l := acquire(t, q, broken)
		_, err := q.TryAcquire(t.Context(), broken)
		require.ErrorIs(t, err, redlock.ErrHeld)
		require.NoError(t, l.Release(t.Context()))
		settle()
		for _, n := range fleet.Nodes() {
			command(t, n, "SET", "tenure:{foreign}", broken)
		}
		_, err = q.TryAcquire(t.Context(), "foreign")
		require.ErrorIs(t, err, redlock.ErrHeld)
		freeze(t, fleet, 0, 1, 2)
		_, err = q.TryAcquire(t.Context(), broken)
		require.ErrorIs(t, err, redlock.ErrTimeout)
		thaw(t, fleet, 0, 1, 2)
		pass(ttl)

		for name, job := range map[string]any{
			"failing": func() error { return typed{errors.New(broken)} },
			broken:    func() {},
		} {
			s := newScheduler(t, tel, q)
			if _, err := s.NewJob(everyTen, gocron.NewTask(job), gocron.WithName(name)); name == "failing" || err == nil {
				require.NoError(t, err)
				s.Start()
				pass(10 * time.Second)
			}
			require.NoError(t, s.Shutdown())
		}
		tel.Scheduler().Job(t.Context(), scheduler.JobTrace{Job: broken, Election: broken, Conflict: &scheduler.Conflict{Job: broken}})

		ctx := tel.TraceCampaignStart(t.Context(), elector.TraceCampaignStartData{Election: broken, Identity: broken})
		attempt := tel.TraceAttemptStart(ctx, redlock.TraceAttemptStartData{Key: broken, Attempt: 1})
		holder := &redlock.HeldError{Key: broken, Holder: redlock.Holder{Identity: broken}}
		tel.TraceAttemptEnd(attempt, redlock.TraceAcquireEndData{Key: broken, Err: holder})
		tel.TraceCampaignEnd(ctx, elector.TraceCampaignEndData{Election: broken, Err: typed{errors.New(broken)}})

		orders := tel.TraceOrderStart(t.Context(), admin.TraceOrderStartData{Kind: "pause", Target: broken, By: broken, Reason: broken})
		tel.TraceOrderEnd(orders, admin.TraceOrderEndData{Kind: "pause", Err: typed{errors.New(broken)}})
		tel.TraceVote(t.Context(), redlock.TraceVoteData{Node: broken, Votes: true})
		waited := tel.TraceAcquireStart(context.Background(), redlock.TraceAcquireStartData{Key: broken})
		tel.TraceAcquireEnd(waited, redlock.TraceAcquireEndData{Key: broken, Lease: l, WaitedFor: broken, FreedBy: redlock.FreedByRelease})

		seen := make(map[string]bool)
		check := func(where string, a attribute.KeyValue) {
			texts := []string{a.Value.AsString()}
			if a.Value.Type() == attribute.STRINGSLICE {
				texts = a.Value.AsStringSlice()
			}
			for _, text := range texts {
				assert.True(t, utf8.ValidString(text), "%s has %s %q", where, a.Key, text)
				seen[string(a.Key)] = seen[string(a.Key)] || text == whole
			}
		}
		for _, m := range tel.scope(t).Metrics {
			for _, p := range pointsOf(t, m) {
				for _, a := range p.attributes.ToSlice() {
					check(m.Name, a)
				}
			}
		}
		for _, s := range tel.spans() {
			for _, a := range s.Attributes() {
				check(s.Name(), a)
			}
			assert.True(t, utf8.ValidString(s.Status().Description), "%s: %q", s.Name(), s.Status().Description)
		}
		for _, key := range []string{"tenure.lease.name", "tenure.lease.key", "tenure.lease.holder", "tenure.lease.waited_for", "tenure.job.name",
			"tenure.election.name", "tenure.election.identity", "tenure.order.target", "tenure.order.by", "tenure.order.reason", "error.type",
			"server.address", "site", "sites"} {
			assert.True(t, seen[key], "the test has seen no %s", key)
		}
		for _, name := range []string{broken, whole} { // they are one
			tel.Scheduler().Job(t.Context(), scheduler.JobTrace{Job: name})
		}
		require.Len(t, tel.matching(t, "tenure.job.paused", "tenure.job.name", whole), 1)
	})
}

// ledger notes what is not to be on a metric: it is a tracer that stands before the real one.
type ledger struct {
	*telemetry
	fleet *redlocktest.Fleet

	mu        sync.Mutex
	forbidden map[string]string // guarded by mu; value: what it is
}

func (l *ledger) note(value, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forbidden[value] = what
}

func (l *ledger) TraceAcquireEnd(ctx context.Context, data redlock.TraceAcquireEndData) {
	if data.Lease != nil {
		l.note(attribute.Int64Value(int64(data.FencingToken)).String(), "fencing token")
		l.note(data.Lease.Identity(), "identity")
		for _, n := range l.fleet.Nodes() {
			if owner, ok := n.Get("tenure:{" + data.Key + "}"); ok {
				l.note(owner, "owner value")
			}
		}
	}
	if data.Err != nil {
		l.note(data.Err.Error(), "error text")
	}
	l.telemetry.TraceAcquireEnd(ctx, data)
}

func (l *ledger) TraceNodeEnd(ctx context.Context, data redlock.TraceNodeEndData) {
	if data.Err != nil {
		l.note(data.Err.Error(), "error text")
	}
	l.telemetry.TraceNodeEnd(ctx, data)
}

// Owner values, payloads, fencing tokens and error texts are on no metric, and owner values and
// payloads on no span either, also not on one of a process that is refused.
func TestNothingSecretOrEndlessIsOnAMetric(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		l := &ledger{telemetry: tel, fleet: fleet, forbidden: make(map[string]string)}
		q := open(t, fleet, redlock.WithTracer(l), redlock.WithIdentity("identity-one"))
		other := open(t, fleet, redlock.WithTracer(l), redlock.WithIdentity("identity-two"))
		paid := acquire(t, q, "paid", redlock.WithPayload("sesame"))
		_, err := other.TryAcquire(t.Context(), "paid", redlock.WithPayload("sesame"))
		require.ErrorIs(t, err, redlock.ErrHeld)
		require.NoError(t, paid.Release(t.Context()))
		l.note("sesame", "payload")
		acquisitions(t, fleet, q, other)
		extensions(t, fleet, q)
		elections(t, tel, fleet, q, other)
		jobs(t, tel, fleet, q)
		kinds := make(map[string]int)
		for _, what := range l.forbidden {
			kinds[what]++
		}
		for _, what := range []string{"fencing token", "identity", "owner value", "error text"} {
			require.NotZero(t, kinds[what], "the test has seen no %s", what)
		}

		values := 0
		for _, m := range tel.scope(t).Metrics {
			for _, p := range pointsOf(t, m) {
				for _, a := range p.attributes.ToSlice() {
					values++
					for secret, what := range l.forbidden {
						require.False(t, strings.Contains(a.Value.String(), secret), "%s has as %s the %s", m.Name, a.Key, what)
					}
					require.NotContains(t, a.Value.String(), " ", "%s: %s looks like a text", m.Name, a.Key)
					require.NotContains(t, a.Value.String(), "the task's own")
				}
			}
		}
		require.Greater(t, values, 100)
		for _, s := range tel.spans() {
			texts := attributesOf(s)
			texts["status"] = s.Status().Description
			for key, value := range texts {
				for secret, what := range l.forbidden {
					require.False(t, (what == "owner value" || what == "payload") && strings.Contains(value, secret), "%s has as %s the %s", s.Name(), key, what)
				}
			}
		}
	})
}
