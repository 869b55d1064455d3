package elector_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func localQuorum(tb testing.TB, opts ...redlock.Option) *redlock.Quorum {
	tb.Helper()
	fleet := redlocktest.Start(tb, 3)
	q, err := redlock.Open(fleet.URLs(), append(opts, redlock.WithClientOption(fleet.ClientOption))...)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, q.Close()) })
	return q
}

func TestBadArgumentsAreNamed(t *testing.T) {
	q := localQuorum(t)
	for _, test := range []struct {
		q        *redlock.Quorum
		election string
		opt      elector.Option
		option   string
		reason   string
	}{
		{nil, "e", elector.WithTTL(time.Second), "q", "nil"},
		{q, "", elector.WithTTL(time.Second), "election", "empty"},
		{q, "e", nil, "Option", "nil"},
		{q, strings.Repeat("e", 1024), elector.WithTTL(time.Second), "lease", "bytes"},
		{q, "e", elector.WithTTL(time.Millisecond), "lease", "WithTTL: 1ms is below the minimum"},
		{q, "e", elector.WithIdentity(""), "lease", "WithIdentity"},
		{q, "e", elector.WithDrainTimeout(0), "WithDrainTimeout", "not positive"},
		{q, "e", elector.WithBackoff(0, time.Second), "WithBackoff", "positive"},
		{q, "e", elector.WithBackoff(time.Minute, time.Second), "WithBackoff", "at least the first"},
		{q, "e", elector.WithBackoff(time.Second, 24*time.Hour+1), "WithBackoff", "between 1ms and 24h"},
		{q, "e", elector.WithBackoff(1, time.Second), "WithBackoff", "between 1ms and 24h"},
		{q, "e", elector.WithDrainTimeout(24*time.Hour + 1), "WithDrainTimeout", "maximum of 24h"},
		{q, "e", elector.WithLogger(nil), "WithLogger", "DiscardHandler"},
		{q, "e", elector.WithTracer(nil), "WithTracer", "leave the option out"},
	} {
		_, err := elector.New(test.q, test.election, test.opt)
		var oe *elector.OptionError
		require.ErrorAs(t, err, &oe)
		require.Equal(t, test.option, oe.Option)
		require.Contains(t, oe.Reason, test.reason)
	}
}

func TestRunTwice(t *testing.T) {
	e := candidateOf(t, localQuorum(t))
	r := run(t, e, nil)
	change(t, e)
	require.ErrorIs(t, e.Run(t.Context(), nil), elector.ErrRunning)
	require.True(t, leads(e))
	require.NoError(t, r.end())
	require.ErrorIs(t, e.Healthy(), elector.ErrNotRunning)
	r = run(t, e, nil)
	change(t, e)
	require.NoError(t, r.end())
}

func TestGoexitOfLeadIsAnError(t *testing.T) {
	e := candidateOf(t, localQuorum(t))
	changes := e.Changes(t.Context())
	r := run(t, e, func(context.Context, *elector.Term) error {
		runtime.Goexit() // as t.FailNow does
		return nil
	})
	for c := range changes {
		if c.Kind == elector.Resigned {
			require.ErrorContains(t, c.Err, "Goexit")
			break
		}
	}
	require.NoError(t, r.end())
}

func TestIsLeaderDoesNotAllocate(t *testing.T) {
	e := candidateOf(t, localQuorum(t))
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100_000, func() { _ = e.IsLeader(ctx) }))
	r := run(t, e, nil)
	change(t, e)
	require.Zero(t, testing.AllocsPerRun(100_000, func() { _ = e.IsLeader(ctx) }))
	require.NoError(t, r.end())
}

// tracer writes down what it is told.
type tracer struct{ lines []string }

type tracerKey struct{}

func (tr *tracer) hear(ctx context.Context, _ string, data any) context.Context {
	inCampaign := ctx.Value(tracerKey{}) == "campaign"
	switch data := data.(type) {
	case elector.TraceCampaignStartData:
		tr.lines = append(tr.lines, "campaign "+data.Election+" "+data.Identity)
		return context.WithValue(ctx, tracerKey{}, "campaign")
	case elector.TraceCampaignEndData:
		if data.Term != nil && inCampaign {
			tr.lines = append(tr.lines, "won")
		}
	case elector.TraceChangeData:
		line := string(data.Change.Kind)
		if inCampaign {
			line += " in the campaign's context"
		}
		if data.Served > 0 {
			line += " after a while"
		}
		tr.lines = append(tr.lines, line)
	}
	return ctx
}

func TestTracer(t *testing.T) {
	tr := &tracer{}
	e := candidateOf(t, localQuorum(t), elector.WithTracer(events(tr.hear)), elector.WithIdentity("me"))
	r := run(t, e, nil)
	change(t, e)
	require.NoError(t, r.end())
	require.Equal(t, []string{"campaign test me", "won", "elected in the campaign's context",
		"resigned in the campaign's context after a while"}, tr.lines)
}

