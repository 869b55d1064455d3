package elector_test

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// breaker is a tracer and a handler of logs that does something once, when it is told of a change.
type breaker struct {
	slog.Handler

	at  string        // "campaign", "trace" or "log", and the kind of the change or the line
	do  func()        // what breaks the goroutine of Run
	was *elector.Term // the term of the last campaign
}

func newBreaker(at string, do func()) *breaker {
	return &breaker{Handler: slog.DiscardHandler, at: at, do: do}
}

func (b *breaker) told(at string) {
	if do := b.do; at == b.at {
		b.at, b.do = "", nil
		do()
	}
}

func (b *breaker) hear(ctx context.Context, _ string, data any) context.Context {
	switch data := data.(type) {
	case elector.TraceCampaignEndData:
		if data.Term != nil {
			b.was = data.Term
			b.told("campaign")
		}
	case elector.TraceChangeData:
		b.told("trace " + string(data.Change.Kind))
	}
	return ctx
}

func (b *breaker) Enabled(context.Context, slog.Level) bool { return true }

func (b *breaker) Handle(_ context.Context, r slog.Record) error {
	b.told("log " + r.Message)
	return nil
}

// runBroken runs e until a panic, or its own end, ends the goroutine.
func runBroken(e *elector.Elector, ctx context.Context, lead func(context.Context, *elector.Term) error) (value any) {
	done := make(chan any)
	go func() {
		var err error
		defer func() {
			if value := recover(); value != nil {
				done <- value
				return
			}
			done <- err
		}()
		err = e.Run(ctx, lead)
	}()
	return <-done
}

// A tracer or a logger that panics in the goroutine of Run, whose caller recovers, leaves no leader
// behind, whose lease would be extended for ever: another replica leads at once.
func TestPanicOfATracerEndsTheTerm(t *testing.T) {
	for _, at := range []string{"campaign", "trace elected", "log elector: elected", "trace resigned", "log elector: resigned"} {
		for how, do := range map[string]func(){"panic": func() { panic("broken") }, "goexit": runtime.Goexit} {
			t.Run(at+" "+how, func(t *testing.T) {
				bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
					b := newBreaker(at, do)
					e := candidate(t, fleet, elector.WithTracer(events(b.hear)), elector.WithLogger(slog.New(b)))
					changes := e.Changes(t.Context())
					value := runBroken(e, t.Context(), func(context.Context, *elector.Term) error { return nil })
					if how == "panic" {
						require.Equal(t, "broken", value)
					}
					require.False(t, leads(e))
					require.Error(t, b.was.Context().Err())
					soon, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					require.NoError(t, b.was.Resign(soon), "nobody waits for it")
					require.ErrorIs(t, e.Healthy(), elector.ErrNotRunning)
					time.Sleep(time.Second)
					require.False(t, held(fleet))
					other := candidate(t, fleet)
					r := run(t, other, untilDone)
					time.Sleep(time.Second)
					require.True(t, leads(other))
					require.NoError(t, r.end())

					again := run(t, e, untilDone)
					time.Sleep(time.Second)
					require.True(t, leads(e), "it can run again")
					require.NoError(t, again.end())
					lasts := false
					terms := 0
					for c := range changes {
						require.NotEqual(t, lasts, c.Kind == elector.Elected, c)
						require.NotZero(t, c.Term)
						require.NotZero(t, c.At)
						if lasts = !lasts; c.Reason == elector.ReasonShutdown {
							break
						}
						terms++
					}
					require.LessOrEqual(t, terms, 3)
				})
			})
		}
	}
}

// The lease is not released under a lead that runs on, nor does another term begin beside it.
func TestPanicOfATracerUnderLead(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		b := newBreaker("log elector: lead overruns the drain timeout; the lease is left to run out", func() { panic("broken") })
		e := candidate(t, fleet, elector.WithLogger(slog.New(b)), elector.WithDrainTimeout(time.Second))
		testPanicUnderLead(t, fleet, e, true)
	})
}

// It is so also where the lease was lost before.
func TestPanicAtTheLossUnderLead(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		b := newBreaker("trace lost", func() { panic("broken") })
		e := candidate(t, fleet, elector.WithTracer(events(b.hear)), elector.WithDrainTimeout(time.Minute))
		go func() {
			time.Sleep(10 * time.Second)
			for _, node := range fleet.Nodes() {
				node.FlushAll()
			}
		}()
		testPanicUnderLead(t, fleet, e, false)
	})
}

