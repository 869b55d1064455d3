package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func BenchmarkLeaseErr(b *testing.B) {
	fleet := redlocktest.Start(b, 3)
	q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption))
	require.NoError(b, err)
	defer q.Close()
	l, err := q.TryAcquire(b.Context(), "key")
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if l.Err() != nil {
			b.Fatal(l.Err())
		}
	}
}
