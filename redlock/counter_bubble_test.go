package redlock_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A counter that is damaged on one of three nodes leads nobody: tokens rise, on the other nodes,
// and stay near the clock. The node is named, once, until somebody has removed the counter. It has
// the leases that the others grant.
func TestDamagedCounterOnOneNode(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log lockedBuffer
		quorums := []*redlock.Quorum{open(t, fleet, logTo(&log)), open(t, fleet)}
		sick, damaged := nodeAddr(fleet.Node(0)), strconv.FormatInt(time.Now().Add(25*time.Hour).UnixMicro(), 10)
		last := uint64(0)
		next := func(q *redlock.Quorum) *redlock.Lease {
			l := acquire(t, q)
			require.Greater(t, l.FencingToken(), last)
			require.InDelta(t, time.Now().UnixMicro(), l.FencingToken(), float64(time.Minute.Microseconds()))
			last = l.FencingToken()
			return l
		}
		finish(t, next(quorums[0]).Release)
		setCounter(t, fleet.Node(0), "key", damaged)
		for k := range 6 {
			finish(t, next(quorums[k%2]).Release)
		}
		l := next(quorums[0])
		time.Sleep(ttl)
		require.Equal(t, 3, on(fleet, "key"))
		require.Equal(t, damaged, counterOf(t, fleet.Node(0), "key"), "nobody counts on, and nobody lowers it")
		for _, n := range quorums[0].Nodes(t.Context()) {
			require.True(t, n.Votes, "for other keys")
			require.Equal(t, n.Node == sick, hasWarning(n, redlock.ConditionDamaged), "%+v", n)
		}
		require.Equal(t, 1, strings.Count(log.String(), "damaged"), "a line a change: %s", &log)
		require.Contains(t, log.String(), sick)
		finish(t, l.Release)
		freeze(t, fleet, 2)
		_, err := quorums[0].TryAcquire(t.Context(), "key")
		requireConditionOf(t, err, sick, redlock.ConditionDamaged)
		k := wire.NewKeys("tenure", "key")
		ask(t, fleet.Node(0), "ZREM", k.Fences, k.Slot)
		finish(t, next(quorums[0]).Release)
		require.False(t, hasWarning(quorums[0].Nodes(t.Context())[0], redlock.ConditionDamaged))
		require.Contains(t, log.String(), "votes for a key again")
		require.NoError(t, next(quorums[1]).Release(t.Context()))
	})
}

// hasWarning reports whether a node warns of a condition.
func hasWarning(n redlock.NodeStatus, want redlock.Condition) bool {
	for _, w := range n.Warnings {
		var ce *redlock.ConditionError
		if errors.As(w, &ce) && ce.Condition == want {
			return true
		}
	}
	return false
}

// Damaged on a quorum of nodes, a counter costs the key until somebody removes it, and the error
// says which key on which nodes.
func TestDamagedCounterOnAQuorum(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		for i := range 2 {
			setCounter(t, fleet.Node(i), "key", "9007199254740992")
		}
		_, err := q.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		for i := range 2 {
			requireConditionOf(t, err, nodeAddr(fleet.Node(i)), redlock.ConditionDamaged)
		}
		require.ErrorContains(t, err, "tenure:fences ")
		require.ErrorContains(t, err, "DEL")
		_, err = q.TryAcquire(t.Context(), "another")
		require.NoError(t, err)
		require.Equal(t, "9007199254740992", counterOf(t, fleet.Node(1), "key"))
		synctest.Wait() // a quorum has answered, and not node 2, perhaps
		require.Less(t, fence(t, fleet.Node(2)), uint64(time.Now().Add(time.Hour).UnixMicro()), "not led by the others")
	})
}

// Something else in the place of all counters is named by its own name, once and not for each
// counter, until somebody has removed it.
func TestSomethingElseInPlaceOfTheCounters(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log lockedBuffer
		q := open(t, fleet, logTo(&log))
		pairs := func() {
			for i := range 5 {
				l, err := q.TryAcquire(t.Context(), strconv.Itoa(i))
				require.NoError(t, err)
				synctest.Wait() // until all nodes have answered
				finish(t, l.Release)
			}
		}
		ask(t, fleet.Node(0), "HSET", "tenure:fences", "471", "1790000000000000")
		pairs()
		require.Equal(t, 1, strings.Count(log.String(), "does not vote for a key"), "%s", &log)
		require.Contains(t, log.String(), `damaged: \"tenure:fences\": it is no sorted set`)
		require.True(t, hasWarning(q.Nodes(t.Context())[0], redlock.ConditionDamaged))
		ask(t, fleet.Node(0), "DEL", "tenure:fences")
		time.Sleep(time.Minute) // until it was looked at
		pairs()
		require.Equal(t, 1, strings.Count(log.String(), "votes for a key again"), "%s", &log)
		require.Empty(t, q.Nodes(t.Context())[0].Warnings)
	})
}

