package doctor

import (
	"context"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/redlock"
)

// limits are the longest TTL and the largest clock skew that processes of a prefix use, by which
// they tell for how long a node is quarantined; 0 for one that no node knows.
type limits struct{ ttl, skew time.Duration }

// learn takes what a node says.
func (l *limits) learn(all []bridge.RosterList) {
	for _, is := range all {
		l.ttl, l.skew = max(l.ttl, is.MaxTTL), max(l.skew, is.Skew)
	}
}

// AskLimits asks the nodes for the limits of the prefix, and returns what has a Quorum go by them
// from the beginning: by itself it learns them only as nodes come to vote for it, which is late for
// one that looks once. Nodes that do not answer are passed over.
func AskLimits(ctx context.Context, cfg *Config) []redlock.Option {
	var l limits
	for _, s := range cfg.ask(func(s *server, client valkey.Client) { s.roster, _ = bridge.ReadRoster(ctx, client, cfg.Prefix) }) {
		l.learn(s.roster)
	}
	options := []redlock.Option{redlock.WithMaxTTL(max(l.ttl, cfg.TTL))}
	if l.skew > 0 {
		options = append(options, redlock.WithClockSkew(l.skew))
	}
	return options
}
