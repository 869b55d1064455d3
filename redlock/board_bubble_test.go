package redlock_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// The entry of a lease is made with its release, whatever the lease is for, and once.
func TestLeaseEndsWithAnEntry(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]redlock.LeaseOption{
		"plain": nil, "minimum hold": {redlock.WithMinHold(3 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				q := open(t, fleet)
				l := acquire(t, q, opts...)
				time.Sleep(100 * time.Millisecond)
				commands := fleet.Node(0).Commands()
				require.NoError(t, l.EndWith(redlock.Entry{Journal: "runs/key", Text: "first", Most: 20, Keep: time.Hour}))
				require.NoError(t, l.EndWith(redlock.Entry{Journal: "runs/key", Text: "done", Most: 20, Keep: time.Hour}))
				require.Error(t, l.EndWith(redlock.Entry{Journal: "runs/key", Text: "\xff", Most: 20, Keep: time.Hour}))
				require.NoError(t, l.Release(t.Context()))
				synctest.Wait() // it returns when a quorum has answered
				require.Equal(t, commands+1, fleet.Node(0).Commands())
				entries, err := q.Board().Journal(t.Context(), "runs/key", 10)
				require.NoError(t, err)
				require.Len(t, entries, 1)
				require.Equal(t, "done", entries[0].Text)
				require.Equal(t, 3, entries[0].Nodes)
				require.NoError(t, l.EndWith(redlock.Entry{}))
			})
		})
	}
}

// A process tells what its parts say, soon and then regularly, and takes its card down at the end.
func TestReports(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, other := open(t, fleet), open(t, fleet)
		finish(t, acquire(t, q).Release)
		finish(t, acquire(t, other).Release)
		var asked atomic.Int64
		stop := q.Board().Report(func() redlock.Report {
			asked.Add(1)
			return redlock.Report{
				Cards: []redlock.Card{{Kind: "jobs", ID: "x", Text: "y", Lifetime: time.Minute}},
				About: map[string][]any{"running": {map[string]any{"job": "x"}}, "v": {9}},
			}
		})
		defer stop()
		stop2 := q.Board().Report(func() redlock.Report { return redlock.Report{About: map[string][]any{"running": {"z"}}} })
		defer other.Board().Report(func() redlock.Report { return redlock.Report{} })()
		time.Sleep(time.Second)
		read := func() []redlock.Card {
			cards, _, err := other.Board().Cards(t.Context(), redlock.ProcessKind, "", 10)
			require.NoError(t, err)
			return cards
		}
		cards := read()
		require.Len(t, cards, 1)
		var card struct {
			V        int
			Identity string
			Nodes    []struct {
				Node  string
				Votes bool
			}
			Running []any
			Cut     bool
		}
		require.NoError(t, json.Unmarshal([]byte(cards[0].Text), &card))
		require.Equal(t, 1, card.V)
		require.Equal(t, q.Identity(), card.Identity)
		require.Len(t, card.Nodes, 3)
		require.True(t, card.Nodes[0].Votes)
		require.ElementsMatch(t, []any{map[string]any{"job": "x"}, "z"}, card.Running)
		time.Sleep(time.Minute)
		require.InDelta(t, 7, asked.Load(), 2)
		require.Less(t, read()[0].Age, 12*time.Second)
		stop2()
		require.Len(t, read(), 1)
		stop()
		synctest.Wait()
		require.Empty(t, read())
	})
}

// A process has no card any more as soon as no part says anything about it, and none after its last
// part has ended, whenever that was.
func TestReportsEnd(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		finish(t, acquire(t, q).Release)
		read := func() []redlock.Card {
			cards, _, err := q.Board().Cards(t.Context(), redlock.ProcessKind, "", 10)
			require.NoError(t, err)
			return cards
		}
		about := func() redlock.Report { return redlock.Report{About: map[string][]any{"running": {"x"}}} }
		other := q.Board().Report(func() redlock.Report { return redlock.Report{} })
		stop := q.Board().Report(about)
		time.Sleep(time.Second)
		require.Len(t, read(), 1)
		stop()
		time.Sleep(2 * redlock.ReportEvery)
		require.Empty(t, read(), "the other part says nothing")
		other()

		asked, ended := make(chan struct{}), make(chan struct{})
		stop = q.Board().Report(func() redlock.Report {
			close(asked)
			<-ended
			return about()
		})
		<-asked
		stop()
		close(ended)
		synctest.Wait()
		require.Empty(t, read())
	})
}

// A card that does not fit is cut, says so, and is still a card.
func TestCutCard(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		finish(t, acquire(t, q).Release)
		defer q.Board().Report(func() redlock.Report {
			list := make([]any, 10000)
			for i := range list {
				list[i] = "text \" that is escaped\x00"
			}
			return redlock.Report{About: map[string][]any{"many": list, "few": {1}}}
		})()
		time.Sleep(time.Second)
		cards, _, err := q.Board().Cards(t.Context(), redlock.ProcessKind, "", 10)
		require.NoError(t, err)
		require.Len(t, cards, 1)
		var card struct {
			Few, Many []any
			Cut       bool
		}
		require.NoError(t, json.Unmarshal([]byte(cards[0].Text), &card))
		require.True(t, card.Cut)
		require.Len(t, card.Few, 1)
		require.Greater(t, len(card.Many), 30)
	})
}

// A node that hangs costs readers its timeout once, and not with every question.
func TestBoardWithANodeThatHangs(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		finish(t, acquire(t, q).Release)
		_, err := q.Board().Post(t.Context(), []redlock.Card{{Kind: "k", ID: "id", Text: "text", Lifetime: time.Hour}}, nil)
		require.NoError(t, err)
		freeze(t, fleet, 1)
		began := time.Now()
		for range 100 {
			card, found, err := q.Board().Card(t.Context(), "k", "id")
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, "text", card.Text)
			_, err = q.Board().Post(t.Context(), []redlock.Card{{Kind: "k", ID: "id", Text: "text", Lifetime: time.Hour}}, nil)
			require.NoError(t, err)
		}
		require.Less(t, time.Since(began), 2*time.Second)
		thaw(t, fleet, 1)
	})
}

// Nobody hears for a function that is none. After the end nothing is heard, nor posted.
func TestBoardRefusesWhatItCannotDo(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		stop, err := q.Board().Hear("j", nil)
		require.Nil(t, stop)
		require.ErrorContains(t, err, "no function")
		require.NoError(t, q.Close())
		stop, err = q.Board().Hear("j", func(redlock.Entry) {})
		require.NoError(t, err)
		stop()
		_, err = q.Board().Post(t.Context(), nil, nil)
		require.ErrorIs(t, err, redlock.ErrClosed)
	})
}
