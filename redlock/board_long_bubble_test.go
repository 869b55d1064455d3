//go:build long

package redlock_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A journal has the newest entries first, as many as it keeps; equal ones of a class are counted,
// and one that is repeated is there once, and heard again.
func TestJournal(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		finish(t, acquire(t, q).Release)
		var heard []string
		stop, err := q.Board().Hear("j", func(e redlock.Entry) { heard = append(heard, e.Text) })
		require.NoError(t, err)
		time.Sleep(time.Second)
		begin := time.Now()
		enter := func(text, class string) {
			e := redlock.Entry{Journal: "j/of me", Text: text, Class: class, Most: 3, Keep: time.Hour}
			_, err := q.Board().Post(t.Context(), nil, []redlock.Entry{e})
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		texts := func() (texts []string) {
			entries, err := q.Board().Journal(t.Context(), "j/of me", 10)
			require.NoError(t, err)
			for _, e := range entries {
				require.Equal(t, 3, e.Nodes)
				require.Less(t, begin.Sub(e.At), time.Second)
				texts = append(texts, fmt.Sprintf("%s %d", e.Text, e.Count))
			}
			return texts
		}
		for i := range 4 {
			enter(fmt.Sprint(i), "")
		}
		require.Equal(t, []string{"3 1", "2 1", "1 1"}, texts())
		enter("paused", "p")
		enter("paused again", "p")
		enter("paused again", "p")
		require.Equal(t, []string{"paused again 3", "3 1", "2 1"}, texts())
		again := redlock.Entry{Journal: "j/of me", Text: "4", At: time.Now(), Most: 3, Keep: time.Hour}
		for range 2 {
			_, err := q.Board().Post(t.Context(), nil, []redlock.Entry{again})
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		require.Equal(t, []string{"4 1", "paused again 3", "3 1"}, texts())
		synctest.Wait()
		require.Equal(t, []string{"0", "1", "2", "3", "paused", "paused again", "paused again", "4", "4"}, heard, "what is entered again is heard again")
		stop()
		enter("5", "")
		require.Len(t, heard, 9)
		time.Sleep(time.Hour)
		require.Empty(t, texts())
	})
}

// Cards are there for everybody until they expire or are taken down, in the order of their ids, and
// the youngest of each counts.
func TestCards(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, other := open(t, fleet), open(t, fleet)
		finish(t, acquire(t, q).Release)
		finish(t, acquire(t, other).Release)
		post := func(q *redlock.Quorum, cards ...redlock.Card) int {
			n, err := q.Board().Post(t.Context(), cards, nil)
			require.NoError(t, err)
			return n
		}
		require.Equal(t, 3, post(q, redlock.Card{Kind: "a", ID: "b c", Text: "one", Lifetime: time.Minute}, redlock.Card{Kind: "a", ID: "a", Text: "two", Lifetime: time.Hour}))
		time.Sleep(time.Second)
		fleet.Node(2).SetDelay(time.Hour) // hears nothing for a while
		require.Equal(t, 2, post(other, redlock.Card{Kind: "a", ID: "b c", Text: "three", Lifetime: time.Minute}))
		fleet.Node(2).SetDelay(0)
		time.Sleep(time.Minute - 2*time.Second)

		cards, next, err := other.Board().Cards(t.Context(), "a", "", 10)
		require.NoError(t, err)
		require.Empty(t, next)
		require.Len(t, cards, 2)
		require.Equal(t, []string{"a", "b c"}, []string{cards[0].ID, cards[1].ID})
		require.Equal(t, "two", cards[0].Text)
		require.Equal(t, "three", cards[1].Text)
		require.InDelta(t, time.Minute, cards[0].Age, float64(5*time.Second))
		time.Sleep(time.Minute)
		cards, _, err = q.Board().Cards(t.Context(), "a", "", 10)
		require.NoError(t, err)
		require.Len(t, cards, 1)
		post(q, redlock.Card{Kind: "a", ID: "a"})
		cards, _, err = q.Board().Cards(t.Context(), "a", "", 10)
		require.NoError(t, err)
		require.Empty(t, cards)
	})
}

// Pages have every card once, also where a node lacks some.
func TestPagesOfCards(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		finish(t, acquire(t, q).Release)
		var want []string
		for i := range 95 {
			if i == 50 {
				fleet.Node(0).FlushAll()
			}
			id := fmt.Sprintf("%02d", (i*37)%95)
			_, err := q.Board().Post(t.Context(), []redlock.Card{{Kind: "k", ID: id, Text: id, Lifetime: time.Hour}}, nil)
			require.NoError(t, err)
			want = append(want, fmt.Sprintf("%02d", i))
		}
		for _, size := range []int{1, 7, 50, 95, 100, 1000} {
			var got []string
			for after := ""; ; {
				cards, next, err := q.Board().Cards(t.Context(), "k", after, size)
				require.NoError(t, err)
				for _, c := range cards {
					got = append(got, c.ID)
				}
				if after = next; next == "" {
					break
				}
			}
			require.Equal(t, want, got, size)
		}
	})
}
