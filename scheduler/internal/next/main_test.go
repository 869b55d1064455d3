package scheduler_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	scheduler "github.com/tenure-dev/tenure/scheduler/internal/next"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// silent is a logger that says nothing.
var silent = slog.New(slog.DiscardHandler)

// patience is how long a test waits for an event that should come much sooner.
const patience = 20 * time.Second

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

// newLocker makes a Locker without a minimum hold, and silent, unless opts say otherwise.
func newLocker(t *testing.T, q *redlock.Quorum, opts ...scheduler.LockerOption) *scheduler.Locker {
	t.Helper()
	defaults := []scheduler.LockerOption{scheduler.WithMinHold(0), scheduler.WithLogger(slog.New(slog.DiscardHandler))}
	l, err := scheduler.NewLocker(q, append(defaults, opts...)...)
	require.NoError(t, err)
	return l
}

// lockers makes n Lockers on real servers, each on a Quorum of its own.
func lockers(t *testing.T, n int, opts ...scheduler.LockerOption) []*scheduler.Locker {
	t.Helper()
	fleet := valkeytest.Start(t, 3)
	made := make([]*scheduler.Locker, n)
	for i := range made {
		made[i] = newLocker(t, open(t, fleet.URLs()), opts...)
	}
	return made
}

// mustLock locks a job and returns the Lock behind gocron's interface.
func mustLock(t *testing.T, l *scheduler.Locker, job string) *scheduler.Lock {
	t.Helper()
	lock, err := l.Lock(t.Context(), job)
	require.NoError(t, err)
	require.IsType(t, &scheduler.Lock{}, lock)
	return lock.(*scheduler.Lock)
}

// refused tries to lock a job and returns the error.
func refused(t *testing.T, l *scheduler.Locker, job string) error {
	t.Helper()
	lock, err := l.Lock(t.Context(), job)
	require.Error(t, err)
	require.Nil(t, lock)
	return err
}

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
func (j *journal) lines(part string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []string
	for line := range strings.Lines(j.text.String()) {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

// cancelled returns a context that has ended.
func cancelled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// set writes a key on one node, as somebody else's client would.
func set(t *testing.T, n *redlocktest.Node, key, value string) {
	t.Helper()
	do(t, n, "SET", key, value)
}

// do sends one node a command, as somebody else's client would.
func do(t *testing.T, n *redlocktest.Node, command ...string) {
	t.Helper()
	client, err := valkey.NewClient(valkey.ClientOption{
		InitAddress: []string{"node"}, ForceSingleClient: true, DisableCache: true,
		DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return n.Dial(ctx)
		},
	})
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, client.Do(t.Context(), client.B().Arbitrary(command...).Build()).Error())
}
