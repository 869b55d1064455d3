package elector_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// give gives an order to resign.
func give(t *testing.T, q *redlock.Quorum, o bulletin.Order) {
	t.Helper()
	if o.Kind == "" {
		o.Kind = bulletin.Resign
	}
	o.By, o.Why, o.Within = "an operator", "a deployment", 10_000
	e, ok := o.Entry()
	require.True(t, ok)
	require.NoError(t, board.Of(q).Post(t.Context(), nil, e))
}

// answers reads what came of orders, the oldest first.
func answers(t *testing.T, q *redlock.Quorum) (found []bulletin.Order) {
	t.Helper()
	entries, err := board.Of(q).Journal(t.Context(), bulletin.Orders, bulletin.MaxEntries)
	require.NoError(t, err)
	for _, e := range entries {
		o, ok := bulletin.Parse[bulletin.Order](e.Text)
		require.True(t, ok)
		if o.Result != "" {
			found = append([]bulletin.Order{o}, found...)
		}
	}
	return found
}

// An order has the term resign that it names, and no other; the leader of that term answers, once.
// The log says who gave it and why, and the change does.
func TestOrderToResign(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := onlooker(t, fleet)
		var log strings.Builder
		a := candidate(t, fleet, elector.WithIdentity("a"), elector.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		b := candidate(t, fleet, elector.WithIdentity("b"))
		terms := make(chan *elector.Term, 10)
		changes := a.Changes(t.Context())
		ra := run(t, a, tells(terms))
		first := <-terms
		time.Sleep(ttl)
		rb := run(t, b, tells(terms))
		time.Sleep(ttl)

		for i, o := range []bulletin.Order{
			{Target: "test", Number: first.Number() + 1},
			{Target: "test", Number: first.Number() - 1},
			{Target: "test"},
			{Target: "another", Number: first.Number()},
			{Target: "test", Number: first.Number(), Kind: bulletin.Cancel},
		} {
			o.ID = string(rune('a' + i))
			give(t, q, o)
		}
		time.Sleep(time.Second)
		require.True(t, leads(a))
		require.Empty(t, answers(t, q))

		o := bulletin.Order{ID: "the order", Target: "test", Number: first.Number()}
		give(t, q, o)
		give(t, q, o) // at once
		second := <-terms
		require.True(t, leads(b))
		time.Sleep(time.Second)
		want := bulletin.Order{V: 1, ID: o.ID, Kind: bulletin.Resign, Target: "test", Number: first.Number(), By: "a", Result: bulletin.Done}
		require.Equal(t, []bulletin.Order{want}, answers(t, q))
		o.ID = "another of the same"
		give(t, q, o)
		time.Sleep(time.Second)
		require.True(t, leads(b))
		require.Len(t, answers(t, q), 1, "a term that has ended is nobody's")

		o.Number = second.Number()
		o.ID = "the next"
		give(t, q, o)
		third := <-terms
		require.True(t, leads(a))
		time.Sleep(time.Second)
		require.Len(t, answers(t, q), 2)
		require.Equal(t, "b", answers(t, q)[1].By)
		require.Greater(t, third.Number(), second.Number())
		require.NoError(t, rb.end())
		require.NoError(t, ra.end())
		ended := 0
		for c := range changes {
			if c.Kind == elector.Elected {
				continue
			}
			if ended++; ended == 2 {
				break
			}
			require.Equal(t, elector.ReasonResigned, c.Reason)
			require.ErrorIs(t, c.Err, elector.ErrResigned)
			require.ErrorContains(t, c.Err, `ordered by "an operator": "a deployment"`)
		}
		require.Contains(t, log.String(), `msg="elector: ordered to resign" election=test`)
		require.Contains(t, log.String(), `msg="orders: an order was answered" order=resign for=test by="an operator" why="a deployment"`)
		require.Equal(t, []string{"a elected", "a resigned resigned", "b elected", "b resigned resigned", "a elected", "a resigned shutdown"}, words(history(t, q)))
	})
}

// A replica says why an order did not have its term resign in order.
func TestOrderToResignIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		drain time.Duration
		cut   bool
		want  string
	}{
		"lead overruns": {time.Second, false, "drain_timeout"},
		"lost":          {10 * ttl, true, "lost"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
				q := onlooker(t, fleet)
				a := candidate(t, fleet, elector.WithDrainTimeout(test.drain))
				terms := make(chan *elector.Term, 10)
				r := run(t, a, func(ctx context.Context, term *elector.Term) error {
					terms <- term
					<-ctx.Done()
					if len(terms) == 0 {
						time.Sleep(5 * ttl)
					}
					return nil
				})
				term := <-terms
				time.Sleep(ttl)
				give(t, q, bulletin.Order{ID: "o", Target: "test", Number: term.Number()})
				<-term.Context().Done()
				if test.cut {
					most(t, fleet, (*redlocktest.Node).Freeze)
				}
				time.Sleep(2 * ttl)
				got := answers(t, q)
				require.Len(t, got, 1)
				require.Equal(t, bulletin.Refused, got[0].Result)
				require.Equal(t, test.want, got[0].Detail)
				if test.cut {
					most(t, fleet, (*redlocktest.Node).Thaw)
				}
				time.Sleep(10 * ttl)
				require.NoError(t, r.end())
			})
		})
	}
}

// An order is answered also if Run ends by itself while the term resigns, and later ones are not
// taken twice when Run is called again.
func TestOrdersEndWithRun(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := onlooker(t, fleet)
		a := candidate(t, fleet)
		terms := make(chan *elector.Term, 10)
		lead := func(ctx context.Context, term *elector.Term) error {
			terms <- term
			<-ctx.Done()
			time.Sleep(time.Second)
			return nil
		}
		for i, id := range []string{"1", "2", "3"} {
			r := run(t, a, lead)
			term := <-terms
			time.Sleep(ttl)
			give(t, q, bulletin.Order{ID: id, Target: "test", Number: term.Number()})
			<-term.Context().Done()
			time.Sleep(time.Second / 2)
			require.NoError(t, r.end())
			got := answers(t, q)
			require.Len(t, got, i+1)
			require.Equal(t, bulletin.Done, got[i].Result)
			time.Sleep(ttl)
			require.EqualValues(t, 1, listeners(t, fleet, "orders"), "that of the Quorum stays, for the next")
		}
	})
}
