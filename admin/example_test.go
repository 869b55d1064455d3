package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// An operator's process pauses a job on all replicas, waits for a run that had begun, and resumes
// it.
func Example() {
	fleet, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()
	q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithTTL(time.Minute),
		redlock.WithNodeTimeout(15*time.Second), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	c, err := admin.New(q, admin.WithActor("ann"), admin.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()

	job := admin.Job("nightly-report")
	if _, err = c.Pause(ctx, job, admin.PauseOptions{Reason: "the database moves", Force: true}); err != nil {
		log.Fatal(err)
	}
	if err = c.Wait(ctx, "nightly-report"); err != nil {
		log.Fatal(err)
	}
	p, err := c.Paused(ctx, job)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v is paused by %s: %s\n", p.Target, p.By, p.Reason)
	if err = c.Resume(ctx, job, "moved"); err != nil {
		log.Fatal(err)
	}
	if _, err = c.Paused(ctx, job); errors.Is(err, admin.ErrNotPaused) {
		fmt.Println("it is not paused any more")
	}
	// Output:
	// job "nightly-report" is paused by ann: the database moves
	// it is not paused any more
}
