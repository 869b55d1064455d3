package clients_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// A leap changes what the clock shows, at its time.
func TestClockLeaps(t *testing.T) {
	start := time.Now()
	s := clients.Settings{Ahead: time.Second, Start: start, Leaps: []plan.Leap{
		{At: 10 * time.Second, By: 2 * time.Second}, {At: 20 * time.Second, By: -3 * time.Second},
	}}
	for _, step := range []struct{ at, shown time.Duration }{{9, 10}, {10, 13}, {19, 22}, {20, 20}, {30, 30}} {
		require.Equal(t, step.shown*time.Second, s.At(start.Add(step.at*time.Second)).Sub(start), "after %d s", step.at)
	}
}
