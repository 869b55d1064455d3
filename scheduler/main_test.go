package scheduler_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/redlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// silent is a logger that says nothing.
var silent = slog.New(slog.DiscardHandler)

// patience is how long a test waits for an event that should come much sooner.
const patience = time.Minute

// open makes a Quorum, as a replica of its own would, that is closed with the test.
func open(t *testing.T, urls []string, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	q, err := redlock.Open(urls, append([]redlock.Option{redlock.WithLogger(slog.New(slog.DiscardHandler)), redlock.WithoutRestartGate()}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	require.Eventually(t, func() bool {
		for _, n := range q.Nodes(t.Context()) {
			if !n.Reachable {
				return false
			}
		}
		return true
	}, patience, 10*time.Millisecond)
	return q
}
