package tenureotel_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// series counts what Prometheus makes of the metrics: of a histogram one for each bucket, the sum
// and the count.
func (tel *telemetry) series(t *testing.T) (n int, by map[string]int) {
	t.Helper()
	by = make(map[string]int)
	for _, m := range tel.scope(t).Metrics {
		each := 1
		if h, ok := m.Data.(metricdata.Histogram[float64]); ok {
			each = len(h.DataPoints[0].Bounds) + 3
		}
		by[m.Name] = each * len(pointsOf(t, m))
		n += by[m.Name]
	}
	return n, by
}

// A job costs so many series on each replica that runs it, and as many whatever happens to it; its
// lease costs none. The page says how many.
func TestSeriesOfAJob(t *testing.T) {
	three(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		s := newScheduler(t, tel, open(t, fleet, redlock.WithTracer(tel)))
		add := func(name string, runs ...func() error) {
			n := 0
			_, err := s.NewJob(everyTen, gocron.NewTask(func() error {
				n++
				return runs[min(n, len(runs))-1]()
			}), gocron.WithName(name), survivesPanics, scheduler.WithSucceedWithin(time.Hour))
			require.NoError(t, err)
		}
		lives := []func() error{
			func() error { return nil },
			func() error { return fmt.Errorf("failed") },
			func() error { panic("panicked") },
			func() error { time.Sleep(15 * time.Second); return nil },
			func() error { return nil },
		}
		add("first", lives...)
		s.Start()
		pass(61 * time.Second) // whatever is there once is there
		one, before := tel.series(t)
		add("second", lives...)
		pass(61 * time.Second)
		two, after := tel.series(t)
		for name := range after {
			if n := after[name] - before[name]; n != 0 {
				t.Logf("%2d %s", n, name)
				require.True(t, strings.HasPrefix(name, "tenure.job."), name)
			}
		}
		require.Equal(t, 39, two-one)
		page, err := os.ReadFile("../docs/telemetry.md")
		require.NoError(t, err)
		require.Contains(t, string(page), fmt.Sprintf("**%d series a job**", two-one))
	})
}
