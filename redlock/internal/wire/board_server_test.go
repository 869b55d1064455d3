package wire

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

var board = NewBoard("p")

func postOf(cards []Card, entries []Entry) *Call {
	var n Notice
	for i := range cards {
		board.AddCard(&n, &cards[i])
	}
	for i := range entries {
		board.AddEntry(&n, &entries[i])
	}
	return &Call{Op: Post, Notice: &n}
}

func put(t testing.TB, n *valkeytest.Node, cards []Card, entries ...Entry) {
	t.Helper()
	require.NoError(t, ask(t, n.Client(), vouched, postOf(cards, entries))[0].Err)
}

func cardsOf(t testing.TB, n *valkeytest.Node, kind, after string, most int) []Card {
	t.Helper()
	got := ask(t, n.Client(), vouched, &Call{Op: Cards, Notice: board.ReadCards(kind, after, most)})[0]
	require.NoError(t, got.Err)
	return got.More().Told.Cards
}

func entriesOf(t testing.TB, n *valkeytest.Node, name string, most int) []Entry {
	t.Helper()
	got := ask(t, n.Client(), vouched, &Call{Op: Journal, Notice: board.ReadJournal(name, most)})[0]
	require.NoError(t, got.Err)
	return got.More().Told.Entries
}

func ids(cards []Card) (all []string) {
	for _, c := range cards {
		all = append(all, c.ID)
	}
	return all
}

func number(t testing.TB, n *valkeytest.Node, words ...string) int64 {
	t.Helper()
	got, err := n.Do(t, words...).AsInt64()
	require.NoError(t, err)
	return got
}

func cardKeys(kind string) []string { return board.cards(kind, nil) }

// Ids are in the order of their bytes, also where the server has the order of a language, and also
// ids with blanks, line ends and zeros.
func TestCardsAreInTheOrderOfBytes(t *testing.T) {
	t.Parallel()
	want := []string{"\x00", "\x00a", "\n", " ", "(", "-", "0", "A", "B", "Z", "[", "a", "a\r\nb", "a b", "aa", "b", "z", "{a}", "Ä", "ä", "é", "ñ", "日本", "\U0001f600"}
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
		var cards []Card
		for _, id := range want {
			cards = append(cards, Card{Kind: "k", ID: id, Text: "of " + id, Lifetime: time.Hour})
		}
		rand.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
		put(t, n, cards)
		got := cardsOf(t, n, "k", "", MaxPage)
		require.Equal(t, want, ids(got))
		for _, c := range got {
			require.Equal(t, "of "+c.ID, c.Text)
		}
		for i := range want {
			require.Equal(t, want[i+1:min(i+4, len(want))], append([]string{}, ids(cardsOf(t, n, "k", want[i], 3))...), "behind %q", want[i])
		}
		require.Empty(t, cardsOf(t, n, "other", "", MaxPage))
	}
}

// A card is read until it expires, and removed by later calls, some in each. One that is put up
// again stays for its new lifetime, and one that is taken down is gone.
func TestCardsExpire(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	var cards []Card
	for i := range 40 {
		cards = append(cards, Card{Kind: "k", ID: fmt.Sprintf("%02d", i), Lifetime: time.Millisecond})
	}
	put(t, n, append(cards, Card{Kind: "k", ID: "stays", Text: "one", Lifetime: time.Hour}))
	require.Eventually(t, func() bool {
		live := 0
		for _, c := range cardsOf(t, n, "k", "", MaxPage) {
			if c.Lifetime >= 0 {
				live++
			}
		}
		return live == 1
	}, 10*time.Second, time.Millisecond)
	require.Len(t, cardsOf(t, n, "k", "", MaxPage), 1+int(number(t, n, "ZCARD", cardKeys("k")[0]))-1, "a page goes on behind what has expired")
	for range 3 {
		put(t, n, []Card{{Kind: "k", ID: "stays", Text: "two", Lifetime: time.Hour}})
	}
	got := cardsOf(t, n, "k", "", MaxPage)
	require.Equal(t, []string{"stays"}, ids(got), "sixteen in each call")
	require.Equal(t, "two", got[0].Text)
	for i, size := range []string{"ZCARD", "ZCARD", "HLEN"} {
		require.EqualValues(t, 1, number(t, n, size, cardKeys("k")[i]))
	}
	put(t, n, []Card{{Kind: "k", ID: "stays"}, {Kind: "k", ID: "was never there"}})
	require.Empty(t, cardsOf(t, n, "k", "", MaxPage))
	require.Zero(t, number(t, n, append([]string{"EXISTS"}, cardKeys("k")...)...), "nothing is left")
}