// A counter that is damaged between the two rounds leads nobody either.
func TestCounterThatIsDamagedBetweenTheRounds(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, before(redlock.OpAgree, func() {
			setCounter(t, fleet.Node(1), "key", strconv.FormatInt(time.Now().Add(25*time.Hour).UnixMicro(), 10))
		}))
		disagree(t, fleet)
		requireNoAgreement(t, q)
		require.Less(t, fence(t, fleet.Node(0)), uint64(time.Now().Add(2*time.Hour).UnixMicro()))
	})
}

// What is damaged while the lease is held costs neither its extension, nor its holder's name. A
// node that can grant nothing any more does not vote.
func TestDamagedCounterWhileHeld(t *testing.T) {
	for _, leases := range []int{1, 3} { // by itself, and with others in one command
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			q := open(t, fleet)
			l := acquire(t, q)
			for i := range leases - 1 {
				_, err := q.TryAcquire(t.Context(), strconv.Itoa(i))
				require.NoError(t, err)
			}
			time.Sleep(ttl / 10) // until the third node has granted it, too
			setCounter(t, fleet.Node(0), "key", "inf")
			set(t, fleet.Node(1), "tenure:fences", "no counters")
			require.Equal(t, q.Identity(), mustHolder(t, q).Identity)
			time.Sleep(2 * ttl)
			require.NoError(t, l.Err())
			require.Equal(t, 3, on(fleet, "key"))
			require.Equal(t, string(redlock.ConditionDamaged), redlock.ErrorType(q.Nodes(t.Context())[1].Err))
			require.Equal(t, l.FencingToken(), fence(t, fleet.Node(2)))
			require.Equal(t, l.FencingToken(), mustHolder(t, q).FencingToken)
			finish(t, l.Release)
			_, err := q.TryAcquire(t.Context(), "key")
			for i := range 2 {
				requireConditionOf(t, err, nodeAddr(fleet.Node(i)), redlock.ConditionDamaged)
			}
			require.Equal(t, 1, strings.Count(err.Error(), "fences "+wire.NewKeys("tenure", "key").Slot), "the other one lacks all: %v", err)
		})
	}
}

// A lock on one node that no lease lives as long as is a vote that is lost for as long: it is named
// beside the leases that the others grant, once, until somebody has deleted it.
func TestLockWithoutEndOnOneNode(t *testing.T) {
	for says, expiry := range map[string][]string{
		"the lock is another owner's and has no expiry": nil, "the lock is another owner's and expires in 4": {"PX", "172800000"},
		"": {"PX", "3600000"},
	} {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			var log lockedBuffer
			q := open(t, fleet, logTo(&log))
			finish(t, acquire(t, q).Release)
			ask(t, fleet.Node(0), append([]string{"SET", "tenure:{key}", "1 another/" + strings.Repeat("A", 22)}, expiry...)...)
			for range 3 {
				finish(t, acquire(t, q).Release)
			}
			require.Equal(t, says == "", strings.Contains(log.String(), "a longer TTL than any process"), "%s", &log)
			require.Equal(t, says != "", hasWarning(q.Nodes(t.Context())[0], redlock.ConditionDamaged))
			if says == "" {
				require.NotContains(t, log.String(), "damaged")
				return
			}
			require.Equal(t, 1, strings.Count(log.String(), says), "%s", &log)
			require.Contains(t, log.String(), "tenure:{key}")
			require.Contains(t, log.String(), nodeAddr(fleet.Node(0)))
			require.NoError(t, q.Healthy())
			ask(t, fleet.Node(0), "DEL", "tenure:{key}")
			l := acquire(t, q)
			synctest.Wait() // until node 0 has answered, too
			require.False(t, hasWarning(q.Nodes(t.Context())[0], redlock.ConditionDamaged))
			finish(t, l.Release)
		})
	}
}

