package scheduler_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// operator is a Client of a process of its own.
func (c *cluster) operator(opts ...admin.Option) *admin.Client {
	q := open(c.t, c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption), redlock.WithTTL(ttl), redlock.WithIdentity("operator"))
	a, err := admin.New(q, append([]admin.Option{admin.WithActor("ann"), admin.WithLogger(slog.New(slog.DiscardHandler))}, opts...)...)
	require.NoError(c.t, err)
	return a
}

// traced is a book that knows the trace of each run.
type traced struct{ *book }

func (traced) TraceID(context.Context) string { return "4bf92f3577b34da6a3ce929d0e0e4736" }

// The texts of errors are told if somebody wants that, and nothing is told if nobody does.
func TestWhatIsToldOfRuns(t *testing.T) {
	for name, test := range map[string]struct {
		opts []scheduler.Option
		runs int
		text string
	}{
		"texts":   {[]scheduler.Option{scheduler.WithErrorTexts()}, 2, "a secret " + strings.Repeat("x", 247)},
		"types":   {nil, 2, "*errors.errorString"},
		"nothing": {[]scheduler.Option{scheduler.WithoutHistory()}, 0, ""},
		"no card": {[]scheduler.Option{scheduler.WithoutCard()}, 2, "*errors.errorString"},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				a := c.operator()
				r := c.replica(test.opts...)
				r.add(t, tenSecondly, func() error { return errors.New("a secret " + strings.Repeat("x", 1000)) })
				r.Start()
				until(25 * time.Second)
				runs, err := a.Runs(t.Context(), "job", 20)
				require.NoError(t, err)
				require.Len(t, runs, test.runs)
				for _, run := range runs {
					require.Equal(t, test.text, run.Error)
				}
				replicas, err := a.Replicas(t.Context())
				require.NoError(t, err)
				_, err = a.Job(t.Context(), "job")
				if name == "no card" {
					require.Empty(t, replicas)
					require.ErrorIs(t, err, admin.ErrNoJob)
				} else {
					require.Len(t, replicas, 1)
					require.NoError(t, err)
				}
			})
		})
	}
}

// That a run has ended is told with the release of its lease: nodes are asked nothing more.
func TestRunIsToldWithItsRelease(t *testing.T) {
	commands := make(map[bool]int)
	for _, silent := range []bool{false, true} {
		alone(t, func(t *testing.T, c *cluster) {
			opts := []scheduler.Option{scheduler.WithoutCard(), scheduler.WithoutOrders()}
			if silent {
				opts = append(opts, scheduler.WithoutHistory())
			}
			r := c.replica(opts...)
			r.add(t, secondly, func() {})
			r.Start()
			until(10500 * time.Millisecond)
			before, runs := c.fleet.Node(0).Commands(), len(c.book.ticks())
			until(40500 * time.Millisecond)
			require.Equal(t, 30, len(c.book.ticks())-runs)
			commands[silent] = c.fleet.Node(0).Commands() - before
		})
	}
	require.InDelta(t, commands[true], commands[false], 15, "30 runs")
}
