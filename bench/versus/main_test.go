package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

func TestMain(m *testing.M) {
	if child.IsReplica() {
		exit(playTask())
	}
	goleak.VerifyTestMain(m,
		// toxiproxy leaves goroutines behind, see clients.Tests of tools/torture.
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	)
}

var smokeSize = size{
	rounds: 1, few: 1, slice: 20 * time.Millisecond, contended: 300 * time.Millisecond, handover: 100 * time.Millisecond,
	waiter: 300 * time.Millisecond, frozen: 50 * time.Millisecond,
	crashTrials: 1, crashTTL: time.Second, others: 100, giveUp: 1500 * time.Millisecond,
	held: 50, hold: time.Second, heldTTL: 1500 * time.Millisecond, stallLeases: 10, stallHold: time.Second, due: 20,
}

// TestRowsRun runs every row, small, on real servers.
func TestRowsRun(t *testing.T) {
	s, err := setUp(t.Context(), smokeSize, t.Output(), valkeytest.WithAge(time.Hour))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.servers.Close()) })
	for _, r := range rows(smokeSize) {
		t.Run(r.name, func(t *testing.T) {
			b := newBoard(r)
			require.NoError(t, b.run(t.Context(), s))
			b.finish()
			var text strings.Builder
			boards{b}.markdown(&text)
			t.Log(text.String())
			require.NotContains(t, text.String(), "NaN")
			tenure := rival.Tenure
			switch r.name {
			case "due10", "due1000":
				tenure = tenureScheduler
			}
			for _, c := range r.columns {
				require.NotEmpty(t, b.line(tenure).values[c.Name], "%s has no %q", tenure.Name, c.Name)
			}
			for _, l := range b.lines {
				require.Equal(t, l.absent == "", len(l.values) > 0, "%s has numbers or a reason", l.of.Name)
			}
		})
	}
}

// TestRowFails shows that what goes wrong is no number.
func TestRowFails(t *testing.T) {
	s, err := setUp(t.Context(), smokeSize, t.Output(), valkeytest.WithAge(time.Hour))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.servers.Close()) })
	for _, n := range s.servers.Nodes() {
		require.NoError(t, n.Do(t, "CONFIG", "SET", "maxmemory", "1").Error()) // refuses writes
	}
	for _, r := range rows(smokeSize) {
		if slices.Contains([]string{"crash", "contended", "handover", "stall"}, r.name) {
			continue // they wait for as long as there is no quorum
		}
		require.Error(t, newBoard(r).run(t.Context(), s), r.name)
	}
}

func TestRun(t *testing.T) {
	some, err := chosen("distinct64", smokeSize)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), some, smokeSize, &out, valkeytest.WithAge(time.Hour)))
	require.Contains(t, out.String(), "### distinct64: ")
}

func TestChosen(t *testing.T) {
	some, err := chosen("", smokeSize)
	require.NoError(t, err)
	require.Len(t, some, len(rows(smokeSize)))
	some, err = chosen("pair, contended", smokeSize)
	require.NoError(t, err)
	require.Len(t, some, 2)
	require.Equal(t, "contended", some[1].name)
	_, err = chosen("nobody", smokeSize)
	require.Error(t, err)
}

func TestTurns(t *testing.T) {
	var order []string
	require.NoError(t, turns(t.Context(), 2, []*rival.Kind{rival.Floor, rival.Tenure}, func(k *rival.Kind) error {
		order = append(order, k.Name)
		return nil
	}))
	require.Equal(t, []string{"floor", "Tenure", "Tenure", "floor"}, order, "another begins each round")
}
