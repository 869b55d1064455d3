package tenureotel

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// Bounds of the histograms' buckets, in seconds.
var (
	roundBounds    = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	marginBounds   = []float64{.01, .025, .05, .1, .25, .5, 1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 20, 30, 60}
	holdBounds     = []float64{.001, .005, .01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600}
	handoverBounds = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 15, 20, 30, 60}

	// Each bound costs a series a job. 5 s is scheduler.Grace, and an alert compares with 60 s.
	latenessBounds = []float64{.001, .005, .025, .1, .5, 5, 60, 600, 3600}
	runBounds      = []float64{.01, .1, .5, 2.5, 10, 60, 300, 1200, 3600}
)

// instruments are all metrics of the package. States are observable instruments, so that they are
// right even if the meter provider is set long after a state began.
type instruments struct {
	acquireDuration  metric.Float64Histogram
	holdDuration     metric.Float64Histogram
	held             metric.Int64ObservableUpDownCounter
	extendDuration   metric.Float64Histogram
	extendMargin     metric.Float64Histogram
	lost             metric.Int64Counter
	nodeDuration     metric.Float64Histogram
	voting           metric.Int64ObservableGauge
	leader           metric.Int64ObservableGauge
	leaseExpiry      metric.Float64ObservableGauge
	transitions      metric.Int64Counter
	handoverDuration metric.Float64Histogram
	jobDuration      metric.Float64Histogram
	jobLateness      metric.Float64Histogram
	jobRuns          metric.Int64Counter
	jobSkipped       metric.Int64Counter
	jobConflict      metric.Int64Counter
	jobPaused        metric.Int64ObservableGauge
	jobOverdue       metric.Int64ObservableGauge
	jobNext          metric.Float64ObservableGauge
	jobSuccess       metric.Float64ObservableGauge
	orders           metric.Int64Counter
}

func newInstruments(m metric.Meter) (*instruments, error) {
	var errs []error
	seconds := func(name, description string, bounds []float64) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	// A gauge of 0 and 1 has no unit: with unit 1 Prometheus would append _ratio to its name.
	gauge := func(name, description string) metric.Int64ObservableGauge {
		g, err := m.Int64ObservableGauge(name, metric.WithDescription(description))
		errs = append(errs, err)
		return g
	}
	timestamp := func(name, description string) metric.Float64ObservableGauge {
		g, err := m.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(description))
		errs = append(errs, err)
		return g
	}
	i := &instruments{
		acquireDuration: seconds("tenure.lease.acquire.duration",
			"How long acquisitions took, waiting for the holder included.", roundBounds),
		holdDuration: seconds("tenure.lease.hold.duration",
			"How long leases were held, by how they ended.", holdBounds),
		extendDuration: seconds("tenure.lease.extend.duration",
			"How long extensions took until their outcome was certain; leases that are extended together share one.", roundBounds),
		extendMargin: seconds("tenure.lease.extend.margin",
			"Validity that was left when an extension succeeded: how close the lease came to running out.", marginBounds),
		lost: counter("tenure.lease.lost", "{lease}",
			"Leases that ended without having been released."),
		nodeDuration: seconds("tenure.node.operation.duration",
			"How long operations on one node took, waiting in its queue included.", roundBounds),
		voting: gauge("tenure.node.voting",
			"1 while the node votes, and otherwise 0; what is wrong with it as error.type."),
		leader: gauge("tenure.election.leader",
			"1 while this replica leads, and otherwise 0."),
		transitions: counter("tenure.election.transitions", "{transition}",
			"Terms that this replica began and ended."),
		handoverDuration: seconds("tenure.election.handover.duration",
			"How long nobody had the lease of an election before this replica was elected, by how it had become free.", handoverBounds),
		jobDuration: seconds("tenure.job.duration",
			"How long runs took.", runBounds),
		jobLateness: seconds("tenure.job.lateness",
			"How long after their due time runs began.", latenessBounds),
		jobRuns: counter("tenure.job.runs", "{run}",
			"Runs that ended here, by how."),
		jobSkipped: counter("tenure.job.skipped", "{tick}",
			"Ticks that no replica ran, or whose run was cut short, as this replica found."),
		jobConflict: counter("tenure.job.conflict", "{conflict}",
			"How often this replica found that others define a job of this name in another way."),
		jobPaused: gauge("tenure.job.paused",
			"1 while ticks of the job are skipped because it, or all jobs, are paused, as far as this replica knows."),
		jobOverdue: gauge("tenure.job.overdue",
			"1 while the job has not succeeded for as long as it may go without, as far as this replica knows, and otherwise 0."),
		jobNext: timestamp("tenure.job.next_timestamp",
			"Unix time of the job's next tick, as far as this replica knows."),
		jobSuccess: timestamp("tenure.job.success_timestamp",
			"Unix time at which the job last succeeded on any replica, as far as this replica knows."),
		leaseExpiry: timestamp("tenure.election.lease.expiry_timestamp",
			"Unix time until which this replica leads unless its lease is extended; 0 while it does not lead."),
		orders: counter("tenure.orders", "{order}",
			"Orders that were given here, by what came of them."),
	}
	var err error
	i.held, err = m.Int64ObservableUpDownCounter("tenure.lease.held", metric.WithUnit("{lease}"), metric.WithDescription("Leases that this process holds."))
	errs = append(errs, err)
	return i, errors.Join(errs...)
}