func testPanicUnderLead(t *testing.T, fleet *redlocktest.Fleet, e *elector.Elector, lives bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hears, deaf := context.WithTimeout(t.Context(), time.Minute)
	defer deaf()
	changes := e.Changes(hears)
	leave := make(chan struct{})
	leaves := sync.OnceFunc(func() { close(leave) })
	defer leaves()
	value := runBroken(e, ctx, func(ctx context.Context, _ *elector.Term) error {
		cancel()
		<-leave
		return nil
	})
	require.Equal(t, "broken", value)
	require.False(t, leads(e))
	time.Sleep(100 * time.Millisecond)
	if lives {
		require.True(t, held(fleet), "it is left to run out")
	}
	require.ErrorIs(t, e.Healthy(), elector.ErrDrainTimeout)
	require.ErrorIs(t, e.Run(ctx, untilDone), elector.ErrDrainTimeout)
	time.Sleep(2 * ttl)
	require.False(t, held(fleet))
	leaves()
	time.Sleep(time.Second)
	require.ErrorIs(t, e.Healthy(), elector.ErrNotRunning)
	r := run(t, e, untilDone)
	time.Sleep(time.Second)
	require.True(t, leads(e))
	require.NoError(t, r.end())
	var kinds []elector.Kind
	for c := range changes {
		if kinds = append(kinds, c.Kind); len(kinds) == 4 {
			break
		}
	}
	require.Equal(t, []elector.Kind{elector.Elected, elector.Lost, elector.Elected, elector.Resigned}, kinds)
}

// caller is foreign code of every kind. Each kind calls the library back, the first few times that
// it is called itself.
type caller struct {
	slog.Handler

	mu   sync.Mutex
	e    *elector.Elector // guarded by mu
	q    *redlock.Quorum  // guarded by mu
	went map[string]int   // guarded by mu
	came map[string]int   // guarded by mu; calls that have come back
}

func (c *caller) back(kind string) {
	c.mu.Lock()
	e, q, calls := c.e, c.q, c.e != nil && c.went[kind] < 2
	if calls {
		c.went[kind]++
	}
	c.mu.Unlock()
	if !calls {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = e.IsLeader(ctx)
	_ = e.Healthy()
	_, _ = e.Leader(ctx)
	for range e.Changes(ctx) {
		cancel()
	}
	_ = e.Run(ctx, nil) // it is running
	q.Nodes(context.Background())
	for _, key := range []string{elector.KeyPrefix + "test", "other"} {
		l, _ := q.TryAcquire(context.Background(), key)
		_ = l.Release(context.Background())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.came[kind]++
}

func (c *caller) Enabled(context.Context, slog.Level) bool { return true }

func (c *caller) Handle(_ context.Context, r slog.Record) error {
	c.back("log: " + r.Message)
	return nil
}

func (c *caller) hear(ctx context.Context, kind string, data any) context.Context {
	if data, ok := data.(elector.TraceChangeData); ok {
		kind += " " + string(data.Change.Kind)
	}
	c.back("Trace" + kind)
	return ctx
}

// A logger, a tracer or lead that calls the library does not stop it, nor itself.
func TestForeignCodeCallsBack(t *testing.T) {
	c := &caller{Handler: slog.DiscardHandler, went: make(map[string]int), came: make(map[string]int)}
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := onlooker(t, fleet, redlock.WithLogger(slog.New(c)))
		e := candidateOf(t, q, elector.WithLogger(slog.New(c)), elector.WithTracer(events(c.hear)), elector.WithDrainTimeout(ttl))
		c.mu.Lock()
		c.e, c.q = e, q
		c.mu.Unlock()
		r := run(t, e, func(ctx context.Context, term *elector.Term) error {
			c.back("lead")
			_ = term.Resign(ctx)
			return nil
		})
		time.Sleep(5 * ttl)
		most(t, fleet, (*redlocktest.Node).Freeze)
		time.Sleep(5 * ttl)
		most(t, fleet, (*redlocktest.Node).Thaw)
		time.Sleep(5 * ttl)
		require.NoError(t, r.end())
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Equal(t, c.went, c.came)
	for _, kind := range []string{"TraceCampaignStart", "TraceCampaignEnd", "TraceChange elected", "TraceChange resigned", "lead", "log: elector: elected", "log: elector: resigned"} {
		assert.NotZero(t, c.came[kind], "%s was not called", kind)
	}
}
