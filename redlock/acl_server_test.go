package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// userURLs are the URLs of a fleet for the user of withUser.
func (s *servers) userURLs() []string {
	urls := make([]string, len(s.Nodes()))
	for i, n := range s.Nodes() {
		urls[i] = "valkey://tenure:p4ss@" + n.Addr()
	}
	return urls
}

// withUser starts servers with a user who may do what Tenure needs, but for what the rules say.
func withUser(t *testing.T, rules ...string) valkeytest.Option {
	t.Helper()
	args := []string{"--user", "tenure", "on", ">p4ss", "resetchannels", "~tenure:*", "&tenure:*"}
	return valkeytest.WithArgs(append(append(args, advised(t)...), rules...)...)
}

// advised are the commands that the advice names, as rules.
func advised(t *testing.T) []string {
	t.Helper()
	rules := regexp.MustCompile(`\+[a-z|_]+`).FindAllString((&redlock.ConditionError{Condition: redlock.ConditionNoPermission}).Error(), -1)
	require.NotEmpty(t, rules)
	return rules
}

// What the advice says is what examples/nodes grants, where it is tried that it is enough and no
// more than that.
func TestACLAdviceIsTheRecipe(t *testing.T) {
	text, err := os.ReadFile("../examples/nodes/users.acl")
	require.NoError(t, err)
	_, recipe, found := strings.Cut(string(text), "user billing ")
	require.True(t, found)
	require.ElementsMatch(t, regexp.MustCompile(`\+\S+`).FindAllString(recipe, -1), advised(t))
}

func TestACLWithWhatTheAdviceGrants(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3, withUser(t))
	first, second := gatedURLs(t, s.userURLs()), gatedURLs(t, s.userURLs())
	l := s.hold(first, "key")
	require.NoError(t, l.Extend(t.Context()))
	granted := s.wait(second, "key")
	require.NoError(t, l.Release(t.Context()))
	require.NoError(t, receive(t, granted, serverTTL, "not woken").err)
	for i := range s.Nodes() {
		require.True(t, node(t, first, i).Votes)
		require.NotZero(t, s.Node(i).CommandStats(t)["eval"])
	}
}

// saidOf is how often the log says what is wrong with a server that answers.
func saidOf(log *lockedBuffer) int {
	return strings.Count(log.String(), "node does not vote") + strings.Count(log.String(), "node lacks what it should have")
}

// errorText is what an error says but for what to do, which has the names of all rights.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	text, _, _ := strings.Cut(err.Error(), " ("+redlock.Advice(err))
	return text
}

// Whatever the server is that the tests run on, its words for a right that is missing are known.
func TestWordsOfThisServer(t *testing.T) {
	t.Parallel()
	s := startServers(t, 1)
	for _, test := range []struct {
		name string
		rule []string
	}{
		{"the call", []string{"-evalsha", "-eval"}},
		{"a key of the call", []string{"resetkeys", "~other:*"}},
		{"a command of a script", []string{"-set"}},
		{"a key of a script", []string{"resetkeys", "%R~tenure:*"}},
	} {
		s.do(append([]string{"ACL", "SETUSER", "tenure", "reset", "on", ">p4ss", "~tenure:*", "&tenure:*"}, append(advised(t), test.rule...)...))
		_, err := openURLs(t, s.userURLs()).TryAcquire(t.Context(), "key")
		require.Error(t, err, test.name)
		requireCondition(t, errorOf(t, err, s.Node(0).Addr()), s.Node(0).Addr(), redlock.ConditionNoPermission)
	}
}

