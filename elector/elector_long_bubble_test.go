//go:build long

package elector_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A lead that passes its context's error on has not failed: no back-off, no warning, and the reason
// is what ended the term.
func TestLeadThatReturnsItsContextsErrorHasNotFailed(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		e := candidate(t, fleet, elector.WithBackoff(time.Hour, time.Hour))
		terms := make(chan *elector.Term, 10)
		r := run(t, e, func(ctx context.Context, term *elector.Term) error {
			terms <- term
			<-ctx.Done()
			return ctx.Err()
		})
		changes := e.Changes(t.Context())
		require.NoError(t, (<-terms).Resign(t.Context()))
		<-terms
		for i := range 2 {
			require.NoError(t, fleet.Node(i).Freeze())
		}
		time.Sleep(2 * ttl)
		for i := range 2 {
			require.NoError(t, fleet.Node(i).Thaw())
		}
		<-terms
		require.NoError(t, r.end())
		var reasons []elector.Reason
		for c := range changes {
			if c.Kind != elector.Elected {
				if reasons = append(reasons, c.Reason); len(reasons) == 3 {
					break
				}
			}
		}
		require.Equal(t, []elector.Reason{elector.ReasonResigned, elector.ReasonDeadline, elector.ReasonShutdown}, reasons)
	})
}
