// Package service is the service of the demonstration: what runs in each replica, whether that is a
// process or an instance of a WebAssembly module. It is the quick start's service, and tells more
// of itself: every lease from its grant to its end, and every run.
//
// Each run writes to a store that keeps the largest fencing token it has seen. It writes without a
// last look at its context. Careful code looks, and is paused after the look: then its write comes
// late all the same, and only the store can refuse it (docs/leases.md).
package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// ClockSkew is how far apart the nodes' clocks may be: all are on one machine.
const ClockSkew = 100 * time.Millisecond

// Work is how long a run takes: long enough to be harmed in its middle.
const Work = 300 * time.Millisecond

// Settings are what a replica is told when it starts.
type Settings struct {
	Replica string        `json:"replica"` // its name
	Number  int           `json:"number"`  // its number, from 0
	Prefix  string        `json:"prefix"`  // the service's name on the nodes
	Nodes   []string      `json:"nodes"`   // the URLs of the nodes, the same for every replica
	TTL     time.Duration `json:"ttl"`
	Elect   bool          `json:"elect"` // let a leader run every tick
	Job     string        `json:"job"`
	Gate    bool          `json:"gate"`  // with the restart gate
	Links   string        `json:"links"` // where Dial reaches the nodes; empty in a browser
}

// Dial connects a replica with a node, by its number from 1, or with the store, which is 0.
type Dial func(ctx context.Context, node int) (net.Conn, error)

// Serve is the replica. It reports until ctx ends, and stops in this order: the job, then the
// Quorum.
func Serve(ctx context.Context, s Settings, dial Dial, report func(Report)) (err error) {
	options := append(s.QuorumOptions(),
		redlock.WithIdentity(s.Replica),
		redlock.WithTracer(leases{report}),
		redlock.WithClientOption(func(url string, o *valkey.ClientOption) { o.DialCtxFn = dialer(s.Nodes, url, dial) }))
	q, err := redlock.Open(s.Nodes, options...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()

	jobs := []scheduler.Option{
		scheduler.WithTracer(runs(report)),
		scheduler.WithLogger(slog.New(slog.DiscardHandler)), // the page shows what happens
	}
	if s.Elect {
		jobs = append(jobs, scheduler.WithElection(s.Job))
	}
	sched, err := scheduler.New(q, jobs...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sched.Shutdown()) }()

	store := &Store{Dial: dial}
	defer store.Close()
	task := func(ctx context.Context) error {
		run, _ := scheduler.RunFromContext(ctx)
		w := Write{Token: run.FencingToken(), Tick: run.Due.UnixMilli(), Attempt: run.Attempt}
		if err := store.Do(Claim, w); err != nil {
			return err
		}
		time.Sleep(Work)
		return store.Do(Put, w)
	}
	_, err = sched.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(task), gocron.WithName(s.Job),
		scheduler.WithCatchUp(time.Hour, scheduler.CatchUpAll), scheduler.WithDelivery(scheduler.AtLeastOnce))
	if err != nil {
		return err
	}
	sched.Start()
	report(Report{Kind: Up, At: time.Now().UnixMilli()})
	<-ctx.Done()
	return nil
}

// QuorumOptions are those on which all processes of the demonstration agree.
func (s Settings) QuorumOptions() []redlock.Option {
	options := []redlock.Option{
		redlock.WithPrefix(s.Prefix), redlock.WithTTL(s.TTL), redlock.WithClockSkew(ClockSkew),
		redlock.WithLogger(slog.New(slog.DiscardHandler)),
	}
	if !s.Gate {
		options = append(options, redlock.WithoutRestartGate())
	}
	return options
}

// dialer returns the function with which a client of valkey-go connects to the node with that URL.
func dialer(urls []string, url string, dial Dial) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	node := 0
	for i, u := range urls {
		if u == url {
			node = i + 1
		}
	}
	return func(ctx context.Context, addr string, _ *net.Dialer, config *tls.Config) (net.Conn, error) {
		if node == 0 {
			return nil, fmt.Errorf("service: %s is none of the nodes", addr)
		}
		conn, err := dial(ctx, node)
		if err != nil || config == nil {
			return conn, err
		}
		secured := tls.Client(conn, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return secured, nil
	}
}