// A lock that never expires keeps all who wait from the key, on a quorum of nodes or where several
// take the votes from each other. That is told, and over when they are gone.
func TestLockWithoutEndIsTold(t *testing.T) {
	for name, random := range map[string]string{"held": "AAA", "split": "AB"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				var log lockedBuffer
				q := open(t, fleet, logTo(&log))
				for i, letter := range strings.Split(random, "") {
					set(t, fleet.Node(i), "tenure:{key}", "1 another/"+strings.Repeat(letter, 22))
				}
				w := waitFor(t, q)
				before := fleet.Node(0).Commands()
				time.Sleep(5 * ttl)
				require.Less(t, fleet.Node(0).Commands()-before, 2000, "who waits asks again and again")
				var told []int // two refusals decide a round: the third may always come too late
				for i := range random {
					n := strings.Count(log.String(), fmt.Sprintf("does not vote for a key\" node=%s key=key", nodeAddr(fleet.Node(i))))
					require.LessOrEqual(t, n, 1, "%s", &log)
					require.Equal(t, n == 1, hasWarning(q.Nodes(t.Context())[i], redlock.ConditionDamaged))
					if n == 1 {
						told = append(told, i)
					}
				}
				require.GreaterOrEqual(t, len(told), 2)
				for i := range random {
					ask(t, fleet.Node(i), "DEL", "tenure:{key}")
				}
				require.Contains(t, log.String(), "the lock is another owner's and has no expiry")
				l := w.take(t).lease
				time.Sleep(time.Second) // until all nodes have granted it
				finish(t, l.Release)
				for _, i := range told {
					require.Contains(t, log.String(), "votes for a key again\" node="+nodeAddr(fleet.Node(i)))
					require.Empty(t, q.Nodes(t.Context())[i].Warnings)
				}
			})
		})
	}
}

// A counter that leads the clocks by less than a day is followed, and Nodes says so of each node
// that has it, until the clocks have come that far.
func TestCounterThatLeadsIsTold(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		told := func() (said []string) {
			for _, n := range q.Nodes(t.Context()) {
				require.True(t, n.Votes)
				for _, w := range n.Warnings {
					require.Equal(t, string(redlock.ConditionDamaged), redlock.ErrorType(w))
					said = append(said, w.Error())
				}
			}
			return said
		}
		pair := func() uint64 {
			l := acquire(t, q)
			synctest.Wait() // until all nodes have granted it
			finish(t, l.Release)
			return l.FencingToken()
		}
		const lead = time.Minute
		usual := pair()
		setFence(t, fleet.Node(0), usual+uint64((4*time.Second).Microseconds()))
		pair()
		require.Empty(t, told(), "what clocks may differ by")
		ahead := usual + uint64(lead.Microseconds())
		for i := range 2 { // so that each quorum has one that leads
			setFence(t, fleet.Node(i), ahead)
		}
		require.Greater(t, pair(), ahead, "it is followed")
		said := told()
		require.GreaterOrEqual(t, len(said), 2)
		require.Regexp(t, "tenure:fences.*leads all clocks by 1m0s.*leave it", said[0])
		time.Sleep(lead)
		pair()
		require.Empty(t, told())
	})
}

// setFence gives a node's counter a value, as an earlier life of the key may have left it.
func setFence(t *testing.T, n *redlocktest.Node, value uint64) {
	t.Helper()
	setCounter(t, n, "key", strconv.FormatUint(value, 10))
}

// setCounter gives a node's counter for a key a value.
func setCounter(t *testing.T, n *redlocktest.Node, key, value string) {
	t.Helper()
	k := wire.NewKeys("tenure", key)
	ask(t, n, "ZADD", k.Fences, value, k.Slot)
}

// counterOf is a node's counter for a key, or an empty text.
func counterOf(t *testing.T, n *redlocktest.Node, key string) string {
	t.Helper()
	client := peer(t, n)
	defer client.Close()
	k := wire.NewKeys("tenure", key)
	score, err := client.Do(t.Context(), client.B().Zscore().Key(k.Fences).Member(k.Slot).Build()).AsFloat64()
	if valkey.IsValkeyNil(err) {
		return ""
	}
	require.NoError(t, err)
	return strconv.FormatFloat(score, 'f', -1, 64)
}

