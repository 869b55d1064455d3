package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
)

// The variables that name the nodes. Their values hold passwords: `tenure run` keeps them from its
// child.
const (
	envNodes     = "TENURE_NODES"
	envNodesFile = "TENURE_NODES_FILE"
)

// secretVariables are those.
var secretVariables = []string{envNodes, envNodesFile}

// connection is how the nodes are reached, and what all processes of a prefix have to agree on.
type connection struct {
	nodes              string
	prefix             string
	clockSkew          time.Duration
	nodeTimeout        time.Duration
	ttl                time.Duration // of --ttl; zero for commands without it
	withReplicas       bool
	withoutRestartGate bool
	ca, cert, key      string
}

// flags declares those of all commands. Each may stand in the environment instead, see variable.
func (c *connection) flags(f *pflag.FlagSet) {
	f.StringVar(&c.nodes, "nodes", "", "URLs of the nodes, with commas, without passwords; or in "+envNodes+", or in the file that "+envNodesFile+" names")
	f.StringVar(&c.prefix, "prefix", redlock.DefaultPrefix, "the replicas' prefix (redlock.WithPrefix)")
	f.DurationVar(&c.clockSkew, "clock-skew", redlock.DefaultClockSkew, "the replicas' clock skew (redlock.WithClockSkew)")
	f.DurationVar(&c.nodeTimeout, "node-timeout", 500*time.Millisecond, "how long one node may take to answer; at most a quarter of the TTL")
	f.BoolVar(&c.withReplicas, "with-replicas", false, "accept servers that have replicas (redlock.WithReplicas)")
	f.BoolVar(&c.withoutRestartGate, "without-restart-gate", false, "if the replicas have redlock.WithoutRestartGate")
	f.StringVar(&c.ca, "tls-ca", "", "file with the authority of the nodes' certificates, for valkeys:// (default the system's)")
	f.StringVar(&c.cert, "tls-cert", "", "file with the certificate that is shown to the nodes")
	f.StringVar(&c.key, "tls-key", "", "file with its key")
}

// variable is the one that stands for a flag: TENURE_CLOCK_SKEW for clock-skew.
func variable(flag string) string {
	return "TENURE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets the flags of all commands that the command line left out, and notes where
// each that was given comes from. That of the nodes is read apart, because a variable may have
// passwords and a flag may not.
func (p *program) fromEnvironment(cmd *cobra.Command) error {
	var wrong error
	p.origins = make(map[string]string)
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		value, found := p.lookup(variable(f.Name))
		if f.Changed {
			p.origins[f.Name] = "--" + f.Name
		}
		if f.Changed || !found || value == "" || f.Name == "nodes" || wrong != nil {
			return
		}
		if err := f.Value.Set(value); err != nil {
			wrong = usage(fmt.Errorf("%s=%s: %w", variable(f.Name), quoted(value), err))
		}
		p.origins[f.Name] = variable(f.Name)
	})
	return wrong
}

// What is read at most of a file with nodes, and of one with certificates or a key.
const (
	maxNodesFile = 64 << 10
	maxPEMFile   = 1 << 20
)

// urls are those of the nodes, and where they come from.
func (p *program) urls() (urls []string, source string, err error) {
	variable, set := p.lookup(envNodes)
	file, inFile := p.lookup(envNodesFile)
	set, inFile = set && variable != "", inFile && file != ""
	switch {
	case p.connection.nodes != "":
		urls, source = splitURLs(p.connection.nodes), "--nodes"
		for i, text := range urls {
			if hasPassword(text) {
				return nil, source, usage(fmt.Errorf("--nodes: URL %d has a password, which everybody on this host sees in the list of processes: "+
					"put the URLs into %s, or into a file that %s names", i+1, envNodes, envNodesFile))
			}
		}
	case set && inFile:
		return nil, "", usage(fmt.Errorf("both %s and %s are set: set one of them", envNodes, envNodesFile))
	case set:
		urls, source = splitURLs(variable), envNodes
	case inFile:
		source = envNodesFile
		text, err := readBounded(file, maxNodesFile)
		if err != nil {
			return nil, source, usage(fmt.Errorf("%s: %w", envNodesFile, err))
		}
		urls = splitURLs(strings.TrimPrefix(string(text), "\ufeff")) // the mark that editors of Windows begin UTF-8 with
	default:
		return nil, "", usage(fmt.Errorf("no nodes: set %s to their URLs with commas between them, such as valkey://a.example.net,valkey://b.example.net,valkey://c.example.net, "+
			"or %s to a file with them, or use --nodes", envNodes, envNodesFile))
	}
	if len(urls) == 0 {
		return nil, source, usage(fmt.Errorf("%s names no nodes", source))
	}
	return urls, source, nil
}

