package tenureotel_test

import (
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// BenchmarkHeld10k is 10,000 leases that are held for 30 s, and what the process spends on each in
// a second. An iteration takes that long, so run it with -benchtime 1x. "tracer=default" is
// tenureotel.New() where the program has installed no SDK.
func BenchmarkHeld10k(b *testing.B) {
	const many, held = 10_000, 30 * time.Second
	servers := valkeytest.Start(b, 5, valkeytest.WithAge(time.Hour))
	for _, s := range append([]setup{bare, {name: "tracer=default"}}, setups...) {
		b.Run(s.name, func(b *testing.B) {
			var opts []redlock.Option
			if s.name != bare.name {
				opts = append(opts, redlock.WithTracer(s.instrument(b)))
			}
			q, err := redlock.Open(servers.URLs(), opts...)
			require.NoError(b, err)
			defer func() { require.NoError(b, q.Close()) }()
			q.Nodes(b.Context())
			leases := make([]*redlock.Lease, many)
			each := func(f func(i int)) {
				var wg sync.WaitGroup
				const workers = 64
				for w := range workers {
					wg.Go(func() {
						for i := w; i < many; i += workers {
							f(i)
						}
					})
				}
				wg.Wait()
			}
			each(func(i int) {
				l, err := q.TryAcquire(b.Context(), "key"+strconv.Itoa(i))
				if err != nil {
					b.Error(err)
					return
				}
				leases[i] = l
			})
			time.Sleep(2 * redlock.DefaultTTL / 3) // beyond the first extensions, which spread the tokens
			b.ResetTimer()
			before := used(b)
			for range b.N {
				time.Sleep(held)
			}
			b.ReportMetric(float64((used(b)-before).Microseconds())/(float64(b.N)*held.Seconds()*many), "cpu-us/lease-s")
			b.StopTimer()
			for _, l := range leases {
				require.NoError(b, l.Err())
			}
			each(func(i int) { _ = leases[i].Release(b.Context()) })
		})
	}
}

// used is the time that the process has spent on processors.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
