package tenureotel

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/scheduler"
)

// MaxLeaseNames is how many different lease names are on metrics. Leases beyond have the name
// OtherLeases, so that keys that are made up as the program runs cost no more than that: see
// WithLeaseNames. It leaves room for six outcomes or reasons of each among the 2000 attribute sets
// that OpenTelemetry's SDK keeps of a metric by default.
const MaxLeaseNames = 300

// OtherLeases is the lease name of leases beyond MaxLeaseNames.
const OtherLeases = "_other"

// Option configures New.
type Option interface{ apply(*config) error }

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

type config struct {
	tracers       trace.TracerProvider
	meters        metric.MeterProvider
	attributes    []attribute.KeyValue
	leaseNames    func(key string) string
	nodeSpans     bool
	extendSpans   bool
	lostTickSpans bool
}

func newConfig(opts []Option) (*config, error) {
	c := &config{leaseNames: func(key string) string { return key }, nodeSpans: true}
	for i, o := range opts {
		if o == nil {
			return nil, &OptionError{Option: "New", Reason: fmt.Sprintf("option %d is nil", i)}
		}
		if err := o.apply(c); err != nil {
			return nil, err
		}
	}
	if c.tracers == nil {
		c.tracers = otel.GetTracerProvider()
	}
	if c.meters == nil {
		c.meters = otel.GetMeterProvider()
	}
	return c, nil
}

// WithTracerProvider sets where spans go. Default, and for nil: the global provider.
func WithTracerProvider(p trace.TracerProvider) Option {
	return option(func(c *config) error {
		c.tracers = p
		return nil
	})
}

// WithMeterProvider sets where metrics go. Default, and for nil: the global provider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return option(func(c *config) error {
		c.meters = p
		return nil
	})
}

// WithAttributes adds attributes to every span and every metric. What is the same for the whole
// process belongs in its resource instead.
func WithAttributes(attributes ...attribute.KeyValue) Option {
	return option(func(c *config) error {
		for _, a := range attributes {
			if !a.Valid() {
				return &OptionError{Option: "WithAttributes", Reason: fmt.Sprintf("attribute %q has no key or no value", a.Key)}
			}
		}
		for _, a := range attributes {
			c.attributes = append(c.attributes, clean(a))
		}
		return nil
	})
}

// kinds are the beginnings of the keys of which this module itself makes many: leases of jobs, of
// which the metrics of jobs tell, and of pauses and orders.
var kinds = []string{scheduler.KeyPrefix, "pause/", "order/"}

// leaseName is one name for all leases of such a kind, and what WithLeaseNames says for others.
func (c *config) leaseName(key string) string {
	for _, kind := range kinds {
		if strings.HasPrefix(key, kind) {
			return kind + "*"
		}
	}
	return c.leaseNames(key)
}

// WithLeaseNames sets how the name of a lease, which is the attribute tenure.lease.name, is made of
// its key. Default: it is the key. Where keys have parts that are made up as the program runs, such
// as the number of an invoice, name returns them without. It is not asked for keys that begin with
// job/, pause/ or order/, which this module makes: their leases are named job/*, pause/* and
// order/*. It is called concurrently and must not block.
func WithLeaseNames(name func(key string) string) Option {
	return option(func(c *config) error {
		if name == nil {
			return &OptionError{Option: "WithLeaseNames", Reason: "nil; leave the option out to use the keys"}
		}
		c.leaseNames = name
		return nil
	})
}

// WithoutNodeSpans leaves out the spans of single nodes: an acquisition is one span then. Metrics
// of nodes are kept.
func WithoutNodeSpans() Option {
	return option(func(c *config) error {
		c.nodeSpans = false
		return nil
	})
}

// WithExtendSpans makes a span of every extension. Default: of those that failed or were slow,
// which are those that left less than half of the TTL as margin or took more than a tenth of it.
func WithExtendSpans() Option {
	return option(func(c *config) error {
		c.extendSpans = true
		return nil
	})
}

// WithLostTickSpans makes a trace of each tick of a job whose lease this replica asks for and does
// not get, because another replica has it. Default: of those that it gets, and of those that no
// replica can get.
func WithLostTickSpans() Option {
	return option(func(c *config) error {
		c.lostTickSpans = true
		return nil
	})
}

// OptionError tells which option of New cannot be used, and why.
type OptionError struct {
	Option string
	Reason string
}

func (e *OptionError) Error() string { return "tenureotel: " + e.Option + ": " + e.Reason }

// ErrorType returns the stable value "invalid".
func (e *OptionError) ErrorType() string { return "invalid" }
