package demo

import (
	"context"
	"encoding/json"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/examples/demo/internal/service"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// newDemo has its replicas in this process. To kill one is to stop it, and none is frozen.
func newDemo(t *testing.T) (d *Demo) {
	t.Helper()
	fleet := redlocktest.StartPipes(t, 5)
	return New(Config{Fleet: fleet, Speed: func(float64) {}, Launch: func(s service.Settings, report func(service.Report), exited func(error)) (Process, error) {
		ctx, cancel := context.WithCancel(context.Background())
		dial := func(node int) net.Conn {
			outer, inner := net.Pipe()
			go d.Serve(inner, s.Number, node)
			return outer
		}
		go func() { exited(service.Serve(ctx, s, dial, report)) }()
		return func(string) { cancel() }, nil
	}})
}

// A leader that is cut off is followed by another one, and a rolling deploy is told to its end;
// nothing runs twice or overlaps. The pages of it are tested in a browser, in e2e.
func TestDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDemo(t)
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.Run(ctx) }()
		var s State
		await := func(done func() bool) {
			t.Helper()
			require.Eventually(t, func() bool {
				for _, m := range d.Messages() {
					if next := (State{}); json.Unmarshal(m, &next) == nil && next.Type == "state" {
						s = next
					}
				}
				return done()
			}, 4*time.Minute, 20*time.Millisecond)
		}
		await(func() bool { return s.Leader != "" && s.Counters.Ticks > 0 })
		first := s.Leader
		require.NoError(t, d.Do(Order{Do: "partition", Replica: first}))
		await(func() bool { return s.Takeover != nil })
		require.Equal(t, first, s.Takeover.From)
		require.NotEqual(t, first, s.Takeover.To)
		require.NoError(t, d.Do(Order{Do: "kill", Node: 1}))
		await(func() bool { return !s.Nodes[0].Votes })
		require.NoError(t, d.Do(Order{Do: "mend"}))
		require.NoError(t, d.Do(Order{Do: "deploy"}))
		require.ErrorIs(t, d.Do(Order{Do: "late"}), errRefused, "one story at a time")
		await(func() bool { return s.Story == nil })
		require.Zero(t, s.Counters.Twice+s.Counters.Overlaps)
		for _, r := range s.Replicas {
			require.Equal(t, Running, r.State)
			require.NoError(t, d.Do(Order{Do: "stop", Replica: r.Name}))
		}
		end()
		require.ErrorIs(t, <-ended, context.Canceled)
		time.Sleep(held) // until no link keeps a connection open any more
	})
}

func TestOrdersThatMakeNoSense(t *testing.T) {
	d := newDemo(t)
	for text, o := range map[string]Order{
		"no such order":              {Do: "explode"},
		"no such order: {Do:freeze":  {Do: "freeze", Replica: "a", Node: 1},
		"no node 6":                  {Do: "kill", Node: 6},
		`no replica "d"`:             {Do: "kill", Replica: "d"},
		`there is no switch "light"`: {Do: "switch", Name: "light"},
		"a is not running":           {Do: "kill", Replica: "a"},
		"a is dead":                  {Do: "freeze", Replica: "a"},
		"node 1 is running":          {Do: "thaw", Node: 1},
		"nothing is changed":         {Do: "heal", Replica: "a"},
		"is not from 0 to 4":         {Do: "speed", Factor: 5},
	} {
		require.ErrorContains(t, d.Do(o), text)
	}
}

func TestStore(t *testing.T) {
	d := newDemo(t)
	r := d.replicas[0]
	d.report(r, service.Report{Kind: service.Claimed, Token: 7})
	d.report(r, service.Report{Kind: service.Written, Token: 6})
	require.Equal(t, Counters{Refused: 1}, d.ledger.counters, "a later holder was there")
	require.NoError(t, d.Do(Order{Do: "switch", Name: "fence"}))
	d.report(r, service.Report{Kind: service.Written, Token: 6})
	require.Equal(t, Counters{Refused: 1, Accepted: 1}, d.ledger.counters, "nobody compares")
	d.report(r, service.Report{Kind: service.Written, Token: 8})
	require.Equal(t, Counters{Refused: 1, Accepted: 1}, d.ledger.counters, "it is the latest")
}
