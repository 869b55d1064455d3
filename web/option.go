package web

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/admin"
)

const (
	// mostStreams is how many pages may follow events at a time. Other pages poll.
	mostStreams = 128
	// streamLife is how long a stream of events lasts. Then the browser asks for a new one, which
	// the wrapper of the Handler authorizes again. So readers who have lost the right to read
	// follow events for at most this time.
	streamLife = time.Minute
)

// Authorize decides about an order of a request. It returns the name of the actor, for the log and
// the journal of orders, or an error if the actor may not give the order. The order has its Kind,
// Target, Why and Run. An error is logged, and not shown to the actor. Authorize is called
// concurrently.
type Authorize func(r *http.Request, o admin.Order) (who string, err error)

// Option configures a Handler.
type Option func(*config) error

// OptionError reports an argument that cannot be used.
type OptionError struct{ Option, Reason string }

func (e *OptionError) Error() string { return fmt.Sprintf("web: %s: %s", e.Option, e.Reason) }

// config is a Handler's configuration.
type config struct {
	authorize Authorize // nil: read-only
	title     string
	traceURL  string // with tracePlace; empty for no links
	logger    *slog.Logger
	streams   int
	lifetime  time.Duration
	hosts     map[string]bool // nil for any host
	origins   *http.CrossOriginProtection
}

func newConfig(opts []Option) (*config, error) {
	c := &config{
		title: "Tenure", logger: slog.Default(), streams: mostStreams, lifetime: streamLife,
		origins: http.NewCrossOriginProtection(),
	}
	for _, o := range opts {
		if o == nil {
			return nil, &OptionError{"Option", "nil option"}
		}
		if err := o(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// option returns an Option that calls set, or an error if reason is not empty.
func option(name, reason string, set func(*config)) Option {
	return func(c *config) error {
		if reason != "" {
			return &OptionError{name, reason}
		}
		set(c)
		return nil
	}
}

// WithActions lets pages give orders: pause, resume, run now, resign, cancel. Each order is given
// only if authorize returns its actor. See Authorize.
func WithActions(authorize Authorize) Option {
	reason := choice(authorize == nil, "nil function; leave the option out for pages that only show", "")
	return option("WithActions", reason, func(c *config) { c.authorize = authorize })
}

// WithTitle sets the name of the cluster on the pages, for programs with several clusters. It has
// at most 100 bytes. Default: Tenure.
func WithTitle(title string) Option {
	reason := choice(strings.TrimSpace(title) == "" || len(title) > 100, fmt.Sprintf("has %d bytes, not 1 to 100, or is blank", len(title)), "")
	return option("WithTitle", reason, func(c *config) { c.title = title })
}

// tracePlace stands for the ID of a trace in the template of WithTraceURL.
const tracePlace = "{trace_id}"

// WithTraceURL links runs to their traces. template is an http or https URL with {trace_id} once,
// after its host, such as https://tempo.example/trace/{trace_id}. An ID that is not hexadecimal is
// shown without a link.
func WithTraceURL(template string) Option {
	u, err := url.Parse(template) // it refuses {trace_id} in the host
	reason := ""
	switch {
	case strings.Count(template, tracePlace) != 1:
		reason = "must have " + tracePlace + " once"
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		reason = "is no http or https URL"
	case u.User != nil:
		reason = "has a user: everybody who sees the page would see it"
	}
	return option("WithTraceURL", reason, func(c *config) { c.traceURL = template })
}

// WithLogger sets the logger of given and refused orders, and of problems of streams. Default:
// slog.Default().
func WithLogger(l *slog.Logger) Option {
	return option("WithLogger", choice(l == nil, "nil logger", ""), func(c *config) { c.logger = l })
}

// WithHosts refuses requests whose Host header, without its port, is none of these names or
// addresses. Use it on loopback: if nothing else keeps strangers out, a page of another site can
// point its own name to this process (DNS rebinding) and read the pages. Default: any host.
func WithHosts(hosts ...string) Option {
	reason := choice(len(hosts) == 0, "names no host; leave the option out for any", "")
	names := make(map[string]bool, len(hosts))
	for _, h := range hosts {
		if _, _, err := net.SplitHostPort(h); h == "" || err == nil {
			reason = fmt.Sprintf("%q is empty or has a port: name the host alone", h)
		}
		names[canonicalHost(h)] = true
	}
	return option("WithHosts", reason, func(c *config) { c.hosts = names })
}

// canonicalHost returns a host or a Host header in lower case, without port, brackets and final
// dot.
func canonicalHost(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// WithTrustedOrigins accepts orders from these origins, such as https://ops.example. It is for a
// proxy that sends a Host header other than the browser's, and for further sites of your own.
// Orders from the Handler's own origin need no option.
func WithTrustedOrigins(origins ...string) Option {
	return func(c *config) error {
		for _, o := range origins {
			if err := c.origins.AddTrustedOrigin(o); err != nil {
				return &OptionError{"WithTrustedOrigins", err.Error()}
			}
		}
		return nil
	}
}
