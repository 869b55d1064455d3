package register_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ttl        = 5 * time.Second
	quarantine = 8 * time.Second
	keep       = time.Hour
	name       = "tenure:{key}:register"
)

// bubble runs a test with in-process nodes and fake time.
func bubble(t *testing.T, n int, test func(t *testing.T, f *fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) })
		test(t, &fleet{t, redlocktest.StartPipes(t, n)})
	})
}

// keeping keeps registers until stop is called, or the test ends.
func keeping(t *testing.T, q *redlock.Quorum, registers ...register.Register) (stop func()) {
	ctx, stop := context.WithCancel(t.Context())
	register.Keep(ctx, q, registers...)
	return stop
}

// fleet is a number of nodes that a test does something to.
type fleet struct {
	t *testing.T
	*redlocktest.Fleet
}

func (f *fleet) each(do func(*redlocktest.Node) error, nodes []int) {
	f.t.Helper()
	for _, i := range nodes {
		require.NoError(f.t, do(f.Node(i)))
	}
}

func (f *fleet) kill(nodes ...int)   { f.each((*redlocktest.Node).Kill, nodes) }
func (f *fleet) freeze(nodes ...int) { f.each((*redlocktest.Node).Freeze, nodes) }
func (f *fleet) thaw(nodes ...int)   { f.each((*redlocktest.Node).Thaw, nodes) }

func (f *fleet) restart(keepData bool, nodes ...int) {
	f.each(func(n *redlocktest.Node) error { return n.Restart(keepData) }, nodes)
}

// do has a node carry out a command.
func (f *fleet) do(node int, words ...string) valkey.ValkeyResult {
	f.t.Helper()
	option := valkey.ClientOption{InitAddress: []string{"node"}, ForceSingleClient: true}
	f.ClientOption(f.Node(node).URL(), &option)
	client, err := valkey.NewClient(option)
	require.NoError(f.t, err)
	defer client.Close()
	return client.Do(f.t.Context(), client.B().Arbitrary(words...).Build())
}

// put has a node have that text.
func (f *fleet) put(node int, text string) {
	f.t.Helper()
	require.NoError(f.t, f.do(node, "SET", name, text, "PX", "3600000").Error())
}

// text is what a node has behind the run_id of its register; empty for nothing.
func (f *fleet) text(node int) string {
	text, _ := f.Node(node).Get(name)
	if fields := strings.SplitN(text, " ", 3); len(fields) == 3 {
		return fields[2]
	}
	return text
}

// process is the run_id of a node.
func (f *fleet) process(node int) string {
	f.t.Helper()
	info, err := f.do(node, "INFO", "server").ToString()
	require.NoError(f.t, err)
	_, id, _ := strings.Cut(info, "run_id:")
	return id[:40]
}

// knows reports whether a node knows the register.
func (f *fleet) knows(node int) bool {
	text, _ := f.Node(node).Get(name)
	return strings.HasPrefix(text, "1 "+f.process(node)+" ")
}

func (f *fleet) requireKnown(nodes ...int) {
	f.t.Helper()
	for _, i := range nodes {
		require.True(f.t, f.knows(i), "node %d", i)
	}
}

// open makes a Quorum that is connected to the nodes, and is closed with the test.
func (f *fleet) open(opts ...redlock.Option) *redlock.Quorum {
	f.t.Helper()
	defaults := []redlock.Option{redlock.WithClientOption(f.ClientOption), redlock.WithTTL(ttl), redlock.WithLogger(slog.New(slog.DiscardHandler))}
	q, err := redlock.Open(f.URLs(), append(defaults, opts...)...)
	require.NoError(f.t, err)
	f.t.Cleanup(func() { require.NoError(f.t, q.Close()) })
	q.Nodes(f.t.Context())
	if l, err := q.TryAcquire(f.t.Context(), "taking part"); err == nil {
		require.NoError(f.t, l.Release(f.t.Context()))
	}
	return q
}

func acquire(t *testing.T, q *redlock.Quorum, opts ...redlock.LeaseOption) *redlock.Lease {
	t.Helper()
	l, err := q.TryAcquire(t.Context(), "key", opts...)
	require.NoError(t, err)
	return l
}

func release(t *testing.T, l *redlock.Lease) {
	t.Helper()
	require.NoError(t, l.Release(t.Context()))
}

func of(q *redlock.Quorum) register.Register { return register.Of(q, "key", keep) }

func begin(t *testing.T, q *redlock.Quorum, l *redlock.Lease) (*register.Turn, register.State) {
	t.Helper()
	turn, states, err := of(q).Begin(t.Context(), l)
	require.NoError(t, err)
	require.Len(t, states, 1)
	return turn, states[0]
}

// write writes a value under a lease of its own, and returns what was there before.
func write(t *testing.T, q *redlock.Quorum, value string) (before string) {
	t.Helper()
	l := acquire(t, q)
	turn, state := begin(t, q, l)
	require.NoError(t, turn.Write(t.Context(), []byte(value)))
	release(t, l)
	return string(state.Value)
}

func read(t *testing.T, q *redlock.Quorum) register.State {
	t.Helper()
	states, err := of(q).Read(t.Context())
	require.NoError(t, err)
	require.Len(t, states, 1)
	return states[0]
}

// journal is a log that a test reads.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// option has what the register says logged.
func (j *journal) option() redlock.Option {
	return redlock.WithLogger(slog.New(slog.NewTextHandler(j, nil)))
}
