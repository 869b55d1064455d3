package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

const inProcessNodes = 5

// fleet is the nodes to use.
type fleet struct {
	urls  []string
	name  string // of the election or the job
	close func()
}

// openFleet starts nodes inside this process, or looks whether the real servers that were named can be reached. On
// these the name of the election is a new one in each run of this program, because what an earlier run left there has
// to run out first.
func openFleet(ctx context.Context, cfg *config, out *console) (*fleet, error) {
	if len(cfg.nodes) > 0 {
		if err := checkServers(ctx, cfg.nodes, cfg.ttl, out); err != nil {
			return nil, err
		}
		out.say("uses real servers: %s", hosts(cfg.nodes))
		name := fmt.Sprintf("quickstart-%s-%d", time.Now().UTC().Format("20060102T150405"), os.Getpid())
		return &fleet{urls: cfg.nodes, name: name, close: func() {}}, nil
	}
	nodes, err := redlocktest.New(inProcessNodes)
	if err != nil {
		return nil, fmt.Errorf("cannot start nodes: %w", err)
	}
	out.say("runs nodes inside this process: %s", hosts(nodes.URLs()))
	return &fleet{urls: nodes.URLs(), name: "quickstart", close: func() { _ = nodes.Close() }}, nil
}

// slow is for how long servers may be too slow to answer in time.
const slow = 10 * time.Second

// checkServers fails unless a quorum of the servers can be reached, and waits until a quorum votes: servers that were
// started a moment ago do not vote yet.
func checkServers(ctx context.Context, urls []string, ttl time.Duration, out *console) error {
	q, err := redlock.Open(urls, redlock.WithPrefix("quickstart"), redlock.WithTTL(ttl), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return fmt.Errorf("-nodes: %w", err)
	}
	defer q.Close()
	for patience := time.Now().Add(slow); ; {
		var wrong []error
		var waits []time.Time
		for _, n := range q.Nodes(ctx) {
			switch {
			case !n.QuarantinedUntil.IsZero():
				waits = append(waits, n.QuarantinedUntil)
			case n.Err != nil:
				wrong = append(wrong, n.Err)
			}
		}
		need := len(urls)/2 + 1
		if good := len(urls) - len(wrong); good < need {
			if errors.Is(errors.Join(wrong...), redlock.ErrTimeout) && time.Now().Before(patience) {
				continue // a busy machine may need longer for the connections than a node has for an answer
			}
			return fmt.Errorf("%d of %d servers can be used, too few for a quorum: start them or correct -nodes\n%w",
				good, len(urls), errors.Join(wrong...))
		}
		missing := need - (len(urls) - len(wrong) - len(waits))
		if missing <= 0 {
			return nil
		}
		slices.SortFunc(waits, time.Time.Compare)
		until := waits[missing-1].Add(recheck)
		out.say("waits until %s: the servers were started a moment ago, and what they may have forgotten has to run out", until.Format("15:04:05"))
		select {
		case <-time.After(time.Until(until)):
			patience = time.Now().Add(slow)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// recheck is how long after its quarantine a server is asked again.
const recheck = 100 * time.Millisecond