// set writes a key on one node, as somebody else's client would.
func set(t *testing.T, n *redlocktest.Node, key, value string) {
	t.Helper()
	ask(t, n, "SET", key, value)
}

func fence(t *testing.T, n *redlocktest.Node) uint64 {
	t.Helper()
	text := counterOf(t, n, "key")
	if text == "" {
		return 0
	}
	v, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err)
	return v
}

func TestTokensIncrease(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		quorums := []*redlock.Quorum{open(t, fleet), open(t, fleet)}
		var last uint64
		for i := range 100 {
			l := acquire(t, quorums[i%2])
			require.Greater(t, l.FencingToken(), last, "no time passes in between, so the counter does it")
			last = l.FencingToken()
			finish(t, l.Release)
		}
	})
}

// Nodes that disagree are brought to the largest token by a second round.
func TestTokenIsAgreedByAQuorum(t *testing.T) {
	withQuorum(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		ahead := uint64(time.Now().Add(12 * time.Hour).UnixMicro())
		for i := range 3 {
			setFence(t, fleet.Node(i), ahead+uint64(10*i))
		}
		freeze(t, fleet, 3, 4)
		l := acquire(t, q)
		require.Equal(t, ahead+21, l.FencingToken(), "above all")
		for i := range 3 {
			require.Equal(t, l.FencingToken(), fence(t, fleet.Node(i)), "node %d", i)
		}
	})
}

// The first lease of a process that has just begun has a token above those of others, also when
// running servers have lost their counters.
func TestFirstTokenKeepsOrder(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		var last uint64
		next := func(q *redlock.Quorum) {
			t.Helper()
			l := acquire(t, q)
			require.Greater(t, l.FencingToken(), last)
			last = l.FencingToken()
			finish(t, l.Release)
			for _, n := range fleet.Nodes() {
				n.FlushAll()
			}
			time.Sleep(time.Millisecond)
		}
		for range 3 {
			next(q)
			next(dialOn(t, fleet, nil))
		}
	})
}

// A process that was cut off for so long that it knows no clock any more is as one that has just
// begun: its next token is above those of others, although the servers have lost their counters.
func TestFirstTokenAfterALongOutage(t *testing.T) {
	const skew = 100 * time.Millisecond
	alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		time.Sleep(2 * time.Hour)
		q := open(t, fleet, redlock.WithClockSkew(skew), redlock.WithoutRestartGate())
		finish(t, acquire(t, q).Release)
		for _, n := range fleet.Nodes() {
			require.NoError(t, n.Kill())
		}
		time.Sleep(3 * time.Minute)
		restart(t, fleet, 0, 1, 2)
		l, err := q.Acquire(t.Context(), "key")
		require.NoError(t, err)
		require.InDelta(t, time.Now().UnixMicro(), l.FencingToken(), float64(3*skew.Microseconds()))
	})
}

// A node whose counter has reached the token for another key meanwhile does not count, in the first
// round and in those that agree. Then a greater token is proposed, for a few times, and after a
// pause the key is asked for anew: keys that share a counter may be busy, and that is no fault of a
// node.
func TestAgreementIsStrict(t *testing.T) {
	const beyond = 1 << 16 // all that is proposed next
	for _, times := range []int{1, 5, 20, 100} {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			ahead := uint64(time.Now().Add(time.Hour).UnixMicro())
			asked := 0
			q := open(t, fleet, before(redlock.OpAgree, func() {
				if asked++; asked <= 2*times {
					setFence(t, fleet.Node(1), ahead+uint64(asked+1)/2*beyond)
				}
			}))
			freeze(t, fleet, 2)
			setFence(t, fleet.Node(0), ahead)
			l, err := q.TryAcquire(t.Context(), "key")
			if times < 100 {
				require.NoError(t, err)
				require.Greater(t, l.FencingToken(), ahead+uint64(times)*beyond)
				require.Equal(t, l.FencingToken(), mustHolder(t, q).FencingToken)
				require.Equal(t, 2*(times+1), asked)
				finish(t, l.Release)
				return
			}
			qe := errorAs[*redlock.QuorumError](t, err)
			require.Equal(t, redlock.OpAgree, qe.Op)
			require.Equal(t, 2, qe.Need)
			synctest.Wait()
			require.Zero(t, on(fleet, "key"), "what was granted must be rolled back")
		})
	}
}

