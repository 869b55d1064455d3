package register

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// nodes are three that answer what a test says, when it says.
type nodes struct {
	bridge.Quorum // the rest is not called

	now     time.Duration
	answers func(asked int) []*bridge.Answer
	asked   []*bridge.Question
}

func (n *nodes) Nodes() int             { return 3 }
func (n *nodes) Need() int              { return 2 }
func (n *nodes) TTL() time.Duration     { return 10 * time.Second }
func (n *nodes) Now() time.Duration     { return n.now }
func (n *nodes) Address(i int) string   { return fmt.Sprint("node ", i) }
func (n *nodes) Vote(int) (bool, error) { return true, nil }
func (n *nodes) TakesPart() bool        { return true }
func (n *nodes) Logger() *slog.Logger   { return slog.New(slog.DiscardHandler) }

func (n *nodes) Name(key, suffix string) (string, error) { return key + suffix, nil }

func (n *nodes) Ask(_ context.Context, q *bridge.Question) (func() []*bridge.Answer, error) {
	asked := len(n.asked)
	n.asked = append(n.asked, q)
	for i := range 3 {
		q.Call(i)
	}
	return func() []*bridge.Answer { return n.answers(asked) }, nil
}

// withNodes has the bridge lead to nodes while a test runs.
func withNodes(t *testing.T, n *nodes) {
	real := bridge.Of
	bridge.Of = func(any) bridge.Quorum { return n }
	t.Cleanup(func() { bridge.Of = real })
}

// at is an answer after that time.
func at(d time.Duration, texts ...string) *bridge.Answer {
	return &bridge.Answer{At: d, Votes: true, Texts: texts}
}

// Only what came within R of the beginning of a round counts, whatever it says: the process was
// suspended, or its nodes are slow.
func TestRoundIsOverAfterR(t *testing.T) {
	const began, limit = time.Hour, 5 * time.Second
	for late := range 2 {
		r := began + limit + time.Duration(late)
		n := &nodes{now: began}
		withNodes(t, n)
		reg := Of(nil, "key", time.Hour)

		n.answers = func(int) []*bridge.Answer {
			return []*bridge.Answer{at(began+1, "a", "1000", "k 1 1 1 9 x"), at(r, "b", "1000", "k 1 1 1 9 x"), at(began, nil...)}
		}
		_, err := reg.Read(t.Context())
		require.Equal(t, late > 0, err != nil, "a read")

		n.answers = func(asked int) []*bridge.Answer {
			taken := began + 1
			if asked == len(n.asked)-1 {
				taken = r
			}
			return []*bridge.Answer{at(began+1, "a", "1000", "k 1 1 1 9 x"), at(taken, "b", "1000", "k 1 1 1 9 x"), at(began, nil...)}
		}
		n.asked = nil
		rd, err := newReading([]Register{reg})
		require.NoError(t, err)
		rd.ballot = 2
		require.Equal(t, late > 0, rd.read(t.Context()) != nil, "a read with a ballot")

		turn := &Turn{reading: rd}
		n.answers = func(asked int) []*bridge.Answer {
			if asked == 0 {
				return []*bridge.Answer{at(began+1, "a", "1000", "k 1 1 1 9 x"), at(began+1, "b", "1000", "k 1 1 1 9 x"), at(r, "c", "1000", "u 0 0 0 0 ")}
			}
			return []*bridge.Answer{at(began+1, "a", "t"), at(r, "b", "t"), at(began, nil...)}
		}
		w, err := turn.ask(t.Context(), "y")
		require.NoError(t, err)
		require.Equal(t, 2-late, w.taken, "a write")
		restores := n.asked[len(n.asked)-1].Call(2).Args[4]
		require.Equal(t, late > 0, restores == "", "a node that said too late that it does not know: %q", restores)
	}
}

// A restoration is part of its round: what is asked after it counts from the beginning of all.
func TestRestorationIsPartOfItsRound(t *testing.T) {
	const began, limit = time.Hour, 5 * time.Second
	for late := range 2 {
		n := &nodes{now: began}
		withNodes(t, n)
		n.answers = func(asked int) []*bridge.Answer {
			n.now = began + limit
			all := [][]string{{"p", "1000", "u 0 0 0 0 "}, {"p", "t"}, {"p", "1000", "k 0 0 0 0 "}}[asked]
			when := n.now + time.Duration(asked/2*late)
			return []*bridge.Answer{at(when, all...), at(when, all...), at(when, all...)}
		}
		rd, err := newReading([]Register{Of(nil, "key", time.Hour)})
		require.NoError(t, err)
		rd.ballot = 2
		require.Equal(t, late > 0, rd.read(t.Context()) != nil)
		require.Len(t, n.asked, 3)
	}
}

// A quarantine of one R is not enough: it has to be longer than two.
func TestQuarantineIsLongerThanTwoRounds(t *testing.T) {
	fleet := redlocktest.Start(t, 1)
	for _, ttl := range []time.Duration{time.Second, 10 * time.Second, time.Hour, 24 * time.Hour} {
		for _, skew := range []time.Duration{time.Millisecond, time.Second, time.Minute} {
			q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithTTL(ttl),
				redlock.WithClockSkew(skew), redlock.WithLogger(slog.New(slog.DiscardHandler)))
			require.NoError(t, err)
			b := bridge.Of(q)
			require.Greater(t, b.Quarantine(), 2*roundLimit(b), "TTL %v, skew %v", ttl, skew)
			require.NoError(t, q.Close())
		}
	}
}
