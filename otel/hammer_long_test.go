//go:build long

package tenureotel_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// Several replicas that share an Instrumentation lead, run jobs and acquire what they can while a
// reader collects. The race detector looks on, and the sums come out.
func TestEverythingAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t, tenureotel.WithExtendSpans())
		const replicas, workers, rounds = 3, 4, 10
		stop := make(chan struct{})
		var readers, busy sync.WaitGroup
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(7 * time.Millisecond):
					tel.scope(t)
				}
			}
		})
		for r := range replicas {
			q := open(t, fleet, redlock.WithTracer(tel))
			s := newScheduler(t, tel, q, scheduler.WithElection("jobs"), scheduler.WithGocron(tel.SchedulerOptions()...))
			_, err := s.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(func() {}), gocron.WithName("report"))
			require.NoError(t, err)
			s.Start()
			campaign(t, candidate(t, tel, q))
			for w := range workers {
				busy.Go(func() {
					for i := range rounds {
						key := fmt.Sprintf("key-%d", (r+w+i)%5)
						l, err := q.TryAcquire(t.Context(), key)
						if err != nil {
							continue
						}
						time.Sleep(time.Duration(w*500) * time.Millisecond)
						_ = l.Extend(t.Context())
						_ = l.Release(t.Context())
					}
				})
			}
		}
		busy.Wait()
		freeze(t, fleet, 0, 1, 2)
		pass(2 * ttl)
		thaw(t, fleet, 0, 1, 2)
		pass(20 * time.Second)
		close(stop)
		readers.Wait()
		require.Equal(t, replicas*workers*rounds,
			tel.total(t, "tenure.lease.acquire.duration")-acquisitionsOf(t, tel, "job/*", "election/jobs", "election/poller"))
		for i := range 5 {
			key := fmt.Sprintf("key-%d", i)
			require.Zero(t, tel.value(t, "tenure.lease.held", "tenure.lease.name", key))
			require.Equal(t, tel.total(t, "tenure.lease.acquire.duration", "tenure.lease.name", key, "tenure.outcome", "acquired"),
				tel.total(t, "tenure.lease.hold.duration", "tenure.lease.name", key))
		}
		require.NotZero(t, tel.count(t, "tenure.job.runs", "tenure.outcome", "success"))
		require.NotZero(t, tel.count(t, "tenure.election.transitions", "tenure.reason", "deadline"))
	})
}
