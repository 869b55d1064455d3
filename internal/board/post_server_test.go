package board_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

const (
	cardsKey   = "tenure:{}:cards:k"
	journalKey = "tenure:{}:journal:j"
)

// quorumOf is a Quorum of one server, as a user with such rules.
func quorumOf(t *testing.T, n *valkeytest.Node, rules ...string) *redlock.Quorum {
	t.Helper()
	opts := []redlock.Option{redlock.WithoutRestartGate(), redlock.WithNodeTimeout(2 * time.Second), redlock.WithLogger(slog.New(slog.DiscardHandler))}
	if rules != nil {
		require.NoError(t, n.Do(t, append([]string{"ACL", "SETUSER", "u", "reset", "on", ">p", "+@all", "~*"}, rules...)...).Error())
		opts = append(opts, redlock.WithClientOption(func(_ string, o *valkey.ClientOption) { o.Username, o.Password = "u", "p" }))
	}
	q, err := redlock.Open([]string{"valkey://" + n.Addr()}, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	require.Eventually(t, func() bool { return q.Nodes(t.Context())[0].Votes }, time.Minute, 10*time.Millisecond)
	return q
}

func number(t *testing.T, n *valkeytest.Node, words ...string) int64 {
	t.Helper()
	got, err := n.Do(t, words...).AsInt64()
	require.NoError(t, err)
	return got
}

// put posts where no bubble is.
func put(t *testing.T, q *redlock.Quorum, cards []bulletin.Card, entries ...bulletin.Entry) {
	t.Helper()
	require.NoError(t, board.Of(q).Post(t.Context(), cards, entries...))
}

func ids(cards []bulletin.Card) (all []string) {
	for _, c := range cards {
		all = append(all, c.ID)
	}
	return all
}

// Ids are in the order of their bytes, also where the server has the order of a language, and also
// ids with blanks and line ends.
func TestCardsAreInTheOrderOfBytes(t *testing.T) {
	t.Parallel()
	want := []string{"\x00", "\x00\x01", "\x00a", "\x01", "\x01\x00", "\x01a", "\n", " ", "(", "-", "0", "A", "B", "Z", "[", "a", "a\x00", "a\x00b", "a\x01", "a\r\nb", "a b", "aa", "b", "z", "{a}", "Ä", "ä", "é", "ñ", "日本", "\U0001f600"}
	require.True(t, slices.IsSorted(want))
	nodes := []*valkeytest.Node{valkeytest.Start(t, 1).Node(0)}
	for _, locale := range []string{"C.UTF-8", "en_US.UTF-8"} {
		if fleet, err := valkeytest.New(1, valkeytest.WithArgs("--locale-collate", locale)); err == nil {
			t.Cleanup(func() { require.NoError(t, fleet.Close()) })
			nodes = append(nodes, fleet.Node(0))
		} else {
			t.Logf("this server does not start with the order of %s: %v", locale, err)
		}
	}
	for _, n := range nodes {
		q := quorumOf(t, n)
		var cards []bulletin.Card
		for _, id := range want {
			cards = append(cards, bulletin.Card{Kind: "k", ID: id, Text: "of " + id, Lifetime: time.Hour})
		}
		rand.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
		put(t, q, cards)
		got := cardsOf(t, q, "k")
		require.Equal(t, want, ids(got))
		for _, c := range got {
			require.Equal(t, "of "+c.ID, c.Text)
			one, found, err := board.Of(q).Card(t.Context(), "k", c.ID)
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, c.Text, one.Text)
		}
		require.Empty(t, cardsOf(t, q, "other"))
	}
}

