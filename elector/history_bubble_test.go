package elector_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// history reads the election's history, the oldest first. Where terms follow each other at once,
// processes that estimate the servers' clocks may disagree about the order; terms have numbers.
func history(t *testing.T, q *redlock.Quorum) (terms []bulletin.Term) {
	t.Helper()
	entries, err := board.Of(q).Journal(t.Context(), "terms/test", bulletin.MaxEntries)
	require.NoError(t, err)
	for _, e := range entries {
		term, ok := bulletin.Parse[bulletin.Term](e.Text)
		require.True(t, ok)
		require.Equal(t, "test", term.Election)
		terms = append([]bulletin.Term{term}, terms...)
	}
	slices.SortStableFunc(terms, func(x, y bulletin.Term) int { return cmp.Compare(x.Term, y.Term) })
	return terms
}

// words are what happened, and to whom.
func words(terms []bulletin.Term) (words []string) {
	for _, t := range terms {
		word := t.By + " " + t.Event
		if t.Reason != "" {
			word += " " + t.Reason
		}
		words = append(words, word)
	}
	return words
}

// The history has the beginning and the end of each term, with its number and reason, and nothing
// of a candidate.
func TestHistory(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := onlooker(t, fleet)
		a := candidate(t, fleet, elector.WithIdentity("a"), elector.WithBackoff(time.Second, time.Second))
		var began []time.Time
		var numbers []uint64
		ra := run(t, a, func(ctx context.Context, term *elector.Term) error {
			began, numbers = append(began, time.Now()), append(numbers, term.Number())
			time.Sleep(ttl / 2)
			switch len(began) {
			case 1:
				_ = term.Resign(ctx)
			case 2:
				return errors.New("boom")
			case 4:
				<-ctx.Done()
			}
			return nil
		})
		time.Sleep(ttl)
		require.NoError(t, run(t, candidate(t, fleet, elector.WithIdentity("too late")), nil).end())
		time.Sleep(4 * ttl)
		b := candidate(t, fleet, elector.WithIdentity("b"))
		rb := run(t, b, nil)
		time.Sleep(2 * ttl)
		require.NoError(t, rb.end()) // it was a candidate
		require.NoError(t, ra.end())
		terms := history(t, q)
		require.Equal(t, []string{
			"a elected", "a resigned resigned", "a elected", "a resigned failed",
			"a elected", "a resigned returned", "a elected", "a resigned shutdown",
		}, words(terms))
		for i, term := range terms {
			require.Equal(t, numbers[i/2], term.Term)
			if i%2 == 0 {
				require.Equal(t, began[i/2].UnixMilli(), term.At)
			} else if i < 7 {
				require.Equal(t, began[i/2].Add(ttl/2).UnixMilli(), term.At)
			}
		}
	})
}

// The end of a term whose lead overruns is told while lead still runs.
func TestHistoryOfAnOverrun(t *testing.T) {
	for name, cut := range map[string]bool{"resigned": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
				q := onlooker(t, fleet)
				a := candidate(t, fleet, elector.WithIdentity("a"), elector.WithDrainTimeout(time.Second))
				terms := make(chan *elector.Term, 10)
				over := make(chan struct{})
				r := run(t, a, func(ctx context.Context, term *elector.Term) error {
					terms <- term
					<-ctx.Done()
					<-over
					return nil
				})
				term := <-terms
				time.Sleep(ttl)
				if cut {
					most(t, fleet, (*redlocktest.Node).Freeze)
					<-term.Context().Done()
					most(t, fleet, (*redlocktest.Node).Thaw)
				} else {
					require.ErrorIs(t, term.Resign(t.Context()), elector.ErrDrainTimeout)
				}
				time.Sleep(2 * ttl)
				want := []string{"a elected", "a lost deadline"}
				require.Equal(t, want, words(history(t, q)))
				close(over)
				synctest.Wait()
				require.NoError(t, r.end())
				require.Equal(t, 1, strings.Count(strings.Join(words(history(t, q)), "\n"), want[1]), "once")
			})
		})
	}
}

// A leader that stands still in foreign code has told that it leads, and its term ends when its
// lease ended, however late it sees that.
func TestHistoryOfALeaderThatStoodStill(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := onlooker(t, fleet)
		var elected time.Time
		a := candidate(t, fleet, elector.WithIdentity("a"), elector.WithTracer(at("Change", func() {
			if !elected.IsZero() {
				return
			}
			elected = time.Now()
			assert.NoError(t, fleet.Node(0).Freeze())
			assert.NoError(t, fleet.Node(1).Freeze())
			time.Sleep(10 * ttl)
			assert.Equal(t, []string{"a elected"}, words(history(t, q)))
			assert.NoError(t, fleet.Node(0).Thaw())
			assert.NoError(t, fleet.Node(1).Thaw())
			time.Sleep(ttl)
		})))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx, func(context.Context, *elector.Term) error { cancel(); return nil }) }()
		require.NoError(t, <-done)
		terms := history(t, q)
		require.Equal(t, []string{"a elected", "a lost deadline"}, words(terms))
		require.Equal(t, elected.UnixMilli(), terms[0].At)
		require.InDelta(t, elected.Add(validity).UnixMilli(), terms[1].At, 10)
	})
}

