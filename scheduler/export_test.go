package scheduler

import "time"

// WithWall sets the wall clock, which tests move.
func WithWall(now func() time.Time) Option {
	return option(func(c *config) error { c.wall = now; return nil })
}