// A card is there once, however often it is put up, and for its new lifetime. One that has expired
// is removed by others that are put up again.
func TestCardsExpire(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	q := quorumOf(t, n)
	var cards []bulletin.Card
	for i := range 40 {
		cards = append(cards, bulletin.Card{Kind: "k", ID: fmt.Sprintf("%02d", i), Lifetime: time.Millisecond})
	}
	put(t, q, append(cards, bulletin.Card{Kind: "k", ID: "20 stays", Text: "one", Lifetime: time.Hour}))
	require.Eventually(t, func() bool { return len(cardsOf(t, q, "k")) == 1 }, 10*time.Second, time.Millisecond)
	for range 20 {
		put(t, q, []bulletin.Card{{Kind: "k", ID: "20 stays", Text: "two", Lifetime: time.Hour}})
	}
	got := cardsOf(t, q, "k")
	require.Equal(t, []string{"20 stays"}, ids(got))
	require.Equal(t, "two", got[0].Text)
	require.EqualValues(t, 1, number(t, n, "ZCARD", cardsKey), "four in each call, before it and behind")
	left := number(t, n, "PTTL", cardsKey)
	require.Greater(t, left, int64(3_000_000))
	put(t, q, []bulletin.Card{{Kind: "k", ID: "short", Lifetime: time.Minute}})
	require.Greater(t, number(t, n, "PTTL", cardsKey), int64(3_000_000), "others live longer")
	put(t, q, []bulletin.Card{{Kind: "k", ID: "20 stays"}, {Kind: "k", ID: "short"}, {Kind: "k", ID: "was never there"}})
	require.Zero(t, number(t, n, "EXISTS", cardsKey), "nothing is left")
}

// There are no more than 4096 cards of a kind, or hardly more.
func TestCardsAreBounded(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	q := quorumOf(t, n)
	for from := 0; from < 5000; from += 50 {
		var cards []bulletin.Card
		for i := range 50 {
			cards = append(cards, bulletin.Card{Kind: "k", ID: fmt.Sprintf("%04d", (from+i)*37%5000), Lifetime: time.Hour})
		}
		put(t, q, cards)
	}
	require.LessOrEqual(t, number(t, n, "ZCARD", cardsKey), int64(4097))
	require.Greater(t, number(t, n, "ZCARD", cardsKey), int64(4000))
}

// What is of another type under one of the names makes room. Texts that are longer than they may be
// are none, and an answer has its bounds.
func TestWhatOthersHaveWritten(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	q := quorumOf(t, n)
	require.NoError(t, n.Do(t, "SET", cardsKey, "text").Error())
	require.NoError(t, n.Do(t, "SET", journalKey, "text").Error())
	entry := bulletin.Entry{Journal: "j", Text: "t", Most: 5, Keep: time.Hour}
	put(t, q, []bulletin.Card{{Kind: "k", ID: "a", Lifetime: time.Hour}}, entry)
	require.Equal(t, []string{"a"}, ids(cardsOf(t, q, "k")))
	long := strings.Repeat("x", 1<<21)
	require.NoError(t, n.Do(t, "ZADD", cardsKey, "0", "b"+long, "0", "c\x001 1 9000000000000 "+long).Error())
	require.NoError(t, n.Do(t, "LPUSH", journalKey, "1 1 1 - "+long).Error())
	require.Equal(t, []string{"a"}, ids(cardsOf(t, q, "k")))
	entries, err := board.Of(q).Journal(t.Context(), "j", 5)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.NoError(t, n.Do(t, "DEL", cardsKey).Error())
	require.NoError(t, n.Do(t, "ZADD", cardsKey, "-2", "d\x001 1 9000000000000 x", "-1", "c\x001 1 9000000000000 x").Error())
	cardsOf(t, q, "k") // in no order, it comes to an end
}

// A user who may not publish has entries kept. One who lacks the rights is refused, with the
// reason.
func TestRightsOfEntries(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	entry := bulletin.Entry{Journal: "j", Text: "t", Most: 5, Keep: time.Hour}
	for i, rules := range [][]string{{"&*", "-publish"}, {"resetchannels"}, {"&*", "-lpush"}} {
		q := quorumOf(t, n, rules...)
		require.NoError(t, n.Do(t, "DEL", journalKey).Error())
		err := board.Of(q).Post(t.Context(), nil, entry)
		if i < 2 {
			require.NoError(t, err, rules)
			require.EqualValues(t, 1, number(t, n, "LLEN", journalKey))
			continue
		}
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.ErrorContains(t, err, "noperm")
	}
}
