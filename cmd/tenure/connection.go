package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenure-dev/tenure/cmd/tenure/internal/doctor"
	"github.com/tenure-dev/tenure/internal/environment"
	"github.com/tenure-dev/tenure/redlock"
)

// connection has the flags that say how to reach the nodes, and the settings that all processes of
// a prefix must share.
type connection struct {
	prefix             string
	clockSkew          time.Duration
	nodeTimeout        time.Duration
	ttl                time.Duration // value of --ttl; zero for commands without it
	withReplicas       bool
	withoutRestartGate bool
}

// flags declares the flags of all commands. Each flag can also be set by an environment variable,
// see variable.
func (c *connection) flags(f *pflag.FlagSet) {
	f.String("nodes", "", "URLs of the nodes, with commas, without passwords; or in "+environment.Nodes+", or in the file that "+environment.NodesFile+" names")
	f.StringVar(&c.prefix, "prefix", redlock.DefaultPrefix, "the replicas' prefix (redlock.WithPrefix)")
	f.DurationVar(&c.clockSkew, "clock-skew", redlock.DefaultClockSkew, "the replicas' clock skew (redlock.WithClockSkew)")
	f.DurationVar(&c.nodeTimeout, "node-timeout", 500*time.Millisecond, "how long one node may take to answer; at most a quarter of the TTL")
	f.BoolVar(&c.withReplicas, "with-replicas", false, "accept servers that have replicas (redlock.WithReplicas)")
	f.BoolVar(&c.withoutRestartGate, "without-restart-gate", false, "if the replicas have redlock.WithoutRestartGate")
	f.String("tls-ca", "", "file with the authority of the nodes' certificates, for valkeys:// (default the system's)")
	f.String("tls-cert", "", "file with the certificate that is shown to the nodes")
	f.String("tls-key", "", "file with its key")
}

// variable returns the environment variable of a flag: TENURE_CLOCK_SKEW for clock-skew.
func variable(flag string) string {
	return "TENURE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// setting is the value that was given for a flag, and its source: --clock-skew or
// TENURE_CLOCK_SKEW, for example.
type setting struct{ value, from string }

// fromEnvironment sets the flags of all commands that the command line left out from the
// environment. It records the value and source of each flag in p.settings.
func (p *program) fromEnvironment(cmd *cobra.Command) error {
	var wrong error
	p.settings = make(map[string]setting)
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		name := variable(f.Name)
		value := p.lookup(name)
		if f.Changed {
			p.settings[name] = setting{f.Value.String(), "--" + f.Name}
		} else if value != "" {
			p.settings[name] = setting{value, name}
			if err := f.Value.Set(value); err != nil && wrong == nil {
				wrong = fmt.Errorf("%s=%s: %w", name, quoted(value), err)
			}
		}
	})
	if _, err := levelOf(p.log, 0); err != nil && wrong == nil {
		wrong = fmt.Errorf("%s=%s: %w", p.settings[variable("log")].from, quoted(p.log), err)
	}
	return wrong
}

// setting returns the value of a variable that package environment reads, and its source. A flag
// goes before its variable. With --nodes, the variable that names a file of nodes does not count.
func (p *program) setting(name string) (value, from string) {
	if s, given := p.settings[name]; given || name == environment.NodesFile && p.settings[environment.Nodes].from == "--nodes" {
		return s.value, s.from
	}
	return p.lookup(name), name
}

// urls returns the URLs of the nodes and their source.
func (p *program) urls() (urls []string, source string, err error) {
	urls, source, err = environment.URLs(p.setting)
	for i, text := range urls {
		if source == "--nodes" && hasPassword(text) {
			return nil, source, usage(fmt.Errorf("--nodes: URL %d has a password, which everybody on this host sees in the list of processes: "+
				"put the URLs into %s, or into a file that %s names", i+1, environment.Nodes, environment.NodesFile))
		}
	}
	return urls, source, err
}

// hasPassword reports whether a URL has a password. It also reports true if it cannot be sure: a
// text that is no URL, or a misplaced @, may hide a password.
func hasPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return strings.Contains(text, "@")
	}
	_, has := u.User.Password()
	return has || strings.Contains(u.Path+u.RawQuery+u.Fragment+u.Opaque, "@")
}

// leaseTTL returns the TTL of the program's Quorum: --ttl, or one for short leases. A quarantine
// lasts for the longest TTL of all processes or twice the skew, whichever is longer, plus the skew.
// A TTL of twice the skew therefore makes no quarantine longer.
func (c *connection) leaseTTL() time.Duration {
	return cmp.Or(c.ttl, max(redlock.MinTTL, 2*c.clockSkew))
}

// nodeTimeout returns how long a node may take to answer: --node-timeout, but at most a quarter of
// the TTL. A longer --node-timeout that was given is an error.
func (p *program) nodeTimeout() (time.Duration, error) {
	c := &p.connection
	most := c.leaseTTL() / 4
	if from := p.settings[variable("node-timeout")].from; from != "" && c.nodeTimeout > most {
		because := "which is twice --clock-skew, and 1s at least"
		if c.ttl != 0 {
			because = "which --ttl sets"
		}
		return 0, usage(fmt.Errorf("%s %v is above %v, a quarter of the TTL of %v, %s: give %[3]v at most", from, c.nodeTimeout, most, c.leaseTTL(), because))
	}
	return min(c.nodeTimeout, most), nil
}

// reached returns how to reach the nodes, as the configuration of doctor, and the source of their
// URLs. With an error the configuration is empty.
func (p *program) reached() (doctor.Config, string, error) {
	urls, source, err := p.urls()
	withTLS, unread := environment.TLS(p.setting)
	timeout, tooLong := p.nodeTimeout()
	if err := cmp.Or(err, unread, tooLong); err != nil {
		return doctor.Config{}, source, err
	}
	c := &p.connection
	return doctor.Config{URLs: urls, Prefix: c.prefix, ClockSkew: c.clockSkew, TTL: c.leaseTTL(), NodeTimeout: timeout, WithTLS: withTLS}, source, nil
}

// open makes the Quorum of a command. The caller closes it. It does no I/O. The options opts take
// precedence over the flags. The Quorum logs at the level and above, see logger.
func (p *program) open(level slog.Level, opts ...redlock.Option) (*redlock.Quorum, error) {
	cfg, source, err := p.reached()
	if err != nil {
		return nil, err
	}
	options := []redlock.Option{
		redlock.WithPrefix(cfg.Prefix), redlock.WithClockSkew(cfg.ClockSkew), redlock.WithTTL(cfg.TTL), redlock.WithNodeTimeout(cfg.NodeTimeout),
		redlock.WithLogger(p.logger(level)), redlock.WithClientOption(cfg.WithTLS),
	}
	if p.connection.withReplicas {
		options = append(options, redlock.WithReplicas())
	}
	if p.connection.withoutRestartGate {
		options = append(options, redlock.WithoutRestartGate())
	}
	q, err := redlock.Open(cfg.URLs, append(options, opts...)...)
	if option, is := errors.AsType[*redlock.OptionError](err); is && strings.HasPrefix(option.Option, "urls[") { // source names the list
		err = usage(fmt.Errorf("%s: %s %s", source, option.Option, option.Reason))
	}
	return q, err
}
