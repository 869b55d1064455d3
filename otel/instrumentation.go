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

// Instrumentation traces and measures what it is handed to as a tracer: see the package
// documentation. One is enough for a process. Its methods that are not described here are for
// redlock, elector, admin and gocron to call; they do not block and may be called concurrently.
type Instrumentation struct {
	cfg    *config
	tracer trace.Tracer
	spans  bool // there may be some that are recorded
	*instruments
	observing metric.Registration
	observed  sync.Once // for the first time

	extended  measurements
	leases    *names[lease]
	elections *names[election]
	jobs      *names[job]
	nodes     *names[node]
}

// New makes an Instrumentation. Errors: *OptionError, or what the meter provider said of an
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
	i.extended.base = cfg.attributes
	i.leases = newNames(MaxLeaseNames, i.newLease)
	i.elections = newNames(maxElections, i.newElection)
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

// Close ends the observation of what is a state: who leads, until when, which nodes vote, how many
// leases are held, and what jobs are in. It is for programs that go on without what was observed.
// It is safe to call more than once.
func (i *Instrumentation) Close() error {
	if err := i.observing.Unregister(); err != nil {
		return fmt.Errorf("tenureotel: %w", err)
	}
	return nil
}

// observe reports what is a state. Counters of what was known before there was a meter provider are
// announced to it with the first observation.
func (i *Instrumentation) observe(_ context.Context, o metric.Observer) error {
	i.observed.Do(i.announce)
	for l := range i.leases.all() {
		o.ObserveInt64(i.instruments.held, l.holds.Load(), l.observe...)
	}
	for j := range i.jobs.all() {
		j.report(i, o)
	}
	for n := range i.nodes.all() {
		if v, ok := n.worst(); ok {
			o.ObserveInt64(i.voting, v.voting, v.observe...)
		}
	}
	for e := range i.elections.all() {
		leads, expiry := e.state()
		o.ObserveInt64(i.leader, leads, e.observe...)
		o.ObserveFloat64(i.leaseExpiry, expiry, e.observe...)
	}
	return nil
}

// announce puts the counters of all that is known at zero.
func (i *Instrumentation) announce() {
	for l := range i.leases.all() {
		l.announce(i)
	}
	for e := range i.elections.all() {
		e.announce(i)
	}
	for j := range i.jobs.all() {
		j.announce(i)
	}
}

// SchedulerOptions returns the options that have a gocron scheduler report to i: all of its
// monitors, because gocron calls MonitorStatus only beside Monitor. They are for a scheduler of
// gocron's own; a scheduler.Scheduler needs scheduler.WithTracer(i.Scheduler()) alone.
//
// gocron tells neither why a run was skipped (the reason is "skipped") nor the context of a run, so
// there are no spans. With an elector of its own it reports the first run of a new leader as late
// by the time for which that followed, because it keeps the ticks that it skipped.
func (i *Instrumentation) SchedulerOptions() []gocron.SchedulerOption {
	return []gocron.SchedulerOption{gocron.WithMonitor(i), gocron.WithMonitorStatus(i), gocron.WithSchedulerMonitor(i)}
}
