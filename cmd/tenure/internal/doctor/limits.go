package doctor

import (
	"context"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/redlock"
)

// Limits are the longest TTL and the largest clock skew that processes of a prefix use, by which
// they tell for how long a node is quarantined; 0 for one that no node knows. A Quorum learns them
// only as nodes come to vote for it, which is late for one that looks once.
type Limits struct{ ttl, skew time.Duration }

// AskLimits asks the nodes. Those that do not answer are passed over.
func AskLimits(ctx context.Context, cfg *Config) (l Limits) {
	for _, s := range cfg.ask(func(s *server, client valkey.Client) { s.roster, _ = bridge.ReadRoster(ctx, client, cfg.Prefix) }) {
		l.learn(s.roster)
	}
	return l
}

// learn takes what a node says.
func (l *Limits) learn(all []bridge.RosterList) {
	for _, is := range all {
		l.ttl, l.skew = max(l.ttl, is.MaxTTL), max(l.skew, is.Skew)
	}
}

// Options have a Quorum of that TTL go by them from the beginning.
func (l Limits) Options(ttl time.Duration) []redlock.Option {
	options := []redlock.Option{redlock.WithMaxTTL(max(l.ttl, ttl))}
	if l.skew > 0 {
		options = append(options, redlock.WithClockSkew(l.skew))
	}
	return options
}
