package redlock

import (
	"cmp"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/internal/environment"
)

// FromEnv opens a Quorum as Open does, of the nodes that the process's environment names, so that a
// service and the command tenure are configured alike:
//
//   - TENURE_NODES has the URLs of the nodes, with commas between them, or TENURE_NODES_FILE the
//     name of a file with them, on lines or with commas, where # begins a comment line.
//   - TENURE_PREFIX is WithPrefix, and TENURE_CLOCK_SKEW WithClockSkew: a duration such as 2s.
//   - TENURE_WITH_REPLICAS and TENURE_WITHOUT_RESTART_GATE, if true, set those options.
//   - TENURE_TLS_CA, TENURE_TLS_CERT and TENURE_TLS_KEY name files in PEM format for URLs with
//     valkeys://: the authorities to trust, by default the system's, and the certificate and key to
//     show. They are set before the function of WithClientOption is called.
//
// An empty variable counts as not set. Options that are given here win over variables. The
// certificate and its key are read for each connection, so that new ones need no restart. All else
// is read once. The files are used for URLs with TLS only: they do not turn it on.
//
// Errors are *OptionError, which names the variable, and repeats no URL.
func FromEnv(opts ...Option) (*Quorum, error) {
	get := func(name string) (string, string) { return os.Getenv(name), name }
	urls, from, err := environment.URLs(get)
	certificates, unread := environment.TLS(get)
	if err = cmp.Or(err, unread); err != nil {
		return nil, inVariable("", err)
	}
	read := quorumOption(func(c *config) (err error) {
		c.certificates = certificates
		for name, option := range variables {
			if text := os.Getenv(name); text != "" {
				err = cmp.Or(err, inVariable(name, option(text, c)))
			}
		}
		return err
	})
	q, err := Open(urls, append([]Option{read}, opts...)...)
	if wrong := (*OptionError)(nil); errors.As(err, &wrong) && strings.HasPrefix(wrong.Option, "urls[") {
		return nil, &OptionError{from, wrong.Option + " " + wrong.Reason}
	}
	return q, err
}

// variables has the environment variables that stand for an option.
var variables = map[string]func(text string, c *config) error{
	"TENURE_PREFIX": func(text string, c *config) error { return WithPrefix(text).applyQuorum(c) },
	"TENURE_CLOCK_SKEW": func(text string, c *config) error {
		d, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("is no duration such as 2s")
		}
		return WithClockSkew(d).applyQuorum(c)
	},
	"TENURE_WITH_REPLICAS":        ifTrue(WithReplicas()),
	"TENURE_WITHOUT_RESTART_GATE": ifTrue(WithoutRestartGate()),
}

func ifTrue(o Option) func(text string, c *config) error {
	return func(text string, c *config) error {
		yes, err := strconv.ParseBool(text)
		switch {
		case err != nil:
			return errors.New("is neither true nor false")
		case yes:
			return o.applyQuorum(c)
		}
		return nil
	}
}

// inVariable returns err as an *OptionError that names a variable: the error's own, or else name.
// It returns nil for nil.
func inVariable(name string, err error) error {
	var own *environment.Error
	var option *OptionError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return &OptionError{own.From, own.Reason}
	case errors.As(err, &option):
		return &OptionError{name, option.Reason}
	}
	return &OptionError{name, err.Error()}
}
