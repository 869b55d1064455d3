// Package service is the service of the demonstration: what runs in each replica. It is the quick
// start's service, and tells more of itself: every lease from its grant to its end, and every run.
//
// Each run writes to a store that keeps the largest fencing token it has seen. It writes without a
// last look at its context. Careful code looks, and is paused after the look: then its write comes
// late all the same, and only the store can refuse it (docs/leases.md).
package service

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"
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

// job is the job, and the election of who runs it.
const job = "quickstart"

// Settings are what a replica is told when it starts.
type Settings struct {
	Replica string        `json:"replica"` // its name
	Number  int           `json:"number"`  // its number, from 0
	Prefix  string        `json:"prefix"`  // the service's name on the nodes
	Nodes   []string      `json:"nodes"`   // the URLs of the nodes, the same for every replica
	TTL     time.Duration `json:"ttl"`
	Gate    bool          `json:"gate"` // with the restart gate
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

	sched, err := scheduler.New(q, scheduler.WithElection(job), scheduler.WithTracer(runs(report)),
		scheduler.WithLogger(slog.New(slog.DiscardHandler))) // the page shows what happens
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sched.Shutdown()) }()

	task := func(ctx context.Context) error {
		run, _ := scheduler.RunFromContext(ctx)
		w := Write{Do: Claim, Token: run.FencingToken(), Tick: run.Due.UnixMilli(), Attempt: run.Attempt}
		if err := ask(dial, w); err != nil {
			return err
		}
		time.Sleep(Work)
		w.Do = Put
		return ask(dial, w)
	}
	_, err = sched.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(task), gocron.WithName(job),
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
	return func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return dial(ctx, slices.Index(urls, url)+1)
	}
}
