package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// cluster is one replica with a job that takes until its context ends, or as long as given, on
// three nodes in this process, and a Client of another process. The machine may be busy, and it is
// noon: nothing is due.
func cluster(takes time.Duration) (c *admin.Client, end func()) {
	fleet, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	open := func(identity string) *redlock.Quorum {
		q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithIdentity(identity), redlock.WithLogger(quiet),
			redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(15*time.Second))
		if err != nil {
			log.Fatal(err)
		}
		return q
	}
	replica, operator := open("replica-1"), open("ann's laptop")
	noon, err := time.LoadLocation(fmt.Sprintf("Etc/GMT%+d", time.Now().UTC().Hour()-12))
	if err != nil {
		log.Fatal(err)
	}
	s, err := scheduler.New(replica, scheduler.WithElection("jobs"), scheduler.WithLocation(noon), scheduler.WithLogger(quiet))
	if err != nil {
		log.Fatal(err)
	}
	_, err = s.NewJob(gocron.CronJob("0 3 * * *", false), gocron.NewTask(func(ctx context.Context) error {
		select {
		case <-time.After(takes):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}), gocron.WithName("nightly-report"))
	if err != nil {
		log.Fatal(err)
	}
	s.Start()
	c, err = admin.New(operator, admin.WithActor("ann"), admin.WithLogger(quiet), admin.WithOrderTimeout(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	for told := false; !told; { // what a replica says is there within a second
		all, err := c.Replicas(context.Background())
		jobs := 0
		for _, err := range c.Jobs(context.Background()) {
			if err == nil {
				jobs++
			}
		}
		told = err == nil && len(all) == 1 && len(all[0].Leads) == 1 && jobs == 1
		time.Sleep(10 * time.Millisecond) // until it asks again
	}
	return c, func() {
		_ = s.Shutdown()
		_ = replica.Close()
		_ = operator.Close()
		_ = fleet.Close()
	}
}

func ExampleClient_Replicas() {
	c, end := cluster(time.Second)
	defer end()
	replicas, err := c.Replicas(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range replicas {
		fmt.Println(r.Identity, "has", r.Jobs, "and leads", r.Leads)
	}
	// Output: replica-1 has [nightly-report] and leads [jobs]
}

func ExampleClient_Jobs() {
	c, end := cluster(time.Second)
	defer end()
	for j, err := range c.Jobs(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s, by the leader of %q; late: %v, paused: %v, running: %v\n",
			j.Name, j.Schedule, j.Election, j.Late, j.Paused != nil, j.Running != nil)
	}
	// Output:
	// nightly-report: 0 3 * * *, by the leader of "jobs"; late: false, paused: false, running: false
}

func ExampleClient_RunNow() {
	c, end := cluster(time.Second)
	defer end()
	ctx := context.Background()
	run, err := c.RunNow(ctx, "nightly-report", "a customer waits")
	switch {
	case err == nil:
		fmt.Println(run.Replica, "has begun it")
	case errors.Is(err, admin.ErrRefused): // such as "overlap": a run of it goes on
		fmt.Println("it cannot be run:", redlock.ErrorType(err))
	case errors.Is(err, admin.ErrNobody):
		fmt.Println("nobody runs it, and nobody will:", redlock.ErrorType(err))
	default: // admin.ErrUnknown: ask Running and Orders before it is tried again
		fmt.Println("not known:", err)
	}
	if err := c.Wait(ctx, "nightly-report"); err != nil {
		log.Fatal(err)
	}
	runs, err := c.Runs(ctx, "nightly-report", 1)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range runs {
		fmt.Printf("it ended: %s, asked for: %v, after a second: %v\n", r.Outcome, r.Order == run.Order, r.Took >= time.Second)
	}
	// Output:
	// replica-1 has begun it
	// it ended: ok, asked for: true, after a second: true
}

func ExampleClient_Cancel() {
	c, end := cluster(time.Hour)
	defer end()
	ctx := context.Background()
	if _, err := c.RunNow(ctx, "nightly-report", ""); err != nil {
		log.Fatal(err)
	}
	run, err := c.Running(ctx, "nightly-report")
	if err != nil {
		log.Fatal(err)
	}
	if err := c.Cancel(ctx, run.ID(), "it is the wrong one"); err != nil {
		log.Fatal(err)
	}
	if err := c.Wait(ctx, "nightly-report"); err != nil {
		log.Fatal(err)
	}
	runs, err := c.Runs(ctx, "nightly-report", 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(runs[0].Outcome)
	// Output: cancelled
}

func ExampleClient_Resign() {
	c, end := cluster(time.Second)
	defer end()
	ctx := context.Background()
	switch err := c.Resign(ctx, "jobs", "the machine is to be replaced"); {
	case err == nil:
		fmt.Println("its leader has stepped down")
	case errors.Is(err, elector.ErrNoLeader):
		fmt.Println("nobody leads")
	default:
		fmt.Println("not known:", err)
	}
	e, err := c.Election(ctx, "jobs")
	if err != nil {
		log.Fatal(err)
	}
	for _, term := range e.Terms {
		if term.How != "" {
			fmt.Println(term.Identity, term.How)
		}
	}
	// Output:
	// its leader has stepped down
	// replica-1 resigned
}

func ExampleClient_Orders() {
	c, end := cluster(time.Second)
	defer end()
	ctx := context.Background()
	if _, err := c.Pause(ctx, admin.AllJobs, admin.PauseOptions{Reason: "the database moves"}); err != nil {
		log.Fatal(err)
	}
	orders, err := c.Orders(ctx, 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range orders {
		fmt.Printf("%s by %s (%s): %s\n", o.Kind, o.By, o.Why, o.Result)
	}
	// Output: pause by ann (the database moves): done
}

func ExampleClient_Watch() {
	c, end := cluster(time.Second)
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	asked := make(chan struct{})
	defer func() { cancel(); <-asked }()
	go func() {
		defer close(asked)
		for ctx.Err() == nil { // until Watch hears, which it tells nobody
			_, _ = c.RunNow(ctx, "nightly-report", "")
			time.Sleep(100 * time.Millisecond)
		}
	}()
	for change, err := range c.Watch(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if change.Run != nil {
			fmt.Println(change.Run.Job, change.Run.Outcome)
			break
		}
	}
	// Output: nightly-report ok
}
