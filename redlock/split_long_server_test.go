//go:build long

package redlock_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Two replicas at a distance, with one of three servers dead, ask for each key at the same moment.
// How long it takes them is shown on fake time; here a busy machine may even have the other one
// give up first.
func TestTwoRivalsOnServersOfWhichOneIsDead(t *testing.T) {
	t.Parallel()
	const oneWay = 5 * time.Millisecond
	s := startServers(t, 3)
	patient := []redlock.Option{redlock.WithTTL(longTTL), redlock.WithNodeTimeout(longTTL / 4)}
	rivals := []*redlock.Quorum{
		s.open(append(patient, s.distant(oneWay/10, oneWay, oneWay), redlock.WithIdentity("a"))...),
		s.open(append(patient, s.distant(oneWay, oneWay/10, oneWay), redlock.WithIdentity("b"))...),
	}
	s.kill(2)
	for k := range 30 {
		r := raceFor(t, fmt.Sprint("key", k), rivals)
		won := slices.IndexFunc(r.leases, func(l *redlock.Lease) bool { return l != nil })
		require.GreaterOrEqual(t, won, 0, "nobody got key %d: %v", k, r.errs)
		require.Nil(t, r.leases[1-won], "two have the key")
		require.Contains(t, []string{"held", "split"}, redlock.ErrorType(r.errs[1-won]))
		require.NoError(t, r.leases[won].Release(t.Context()))
	}
}