// A user who may hear no channel, as ACL SETUSER makes one, waits all the same, and the log says
// once what that costs. What a refused subscription costs a server, package listen tests.
func TestACLWithoutChannels(t *testing.T) {
	t.Parallel()
	s := startAged(t, 1, withUser(t, "resetchannels"))
	began := time.Now()
	var log lockedBuffer
	q := gatedURLs(t, s.userURLs(), logTo(&log))
	l := s.hold(q, "key")
	defer board.Of(q).Hear("kind", func(bulletin.Entry) {})() // as an Elector does, without anybody waiting
	granted := s.wait(gatedURLs(t, s.userURLs(), logTo(&log)), "key")
	rejected := func() int {
		stats, err := s.Node(0).Do(t, "INFO", "commandstats").ToString()
		require.NoError(t, err)
		found := regexp.MustCompile(`cmdstat_subscribe:.*rejected_calls=(\d+)`).FindStringSubmatch(stats)
		if found == nil {
			return 0
		}
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		return n
	}
	require.Eventually(t, func() bool { return rejected() >= 2 }, longTTL, pollTick, "it is not asked for")
	n := node(t, q, 0)
	require.True(t, n.Votes)
	require.Len(t, n.Warnings, 1)
	requireCondition(t, &redlock.NodeError{Node: n.Node, Err: n.Warnings[0]}, n.Node, redlock.ConditionNoPermission)
	require.Equal(t, 2, saidOf(&log), "once in each Quorum: %s", &log)
	require.NoError(t, l.Release(t.Context()))
	require.NoError(t, receive(t, granted, 2*serverTTL, "it asks once a TTL").err)
	require.Equal(t, 2, saidOf(&log), "%s", &log)
	require.LessOrEqual(t, rejected(), 2*(1+int(time.Since(began)/time.Minute)), "it is asked for once a minute in each Quorum")
}

// Whoever asks for the state of the nodes gets it as it is now.
func TestNodesAreTriedWhenTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	q := gatedURLs(t, s.URLs(), redlock.WithTTL(8*longTTL), redlock.WithMaxTTL(8*longTTL))
	require.NoError(t, s.hold(q, "before").Release(t.Context()))
	s.do([]string{"CONFIG", "SET", "maxmemory", "1"})
	for _, n := range q.Nodes(t.Context()) {
		require.True(t, n.Reachable)
		require.False(t, n.Votes)
		requireCondition(t, n.Err, n.Node, redlock.ConditionOutOfMemory)
	}
	require.ErrorIs(t, q.Healthy(), redlock.ErrNoQuorum)
}

// readerRights are the rights that docs/nodes.md gives a user who only reads, for a prefix.
func readerRights(t *testing.T, prefix string) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/nodes.md")
	require.NoError(t, err)
	line := regexp.MustCompile("`user billing-reader on >\\S+ ([^`]*)`").FindStringSubmatch(string(text))
	require.NotNil(t, line)
	return strings.Fields(strings.ReplaceAll(line[1], "billing", prefix))
}

// reads asks for all that a user may see who only reads.
func reads(t *testing.T, q *redlock.Quorum) error {
	h, err := q.Holder(t.Context(), "held")
	if err != nil {
		return fmt.Errorf("Holder: %w", err)
	}
	require.NotEmpty(t, h.Identity)
	states, err := register.Of(q, "job", time.Hour).Read(t.Context())
	if err != nil {
		return fmt.Errorf("a register: %w", err)
	}
	require.Equal(t, "seven", string(states[0].Value))
	if _, err = q.Holder(t.Context(), "free"); !errors.Is(err, redlock.ErrNotHeld) {
		return fmt.Errorf("Holder of none: %w", err)
	}
	card, found, err := board.Of(q).Card(t.Context(), "k", "a")
	if err != nil {
		return fmt.Errorf("Card: %w", err)
	}
	require.True(t, found)
	require.Equal(t, 3, card.Nodes)
	entries, err := board.Of(q).Journal(t.Context(), "j", 5)
	if err != nil {
		return fmt.Errorf("Journal: %w", err)
	}
	require.NotEmpty(t, entries)
	return nil
}

// readsRoster reads who uses the nodes, as tools do.
func readsRoster(t *testing.T, url string) error {
	o, err := valkey.ParseURL(url)
	require.NoError(t, err)
	o.DisableCache = true
	client, err := valkey.NewClient(o)
	require.NoError(t, err)
	defer client.Close()
	r, err := redlock.ReadRoster(t.Context(), client, "tenure")
	if err == nil {
		require.NotEmpty(t, r)
	}
	return err
}

