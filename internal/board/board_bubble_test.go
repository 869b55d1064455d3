package board_test

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func bubble(t *testing.T, test func(t *testing.T, fleet *redlocktest.Fleet)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) })
		test(t, redlocktest.StartPipes(t, 3))
	})
}

func open(t *testing.T, fleet *redlocktest.Fleet) *redlock.Quorum {
	q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	q.Nodes(t.Context())
	return q
}

// post posts on all nodes.
func post(t *testing.T, q *redlock.Quorum, cards []bulletin.Card, entries ...bulletin.Entry) {
	t.Helper()
	require.NoError(t, board.Of(q).Post(t.Context(), cards, entries...))
	synctest.Wait()
}

func cardsOf(t *testing.T, q *redlock.Quorum, kind string) (all []bulletin.Card) {
	t.Helper()
	for c, err := range board.Of(q).Cards(t.Context(), kind) {
		require.NoError(t, err)
		all = append(all, c)
	}
	return all
}

// Cards are there for everybody until they expire or are taken down, in the order of their ids, and
// the youngest of each counts.
func TestCards(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, other := open(t, fleet), open(t, fleet)
		post(t, q, []bulletin.Card{{Kind: "a", ID: "b c", Text: "one", Lifetime: time.Minute}, {Kind: "a", ID: "a", Text: "two", Lifetime: time.Hour}})
		time.Sleep(time.Second)
		fleet.Node(2).SetDelay(time.Hour) // hears nothing for a while
		post(t, other, []bulletin.Card{{Kind: "a", ID: "b c", Text: "three", Lifetime: time.Minute}})
		fleet.Node(2).SetDelay(0)
		time.Sleep(time.Minute - 2*time.Second)

		cards := cardsOf(t, other, "a")
		require.Len(t, cards, 2)
		require.Equal(t, []string{"a", "b c"}, []string{cards[0].ID, cards[1].ID})
		require.Equal(t, "two", cards[0].Text)
		require.Equal(t, "three", cards[1].Text)
		require.InDelta(t, time.Minute, cards[0].Age, float64(5*time.Second))
		card, found, err := board.Of(q).Card(t.Context(), "a", "a")
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, cards[0], card)
		_, found, err = board.Of(q).Card(t.Context(), "a", "b")
		require.NoError(t, err)
		require.False(t, found, "another one begins with that")
		time.Sleep(time.Minute)
		require.Len(t, cardsOf(t, q, "a"), 1)
		post(t, q, []bulletin.Card{{Kind: "a", ID: "a"}})
		require.Empty(t, cardsOf(t, q, "a"))
	})
}

// Whoever reads gets every card once, however many there are, also where a node lacks some, and
// asks for no page that is not needed.
func TestPagesOfCards(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		var cards []bulletin.Card
		for i := range 240 {
			id := string(rune('a'+i*37%240/16)) + string(rune('a'+i*37%240%16))
			cards = append(cards, bulletin.Card{Kind: "k", ID: id, Text: id, Lifetime: time.Hour})
		}
		post(t, q, cards[:120])
		fleet.Node(0).FlushAll()
		post(t, q, cards[120:])
		got := cardsOf(t, q, "k")
		require.Len(t, got, 240)
		for i, c := range got[1:] {
			require.Less(t, got[i].ID, c.ID)
		}
		commands := fleet.Node(0).Commands()
		for _, err := range board.Of(q).Cards(t.Context(), "k") {
			require.NoError(t, err)
			break
		}
		require.Equal(t, commands+1, fleet.Node(0).Commands())
	})
}

// A journal has the newest entries first, as many as it keeps; equal ones of a class are counted,
// and one that is repeated is there once, and heard again.
func TestJournal(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		var heard []string
		stop := board.Of(q).Hear("j", func(e bulletin.Entry) { heard = append(heard, e.Text) })
		time.Sleep(time.Second)
		begin := time.Now()
		enter := func(text, class string, at time.Time) {
			post(t, q, nil, bulletin.Entry{Journal: "j/of me", Text: text, Class: class, At: at, Most: 3, Keep: time.Hour})
			time.Sleep(time.Second)
		}
		has := func(want ...string) {
			t.Helper()
			entries, err := board.Of(q).Journal(t.Context(), "j/of me", 10)
			require.NoError(t, err)
			var texts []string
			for _, e := range entries {
				require.Equal(t, 3, e.Nodes)
				require.Less(t, begin.Sub(e.At), time.Second)
				texts = append(texts, strings.Repeat(e.Text+" ", e.Count))
			}
			require.Equal(t, want, texts)
		}
		for _, text := range []string{"0", "1", "2", "3"} {
			enter(text, "", time.Time{})
		}
		has("3 ", "2 ", "1 ")
		enter("paused", "p", time.Time{})
		enter("again", "p", time.Time{})
		enter("again", "p", time.Time{})
		has("again again again ", "3 ", "2 ")
		at := time.Now()
		enter("4", "", at)
		enter("4", "", at)
		has("4 ", "again again again ", "3 ")
		require.Equal(t, []string{"0", "1", "2", "3", "paused", "again", "again", "4", "4"}, heard, "what is entered again is heard again")
		stop()
		enter("5", "", time.Time{})
		require.Len(t, heard, 9)
		time.Sleep(time.Hour)
		has()
	})
}