// A text that is no card, or longer than any, is none; a page goes on behind it.
func TestTextsThatAreNoCards(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	texts := []string{"1 5 text", "1 5 " + strings.Repeat("x", MaxCard), "1 5 " + strings.Repeat("x", MaxCard+1), "2 5 text", "1 x text", "1 5", "", "1 -5 text"}
	for i, text := range texts {
		put(t, n, []Card{{Kind: "k", ID: strconv.Itoa(i), Lifetime: time.Hour}})
		require.NoError(t, n.Do(t, "HSET", cardKeys("k")[2], strconv.Itoa(i), text).Error())
	}
	got := cardsOf(t, n, "k", "", MaxPage)
	require.Len(t, got, len(texts))
	for i, c := range got {
		require.Equal(t, i >= 2, c.Lifetime < 0, "%.20q", texts[i])
		if i < 2 {
			require.Equal(t, texts[i], "1 5 "+c.Text)
			require.Positive(t, c.Age)
		} else {
			require.Empty(t, c.Text)
		}
	}
}

// A card that lives shortly does not shorten the life of the others, and keys have no life without
// an end.
func TestLivesOfCardsAreNotShortened(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	put(t, n, []Card{{Kind: "k", ID: "long", Lifetime: 2 * time.Hour}})
	put(t, n, []Card{{Kind: "k", ID: "short", Lifetime: time.Minute}})
	for _, key := range cardKeys("k") {
		left := number(t, n, "PTTL", key)
		require.Greater(t, left, int64(3_600_000), key)
		require.LessOrEqual(t, left, int64(2*3_600_000), key)
	}
	put(t, n, []Card{{Kind: "k", ID: "short", Lifetime: 4 * time.Hour}})
	for _, key := range cardKeys("k") {
		require.Greater(t, number(t, n, "PTTL", key), int64(3*3_600_000), key)
	}
}

// There are no more than 4096 cards of a kind: those go that expire first.
func TestCardsAreBounded(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	for from := 0; from < 4096; from += 64 {
		var cards []Card
		for i := range 64 {
			cards = append(cards, Card{Kind: "k", ID: fmt.Sprintf("%04d", from+i), Lifetime: time.Hour + time.Duration(from+i)*time.Minute})
		}
		put(t, n, cards)
	}
	require.EqualValues(t, 4096, number(t, n, "ZCARD", cardKeys("k")[0]))
	put(t, n, []Card{{Kind: "k", ID: "new", Lifetime: 1000 * time.Hour}})
	require.Equal(t, "0016", cardsOf(t, n, "k", "", 1)[0].ID, "the first to expire are gone")
	for i, size := range []string{"ZCARD", "ZCARD", "HLEN"} {
		require.EqualValues(t, 4096+1-16, number(t, n, size, cardKeys("k")[i]))
	}
	require.Equal(t, "new", cardsOf(t, n, "k", "4095", 1)[0].ID)
}

