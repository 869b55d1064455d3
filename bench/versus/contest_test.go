package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

// everybody is a Rival that is no lock.
type everybody struct{}

func (e everybody) Try(context.Context, string) (rival.Held, error)     { return e, nil }
func (e everybody) Acquire(context.Context, string) (rival.Held, error) { return e, nil }
func (everybody) Release(context.Context) error                         { return nil }
func (everybody) Close() error                                          { return nil }

// TestContestSeesTwo shows that the row contended does not take a broken lock's numbers.
func TestContestSeesTwo(t *testing.T) {
	end, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c := &contest{began: time.Now(), end: end}
	err := atOnce(3, func(int) error {
		_, err := c.run(t.Context(), everybody{})
		cancel()
		return err
	})
	require.ErrorContains(t, err, "two had the key at once")
}
