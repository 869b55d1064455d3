package place

import (
	"context"
	"fmt"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// Calls returns how many commands all servers have run, from INFO commandstats. What scripts call
// counts, beside the command that runs the script; this package's own looks do not.
func (s *Servers) Calls(ctx context.Context) (calls int64, err error) {
	for _, n := range s.Nodes() {
		text, err := do(ctx, n, "INFO", "commandstats").ToString()
		if err != nil {
			return 0, fmt.Errorf("place: %s: %w", n.Addr(), err)
		}
		byName, err := valkeytest.ParseCommandStats(text)
		if err != nil {
			return 0, fmt.Errorf("place: %s: %w", n.Addr(), err)
		}
		for name, n := range byName {
			if name != "info" { // also what Tenure sends when it connects
				calls += n
			}
		}
	}
	return calls, nil
}