// A process tells what its parts say, soon and then regularly, and takes its card down at the end.
func TestReports(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, other := open(t, fleet), open(t, fleet)
		var asked atomic.Int64
		stop := board.Of(q).Report(func() board.Report {
			asked.Add(1)
			return board.Report{
				Process: bulletin.Process{Jobs: []string{"x"}, Running: []bulletin.Run{{Job: "x", By: "me"}}},
				Cards:   []bulletin.Card{{Kind: "jobs", ID: "x", Text: "y", Lifetime: time.Minute}},
			}
		})
		stop2 := board.Of(q).Report(func() board.Report {
			return board.Report{Process: bulletin.Process{Elections: []bulletin.Candidacy{{Election: "z"}}, Jobs: []string{"z"}}}
		})
		time.Sleep(time.Second)
		cards := cardsOf(t, other, bulletin.Processes)
		require.Len(t, cards, 1)
		p, ok := bulletin.Parse[bulletin.Process](cards[0].Text)
		require.True(t, ok)
		require.Equal(t, q.Identity(), p.Identity)
		require.Equal(t, cards[0].ID, p.Process)
		require.Len(t, p.Nodes, 3)
		require.True(t, p.Nodes[0].Votes)
		require.ElementsMatch(t, []string{"x", "z"}, p.Jobs)
		require.Len(t, p.Running, 1)
		require.Len(t, p.Elections, 1)
		require.Len(t, cardsOf(t, other, "jobs"), 1)
		time.Sleep(time.Minute)
		require.InDelta(t, 7, asked.Load(), 2)
		require.Less(t, cardsOf(t, other, bulletin.Processes)[0].Age, 12*time.Second)
		stop2()
		require.Len(t, cardsOf(t, other, bulletin.Processes), 1)
		stop()
		require.Empty(t, cardsOf(t, other, bulletin.Processes))
	})
}

// A process tells since when it sees each node as it does, and how it saw it before: the last five
// turns, of the time in which it had a card.
func TestNodesAreSeenSince(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, other := open(t, fleet), open(t, fleet)
		report := func() (stop func()) { return board.Of(q).Report(func() board.Report { return board.Report{} }) }
		nodes := func() []bulletin.NodeSeen {
			cards := cardsOf(t, other, bulletin.Processes)
			require.Len(t, cards, 1)
			p, ok := bulletin.Parse[bulletin.Process](cards[0].Text)
			require.True(t, ok)
			return p.Nodes
		}
		about := func(at time.Time, turn bulletin.Turn) {
			t.Helper()
			require.WithinDuration(t, at, time.UnixMilli(turn.Since), 13*time.Second)
		}
		stop := report()
		began := time.Now()
		time.Sleep(2 * time.Minute)
		require.NoError(t, fleet.Node(0).Kill())
		killed := time.Now()
		time.Sleep(2 * time.Minute)
		require.NoError(t, fleet.Node(0).Restart(false))
		back := time.Now()
		time.Sleep(2 * time.Minute)
		seen := nodes()
		require.Empty(t, seen[1].Was)
		about(began, seen[1].Turn)
		require.True(t, seen[0].Votes)
		about(back.Add(15*time.Second), seen[0].Turn) // with a quarantine
		was := seen[0].Was
		require.False(t, was[0].Votes)
		about(killed, was[len(was)-2])
		require.NotEmpty(t, was[len(was)-2].Why)
		require.True(t, was[len(was)-1].Votes)
		about(began, was[len(was)-1])
		for range 4 {
			require.NoError(t, fleet.Node(0).Freeze())
			time.Sleep(time.Minute)
			require.NoError(t, fleet.Node(0).Thaw())
			time.Sleep(time.Minute)
		}
		require.Len(t, nodes()[0].Was, 5)
		fleet.Node(2).JumpClock(-time.Minute)
		time.Sleep(time.Minute)
		require.True(t, nodes()[2].Votes)
		require.Equal(t, string(redlock.ConditionClockWrong), nodes()[2].Why, "a warning")
		stop()
		defer report()()
		time.Sleep(time.Minute)
		require.Empty(t, nodes()[0].Was)
	})
}

