package deptest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/health"
	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/web"
)

// What the pages show, and no example runs: it is compiled here.
var _ = []any{
	opened, scheduled, report, led, heldBy, tried, moved, found, observed, changed, options, probedJobs, addressed, moving, mountedToEnd,
	authorized, tracedLogs,
}

func opened() error {
	q, err := redlock.Open([]string{"valkey://a:6379", "valkey://b:6379", "valkey://c:6379"},
		redlock.WithPrefix("billing")) // the service's name: services of different names never meet on the nodes
	if err != nil {
		return err
	}
	defer q.Close()
	return nil
}

func scheduled(q *redlock.Quorum) error {
	s, err := scheduler.New(q) // a gocron.Scheduler
	if err != nil {
		return err
	}
	_, err = s.NewJob(
		gocron.CronJob("0 3 * * *", false),
		gocron.NewTask(report),
		gocron.WithName("nightly-report"),
		scheduler.WithCatchUp(6*time.Hour, scheduler.CatchUpLatest), // late, if no replica was up at 03:00
	)
	if err != nil {
		return err
	}
	s.Start()
	defer s.Shutdown() // before q.Close
	return nil
}

func report(ctx context.Context) error {
	run, _ := scheduler.RunFromContext(ctx)
	return build(ctx, run.Due, run.FencingToken())
}

func build(context.Context, time.Time, uint64) error { return nil }

func options(s *scheduler.Scheduler) (gocron.Job, error) {
	return s.NewJob(
		gocron.CronJob("30 2 * * *", false),
		gocron.NewTask(report),
		gocron.WithName("nightly-report"),
		scheduler.WithCatchUp(6*time.Hour, scheduler.CatchUpLatest), // late, if no replica could at 02:30
		scheduler.WithDelivery(scheduler.AtLeastOnce),               // again, if its replica is killed
		scheduler.WithRetry(3, time.Minute),                         // again, if it fails
		scheduler.WithOverlap(scheduler.OverlapQueue),               // after a run that takes too long
		scheduler.WithSucceedWithin(26*time.Hour),                   // overdue after that
	)
}

func led(ctx context.Context, q *redlock.Quorum) error {
	e, err := elector.New(q, "webhook-sender")
	if err != nil {
		return err
	}
	return e.Run(ctx, func(ctx context.Context, term *elector.Term) error {
		for ctx.Err() == nil { // ends when leadership does, at the deadline at the latest
			if err := sendNext(ctx, term.Number()); err != nil {
				return err
			}
		}
		return nil
	})
}

func sendNext(context.Context, uint64) error { return nil }

func heldBy(ctx context.Context, q *redlock.Quorum) error {
	err := q.Do(ctx, "reports/nightly", func(ctx context.Context, l *redlock.Lease) error {
		return work(ctx, l.FencingToken()) // ctx ends with the caller's, and when the lease is lost
	})
	return err
}

func work(context.Context, uint64) error { return nil }

func found(ctx context.Context, q *redlock.Quorum) error {
	e, err := elector.New(q, "cache", elector.WithPayload("10.0.0.1:8080"))
	if err != nil {
		return err
	}
	leader, err := e.Leader(ctx) // on any replica; elector.ErrNoLeader if nobody leads
	if err != nil {
		return err
	}
	conn, err := net.Dial("tcp", leader.Payload)
	if err != nil {
		return err
	}
	return conn.Close()
}

func observed(ctx context.Context, q *redlock.Quorum) {
	for leader, err := range elector.Observe(ctx, q, "cache") {
		switch {
		case err != nil:
			slog.WarnContext(ctx, "the leader is not known", "error", err)
		case leader.Term == 0:
			slog.InfoContext(ctx, "nobody leads")
		default:
			slog.InfoContext(ctx, "the leader", "identity", leader.Identity, "address", leader.Payload)
		}
	}
}

func changed(ctx context.Context, e *elector.Elector) {
	for c := range e.Changes(ctx) {
		slog.InfoContext(ctx, "election", "kind", c.Kind, "term", c.Term, "reason", c.Reason)
	}
}

func tried(ctx context.Context, q *redlock.Quorum) error {
	lease, err := q.TryAcquire(ctx, "reports/nightly")
	if errors.Is(err, redlock.ErrHeld) {
		return nil // another process has it; *redlock.HeldError says which
	}
	if err != nil {
		return err
	}
	defer lease.Release(ctx)
	return work(lease.Context(), lease.FencingToken())
}

func moved(ctx context.Context, q *redlock.Quorum, old func(context.Context) (func(), error)) error {
	unlock, err := old(ctx) // always the old one first, so that no two wait for each other
	if err != nil {
		return err
	}
	defer unlock()
	return q.Do(ctx, "report", func(ctx context.Context, l *redlock.Lease) error {
		return work(ctx, l.FencingToken())
	})
}

func probedJobs(mux *http.ServeMux, q *redlock.Quorum, jobs *scheduler.Scheduler) {
	probes := health.New(q, jobs)
	mux.Handle("/livez", probes)
	mux.Handle("/readyz", probes)
}

func addressed(q *redlock.Quorum, podIP string) error {
	s, err := scheduler.New(q, scheduler.WithElection("reports", elector.WithPayload("http://"+podIP+":8080")))
	_ = s
	return err
}

func moving(ctx context.Context, q *redlock.Quorum) error {
	c, err := admin.New(q, admin.WithActor("ann"))
	if err != nil {
		return err
	}
	job := admin.Job("nightly-report")
	if _, err := c.Pause(ctx, job, admin.PauseOptions{Reason: "the database moves"}); err != nil {
		return err
	}
	if err := c.Wait(ctx, "nightly-report"); err != nil { // for a run that had begun
		return err
	}
	if err := moveDatabase(ctx); err != nil {
		return err
	}
	return c.Resume(ctx, job, "it has moved")
}

func moveDatabase(context.Context) error { return nil }

func mountedToEnd(mux *http.ServeMux, server *http.Server, q *redlock.Quorum) error {
	a, err := admin.New(q)
	if err != nil {
		return err
	}
	h, err := web.New(a)
	if err != nil {
		return err
	}
	mux.Handle("/tenure/", http.StripPrefix("/tenure", h))
	server.RegisterOnShutdown(func() { _ = h.Close() }) // ends streams of events
	return nil
}

func authorized(a *admin.Client) (*web.Handler, error) {
	h, err := web.New(a, web.WithActions(func(r *http.Request, o admin.Order) (string, error) {
		user := r.Header.Get("X-Forwarded-Email") // or r.BasicAuth, which your middleware has checked
		if user == "" || !mayOrder(user, o) {     // by o.Kind and o.Target: a job, an election, or all jobs
			return "", fmt.Errorf("%q may not %s %q", user, o.Kind, o.Target)
		}
		return user, nil
	}))
	return h, err
}

func mayOrder(string, admin.Order) bool { return false }

func tracedLogs(urls []string) error {
	tel, err := tenureotel.New() // with the global providers, also those that are set later
	if err != nil {
		return err
	}
	slog.SetDefault(slog.New(tenureotel.NewLogHandler(slog.NewJSONHandler(os.Stderr, nil)))) // trace_id in lines
	q, err := redlock.Open(urls, redlock.WithPrefix("billing"), redlock.WithTracer(tel))
	if err != nil {
		return err
	}
	s, err := scheduler.New(q, scheduler.WithTracer(tel.Scheduler())) // its election included
	_ = s
	return err
}
