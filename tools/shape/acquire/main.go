// Command acquire is run by shape, built with -cover: it makes a Quorum of nodes in process, warms
// it up, and writes the coverage counters of a few uncontended calls of TryAcquire, each into a
// directory of its own, which its arguments name.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/coverage"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// rest is how long everything that a call sets off takes at most: late answers, and the ends of the
// goroutines' loops.
const rest = 50 * time.Millisecond

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dirs []string) error {
	fleet, err := redlocktest.New(3)
	if err != nil {
		return err
	}
	defer fleet.Close()
	q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption))
	if err != nil {
		return err
	}
	defer q.Close()
	for range 3 { // warms up
		if err := acquire(ctx, q, func() error { return nil }); err != nil {
			return err
		}
	}
	for _, dir := range dirs {
		if err := coverage.ClearCounters(); err != nil {
			return err
		}
		write := func() error {
			if err := coverage.WriteMetaDir(dir); err != nil {
				return err
			}
			return coverage.WriteCountersDir(dir)
		}
		if err := acquire(ctx, q, write); err != nil {
			return err
		}
	}
	return nil
}

// acquire calls then with the lease held, when all nodes have answered, and releases it.
func acquire(ctx context.Context, q *redlock.Quorum, then func() error) error {
	lease, err := q.TryAcquire(ctx, "key")
	if err != nil {
		return err
	}
	time.Sleep(rest)
	if err := then(); err != nil {
		return err
	}
	err = lease.Release(ctx)
	time.Sleep(rest)
	return err
}
