package tenureotel_test

import (
	"sync"
	"testing"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// What is made once for a name may be asked for by several at the same moment.
func TestFirstUseByManyAtOnce(t *testing.T) {
	for range 20 {
		tel := newTelemetry(t, tenureotel.WithAttributes(environment))
		var ready, done sync.WaitGroup
		gate := make(chan struct{})
		for range 16 {
			ready.Add(1)
			done.Go(func() {
				ready.Done()
				<-gate
				ctx := tel.TraceAcquireStart(t.Context(), redlock.TraceAcquireStartData{Key: "orders"})
				for _, err := range []error{nil, redlock.ErrTimeout} {
					node := tel.TraceNodeStart(ctx, redlock.TraceNodeStartData{Op: redlock.OpAcquire, Key: "orders", Node: "node:6379"})
					tel.TraceNodeEnd(node, redlock.TraceNodeEndData{Op: redlock.OpAcquire, Key: "orders", Node: "node:6379", Err: err, OK: err == nil})
				}
				tel.TraceAcquireEnd(ctx, redlock.TraceAcquireEndData{Key: "orders", Err: redlock.ErrNoQuorum})
				tel.Scheduler().Skip(ctx, &scheduler.SkipError{Job: "report", Count: 1, Reason: scheduler.SkipMissed})
				tel.IncrementJob([16]byte{}, "bare", nil, gocron.Skip)
			})
		}
		ready.Wait()
		close(gate)
		tel.scope(t) // as a reader does meanwhile
		done.Wait()
		require.Equal(t, 16, tel.total(t, "tenure.lease.acquire.duration"))
		require.Equal(t, 32, tel.total(t, "tenure.node.operation.duration", "server.address", "node", "tenure.operation", "acquire"))
		require.Equal(t, 16, tel.count(t, "tenure.job.skipped", "tenure.reason", "missed"))
	}
}
