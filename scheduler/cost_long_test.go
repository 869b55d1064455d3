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

// Acceptance 18: 3,000 jobs cost half a second of processor time to be made and started, and half a
// percent of a core while they sleep. Both are bounds of a machine on which a unit takes 0.1 s.
func TestManyJobsCostLittle(t *testing.T) {
	const jobs = 3000
	fleet := valkeytest.Start(t, 3)
	start := func() (*replica, time.Duration) {
		r := &replica{q: open(t, fleet.URLs())}
		before := cpu(t)
		s, err := scheduler.New(r.q, scheduler.WithLogger(silent), quiet, scheduler.WithLocation(time.UTC))
		require.NoError(t, err)
		r.Scheduler = s
		for i := range jobs {
			r.add(t, gocron.CronJob(fmt.Sprintf("%d %d 1 1 *", i%60, i/60%24), false), func() {}, gocron.WithName(fmt.Sprint("job ", i)))
		}
		r.Start()
		return r, cpu(t) - before
	}
	first, _ := start()
	time.Sleep(20 * time.Second) // each has a record
	require.NoError(t, first.Shutdown())
	second, made := start()
	one := unit(t)
	scale := max(1, float64(one)/float64(100*time.Millisecond))
	before := cpu(t)
	time.Sleep(5 * time.Second)
	read := cpu(t) - before
	idle, before := time.Duration(0), cpu(t)
	time.Sleep(20 * time.Second)
	idle = (cpu(t) - before) / 20
	require.NoError(t, second.Shutdown())
	t.Logf("a unit is %v; made and started in %v, read in %v, asleep with %v a second", one, made, read, idle)
	require.Less(t, made, time.Duration(scale*float64(500*time.Millisecond)))
	require.Less(t, idle, time.Duration(scale*float64(5*time.Millisecond)))
}
