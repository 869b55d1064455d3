//go:build long

package scheduler_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// A task, a listener or a tracer may call its own Scheduler.
func TestSelfCalls(t *testing.T) {
	calls := map[string]func(r *replica, j gocron.Job){
		"RemoveJob": func(r *replica, j gocron.Job) { _ = r.RemoveJob(j.ID()) },
		"StopJobs":  func(r *replica, _ gocron.Job) { _ = r.StopJobs() },
		"Shutdown":  func(r *replica, _ gocron.Job) { _ = r.Shutdown() },
		"RunNow":    func(_ *replica, j gocron.Job) { _ = j.RunNow() },
		"Update": func(r *replica, j gocron.Job) {
			_, _ = r.Update(j.ID(), tenSecondly, gocron.NewTask(func() {}), gocron.WithName("job"))
		},
		"Jobs": func(r *replica, _ gocron.Job) {
			for _, j := range r.Jobs() {
				_, _ = j.NextRun()
				_, _ = j.LastRunStartedAt()
			}
		},
	}
	for from := range map[string]bool{"task": true, "listener": true, "tracer": true} {
		for name, call := range calls {
			t.Run(name+" in a "+from, func(t *testing.T) {
				inCluster(t, func(t *testing.T, c *cluster) {
					var r *replica
					var job gocron.Job
					var called, returned atomic.Int64
					do := func() {
						if called.Add(1) == 1 {
							call(r, job)
							returned.Add(1)
						}
					}
					opts, task, listen := []scheduler.Option{scheduler.WithStopTimeout(3 * time.Second)}, func() {}, gocron.WithTags("none")
					switch from {
					case "task":
						task = do
					case "listener":
						listen = gocron.WithEventListeners(gocron.BeforeJobRuns(func(uuid.UUID, string) { do() }))
					case "tracer":
						opts = append(opts, scheduler.WithTracer(&scheduler.Tracer{RunStart: func(ctx context.Context, _ scheduler.RunStartTrace) context.Context {
							do()
							return ctx
						}}))
					}
					r = c.replica(append(opts, quiet)...)
					job = r.add(t, tenSecondly, task, listen)
					r.Start()
					until(at(35))
					require.EqualValues(t, 1, returned.Load())
					if name == "RunNow" || name == "Jobs" {
						require.Greater(t, called.Load(), int64(2), "the job lives")
					}
				})
			})
		}
	}
}
