package valkeytest

// Option configures all servers of a fleet.
type Option func(*config)

type config struct {
	binary      string
	persistence bool
	password    string
	args        []string
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

// WithArgs appends arguments for valkey-server, for example
// "--maxmemory", "2mb". They win over this package's own. With
// "--cluster-enabled", "yes" the server also uses its port + 10000.
func WithArgs(args ...string) Option {
	return func(c *config) { c.args = append(c.args, args...) }
}