// The newest entry is the first. One of the newest one's class takes its place and counts; an entry
// that is repeated is there once; and there are no more than the journal has.
func TestEntriesOfAJournal(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	enter := func(at int64, count int64, class, text string) {
		put(t, n, nil, Entry{Journal: "j/x y", At: at, Count: count, Class: class, Text: text, Most: 3, Keep: time.Hour})
	}
	has := func(want ...Entry) {
		t.Helper()
		require.Equal(t, want, entriesOf(t, n, "j/x y", MaxJournal))
	}
	enter(1, 1, "", "one  with blanks\r\n")
	one := Entry{At: 1, Count: 1, Text: "one  with blanks\r\n"}
	has(one)
	enter(2, 2, "late", "two")
	enter(3, 5, "late", "three")
	has(Entry{At: 3, Count: 7, Class: "late", Text: "three"}, one)
	enter(1, 1, "", one.Text) // again
	has(one, Entry{At: 3, Count: 7, Class: "late", Text: "three"})
	enter(4, 1, "late", "four")
	has(Entry{At: 4, Count: 1, Class: "late", Text: "four"}, one, Entry{At: 3, Count: 7, Class: "late", Text: "three"})
	enter(5, 1, "", "five")
	has(Entry{At: 5, Count: 1, Text: "five"}, Entry{At: 4, Count: 1, Class: "late", Text: "four"}, one)
	require.Len(t, entriesOf(t, n, "j/x y", 2), 2)
	left := number(t, n, "PTTL", board.journal("j/x y"))
	require.Greater(t, left, int64(3_600_000-600_000))
	require.LessOrEqual(t, left, int64(3_600_000))

	enter(6, maxExact, "many", "six")
	enter(7, maxExact, "many", "seven")
	require.EqualValues(t, maxExact, entriesOf(t, n, "j/x y", 1)[0].Count, "what is counted stays exact")
}

const maxExact = 1<<53 - 1

// Entries are published on the channel of their kind, as they are in the journal.
func TestEntriesArePublished(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	conn, cancel := n.Client().Dedicate()
	defer cancel()
	heard := make(chan valkey.PubSubMessage, 10)
	conn.SetPubSubHooks(valkey.PubSubHooks{OnMessage: func(m valkey.PubSubMessage) { heard <- m }})
	require.Equal(t, "p:news:j", board.Channel("j"))
	require.NoError(t, conn.Do(t.Context(), conn.B().Subscribe().Channel("p:news:j").Build()).Error())
	late := Entry{Journal: "j/a", At: 2, Count: 1, Class: "late", Text: "b", Most: 5, Keep: time.Hour}
	put(t, n, []Card{{Kind: "j", ID: "a", Lifetime: time.Hour}}, Entry{Journal: "i", At: 1, Count: 1, Most: 5, Keep: time.Hour}, late)
	put(t, n, nil, late)
	for count := range int64(2) {
		m := <-heard
		e, ok := ParseEntry(m.Message)
		require.True(t, ok)
		require.Equal(t, "p:news:j", m.Channel)
		require.Equal(t, Entry{At: 2, Count: count + 1, Class: "late", Text: "b"}, e)
	}
	require.Empty(t, heard)
}

