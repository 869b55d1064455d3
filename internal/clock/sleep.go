package clock

import (
	"context"
	"time"
)

// Sleep waits for d, by Go's monotonic clock, or until ctx ends. If ctx has ended it returns the
// cause.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}
