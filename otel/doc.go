// Package tenureotel traces and measures leases, elections and jobs with OpenTelemetry.
//
//	tel, err := tenureotel.New()
//	q, err := redlock.Open(urls, redlock.WithPrefix("billing"), redlock.WithTracer(tel))
//	s, err := scheduler.New(q, scheduler.WithTracer(tel.Scheduler())) // its election included
//	e, err := elector.New(q, "poller")                                // an election of its own
//	g, err := gocron.NewScheduler(tel.SchedulerOptions()...)          // a bare gocron scheduler
//
// Electors use the tracer of their Quorum, unless they are given another one. Without options New
// uses the global providers, also those that are set later. docs/telemetry.md of the module lists
// every span, metric and attribute; they are part of the API.
//
// # Spans
//
// An acquisition is a span with a child for each node. A node that fails does not mark its parent.
// The span ends with the acquisition, so it is not the current span of the lease's context, which
// keeps the caller's. Later spans (extensions, the release) have a link to it instead.
//
// No trace is open while a standby waits: each attempt of a campaign is a root, linked to the
// campaign, whose span ends when the wait begins. A tick of a job is one trace, on the replica that
// runs it: acquisition, run and release.
//
// # Metrics
//
// Counters of a lease, an election or a job are there, at zero, as soon as its name is known, so
// that the first event shows as an increase, unless it comes before they were collected once. No
// owner value, fencing token or error text is on any metric, and of lease names at most
// MaxLeaseNames: all leases of jobs are one name. Each metric of jobs has the job's name.
//
// # Cost
//
// A Quorum without a tracer pays a nil check. Where providers record nothing, no instrument of a
// lease is called. With metrics only, which is with the provider of
// go.opentelemetry.io/otel/trace/noop for spans, an acquisition and its release allocate nothing
// more.
package tenureotel
