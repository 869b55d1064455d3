package elector_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// both is a tracer of leases and of elections.
type both struct{ campaigns int }

func (*both) TraceAcquireStart(ctx context.Context, _ redlock.TraceAcquireStartData) context.Context {
	return ctx
}
func (*both) TraceAcquireEnd(context.Context, redlock.TraceAcquireEndData) {}
func (b *both) TraceCampaignStart(ctx context.Context, _ elector.TraceCampaignStartData) context.Context {
	b.campaigns++
	return ctx
}
func (*both) TraceCampaignEnd(context.Context, elector.TraceCampaignEndData) {}

// A tracer that was given to the Quorum alone hears of elections too, unless the Elector has its
// own.
func TestTracerOfTheQuorumHearsOfElections(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		quorums, own := new(both), new(both)
		q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithTTL(ttl), redlock.WithTracer(quorums),
			redlock.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, q.Close()) })
		q.Nodes(t.Context())
		for i, opts := range [][]elector.Option{nil, {elector.WithTracer(own)}} {
			e, err := elector.New(q, "test", append(opts, elector.WithLogger(slog.New(slog.DiscardHandler)))...)
			require.NoError(t, err)
			r := run(t, e, untilDone)
			time.Sleep(time.Second)
			require.True(t, leads(e))
			require.NoError(t, r.end())
			require.Equal(t, []int{1, i}, []int{quorums.campaigns, own.campaigns})
		}
	})
}

// journal is a log that a test reads.
type journal struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// lines are those that contain part.
func (j *journal) lines(part string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.DeleteFunc(strings.Split(j.text.String(), "\n"), func(line string) bool { return !strings.Contains(line, part) })
}
