package scheduler_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

const (
	// processVariable makes the test binary a replica: its value is the nodes' URLs, by how much
	// its clock is ahead, and the election's name.
	processVariable = "SCHEDULER_TEST_REPLICA"
	processTTL      = 2 * time.Second
)

// beReplica runs a job every second and prints the tick of each run, until its input ends or it is
// killed.
func beReplica(settings string) error {
	part := strings.Split(settings, " ")
	skew, err := time.ParseDuration(part[1])
	if err != nil {
		return err
	}
	q, err := redlock.Open(strings.Split(part[0], ","), redlock.WithTTL(processTTL), redlock.WithMaxTTL(processTTL), redlock.WithClockSkew(time.Second), redlock.WithLogger(silent))
	if err != nil {
		return err
	}
	opts := []scheduler.Option{ahead(skew), scheduler.WithLogger(silent), jobOptions(within(time.Minute, scheduler.CatchUpAll))}
	if part[2] != "" {
		opts = append(opts, scheduler.WithElection(part[2]))
	}
	s, err := scheduler.New(q, opts...)
	if err != nil {
		return err
	}
	if _, err := s.NewJob(secondly, gocron.NewTask(func(ctx context.Context) {
		run, _ := scheduler.RunFromContext(ctx)
		fmt.Println(run.Due.Unix())
	}), gocron.WithName("job")); err != nil {
		return err
	}
	s.Start()
	child.Work()
	if err := s.Shutdown(); err != nil {
		return err
	}
	return q.Close()
}