// Two processes that propose the same token have different ones in the end, also where each raised
// it on a node.
func TestTheSameProposal(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, other := open(t, fleet), open(t, fleet)
		l := acquire(t, q)
		another, err := other.TryAcquire(t.Context(), sharing("key"))
		require.NoError(t, err)
		require.Greater(t, another.FencingToken(), l.FencingToken(), "no time has passed")
		finish(t, l.Release)
		finish(t, another.Release)
	})
}

// What a process has seen of tokens it goes beyond at once: a process whose clock is ahead costs
// the others no second round.
func TestProposalIsAboveWhatWasSeen(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		agreed := 0
		q := open(t, fleet, before(redlock.OpAgree, func() { agreed++ }))
		finish(t, acquire(t, q).Release)
		const ahead = time.Second
		for i := range fleet.Nodes() {
			setFence(t, fleet.Node(i), uint64(time.Now().Add(ahead).UnixMicro()))
		}
		l := acquire(t, q)
		require.Positive(t, agreed)
		agreed = 0
		require.Equal(t, uint64(time.Now().Add(ahead).UnixMicro()+1), l.FencingToken())
		finish(t, l.Release)
		finish(t, acquire(t, q).Release)
		other, err := q.TryAcquire(t.Context(), "of another counter")
		require.NoError(t, err)
		require.Equal(t, l.FencingToken()+2, other.FencingToken())
		finish(t, other.Release)
		require.Zero(t, agreed)

		// A holder that was in the way has been seen, too.
		for i := range fleet.Nodes() {
			setFence(t, fleet.Node(i), uint64(time.Now().Add(2*ahead).UnixMicro()))
		}
		holder := acquire(t, open(t, fleet))
		_, err = q.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrHeld)
		finish(t, holder.Release)
		finish(t, acquire(t, q).Release)
		require.Zero(t, agreed)

		// One counter that leads by far does not lead those of other keys.
		setFence(t, fleet.Node(0), uint64(time.Now().Add(time.Hour).UnixMicro()))
		freeze(t, fleet, 2)
		require.Greater(t, acquire(t, q).FencingToken(), uint64(time.Now().Add(time.Hour).UnixMicro()))
		third, err := q.TryAcquire(t.Context(), "third")
		require.NoError(t, err)
		require.InDelta(t, time.Now().UnixMicro(), third.FencingToken(), float64(3*ahead.Microseconds()))
	})
}

// Other processes may raise a counter again and again. An acquisition gets ahead of them.
func TestAgreementGetsAhead(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		ahead := uint64(time.Now().Add(time.Hour).UnixMicro())
		q := open(t, fleet, before(redlock.OpAgree, func() {
			ahead += 3
			setFence(t, fleet.Node(1), ahead)
		}))
		freeze(t, fleet, 2)
		setFence(t, fleet.Node(0), ahead)
		require.Greater(t, acquire(t, q).FencingToken(), ahead)
	})
}

// sharing is another key with that key's counter.
func sharing(key string) string {
	for i := 0; ; i++ {
		if other := fmt.Sprint("another ", i); wire.NewKeys("tenure", other).Slot == wire.NewKeys("tenure", key).Slot {
			return other
		}
	}
}

// The token of a holder is that of its lease, whatever becomes of the counter that it shares with
// other keys; and so it is where nodes had to agree on it.
func TestHolderHasTheAgreedToken(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, other := open(t, fleet), open(t, fleet)
		for _, ahead := range [][]time.Duration{
			nil, // each grants the hint
			{time.Hour, time.Hour + time.Microsecond},     // two count beyond it, and have to agree
			{2 * time.Hour, 2 * time.Hour, 2 * time.Hour}, // all count beyond it, to the same
		} {
			for i, d := range ahead {
				setFence(t, fleet.Node(i), uint64(time.Now().Add(d).UnixMicro()))
			}
			l := acquire(t, q)
			for range 3 {
				require.Equal(t, l.FencingToken(), mustHolder(t, other).FencingToken)
				another, err := other.TryAcquire(t.Context(), sharing("key"))
				require.NoError(t, err)
				require.Greater(t, another.FencingToken(), l.FencingToken(), "the counter has been raised")
				finish(t, another.Release)
				require.NoError(t, l.Extend(t.Context()))
			}
			finish(t, l.Release)
			next := acquire(t, other)
			require.Greater(t, next.FencingToken(), l.FencingToken()+2, "there is a gap where another key was granted")
			finish(t, next.Release)
		}
	})
}

