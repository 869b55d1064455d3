//go:build long

package scheduler_test

import (
	"crypto/sha256"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// cpu is the processor time that this process has used.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// unit is what a million blocks of SHA-256 cost here now, some 0.1 s on the machine of the bounds.
func unit(t *testing.T) time.Duration {
	t.Helper()
	before, sum, block := cpu(t), sha256.New(), make([]byte, 64)
	for range 1_000_000 {
		sum.Write(block)
	}
	require.Len(t, sum.Sum(nil), sha256.Size)
	return cpu(t) - before
}

// atMost reports whether a cost is below what it may be on a machine on which a unit takes 0.1 s. A
// machine that is busy is slower now than it was a moment ago, so a cost that is too large is
// measured again: one that is always too large is no fault of the machine.
func atMost(t *testing.T, cost, most time.Duration) bool {
	t.Helper()
	one := unit(t)
	t.Logf("a unit is %v, the cost %v of %v", one, cost, most)
	return float64(cost) < float64(most)*max(1, float64(one)/float64(100*time.Millisecond))
}

// Acceptance 18: 3,000 jobs cost half a second of processor time to be made and started, and half a
// percent of a core while they sleep.
func TestManyJobsCostLittle(t *testing.T) {
	const jobs, tries = 3000, 6
	fleet := valkeytest.Start(t, 3)
	start := func() (*replica, time.Duration) {
		// Nodes that are too slow would be asked again and again.
		r := &replica{q: open(t, fleet.URLs(), redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(15*time.Second))}
		before := cpu(t)
		s, err := scheduler.New(r.q, scheduler.WithLogger(silent), quiet, scheduler.WithLocation(time.UTC))
		require.NoError(t, err)
		r.Scheduler = s
		for i := range jobs {
			r.add(t, gocron.CronJob(fmt.Sprintf("%d %d 1 %d *", i%60, i/60%24, time.Now().AddDate(0, 6, 0).Month()), false), func() {}, gocron.WithName(fmt.Sprint("job ", i)))
		}
		r.Start()
		return r, cpu(t) - before
	}
	r, made := start()
	little := atMost(t, made, 500*time.Millisecond)
	for try := 1; !little && try < tries; try++ {
		require.NoError(t, r.Shutdown())
		r, made = start()
		little = atMost(t, made, 500*time.Millisecond)
	}
	require.True(t, little, "made and started")
	little = false
	for try := 0; !little && try < tries; try++ { // at first it writes records
		before := cpu(t)
		time.Sleep(20 * time.Second)
		little = atMost(t, (cpu(t)-before)/20, 5*time.Millisecond)
	}
	require.True(t, little, "asleep")
	require.NoError(t, r.Shutdown())
}
