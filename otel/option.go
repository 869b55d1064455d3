package tenureotel

import (
	"cmp"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/scheduler"
)

// MaxLeaseNames is how many different lease names are on metrics. Further leases share the name
// OtherLeases, so that keys that a program makes up as it runs stay affordable: see WithLeaseNames.
// OpenTelemetry's SDK keeps 2000 attribute sets of a metric by default, which is six outcomes or
// reasons of each name.
const MaxLeaseNames = 300

// OtherLeases is the lease name of all leases beyond MaxLeaseNames.
const OtherLeases = "_other"

// Option configures New.
type Option interface{ apply(*config) error }

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

// always returns an Option that cannot be refused.
func always(do func(*config)) Option {
	return option(func(c *config) error {
		do(c)
		return nil
	})
}

type config struct {
	tracers     trace.TracerProvider
	meters      metric.MeterProvider
	attributes  []attribute.KeyValue
	leaseNames  func(key string) string
	nodeSpans   bool
	extendSpans bool
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
	c.tracers, c.meters = cmp.Or(c.tracers, otel.GetTracerProvider()), cmp.Or(c.meters, otel.GetMeterProvider())
	return c, nil
}

// WithTracerProvider sets the provider of spans. Default, and for nil: the global provider.
func WithTracerProvider(p trace.TracerProvider) Option {
	return always(func(c *config) { c.tracers = p })
}

// WithMeterProvider sets the provider of metrics. Default, and for nil: the global provider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return always(func(c *config) { c.meters = p })
}

// WithAttributes adds attributes to every span and every metric. Attributes that are the same for
// the whole process belong in its resource instead.
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

// kinds are the prefixes of the keys that this module makes in large numbers: for jobs, which have
// metrics of their own, and for pauses and orders.
var kinds = []string{scheduler.KeyPrefix, "pause/", "order/"}

// leaseName returns one name for all keys of a kind, and for other keys the name by WithLeaseNames.
func (c *config) leaseName(key string) string {
	for _, kind := range kinds {
		if strings.HasPrefix(key, kind) {
			return kind + "*"
		}
	}
	return c.leaseNames(key)
}

// WithLeaseNames sets the function that makes the name of a lease, the attribute tenure.lease.name,
// of the lease's key. Default: the name is the key. If keys have parts that the program makes up as
// it runs, such as the number of an invoice, the function leaves them out. It is not called for
// keys that begin with job/, pause/ or order/, which this module makes: their names are job/*,
// pause/* and order/*. It is called concurrently and must not block.
func WithLeaseNames(name func(key string) string) Option {
	return option(func(c *config) error {
		if name == nil {
			return &OptionError{Option: "WithLeaseNames", Reason: "nil; leave the option out to use the keys"}
		}
		c.leaseNames = name
		return nil
	})
}

// WithoutNodeSpans leaves out the spans of single nodes, so an acquisition is one span. Metrics of
// nodes are kept.
func WithoutNodeSpans() Option {
	return always(func(c *config) { c.nodeSpans = false })
}

// WithExtendSpans makes a span of every extension. Default: only of extensions that failed or were
// slow. An extension is slow if it left less than half of the TTL as margin or took more than a
// tenth of the TTL.
func WithExtendSpans() Option {
	return always(func(c *config) { c.extendSpans = true })
}

// OptionError reports an option of New that cannot be used, and why.
type OptionError struct {
	Option string
	Reason string
}

func (e *OptionError) Error() string { return "tenureotel: " + e.Option + ": " + e.Reason }

// ErrorType returns the stable value "invalid".
func (e *OptionError) ErrorType() string { return "invalid" }
