// Package service is the service of the demonstration, which runs in each replica. It is the
// service of the quick start, and reports more: each lease from its grant to its end, and each run.
//
// Each run writes to a store that keeps the largest fencing token it has seen. The report of a
// write is the write itself. A run does not check its context before it writes. Careful code
// checks, but it can be paused after the check: the write is then late all the same, and only the
// store can refuse it (docs/leases.md).
package service

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// ClockSkew is the largest difference between the nodes' clocks. It is small because all nodes are
// on one machine.
const ClockSkew = 100 * time.Millisecond

// Work is how long a run takes: long enough for the reader to harm the replica during a run.
const Work = 300 * time.Millisecond

// job is the name of the job, and of the election whose leader runs it.
const job = "quickstart"

// Settings has what a replica needs to know when it starts.
type Settings struct {
	Replica string        `json:"replica"` // its name
	Number  int           `json:"number"`  // its number, from 0
	Prefix  string        `json:"prefix"`  // the service's name on the nodes
	Nodes   []string      `json:"nodes"`   // the URLs of the nodes, the same for every replica
	TTL     time.Duration `json:"ttl"`
	Gate    bool          `json:"gate"` // with the restart gate
}

// Dial connects a replica with a node. Nodes are numbered from 1.
type Dial func(node int) net.Conn

// Serve runs the replica until ctx ends, and reports its events. At the end it stops the job first,
// then the Quorum.
func Serve(ctx context.Context, s Settings, dial Dial, report func(Report)) (err error) {
	options := append(s.QuorumOptions(),
		redlock.WithIdentity(s.Replica),
		redlock.WithTracer(leases{report}),
		redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
			o.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
				return dial(slices.Index(s.Nodes, url) + 1), nil
			}
		}))
	q, err := redlock.Open(s.Nodes, options...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()

	sched, err := scheduler.New(q, scheduler.WithElection(job), scheduler.WithTracer(runs(report)),
		scheduler.WithLogger(slog.New(slog.DiscardHandler))) // the page shows the events
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sched.Shutdown()) }()

	task := func(ctx context.Context) {
		run, _ := scheduler.RunFromContext(ctx)
		write := Report{Kind: Claimed, Token: run.FencingToken(), Tick: run.Due.UnixMilli(), Attempt: run.Attempt}
		report(write)
		time.Sleep(Work)
		write.Kind = Written
		report(write)
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

// QuorumOptions returns the options that all processes of the demonstration share.
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

// The kinds of Report.
const (
	Up       = "up"       // the replica has started
	Granted  = "granted"  // a lease was granted, of the kind Of
	Extended = "extended" // a lease was extended to Until
	Released = "released" // a lease is about to be released
	Lost     = "lost"     // a lease was lost, for the reason Why
	Begun    = "begun"    // a run has begun: Tick and Attempt
	Claimed  = "claimed"  // the store has seen the token of a run, before the run writes
	Written  = "written"  // a run has written to the store
)

// The kinds of lease.
const (
	OfTerm = "term"
	OfRun  = "run"
)

// Report is one event of a replica. Times are Unix milliseconds.
type Report struct {
	Kind    string `json:"kind"`
	Of      string `json:"of,omitempty"`
	At      int64  `json:"at"`
	Token   uint64 `json:"token,omitempty"`
	Until   int64  `json:"until,omitempty"` // the lease's deadline
	Tick    int64  `json:"tick,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Why     string `json:"why,omitempty"`
}

// lease returns the kind of the lease of a key, or "" for other keys.
func lease(key string) string {
	switch {
	case strings.HasPrefix(key, elector.KeyPrefix):
		return OfTerm
	case strings.HasPrefix(key, scheduler.KeyPrefix):
		return OfRun
	}
	return ""
}

// leases is a redlock tracer that reports every lease of the replica, from its grant to its end.
//
// It reports an end before the nodes hear of the release, so the report of the next holder's grant
// comes later.
type leases struct{ report func(Report) }

func (l leases) tell(kind, key string, lea *redlock.Lease, why string) {
	of := lease(key)
	if of == "" {
		return
	}
	l.report(Report{
		Kind: kind, Of: of, At: time.Now().UnixMilli(),
		Token: lea.FencingToken(), Until: lea.Deadline().UnixMilli(), Why: why,
	})
}

func (l leases) TraceAcquireStart(ctx context.Context, _ redlock.TraceAcquireStartData) context.Context {
	return ctx
}

func (l leases) TraceAcquireEnd(_ context.Context, data redlock.TraceAcquireEndData) {
	if data.Lease != nil {
		l.tell(Granted, data.Key, data.Lease, "")
	}
}

func (l leases) TraceExtend(_ context.Context, data redlock.TraceExtendData) {
	if data.Err == nil {
		l.tell(Extended, data.Key, data.Lease, "")
	}
}

func (l leases) TraceReleaseStart(ctx context.Context, data redlock.TraceReleaseStartData) context.Context {
	if !errors.Is(data.Lease.Err(), redlock.ErrLost) { // TraceLost has reported it
		l.tell(Released, data.Key, data.Lease, "")
	}
	return ctx
}

func (l leases) TraceReleaseEnd(context.Context, redlock.TraceReleaseEndData) {}

func (l leases) TraceLost(_ context.Context, data redlock.TraceLostData) {
	l.tell(Lost, data.Key, data.Lease, string(data.Reason))
}

// runs returns a tracer that reports the runs of the job.
func runs(report func(Report)) *scheduler.Tracer {
	return &scheduler.Tracer{
		RunStart: func(ctx context.Context, data scheduler.RunStartTrace) context.Context {
			report(Report{
				Kind: Begun, Of: OfRun, At: time.Now().UnixMilli(), Token: data.Run.FencingToken(),
				Until: data.Run.Deadline().UnixMilli(), Tick: data.Run.Due.UnixMilli(), Attempt: data.Run.Attempt,
			})
			return ctx
		},
	}
}
