package scheduler

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A program that gives its jobs new names all the time fills no memory.
func TestLockerForgetsNames(t *testing.T) {
	l := &Locker{cfg: &config{minHold: time.Hour, logger: slog.New(slog.DiscardHandler)}, jobs: make(map[string]pace)}
	for i := range 3 * maxPaces {
		l.note(t.Context(), fmt.Sprint("job ", i), time.Now(), true)
	}
	require.Len(t, l.jobs, maxPaces)
	l.cfg.minHold = 0 // by now all of it is long ago
	l.note(t.Context(), "another", time.Now(), true)
	require.Len(t, l.jobs, 1)
}