func TestErrorTypes(t *testing.T) {
	for want, err := range map[string]error{
		"":              nil,
		"not_leader":    elector.ErrNotLeader,
		"no_leader":     elector.ErrNoLeader,
		"running":       elector.ErrRunning,
		"not_running":   elector.ErrNotRunning,
		"resigned":      elector.ErrResigned,
		"drain_timeout": fmt.Errorf("wrapped: %w", elector.ErrDrainTimeout),
		"invalid":       &elector.OptionError{},
		"closed":        redlock.ErrClosed,
		"canceled":      context.Canceled,
	} {
		require.Equal(t, want, elector.ErrorType(err))
	}
}

// A leader leads for as long as it can, and again after that.
func TestLeaseOptionsThatAreNotForAnElection(t *testing.T) {
	patient := redlock.WithNodeTimeout(redlock.DefaultTTL / 4) // observing is no matter of time
	usual, manual := localQuorum(t), localQuorum(t, redlock.WithoutAutoExtend(), patient)
	for name, test := range map[string]struct {
		q   *redlock.Quorum
		opt redlock.LeaseOption
		why string
	}{
		"not extended":       {usual, redlock.WithoutAutoExtend(), "WithoutAutoExtend"},
		"none of the Quorum": {manual, redlock.WithIdentity("x"), "WithoutAutoExtend"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := elector.New(test.q, "test", elector.WithLeaseOptions(test.opt))
			var bad *elector.OptionError
			require.ErrorAs(t, err, &bad)
			require.Contains(t, bad.Reason, test.why)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, err := range elector.Observe(ctx, manual, "test") {
		require.NoError(t, err, "who observes holds no lease")
		break
	}
}

// However the name of the leader's lease was given, the Elector has it.
func TestIdentityIsThatOfTheLease(t *testing.T) {
	q := localQuorum(t, redlock.WithIdentity("quorum"))
	unnamed := candidateOf(t, q)
	require.Equal(t, "quorum", unnamed.Identity())
	require.Equal(t, "test", unnamed.Election())
	var out strings.Builder
	tr := &tracer{}
	e := candidateOf(t, q, elector.WithIdentity("former"), elector.WithLeaseOptions(redlock.WithIdentity("mine")),
		elector.WithTracer(events(tr.hear)), elector.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
	require.Equal(t, "mine", e.Identity())
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, e.Run(ctx, func(ctx context.Context, _ *elector.Term) error {
		defer cancel()
		l, err := e.Leader(ctx)
		require.Equal(t, e.Identity(), l.Identity)
		return err
	}))
	require.Contains(t, out.String(), "identity=mine")
	require.NotContains(t, out.String(), "identity=quorum")
	require.Contains(t, tr.lines, "campaign test mine")
	last := candidateOf(t, q, elector.WithLeaseOptions(redlock.WithIdentity("former")), elector.WithIdentity("mine"))
	require.Equal(t, "mine", last.Identity())
	_, err := elector.New(q, "test", elector.WithLeaseOptions(nil, redlock.WithIdentity("")))
	var bad *elector.OptionError
	require.ErrorAs(t, err, &bad)
}

// What docs/operations.md relies on is in the log of a program that has set nothing.
func TestDefaultLoggerSaysWhoLeads(t *testing.T) {
	q := localQuorum(t)
	var out bytes.Buffer
	old := slog.Default()
	t.Cleanup(func() { slog.SetDefault(old) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))

	e, err := elector.New(q, "test", elector.WithIdentity("replica"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, e.Run(ctx, func(context.Context, *elector.Term) error {
		cancel()
		return nil
	}))
	for _, line := range []string{"elector: elected", "elector: resigned"} {
		require.Contains(t, out.String(), `level=INFO msg="`+line+`" election=test identity=replica`)
	}
	require.Equal(t, 1, strings.Count(out.String(), "reason="), "only an end has one")
}

func TestNilContextIsRefused(t *testing.T) {
	e := candidateOf(t, localQuorum(t))
	terms := make(chan *elector.Term, 1)
	r := run(t, e, tells(terms))
	term := <-terms
	var none context.Context
	for name, call := range map[string]func() error{
		"Run":    func() error { return e.Run(none, nil) },
		"Leader": func() error { _, err := e.Leader(none); return err },
		"Resign": func() error { return term.Resign(none) },
	} {
		var oe *elector.OptionError
		require.ErrorAs(t, call(), &oe, name)
		require.Equal(t, "ctx", oe.Option, name)
		require.Contains(t, oe.Reason, "context.Background()", name)
	}
	require.NoError(t, e.IsLeader(none))
	for c := range e.Changes(none) {
		require.Equal(t, elector.Elected, c.Kind)
		break
	}
	require.NoError(t, r.end())
}