// A process has no card after its last part has ended, also if that part is asked just then. It has
// one again with the next.
func TestReportsEnd(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		for range 2 {
			asked, ended := make(chan struct{}), make(chan struct{})
			stop := board.Of(q).Report(func() board.Report {
				close(asked)
				<-ended
				return board.Report{}
			})
			<-asked
			stop()
			close(ended)
			synctest.Wait()
			require.Empty(t, cardsOf(t, q, bulletin.Processes))
		}
		defer board.Of(q).Report(func() board.Report { return board.Report{} })()
		time.Sleep(time.Second)
		require.Len(t, cardsOf(t, q, bulletin.Processes), 1)
	})
}

// What no node takes is told to be lost, and the next report comes all the same.
func TestLostReports(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		var asked, lost atomic.Int64
		for i := range 3 {
			require.NoError(t, fleet.Node(i).Freeze())
		}
		stop := board.Of(q).Report(func() board.Report {
			asked.Add(1)
			return board.Report{Lost: func() { lost.Add(1) }}
		})
		time.Sleep(25 * time.Second)
		require.Greater(t, lost.Load(), int64(1))
		require.Equal(t, asked.Load(), lost.Load())
		for i := range 3 {
			require.NoError(t, fleet.Node(i).Thaw())
		}
		time.Sleep(30 * time.Second)
		require.Greater(t, asked.Load(), lost.Load())
		require.Len(t, cardsOf(t, q, bulletin.Processes), 1)
		stop()
	})
}

// A node that hangs costs readers its timeout once, and not with every question.
func TestNodeThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		card := []bulletin.Card{{Kind: "k", ID: "id", Text: "text", Lifetime: time.Hour}}
		post(t, q, card)
		require.NoError(t, fleet.Node(1).Freeze())
		began := time.Now()
		for range 100 {
			got, found, err := board.Of(q).Card(t.Context(), "k", "id")
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, "text", got.Text)
			require.NoError(t, board.Of(q).Post(t.Context(), card))
		}
		require.Less(t, time.Since(began), 3*time.Second, "not 100 timeouts")
		require.NoError(t, fleet.Node(1).Thaw())
	})
}

// A node in quarantine is told, too. One that does not answer is an error only if none does.
func TestWhoIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		for i := range 3 {
			require.NoError(t, fleet.Node(i).Restart(false))
		}
		time.Sleep(5 * time.Second)
		for _, n := range q.Nodes(t.Context()) {
			require.False(t, n.Votes)
		}
		synctest.Wait() // until they have been looked at, and are in quarantine
		post(t, q, []bulletin.Card{{Kind: "k", ID: "id", Lifetime: time.Hour}})
		cards := cardsOf(t, q, "k")
		require.Len(t, cards, 1)
		require.Equal(t, 3, cards[0].Nodes)
		for i := range 3 {
			require.NoError(t, fleet.Node(i).Kill())
		}
		require.ErrorIs(t, board.Of(q).Post(t.Context(), cards), redlock.ErrNoQuorum)
		_, err := board.Of(q).Journal(t.Context(), "j", 1)
		var qe *redlock.QuorumError
		require.ErrorAs(t, err, &qe)
		require.Len(t, qe.Errs, 3)
	})
}

// On a Quorum that is closed, and on none, nothing is heard, nor posted.
func TestClosedQuorum(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		closed := open(t, fleet)
		require.NoError(t, closed.Close())
		for _, q := range []*redlock.Quorum{closed, nil, {}} {
			b := board.Of(q)
			b.Hear("j", func(bulletin.Entry) { t.Error("heard") })()
			b.Report(func() board.Report { t.Error("asked"); return board.Report{} })()
			card := []bulletin.Card{{Kind: "k", ID: "id"}}
			require.ErrorIs(t, b.Post(t.Context(), card), redlock.ErrClosed)
			_, _, err := b.Card(t.Context(), "k", "id")
			require.ErrorIs(t, err, redlock.ErrClosed)
			_, err = b.Journal(t.Context(), "k", 1)
			require.ErrorIs(t, err, redlock.ErrClosed)
			for _, err := range b.Cards(t.Context(), "k") {
				require.ErrorIs(t, err, redlock.ErrClosed)
			}
		}
	})
}
