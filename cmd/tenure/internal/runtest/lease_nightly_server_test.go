//go:build nightly

package runtest

import "testing"

// Each fault with each kind of command.
func TestNoCommandOutlivesTheLease(t *testing.T) {
	for _, f := range faults {
		for _, role := range roles {
			t.Run(f.name+"/"+role, func(t *testing.T) {
				t.Parallel()
				neverOutlives(t, f, role)
			})
		}
	}
}