// A journal of another type is an error for what would be written there, and for nothing else of
// the same call. It stays as it is. Something else in the place of cards is removed, with what is
// beside it: it would grow without bound, and live for ever.
func TestKeysOfAnotherType(t *testing.T) {
	t.Parallel()
	for i, damaged := range append(cardKeys("bad"), board.journal("bad/x")) {
		n := valkeytest.Start(t, 1).Node(0)
		require.NoError(t, n.Do(t, "SET", damaged, "text").Error())
		cards := []Card{{Kind: "good", ID: "a", Lifetime: time.Hour}, {Kind: "bad", ID: "a", Lifetime: time.Hour}, {Kind: "good", ID: "b", Lifetime: time.Hour}}
		entries := []Entry{
			{Journal: "bad/x", At: 1, Count: 1, Class: "c", Most: 5, Keep: time.Hour}, {Journal: "bad/x", At: 2, Count: 1, Most: 5, Keep: time.Hour},
			{Journal: "good/x", At: 3, Count: 1, Most: 5, Keep: time.Hour},
		}
		got := ask(t, n.Client(), vouched, postOf(cards, entries))[0]
		require.Equal(t, []string{"a", "b"}, ids(cardsOf(t, n, "good", "", MaxPage)), damaged)
		require.Len(t, entriesOf(t, n, "good/x", 5), 1, damaged)
		require.Equal(t, []string{"a"}, ids(cardsOf(t, n, "bad", "", MaxPage)), damaged)
		if i == 3 {
			require.ErrorContains(t, got.Err, "WRONGTYPE", damaged)
			require.Equal(t, "text", textOf(t, n, "GET", damaged))
			continue
		}
		require.NoError(t, got.Err, damaged)
		require.Len(t, entriesOf(t, n, "bad/x", 5), 2)
		for _, lifetime := range []time.Duration{0, time.Hour} {
			require.NoError(t, n.Do(t, "SET", damaged, "text").Error())
			put(t, n, []Card{{Kind: "bad", ID: "b", Lifetime: lifetime}})
		}
		require.Equal(t, []string{"b"}, ids(cardsOf(t, n, "bad", "", MaxPage)), damaged)
		for k, size := range []string{"ZCARD", "ZCARD", "HLEN"} {
			require.EqualValues(t, 1, number(t, n, size, cardKeys("bad")[k]))
			require.Positive(t, number(t, n, "PTTL", cardKeys("bad")[k]))
		}
	}
}

// Cards that never expire were not put up by this library. They make room, and no others for them.
func TestCardsWithoutEndMakeRoom(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	junk := []string{"ZADD", cardKeys("k")[1]}
	for i := range 5000 {
		junk = append(junk, []string{"+inf", "1e300", strconv.FormatInt(time.Now().Add(MaxKeep+time.Hour).UnixMilli(), 10)}[i%3], fmt.Sprint("junk ", i))
	}
	require.NoError(t, n.Do(t, junk...).Error())
	const posts = 10
	for i := range posts {
		put(t, n, []Card{{Kind: "k", ID: strconv.Itoa(i), Lifetime: time.Hour}, {Kind: "k", ID: "century", Lifetime: MaxKeep}})
	}
	require.Len(t, cardsOf(t, n, "k", "", MaxPage), posts+1)
	require.EqualValues(t, 5000-2*posts*16+posts+1, number(t, n, "ZCARD", cardKeys("k")[1]))
}

// releaseWith is a release that makes an entry.
func releaseWith(k *Keys, owner string, e Entry) *Call {
	return &Call{Op: Release, Keys: k, Lock: "1 " + owner, Keep: "0", Channel: "p:call:", Last: &Last{Board: board, Entry: e}}
}

// A release makes its entry, once however often it is repeated. It never fails for the entry.
func TestReleaseMakesAnEntry(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	entry := Entry{Journal: "runs/x", At: 7, Count: 1, Text: "ended", Most: 20, Keep: time.Hour}
	want := []Entry{{At: 7, Count: 1, Text: "ended"}}
	k := &Keys{Lock: "p:{0}"}
	require.NoError(t, n.Do(t, "SET", k.Lock, "1 me").Error())
	call := releaseWith(k, "me", entry)
	for repeated := range 3 {
		got := ask(t, n.Client(), &Target{Process: thisProcess, Vouched: true}, call)[0]
		require.NoError(t, got.Err)
		require.Equal(t, repeated == 0, got.Verdict == OK)
		require.Equal(t, want, entriesOf(t, n, entry.Journal, 5))
	}
	require.EqualValues(t, 0, number(t, n, "EXISTS", k.Lock))

	k = &Keys{Lock: "p:{held}"}
	require.NoError(t, n.Do(t, "SET", k.Lock, "1 me", "PX", "3600000").Error())
	call = releaseWith(k, "me", Entry{Journal: "runs/held", At: 7, Count: 1, Text: "ended", Most: 20, Keep: time.Hour})
	call.Keep = "60000"
	require.Equal(t, OK, ask(t, n.Client(), vouched, call)[0].Verdict)
	left := number(t, n, "PTTL", k.Lock)
	require.LessOrEqual(t, left, int64(60_000), "the minimum hold is kept")
	require.Positive(t, left)
	require.Equal(t, want, entriesOf(t, n, "runs/held", 5))

	require.NoError(t, n.Do(t, "SET", board.journal("runs/damaged"), "text").Error())
	require.NoError(t, n.Do(t, "SET", k.Lock, "1 me").Error())
	got := ask(t, n.Client(), vouched, releaseWith(k, "me", Entry{Journal: "runs/damaged", At: 7, Count: 1, Class: "c", Text: "ended", Most: 20, Keep: time.Hour}))[0]
	require.NoError(t, got.Err)
	require.Equal(t, OK, got.Verdict)
	require.Zero(t, number(t, n, "EXISTS", k.Lock))
}

