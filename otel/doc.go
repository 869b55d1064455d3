// Package tenureotel traces and measures leases, elections and jobs with OpenTelemetry.
//
//	tel, err := tenureotel.New()
//	q, err := redlock.Open(urls, redlock.WithPrefix("billing"), redlock.WithTracer(tel))
//	s, err := scheduler.New(q, scheduler.WithTracer(tel.Scheduler())) // its election included
//	e, err := elector.New(q, "poller")                                // an election of its own
//	g, err := gocron.NewScheduler(tel.SchedulerOptions()...)          // a bare gocron scheduler
//
// An Elector uses the tracer of its Quorum, unless it is given another one. Without options New
// uses the global providers, also if they are set later. docs/telemetry.md of the module lists
// every span, metric and attribute; they are part of the API.
//
// # Spans
//
// An acquisition is a span with a child for each node. A failed child does not mark its parent as
// failed. The span ends with the acquisition, so it is not the current span of the lease's context,
// which keeps the caller's span. Later spans of the lease (extensions, the release) are linked to
// the acquisition.
//
// No trace stays open while a standby waits. The span of its campaign ends when the wait begins,
// and each attempt is a root with a link to the campaign. A tick of a job is one trace on the
// replica that runs it: acquisition, run and release.
//
// # Metrics
//
// The counters of a lease, an election or a job exist, at zero, as soon as its name is known. So
// the first event shows as an increase, unless it comes before the first collection. No metric has
// an owner value, a fencing token or the text of an error. At most MaxLeaseNames lease names are on
// metrics; all leases of jobs share one name. Each metric of jobs has the job's name.
//
// # Cost
//
// A Quorum without a tracer pays a nil check. If the providers record nothing, no instrument of a
// lease is called. With metrics alone (the provider of go.opentelemetry.io/otel/trace/noop for
// spans) an acquisition and its release make no further allocations.
package tenureotel
