package doctor

import (
	"context"
	"sync"
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
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, url := range cfg.URLs {
		option, err := cfg.option(url)
		if err != nil {
			continue // Open says what is wrong with it
		}
		wg.Go(func() {
			client, err := valkey.NewClient(option)
			if err != nil {
				return
			}
			defer client.Close()
			m, _ := bridge.ReadRoster(ctx, client, cfg.Prefix)
			mu.Lock()
			defer mu.Unlock()
			l.learn(m)
		})
	}
	wg.Wait()
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