// A user without a right that only entries need releases all the same.
func TestEntryWithoutRightsCostsNoRelease(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	for i, denied := range [][]string{{"-publish", "-subscribe"}, {"resetchannels"}, {"-lpush", "-lset", "-lrem", "-ltrim", "-lindex"}} {
		require.NoError(t, n.Do(t, append([]string{"ACL", "SETUSER", "u", "reset", "on", ">p", "+@all", "~*", "&*"}, denied...)...).Error())
		user, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{n.Addr()}, Username: "u", Password: "p", ForceSingleClient: true, DisableCache: true})
		require.NoError(t, err)
		t.Cleanup(user.Close)
		k := &Keys{Lock: "p:{a}"}
		require.NoError(t, n.Do(t, "SET", k.Lock, "1 me").Error())
		e := Entry{Journal: fmt.Sprintf("runs/%d", i), At: 7, Count: 1, Class: "c", Most: 20, Keep: time.Hour}
		got := ask(t, user, vouched, releaseWith(k, "me", e))[0]
		require.NoError(t, got.Err, denied)
		require.Equal(t, OK, got.Verdict, denied)
		require.Len(t, entriesOf(t, n, e.Journal, 5), max(0, 1-i/2), denied)
		require.Equal(t, i >= 2, ask(t, user, vouched, postOf(nil, []Entry{e}))[0].Err != nil, denied)
	}
}

// A user who may only read the keys has everything carried out that only reads.
func TestReaderNeedsNoWriteRights(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	put(t, n, []Card{{Kind: "k", ID: "a", Text: "text", Lifetime: time.Hour}}, Entry{Journal: "j", At: 1, Count: 1, Most: 5, Keep: time.Hour})
	require.NoError(t, n.Do(t, "SET", "p:{a}", "host/AAAAAAAAAAAAAAAAAAAAAA").Error())
	require.NoError(t, n.Do(t, "ACL", "SETUSER", "u", "reset", "on", ">p", "%R~p:*", "-@all", "+evalsha_ro", "+eval_ro", "+time",
		"+get", "+mget", "+exists", "+pttl", "+zscore", "+zrangebylex", "+hget", "+lrange").Error())
	user, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{n.Addr()}, Username: "u", Password: "p", ForceSingleClient: true, DisableCache: true})
	require.NoError(t, err)
	t.Cleanup(user.Close)
	k := &Keys{Lock: "p:{a}", Fences: "p:{a}:fence", Slot: "7"}
	for op := range ops {
		if !table[op].reads || table[op].guest {
			continue
		}
		notice := map[Op]*Notice{Cards: board.ReadCards("k", "", 5), Journal: board.ReadJournal("j", 5)}[op]
		got := ask(t, user, &Target{Process: thisProcess, Vouched: true}, &Call{Op: op, Keys: k, Notice: notice})[0]
		require.NoError(t, got.Err, "%d %s", op, op)
		if notice != nil {
			require.Equal(t, 1, len(got.More().Told.Cards)+len(got.More().Told.Entries))
		}
	}
	require.ErrorContains(t, ask(t, user, vouched, postOf(nil, []Entry{{Journal: "j", At: 2, Count: 1, Most: 5, Keep: time.Hour}}))[0].Err, "NOPERM")
}
