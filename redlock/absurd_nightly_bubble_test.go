//go:build nightly

package redlock_test

import (
	"testing"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Each option works at the end of its range, with all others at theirs.
func TestDurationsAtTheirBounds(t *testing.T) {
	const day = 24 * time.Hour
	for name, opts := range map[string][]redlock.Option{
		"greatest": {redlock.WithoutRestartGate(), redlock.WithTTL(day), redlock.WithMaxTTL(day), redlock.WithClockSkew(time.Minute), redlock.WithDrift(0.2),
			redlock.WithNodeTimeout(day / 4), redlock.WithMinHold(day - 1)},
		"least": {redlock.WithTTL(redlock.MinTTL), redlock.WithMaxTTL(redlock.MinTTL), redlock.WithClockSkew(time.Millisecond), redlock.WithDrift(0),
			redlock.WithNodeTimeout(time.Millisecond), redlock.WithMinHold(0), redlock.WithExtendInterval(10 * time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, fleet *redlocktest.Fleet) {
				q := open(t, fleet, opts...)
				works(t, q, "key")
			})
		})
	}
}