// warning are the nodes that warn of a condition. All that answer vote.
func warning(t *testing.T, q *redlock.Quorum, of redlock.Condition) (nodes []int) {
	t.Helper()
	for i, n := range q.Nodes(t.Context()) {
		require.Equal(t, n.Reachable, n.Votes, "%+v", n)
		if hasWarning(n, of) {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// A clock that is wrong from the start is reported, whoever has it, also among few servers; and the
// tokens of a client that has just begun follow the others.
func TestClockThatIsWrongFromTheStart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ahead []time.Duration
		wrong []int
		token time.Duration
	}{
		"one server": {[]time.Duration{time.Hour}, nil, time.Hour}, "two, which of them?": {[]time.Duration{time.Hour, 0}, []int{0, 1}, 0},
		"three, one ahead":       {[]time.Duration{0, time.Hour, 0}, []int{1}, 0},
		"three, one behind":      {[]time.Duration{0, 0, -time.Hour}, []int{2}, 0},
		"three, all apart":       {[]time.Duration{0, 3 * time.Second, 6 * time.Second}, []int{0, 2}, 3 * time.Second},
		"three, within the skew": {[]time.Duration{-1900 * time.Millisecond, 0, 1900 * time.Millisecond}, nil, 0},
		"four, two and two":      {[]time.Duration{0, time.Hour, 0, time.Hour}, []int{0, 1, 2, 3}, 0},
		"five, ahead and behind": {[]time.Duration{time.Hour, 0, -time.Hour, 0, 0}, []int{0, 2}, 0},
		"three, off by two days": {[]time.Duration{0, 48 * time.Hour, 0}, []int{1}, 0}, "three, two days behind": {[]time.Duration{0, -48 * time.Hour, 0}, []int{1}, 0},
		"three, the most are off": {[]time.Duration{time.Hour, 0, time.Hour}, []int{1}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, len(test.ahead), func(t *testing.T, fleet *redlocktest.Fleet) {
				time.Sleep(72 * time.Hour) // they are old enough whatever their clocks say
				for i, n := range fleet.Nodes() {
					n.JumpClock(test.ahead[i])
				}
				var log lockedBuffer
				first := dialOn(t, fleet, nil, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				l := acquire(t, first) // before it knows any clock
				require.InDelta(t, time.Now().Add(test.token).UnixMicro(), l.FencingToken(), float64(3*redlock.DefaultClockSkew.Microseconds()))
				finish(t, l.Release)
				time.Sleep(3 * redlock.DefaultClockSkew)
				require.Equal(t, test.wrong, warning(t, first, redlock.ConditionClockWrong))
				require.Equal(t, len(test.wrong), strings.Count(log.String(), "clock is wrong"), "a line a change: %s", &log)
				second := open(t, fleet)
				require.Equal(t, test.wrong, warning(t, second, redlock.ConditionClockWrong))
				l = acquire(t, second)
				require.InDelta(t, time.Now().Add(test.token).UnixMicro(), l.FencingToken(), float64(redlock.DefaultClockSkew.Microseconds()))
				require.NoError(t, l.Release(t.Context()))
			})
		})
	}
}

// A client that has just begun, and whose first two answers are of a right clock and of one that is
// an hour behind, waits for the third: when it asks before it knows any, and when it knows two.
func TestFirstTwoClocksAreNotBelieved(t *testing.T) {
	for _, after := range []time.Duration{0, 150 * time.Millisecond} {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			time.Sleep(2 * time.Hour)
			fleet.Node(1).JumpClock(-time.Hour)
			fleet.Node(2).SetDelay(60 * time.Millisecond) // four round trips until its clock is known
			q := dialOn(t, fleet, nil)
			time.Sleep(after)
			l := acquire(t, q)
			require.InDelta(t, time.Now().UnixMicro(), l.FencingToken(), float64(3*redlock.DefaultClockSkew.Microseconds()))
		})
	}
}

