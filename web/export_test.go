package web

import "time"

// WithStreams has a test see the bounds of streams with fewer, and shorter ones.
func WithStreams(most int, lifetime time.Duration) Option {
	return func(c *config) error {
		c.streams, c.lifetime = most, lifetime
		return nil
	}
}
