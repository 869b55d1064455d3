package main

import (
	"context"
	"fmt"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

const telemetryCallers = 64

func telemetryRow() *row {
	const steadyCPU = "client CPU us/pair, steady"
	return &row{
		name: "telemetry", title: fmt.Sprintf("OpenTelemetry on, %d goroutines", telemetryCallers),
		columns: []column{{Name: "pairs/s"}, {Name: "x none", Of: "pairs/s", To: rival.Tenure.Name},
			{Name: clientCPU}, {Name: "client CPU x none", Of: clientCPU, To: rival.Tenure.Name}, {Name: serverCPU},
			{Name: allocations}, {Name: steadyCPU}, {Name: "steady x none", Of: steadyCPU, To: rival.Tenure.Name}, {Name: "failed"}},
		run: func(ctx context.Context, s *stage, b *board) error {
			b.Work = fmt.Sprintf("OpenTelemetry's SDK aggregates metrics and batches spans, which its exporter drops; the names of leases are their keys. "+
				"Each goroutine has one key; then %d pairs begin in a second, in an open loop of %s with new keys: a rival of which some failed has had less to do. ", steadyRate, s.size.open)
			m := many{goroutines: telemetryCallers, key: ownKeys}
			m.then = func(e *entrant) error {
				plan := newSchedule(steadyRate, s.size.open)
				times, spent, err := s.openLoop(ctx, e, plan)
				if err != nil {
					return err
				}
				b.add(e.Kind, steadyCPU, micros(spent.client)/float64(plan.pairs))
				b.add(e.Kind, "failed", float64(times.failed))
				return nil
			}
			return s.distinct(ctx, b, rival.Observed(), m)
		},
	}
}