// A user who may only read sees all there is, has no vote, and gives no order. It needs each of its
// rights, and no other. A write of a process that has rights is heard by it.
func TestReader(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3, withUser(t))
	rights := readerRights(t, "tenure")
	patient := []redlock.Option{redlock.WithTTL(longTTL), redlock.WithNodeTimeout(longTTL / 4)}
	writer := s.gated(patient...)
	s.hold(writer, "held")
	turn, _, err := register.Of(writer, "job", time.Hour).Begin(t.Context(), s.hold(writer, "job"))
	require.NoError(t, err)
	require.NoError(t, turn.Write(t.Context(), []byte("seven")))
	entry := bulletin.Entry{Journal: "j", Text: "one", Most: 5, Keep: time.Hour}
	require.NoError(t, board.Of(writer).Post(t.Context(), []bulletin.Card{{Kind: "k", ID: "a", Text: "x", Lifetime: time.Hour}}, entry))

	require.Eventually(t, func() bool {
		card, _, err := board.Of(writer).Card(t.Context(), "k", "a")
		return err == nil && card.Nodes == 3
	}, patience, pollTick)

	as := func(rules ...string) *redlock.Quorum {
		s.do(append([]string{"ACL", "SETUSER", "tenure", "reset", "on", ">p4ss"}, rules...))
		s.do([]string{"ACL", "LOG", "RESET"})
		return gatedURLs(t, s.userURLs(), patient...)
	}
	var log lockedBuffer
	s.do(append([]string{"ACL", "SETUSER", "tenure", "reset", "on", ">p4ss"}, rights...))
	reader := gatedURLs(t, s.userURLs(), append(patient, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))...)
	require.NoError(t, reads(t, reader))
	heard := make(chan bulletin.Entry, 100)
	defer board.Of(reader).Hear("j", func(e bulletin.Entry) { heard <- e })()
	require.Eventually(t, func() bool {
		entry.At = time.Now()
		return board.Of(writer).Post(t.Context(), nil, entry) == nil && len(heard) > 0
	}, patience, pollTick)

	for i := range s.Nodes() {
		n := node(t, reader, i)
		require.True(t, n.Reachable)
		require.False(t, n.Votes)
		require.Equal(t, string(redlock.ConditionNoPermission), redlock.ErrorType(n.Err))
	}
	require.Error(t, reader.Healthy())
	require.Contains(t, log.String(), "noperm")
	_, err = reader.TryAcquire(t.Context(), "other")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorIs(t, board.Of(reader).Post(t.Context(), nil, entry), redlock.ErrNoQuorum)

	require.NoError(t, readsRoster(t, s.userURLs()[0]))
	for i, right := range rights {
		if right == "+hgetall" { // of tools
			continue
		}
		if !strings.HasPrefix(right, "+") || connectionRights[right] || right == "+eval_ro" {
			continue
		}
		without := append(append([]string{}, rights[:i]...), rights[i+1:]...)
		require.Error(t, reads(t, as(without...)), "%s is not needed", right)
	}
	for _, more := range [][]string{{"+evalsha"}, {"+evalsha", "+set"}} {
		require.NoError(t, reads(t, as(append(rights, more...)...)), "what may not be written stays so: %v", more)
	}

	// Scripts that another process has sent are there.
	require.NoError(t, writer.Close())
	require.NoError(t, reader.Close())
	for _, missing := range []string{"-eval_ro", "+eval_ro"} {
		q := as(append(rights, missing)...)
		s.do([]string{"SCRIPT", "FLUSH"})
		require.Eventually(t, func() bool {
			_, err := register.Of(q, "job", time.Hour).Read(t.Context())
			return (missing[0] == '-') == (redlock.ErrorType(err) == "no_quorum") && !errors.Is(err, redlock.ErrTimeout)
		}, patience, pollTick, missing)
	}
}

// connectionRights are for Hear, and what valkey-go sends on a connection before another use of it.
var connectionRights = map[string]bool{"+ping": true, "+subscribe": true, "+unsubscribe": true, "+punsubscribe": true, "+sunsubscribe": true, "+discard": true}

