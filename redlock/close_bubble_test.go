package redlock_test

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// How long Close waits for nodes that do not answer, as its doc comment says.
func TestCloseIsBounded(t *testing.T) {
	const ttl = 20 * time.Second
	for _, test := range []struct {
		timeout time.Duration // zero for the default
		given   time.Duration // after which a connection is given up
	}{
		{0, 2 * time.Second},
		{100 * time.Millisecond, 2 * time.Second},
		{1500 * time.Millisecond, 3 * time.Second},
		{5 * time.Second, 7 * time.Second},
	} {
		t.Run(fmt.Sprint(test.timeout), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fleet := redlocktest.StartPipes(t, 3)
				opts := []redlock.Option{redlock.WithClientOption(fleet.ClientOption), redlock.WithTTL(ttl), redlock.WithLogger(slog.New(slog.DiscardHandler))}
				if test.timeout != 0 {
					opts = append(opts, redlock.WithNodeTimeout(test.timeout), redlock.WithExtendInterval(ttl/8))
				}
				q, err := redlock.Open(fleet.URLs(), opts...)
				require.NoError(t, err)
				q.Nodes(t.Context())
				l := acquire(t, q)
				synctest.Wait()
				freeze(t, fleet, 0, 1, 2)
				go func() { _ = l.Release(t.Context()) }()
				synctest.Wait()
				start := time.Now()
				require.NoError(t, q.Close())
				require.LessOrEqual(t, time.Since(start), 2*test.given+time.Second)
			})
		})
	}
}