// splitURLs splits at commas and white space. Lines that begin with # say nothing.
func splitURLs(text string) (urls []string) {
	for l := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(l), "#") {
			continue
		}
		urls = append(urls, strings.FieldsFunc(l, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\r' || r == '\n' })...)
	}
	return urls
}

// hasPassword reports whether a URL has one, or may: where it cannot be read, an @ may end one.
func hasPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return strings.Contains(text, "@")
	}
	_, has := u.User.Password()
	return has || strings.Contains(u.Path+u.RawQuery+u.Fragment+u.Opaque, "@")
}

// readBounded reads a file of at most so many bytes. A device or a pipe may have no end, and is
// none.
func readBounded(file string, most int64) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file: name one of at most %d bytes", file, most)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1)) // its size may be untrue, or grow
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s has more than %d bytes", file, most)
	}
	return text, err
}

// ttlFor is the TTL of a Quorum whose leases are short or none. Twice the skew, it lengthens
// nobody's quarantine: that is the longest TTL of all processes or twice the skew, whichever is
// more, and the skew.
func ttlFor(skew time.Duration) time.Duration { return max(redlock.MinTTL, 2*skew) }

// leaseTTL is the TTL of the program's Quorum.
func (c *connection) leaseTTL() time.Duration { return cmp.Or(c.ttl, ttlFor(c.clockSkew)) }

// nodeTimeout is how long a node may take: no more than the TTL has room for, which is an error
// where more was given.
func (p *program) nodeTimeout() (time.Duration, error) {
	c := &p.connection
	most := c.leaseTTL() / 4
	if from := p.origins["node-timeout"]; from != "" && c.nodeTimeout > most {
		because := "which is twice --clock-skew, and 1s at least"
		if c.ttl != 0 {
			because = "which --ttl sets"
		}
		return 0, usage(fmt.Errorf("%s %v is above %v, a quarter of the TTL of %v, %s: give %[3]v at most", from, c.nodeTimeout, most, c.leaseTTL(), because))
	}
	return min(c.nodeTimeout, most), nil
}

// options are those of every Quorum of the program. Later ones win.
func (p *program) options(log *slog.Logger) ([]redlock.Option, error) {
	c := &p.connection
	withTLS, err := c.tls()
	if err != nil {
		return nil, usage(err)
	}
	timeout, err := p.nodeTimeout()
	if err != nil {
		return nil, err
	}
	options := []redlock.Option{
		redlock.WithPrefix(c.prefix), redlock.WithClockSkew(c.clockSkew), redlock.WithTTL(c.leaseTTL()), redlock.WithNodeTimeout(timeout),
		redlock.WithLogger(log), redlock.WithClientOption(withTLS),
	}
	if c.withReplicas {
		options = append(options, redlock.WithReplicas())
	}
	if c.withoutRestartGate {
		options = append(options, redlock.WithoutRestartGate())
	}
	return options, nil
}

// open makes the Quorum of a command, which closes it. It does no I/O. Options that are given win
// over those of the flags. Its log lines are of the level and above, see logger.
func (p *program) open(level slog.Level, opts ...redlock.Option) (*redlock.Quorum, error) {
	urls, source, err := p.urls()
	if err != nil {
		return nil, err
	}
	options, err := p.options(p.logger(level))
	if err != nil {
		return nil, err
	}
	q, err := redlock.Open(urls, append(options, opts...)...)
	return q, inSource(err, source)
}

// inSource has an error about a URL say where that stands.
func inSource(err error, source string) error {
	var option *redlock.OptionError
	if errors.As(err, &option) && strings.HasPrefix(option.Option, "urls[") {
		return usage(fmt.Errorf("%s: %s %s", source, option.Option, option.Reason))
	}
	return err
}

// tls is what is added to the URLs with valkeys:// or rediss://.
func (c *connection) tls() (func(url string, o *valkey.ClientOption), error) {
	var trusted *x509.CertPool
	var own []tls.Certificate
	if c.ca != "" {
		pem, err := readBounded(c.ca, maxPEMFile)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		if trusted = x509.NewCertPool(); !trusted.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--tls-ca: %s has no certificate", c.ca)
		}
	}
	switch {
	case c.cert != "" && c.key == "":
		return nil, errors.New("--tls-cert without --tls-key: a certificate needs its key")
	case c.cert == "" && c.key != "":
		return nil, errors.New("--tls-key without --tls-cert: a key needs its certificate")
	}
	if c.cert != "" {
		certificate, err := readBounded(c.cert, maxPEMFile)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert: %w", err)
		}
		key, err := readBounded(c.key, maxPEMFile)
		if err != nil {
			return nil, fmt.Errorf("--tls-key: %w", err)
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		own = []tls.Certificate{pair}
	}
	return func(_ string, o *valkey.ClientOption) {
		if o.TLSConfig != nil {
			o.TLSConfig.RootCAs, o.TLSConfig.Certificates = trusted, own
		}
	}, nil
}
