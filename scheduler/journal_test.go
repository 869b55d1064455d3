package scheduler_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// journal is a log that a test reads.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// lines returns the lines that contain part.
func (j *journal) lines(part string) (found []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.text.String()) {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

// requireInvalid requires an *OptionError about an option, with a part of its reason.
func requireInvalid(t *testing.T, err error, option, reason string) {
	t.Helper()
	var invalid *scheduler.OptionError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, option, invalid.Option, invalid.Reason)
	require.Contains(t, invalid.Reason, reason)
	require.Equal(t, "scheduler: "+invalid.Option+": "+invalid.Reason, err.Error())
	require.Equal(t, "invalid", redlock.ErrorType(err))
}
