package redlock

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// The widest skew that any process uses is used for all that the own one is for.
func TestSkewOfOthers(t *testing.T) {
	q := testQuorum(3)
	own := q.cfg.clockSkew
	require.Equal(t, own, q.cfg.skew())
	require.Equal(t, q.texts.skew, q.skewText())
	was := q.cfg.quarantine()
	q.cfg.others.skew.Store(int64(20 * time.Second))
	require.Equal(t, 20*time.Second, q.cfg.skew())
	require.Equal(t, "20000000", q.skewText())
	require.Greater(t, q.cfg.quarantine(), was)
	q.cfg.others.skew.Store(int64(own / 2))
	require.Equal(t, own, q.cfg.skew())
	require.Equal(t, was, q.cfg.quarantine())
}

// What was written for a process that one node then refuses is taken back from the others.
func TestWrittenInVainIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQuorum(3)
		errs := make(chan error, 3)
		for i := range 3 {
			go func() {
				_, err := q.belongs.join(t.Context(), &joining{seat: i, id: fmt.Sprint("id", i), age: time.Hour, done: make(chan struct{})})
				errs <- err
			}()
		}
		none := &wire.Members{Nodes: 3, At: time.Hour}
		of := func(by string) *wire.Members {
			m := &wire.Members{Nodes: 3, At: time.Hour}
			for i := range 3 {
				m.Servers = append(m.Servers, wire.Server{ID: fmt.Sprint("id", i), By: by, Address: "a:1"})
			}
			return m
		}
		say := func(nth int, want wire.Mode, answers ...wire.Answer) {
			synctest.Wait()
			for i := range 3 {
				sent := q.fake(i).sent
				require.Len(t, sent, nth+1, "node %d", i)
				require.Equal(t, string(want), sent[nth].Call.Write.Members[0])
				q.fake(i).answer(nth, answers[min(i, len(answers)-1)], nil)
			}
		}
		say(0, wire.Asking, wire.Answer{Verdict: wire.OK}.With(wire.More{Members: none}))
		say(1, wire.Entering, wire.Answer{Verdict: wire.OK}.With(wire.More{Members: of("me")}), wire.Answer{Verdict: wire.Refused}.With(wire.More{Members: of("other")}),
			wire.Answer{Verdict: wire.OK}.With(wire.More{Members: of("me")}))
		synctest.Wait()
		for i, want := range []int{3, 2, 3} {
			sent := q.fake(i).sent
			require.Len(t, sent, want, "node %d", i)
			if want == 3 {
				require.Equal(t, string(wire.Leaving), sent[2].Call.Write.Members[0])
				q.fake(i).answer(2, wire.Answer{Verdict: wire.OK}.With(wire.More{Members: none}), nil)
			}
		}
		for range 3 {
			require.Equal(t, wire.AnotherList, wire.FaultOf(<-errs).Condition)
		}
	})
}

// A server that counts for one node does not count for another one, in whatever order they join.
func TestServerThatCountsDoesNotJoinAgain(t *testing.T) {
	for _, first := range []int{0, 2} {
		q := testQuorum(3)
		q.belongs.seats[first] = seat{id: "x", counts: true}
		ids := make([]vouched, 3)
		ids[first].id, ids[1].id = "x", "x"
		replies := make([]vote.Reply, 3)
		replies[1].Verdict = wire.OK
		j := &joining{seat: 1, id: "x", age: time.Hour}
		require.Empty(t, q.belongs.answered([]*joining{j}, replies, ids))
		require.Equal(t, wire.Duplicate, wire.FaultOf(j.why).Condition)
		require.Empty(t, ids[1].id)
	}
}
