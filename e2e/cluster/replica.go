// Package cluster runs the cluster that the pages show: Valkey servers, and replicas that share
// jobs, each in a process of its own. It also serves the handler of package web under a prefix.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// Replica says what the process of a replica does.
type Replica struct {
	Nodes    []string      // URLs
	Identity string        //
	TTL      time.Duration // TTL of all leases
	Jobs     []Job
	Leader   string // election whose leader runs the jobs; empty: any replica runs them
	Election string // another election in which the replica is a candidate; empty for none
	// Listen is the address at which the replica serves the pages, with every order allowed. Empty
	// for none.
	Listen string
}

// Job is a job of a Replica.
type Job struct {
	Name  string
	Cron  string        // with seconds
	Takes time.Duration // how long a run takes
	Fails string        // error with which runs fail; empty for none
	Every int           // every how many runs one fails, and the others succeed; 0: all fail
}

// Main runs the replica and exits if this process was started as a replica. Otherwise it returns at
// once. Programs and TestMains of this module call it first.
func Main() {
	if !child.IsReplica() {
		return
	}
	var r Replica
	err := child.Settings(&r)
	if err == nil {
		err = r.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run runs the replica until the standard input of the process ends, and then stops it in order.
func (r Replica) run() (err error) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	q, err := Open(r.Nodes, r.Identity, r.TTL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()

	var options []scheduler.Option
	if r.Leader != "" {
		options = append(options, scheduler.WithElection(r.Leader))
	}
	s, err := scheduler.New(q, append(options, scheduler.WithTelling(scheduler.Telling{ErrorTexts: true}))...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Shutdown()) }()
	for _, j := range r.Jobs {
		if _, err := s.NewJob(gocron.CronJob(j.Cron, true), gocron.NewTask(j.task()), gocron.WithName(j.Name)); err != nil {
			return err
		}
	}
	s.Start()

	if r.Election != "" {
		e, err := elector.New(q, r.Election)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(context.Background())
		left := make(chan error)
		go func() {
			left <- e.Run(ctx, func(ctx context.Context, _ *elector.Term) error {
				<-ctx.Done()
				return nil
			})
		}()
		defer func() {
			cancel()
			err = errors.Join(err, <-left)
		}()
	}

	if r.Listen != "" {
		a, err := admin.New(q)
		if err != nil {
			return err
		}
		_, stop, err := serve(r.Listen, a)
		if err != nil {
			return err
		}
		defer func() { _ = stop() }()
	}
	child.Work()
	return nil
}

func (j Job) task() func(ctx context.Context) error {
	runs := 0
	return func(ctx context.Context) error {
		runs++
		if err := clock.Sleep(ctx, j.Takes); err != nil {
			return err
		}
		if j.Fails != "" && runs%cmp.Or(j.Every, 1) == 0 {
			return errors.New(j.Fails)
		}
		return nil
	}
}

// Open opens a Quorum with the options of all replicas. The nodes must be servers that vote from
// the start.
func Open(nodes []string, identity string, ttl time.Duration) (*redlock.Quorum, error) {
	return redlock.Open(nodes, redlock.WithPrefix("e2e"), redlock.WithTTL(ttl), redlock.WithIdentity(identity),
		redlock.WithNodeTimeout(min(ttl/4, 2*time.Second)), redlock.WithLogger(slog.New(slog.DiscardHandler)))
}