// A process that does not belong to the nodes, because others use them with another list, tells
// nobody anything.
func TestProcessThatDoesNotBelongTellsNothing(t *testing.T) {
	t.Parallel()
	s := startAged(t, 4)
	q := gatedURLs(t, s.URLs()[:3])
	l, err := tryUntilAnswered(t, q, "key") // each node knows then that it is used
	require.NoError(t, err)
	require.NoError(t, l.Release(t.Context()))
	other := gatedURLs(t, []string{s.URLs()[0], s.URLs()[1], s.URLs()[3]})
	require.Equal(t, string(redlock.ConditionAnotherList), redlock.ErrorType(node(t, other, 0).Err))
	err = board.Of(other).Post(t.Context(), []bulletin.Card{{Kind: "k", ID: "a", Text: "x", Lifetime: time.Hour}})
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	_, found, err := board.Of(q).Card(t.Context(), "k", "a")
	require.NoError(t, err)
	require.False(t, found)
}

// A tool reads who uses a server, and leaves no trace there.
func TestReadRoster(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	client := s.Node(0).Client()
	r, err := redlock.ReadRoster(t.Context(), client, "tenure")
	require.NoError(t, err)
	require.Empty(t, r, "nobody uses it")
	require.Empty(t, s.Node(0).Keys(t))

	q := gatedURLs(t, s.URLs(), redlock.WithTTL(3*time.Second), redlock.WithClockSkew(time.Second), redlock.WithIdentity("ann"))
	l, err := tryUntilAnswered(t, q, "key")
	require.NoError(t, err)
	require.NoError(t, l.Release(t.Context()))
	require.Eventually(t, func() bool {
		r, err = redlock.ReadRoster(t.Context(), client, "tenure")
		return err == nil && len(r) == 1
	}, longTTL, pollTick)
	require.Equal(t, 3*time.Second, r[0].MaxTTL)
	require.Equal(t, time.Second, r[0].Skew)
	require.Equal(t, "ann", r[0].By)
	require.Empty(t, r[0].Refused)
	require.ElementsMatch(t, []string{s.Node(0).Addr(), s.Node(1).Addr(), s.Node(2).Addr()}, r[0].Names)
	require.NoError(t, q.Healthy())
	other := gatedURLs(t, s.three(0), redlock.WithIdentity("bob"))
	_, err = other.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.Eventually(t, func() bool {
		r, err = redlock.ReadRoster(t.Context(), client, "tenure")
		return err == nil && len(r) == 2
	}, longTTL, pollTick)
	require.Equal(t, "bob", r[1].By)
	require.Equal(t, redlock.ConditionAnotherList, r[1].Refused)
	require.Equal(t, []string{s.Node(0).Addr()}, r[1].Names)

	r, err = redlock.ReadRoster(t.Context(), client, "another")
	require.NoError(t, err)
	require.Empty(t, r)
	require.NoError(t, s.Node(0).Do(t, "SET", "foreign:roster", "x").Error())
	_, err = redlock.ReadRoster(t.Context(), client, "foreign")
	require.ErrorContains(t, err, "WRONGTYPE")
	var none context.Context
	_, err = redlock.ReadRoster(none, client, "tenure")
	var option *redlock.OptionError
	require.ErrorAs(t, err, &option)
}

// The advice is what the text of an error has in parentheses.
func TestAdviceOfErrors(t *testing.T) {
	t.Parallel()
	require.Empty(t, redlock.Advice(nil))
	require.Empty(t, redlock.Advice(errors.New("x")))
	known := &redlock.ConditionError{Condition: redlock.Condition(wire.Evicting)}
	require.Contains(t, redlock.Advice(known), "noeviction")
	require.Contains(t, known.Error(), "("+redlock.Advice(known)+")")
	require.Equal(t, redlock.Advice(known), redlock.Advice(&redlock.NodeError{Node: "a", Op: redlock.OpObserve, Err: known}))
	q := gatedURLs(t, []string{"valkey://nowhere.invalid"})
	n := q.Nodes(t.Context())[0]
	require.Error(t, n.Err)
	if advice := redlock.Advice(n.Err); advice != "" { // a resolver that is slow says nothing yet
		require.Contains(t, n.Err.Error(), "("+advice+")")
	}
}
