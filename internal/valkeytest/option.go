package valkeytest

import (
	"crypto/tls"
	"time"
)

// Option configures all servers of a fleet.
type Option func(*config)

type config struct {
	binary      string
	persistence bool
	user        string // of this package's connections; empty for the default user
	password    string
	tls         *tls.Config // nil for servers without TLS
	file        string      // the servers' configuration file; may be empty
	args        []string

	clock        bool
	clockLibrary string        // the shim; empty without clock
	age          time.Duration // of the servers when New returns; 0 for their own
}

// WithPersistence makes the servers append every write to a file before they
// answer (appendonly yes, appendfsync always), so that Restart can keep the
// data of a killed server. Without it nothing is written to disk.
func WithPersistence() Option {
	return func(c *config) { c.persistence = true }
}

// WithPassword makes the servers demand a password from the default user. The
// nodes' URLs contain it. A requirepass among [WithArgs] would lock this
// package out.
func WithPassword(password string) Option {
	return func(c *config) { c.password = password }
}

// WithConfig makes the servers read a configuration file. The settings of this package win over it:
// the address, the directory, the persistence and the process. So does [WithArgs].
func WithConfig(file string) Option {
	return func(c *config) { c.file = file }
}

// WithUser sets the user of this package's connections, for a configuration that leaves the default
// user no rights. The user needs INFO and PING. The nodes' URLs contain the user and the password.
func WithUser(name, password string) Option {
	return func(c *config) { c.user, c.password = name, password }
}

// WithTLS makes the servers speak TLS only, and sets the configuration of this package's
// connections. The servers' certificates are in [WithConfig] or [WithArgs].
func WithTLS(client *tls.Config) Option {
	return func(c *config) { c.tls = client }
}

// WithArgs appends arguments for valkey-server, for example
// "--maxmemory", "2mb". They win over this package's own. With
// "--cluster-enabled", "yes" the server also uses its port + 10000.
func WithArgs(args ...string) Option {
	return func(c *config) { c.args = append(c.args, args...) }
}

// WithClock makes the servers' wall clocks movable one by one, see
// [Node.JumpClock]. It needs Linux and a C compiler (cc or gcc): the servers run
// with a small library that is compiled once a process and preloaded into them.
func WithClock() Option {
	return func(c *config) { c.clock = true }
}

// WithAge makes the servers believe that they were started that long before the fleet was: INFO has
// that uptime, while their clocks are right. A restarted server is young again. WithAge implies
// [WithClock]. An age below a second is ignored.
func WithAge(age time.Duration) Option {
	return func(c *config) {
		if age >= time.Second {
			c.clock, c.age = true, age
		}
	}
}
