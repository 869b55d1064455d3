package tenureotel

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-co-op/gocron/v2"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
)

var (
	_ redlock.AcquireTracer = (*Instrumentation)(nil)
	_ redlock.AttemptTracer = (*Instrumentation)(nil)
	_ redlock.NodeTracer    = (*Instrumentation)(nil)
	_ redlock.ExtendTracer  = (*Instrumentation)(nil)
	_ redlock.ReleaseTracer = (*Instrumentation)(nil)
	_ redlock.LostTracer    = (*Instrumentation)(nil)
	_ redlock.VoteTracer    = (*Instrumentation)(nil)

	_ elector.CampaignTracer = (*Instrumentation)(nil)
	_ elector.ChangeTracer   = (*Instrumentation)(nil)

	_ admin.OrderTracer = (*Instrumentation)(nil)

	_ gocron.Monitor          = (*Instrumentation)(nil)
	_ gocron.MonitorStatus    = (*Instrumentation)(nil)
	_ gocron.SchedulerMonitor = (*Instrumentation)(nil)
)

// Instrumentation is the tracer for the options of redlock, elector, scheduler and admin, and the
// monitor for those of gocron: see the package documentation. A process needs one; if its Quorums
// have several prefixes, one for each, with WithAttributes to tell apart jobs of the same name. The
// methods without a description are for these packages to call; they may be called concurrently.
//
// They do not block unless a processor of spans does: spans end on the goroutines that serve every
// lease. Use sdktrace.WithBatcher. With WithSyncer an exporter that takes seconds costs leases.
type Instrumentation struct {
	cfg    *config
	tracer trace.Tracer
	spans  bool // some spans may be recorded
	*instruments
	observing metric.Registration

	announcing sync.Mutex
	announced  []func() // guarded by announcing, as observed
	observed   bool     // announceAgain was called

	extended  *names[series] // by error.type
	leases    *names[lease]
	elections *names[election]
	jobs      *names[job]
	nodes     *names[node]
}

// New makes an Instrumentation. Errors: *OptionError, or the meter provider's error about an
// instrument.
func New(opts ...Option) (*Instrumentation, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	i := &Instrumentation{
		cfg:    cfg,
		tracer: cfg.tracers.Tracer(ScopeName, trace.WithInstrumentationVersion(Version()), trace.WithSchemaURL(SchemaURL)),
		spans:  cfg.tracers != trace.TracerProvider(noop.TracerProvider{}),
	}
	i.extended = byWord(cfg.attributes, extendAttributes)
	i.leases = newNames(MaxLeaseNames, i.newLease)
	i.leases.made = func(l *lease) { i.announce(func() { l.lost.zero(lostReasons...) }) }
	i.elections = newNames(maxElections, i.newElection)
	i.elections.made = func(e *election) { i.announce(func() { e.begun.zero(elected); e.ended.zero(endReasons...) }) }
	i.jobs = newNames(maxJobs, i.newJob)
	i.nodes = newNames(maxNodes, i.newNode)
	meter := cfg.meters.Meter(ScopeName, metric.WithInstrumentationVersion(Version()), metric.WithSchemaURL(SchemaURL))
	if i.instruments, err = newInstruments(meter); err != nil {
		return nil, fmt.Errorf("tenureotel: %w", err)
	}
	i.observing, err = meter.RegisterCallback(i.observe, i.voting, i.leader, i.leaseExpiry, i.instruments.held, i.jobPaused, i.jobNext, i.jobSuccess, i.jobOverdue)
	if err != nil {
		return nil, fmt.Errorf("tenureotel: %w", err)
	}
	return i, nil
}

// Close ends the observation of states: leaders and their deadlines, votes of nodes, held leases,
// and the states of jobs. It is for a program that goes on without the observed parts. It may be
// called more than once.
func (i *Instrumentation) Close() error {
	if err := i.observing.Unregister(); err != nil {
		return fmt.Errorf("tenureotel: %w", err)
	}
	return nil
}

// observe reports the states to a meter provider.
func (i *Instrumentation) observe(_ context.Context, o metric.Observer) error {
	i.announceAgain()
	for _, l := range i.leases.all() {
		o.ObserveInt64(i.instruments.held, l.holds.Load(), l.observe...)
	}
	for _, j := range i.jobs.all() {
		j.report(i, o)
	}
	for _, n := range i.nodes.all() {
		if v, ok := n.worst(); ok {
			o.ObserveInt64(i.voting, v.voting, v.observe...)
		}
	}
	for _, e := range i.elections.all() {
		leads, expiry := e.state()
		o.ObserveInt64(i.leader, leads, e.observe...)
		o.ObserveFloat64(i.leaseExpiry, expiry, e.observe...)
	}
	return nil
}

// SchedulerOptions returns the options with which a bare gocron scheduler reports to i. They set
// all monitors, because gocron calls MonitorStatus only beside Monitor. A scheduler.Scheduler needs
// only scheduler.WithTracer(i.Scheduler()).
//
// gocron does not tell why a run was skipped, so the reason is "skipped". It passes on no context
// of a run, so there are no spans. With an elector of gocron, the first run of a new leader is
// reported as late by the whole time in which that process was a follower, because gocron keeps the
// skipped ticks.
func (i *Instrumentation) SchedulerOptions() []gocron.SchedulerOption {
	return []gocron.SchedulerOption{gocron.WithMonitor(i), gocron.WithMonitorStatus(i), gocron.WithSchedulerMonitor(i)}
}
