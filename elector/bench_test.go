package elector_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
)

// Only ratios between benchmarks of one run mean anything. benchstat shows each beside its floor:
//
//	go test -run '^$' -bench . -count 6 ./elector | sed 's,Floor,/of=floor,' | benchstat -col '/of@(floor "")' -

// BenchmarkIsLeader asks the replica that leads whether it does.
func BenchmarkIsLeader(b *testing.B) {
	e, err := elector.New(localQuorum(b), "test")
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- e.Run(ctx, nil) }()
	b.Cleanup(func() {
		cancel()
		require.NoError(b, <-done)
	})
	for range e.Changes(ctx) {
		break
	}
	b.ReportAllocs()
	for b.Loop() {
		if e.IsLeader(ctx) != nil {
			b.Fatal("not the leader")
		}
	}
}
