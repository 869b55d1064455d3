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
	// mostStreams is how many pages may follow events at a time; those beyond it ask for news.
	mostStreams = 128
	// streamLife is after which time a stream of events ends. The browser asks for another one,
	// which what wraps the Handler authorizes anew: so long is a reader told what happens who has
	// lost the right to read.
	streamLife = time.Minute
)

// Authorize decides about an order that a request gives: who gives it, for the log and the journal
// of orders, or an error if it may not be given. The order has its Kind, Target, Why and Run. An
// error is logged, and not shown to whoever gave the order. It is called concurrently.
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
	hosts     map[string]bool // nil for any
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

// option is an Option that sets something, unless there is a reason why it cannot be.
func option(name, reason string, set func(*config)) Option {
	return func(c *config) error {
		if reason != "" {
			return &OptionError{name, reason}
		}
		set(c)
		return nil
	}
}

// WithActions lets pages give orders: pause, resume, run now, resign, cancel. Each is given only if
// authorize returns who gives it. See Authorize.
func WithActions(authorize Authorize) Option {
	reason := choice(authorize == nil, "nil function; leave the option out for pages that only show", "")
	return option("WithActions", reason, func(c *config) { c.authorize = authorize })
}

// WithTitle is for programs with several clusters: the name of this one. Default Tenure; at most
// 100 bytes.
func WithTitle(title string) Option {
	reason := choice(strings.TrimSpace(title) == "" || len(title) > 100, fmt.Sprintf("has %d bytes, not 1 to 100, or is blank", len(title)), "")
	return option("WithTitle", reason, func(c *config) { c.title = title })
}

// tracePlace is where the id of a trace goes in the template of WithTraceURL.
const tracePlace = "{trace_id}"

// WithTraceURL has runs link to their traces. template is an http or https URL that has {trace_id}
// once, behind its host, such as https://tempo.example/trace/{trace_id}. Ids that are not
// hexadecimal are shown without a link.
func WithTraceURL(template string) Option {
	u, err := url.Parse(template) // no host has braces
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

// WithLogger sets where orders that are given or refused are logged, and what hinders streams.
// Default slog.Default().
func WithLogger(l *slog.Logger) Option {
	return option("WithLogger", choice(l == nil, "nil logger", ""), func(c *config) { c.logger = l })
}

// WithHosts refuses requests whose Host header, without its port, is none of these names or
// addresses. Without it a page of another site can have its name point to this process (DNS
// rebinding) and read what is shown, where nothing else keeps strangers out: use it on loopback.
// Default: any host.
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

// canonicalHost is a Host header, or a host, without port, brackets and final dot, in lower case.
func canonicalHost(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// WithTrustedOrigins has orders accepted that come from these origins, such as
// https://ops.example: for a proxy that sends another Host than browsers ask for, or sites of your
// own. Orders from the Handler's own origin need no option.
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