// A lease that turns out to be lost when it is released was not resigned.
func TestHistoryOfALossSeenAtTheRelease(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := onlooker(t, fleet)
		a := candidate(t, fleet, elector.WithIdentity("a"))
		r := run(t, a, untilDone)
		time.Sleep(ttl)
		for _, node := range fleet.Nodes() {
			node.FlushAll()
		}
		require.NoError(t, r.end())
		got := words(history(t, q))
		require.Contains(t, got, "a lost refused")
		require.Equal(t, 1, strings.Count(strings.Join(got, "\n"), "a lost refused"))
	})
}

// The end of a term costs one command to each node, beside the release.
func TestEndIsToldBesideTheRelease(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := onlooker(t, fleet)
		a := candidate(t, fleet, elector.WithIdentity("a"), elector.WithoutCard(), elector.WithoutOrders())
		r := run(t, a, untilDone)
		time.Sleep(100 * time.Millisecond)
		before := fleet.Node(0).Commands()
		require.NoError(t, r.end())
		synctest.Wait()
		require.Equal(t, before+2, fleet.Node(0).Commands())
		require.Equal(t, []string{"a elected", "a resigned shutdown"}, words(history(t, q)))
	})
}

// Neither lead nor another candidate waits for an entry. Run waits for it, for a while.
func TestNothingWaitsForEntries(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		const delay, limit = 100 * time.Millisecond, time.Second
		q := onlooker(t, fleet)
		a := candidate(t, fleet, elector.WithIdentity("a"), elector.WithDrainTimeout(limit))
		for _, node := range fleet.Nodes() {
			node.SetDelay(delay)
		}
		began := make(chan time.Time, 1)
		r := run(t, a, func(ctx context.Context, term *elector.Term) error {
			began <- time.Now()
			<-ctx.Done()
			time.Sleep(5 * ttl)
			return nil
		})
		elected := change(t, a).At
		time.Sleep(ttl)
		require.Equal(t, elected, <-began)
		stopped := time.Now()
		require.ErrorIs(t, r.end(), elector.ErrDrainTimeout)
		require.Greater(t, time.Since(stopped), limit, "it waits for the entry")
		require.LessOrEqual(t, time.Since(stopped), limit+3*delay)
		for _, node := range fleet.Nodes() {
			node.SetDelay(0)
		}
		require.Equal(t, []string{"a elected", "a lost drain_timeout"}, words(history(t, q)))
		time.Sleep(5 * ttl)
	})
}

// A process's card says in which elections it takes part, and which of them it leads, until Run
// ends.
func TestCardOfCandidates(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := onlooker(t, fleet)
		candidacies := func() (found []bulletin.Candidacy) {
			for card, err := range board.Of(q).Cards(t.Context(), bulletin.Processes) {
				require.NoError(t, err)
				process, ok := bulletin.Parse[bulletin.Process](card.Text)
				require.True(t, ok)
				found = append(found, process.Elections...)
			}
			return found
		}
		a, b := candidate(t, fleet, elector.WithIdentity("a")), candidate(t, fleet, elector.WithIdentity("b"))
		terms := make(chan *elector.Term, 10)
		began := time.Now()
		ra := run(t, a, tells(terms))
		term := <-terms
		rb := run(t, b, tells(terms))
		time.Sleep(time.Second)
		first, second := bulletin.Candidacy{Election: "test", Identity: "a"}, bulletin.Candidacy{Election: "test", Identity: "b"}
		leading := first
		leading.Term, leading.Since = term.Number(), began.UnixMilli()
		require.ElementsMatch(t, []bulletin.Candidacy{leading, second}, candidacies())
		require.NoError(t, term.Resign(t.Context()))
		began = time.Now()
		term = <-terms
		time.Sleep(2 * bulletin.TellEvery)
		second.Term, second.Since = term.Number(), candidacies()[0].Since+candidacies()[1].Since
		require.InDelta(t, began.UnixMilli(), second.Since, 100)
		require.ElementsMatch(t, []bulletin.Candidacy{first, second}, candidacies())
		require.NoError(t, rb.end())
		require.NoError(t, ra.end())
		synctest.Wait()
		require.Empty(t, candidacies())
	})
}

// Options switch off each of what an election tells, and that it takes orders.
func TestNothingIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := onlooker(t, fleet)
		a := candidate(t, fleet, elector.WithoutHistory(), elector.WithoutCard(), elector.WithoutOrders())
		terms := make(chan *elector.Term, 10)
		r := run(t, a, tells(terms))
		term := <-terms
		time.Sleep(time.Minute)
		give(t, q, bulletin.Order{ID: "1", Target: "test", Number: term.Number()})
		time.Sleep(time.Second)
		require.True(t, leads(a))
		require.Empty(t, answers(t, q))
		for card := range board.Of(q).Cards(t.Context(), bulletin.Processes) {
			require.Empty(t, card)
		}
		require.NoError(t, r.end())
		require.Empty(t, history(t, q))
	})
}