// A clock that is set right is said to be right again, once, and whoever is then wrong is named.
func TestClockIsSetRight(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		fleet.Node(1).JumpClock(-time.Hour)
		var log lockedBuffer
		v, watching := watch()
		q := open(t, fleet, logTo(&log), watching)
		require.Equal(t, []int{1}, warning(t, q, redlock.ConditionClockWrong))
		told := v.take(nodeAddr(fleet.Node(1)))
		require.Equal(t, string(redlock.ConditionClockWrong), redlock.ErrorType(told[len(told)-1].Warning), "for a metric")
		fleet.Node(1).JumpClock(time.Hour)
		time.Sleep(2*ttl + 2*quarantine) // the jump costs the vote for a while
		require.Empty(t, warning(t, q, redlock.ConditionClockWrong))
		require.Equal(t, 1, strings.Count(log.String(), "clock is wrong"), "%s", &log)
		require.Equal(t, 1, strings.Count(log.String(), "clock is right again"), "%s", &log)
	})
}

// A server whose clock is days behind votes, although the counters of the others are days ahead of
// it.
func TestServerThatIsDaysBehindVotes(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		time.Sleep(96 * time.Hour)
		fleet.Node(0).JumpClock(-72 * time.Hour)
		q := open(t, fleet)
		last := uint64(0)
		for i := range 6 {
			if i == 3 {
				freeze(t, fleet, 2)
			}
			l := acquire(t, q)
			require.Greater(t, l.FencingToken(), last)
			last = l.FencingToken()
			require.NoError(t, l.Extend(t.Context())) // raises counters to the token
			synctest.Wait()
			finish(t, l.Release)
		}
		require.Empty(t, warning(t, q, redlock.ConditionDamaged))
		require.Greater(t, acquire(t, dialOn(t, fleet, nil)).FencingToken(), last, "that of one that begins now, and knows no better clock than its own")
	})
}

// A clock of the caller's is compared with the median of the servers', as far as answers tell.
func TestCheckClock(t *testing.T) {
	alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		fleet.Node(1).JumpClock(time.Hour)
		q := open(t, fleet)
		time.Sleep(15 * time.Second)
		for by, kind := range map[time.Duration]string{
			0: "", 2900 * time.Millisecond: "", -2900 * time.Millisecond: "",
			3100 * time.Millisecond: "clock_ahead", -3100 * time.Millisecond: "clock_behind", time.Hour: "clock_ahead", -100 * time.Hour: "clock_behind",
		} {
			err := q.CheckClock(time.Now().Add(by))
			if kind == "" {
				require.NoError(t, err, by)
				continue
			}
			require.Equal(t, kind, redlock.ErrorType(err))
			var wrong *redlock.ClockError
			require.ErrorAs(t, err, &wrong)
			require.InDelta(t, by.Seconds(), wrong.Ahead.Seconds(), 0.1)
		}
		require.EqualError(t, &redlock.ClockError{Ahead: -time.Minute}, "redlock: this machine's clock is 1m0s behind the servers' clocks: set it right")
		require.NoError(t, new(redlock.Quorum).CheckClock(time.Now().Add(time.Hour)))
	})
	alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		for i := range 2 {
			require.NoError(t, fleet.Node(i).Kill())
		}
		q := open(t, fleet)
		time.Sleep(15 * time.Second)
		require.NoError(t, q.CheckClock(time.Now().Add(time.Hour)), "one server's clock may be what is wrong")
	})
}

// Tokens of a process with a wide skew lead by more. Those with a narrow one know it.
func TestTokensOfDifferentSkews(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		time.Sleep(time.Hour)
		for _, n := range fleet.Nodes() {
			n.JumpClock(-29 * time.Second)
		}
		time.Sleep(time.Hour)
		q, other := open(t, fleet), open(t, fleet, redlock.WithClockSkew(30*time.Second))
		time.Sleep(quarantine)
		l := acquire(t, other)
		last := l.FencingToken()
		require.InDelta(t, time.Now().UnixMicro(), last, 1e6, "it leads")
		require.NoError(t, l.Release(t.Context()))
		require.NoError(t, other.Close())
		for _, i := range []int{0, 1} {
			restart(t, fleet, i)
			fleet.Node(i).JumpClock(-29 * time.Second)
			for time.Sleep(time.Second); !q.Nodes(t.Context())[i].Votes; {
				time.Sleep(time.Second)
			}
		}
		freeze(t, fleet, 2)
		require.Greater(t, acquire(t, q).FencingToken(), last)
	})
}
