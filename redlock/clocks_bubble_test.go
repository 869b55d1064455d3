package redlock_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// wrongClocks are the nodes that warn of their clock.
func wrongClocks(t *testing.T, q *redlock.Quorum) (nodes []int) {
	t.Helper()
	for i, n := range q.Nodes(t.Context()) {
		require.True(t, n.Votes, "%+v", n)
		if hasWarning(n, redlock.ConditionClockWrong) {
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
		"one server":              {[]time.Duration{time.Hour}, nil, time.Hour},
		"two, which of them?":     {[]time.Duration{time.Hour, 0}, []int{0, 1}, 0},
		"three, one ahead":        {[]time.Duration{0, time.Hour, 0}, []int{1}, 0},
		"three, one behind":       {[]time.Duration{0, 0, -time.Hour}, []int{2}, 0},
		"three, all apart":        {[]time.Duration{0, 3 * time.Second, 6 * time.Second}, []int{0, 2}, 3 * time.Second},
		"three, within the skew":  {[]time.Duration{-1900 * time.Millisecond, 0, 1900 * time.Millisecond}, nil, 0},
		"four, two and two":       {[]time.Duration{0, time.Hour, 0, time.Hour}, []int{0, 1, 2, 3}, 0},
		"five, two ahead":         {[]time.Duration{time.Hour, 0, 0, time.Hour, 0}, []int{0, 3}, 0},
		"five, ahead and behind":  {[]time.Duration{time.Hour, 0, -time.Hour, 0, 0}, []int{0, 2}, 0},
		"three, off by two days":  {[]time.Duration{0, 48 * time.Hour, 0}, []int{1}, 0},
		"three, two days behind":  {[]time.Duration{0, -48 * time.Hour, 0}, []int{1}, 0},
		"three, wrong all alike":  {[]time.Duration{-time.Hour, -time.Hour, -time.Hour}, nil, -time.Hour},
		"three, the most are off": {[]time.Duration{time.Hour, 0, time.Hour}, []int{1}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, len(test.ahead), func(t *testing.T, fleet *redlocktest.Fleet) {
				time.Sleep(72 * time.Hour) // they are old enough whatever their clocks say
				for i, n := range fleet.Nodes() {
					n.JumpClock(test.ahead[i])
				}
				var log lockedBuffer
				first := openAtOnce(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				l := acquire(t, first) // before it knows any clock
				require.InDelta(t, time.Now().Add(test.token).UnixMicro(), l.FencingToken(), float64(3*redlock.DefaultClockSkew.Microseconds()))
				require.NoError(t, l.Release(t.Context()))
				synctest.Wait()
				time.Sleep(3 * redlock.DefaultClockSkew)
				require.Equal(t, test.wrong, wrongClocks(t, first))
				require.Equal(t, len(test.wrong), strings.Count(log.String(), "clock is wrong"), "a line a change: %s", &log)
				second := open(t, fleet)
				require.Equal(t, test.wrong, wrongClocks(t, second))
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
			q := openAtOnce(t, fleet)
			time.Sleep(after)
			l := acquire(t, q)
			require.InDelta(t, time.Now().UnixMicro(), l.FencingToken(), float64(3*redlock.DefaultClockSkew.Microseconds()))
		})
	}
}

// openAtOnce is open without waiting for any node.
func openAtOnce(t *testing.T, fleet *redlocktest.Fleet, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	q, err := redlock.Open(fleet.URLs(), append([]redlock.Option{redlock.WithClientOption(fleet.ClientOption), redlock.WithTTL(ttl)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// A clock that is set right is said to be right again, once, and whoever is then wrong is named.
func TestClockIsSetRight(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		fleet.Node(1).JumpClock(-time.Hour)
		var log lockedBuffer
		v := &votes{told: make(map[string][]redlock.TraceVoteData)}
		q := open(t, fleet, logTo(&log), redlock.WithTracer(v))
		require.Equal(t, []int{1}, wrongClocks(t, q))
		told := v.take(nodeAddr(fleet.Node(1)))
		require.Equal(t, string(redlock.ConditionClockWrong), redlock.ErrorType(told[len(told)-1].Warning), "for a metric")
		fleet.Node(1).JumpClock(time.Hour)
		time.Sleep(2*ttl + 2*quarantine) // the jump costs the vote for a while
		require.Empty(t, wrongClocks(t, q))
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
			require.NoError(t, l.Extend(t.Context())) // spreads the token
			synctest.Wait()
			require.NoError(t, l.Release(t.Context()))
			synctest.Wait()
		}
		require.Empty(t, damagedNodes(t, q))
	})
}

// damagedNodes are the nodes that warn of a damaged counter.
func damagedNodes(t *testing.T, q *redlock.Quorum) (nodes []int) {
	for i, n := range q.Nodes(t.Context()) {
		if hasWarning(n, redlock.ConditionDamaged) {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// A clock of the caller's is compared with the median of the servers', as far as answers tell.
func TestCheckClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := redlocktest.StartPipes(t, 3)
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
	synctest.Test(t, func(t *testing.T) {
		fleet := redlocktest.StartPipes(t, 3)
		for i := range 2 {
			require.NoError(t, fleet.Node(i).Kill())
		}
		q := open(t, fleet)
		time.Sleep(15 * time.Second)
		require.NoError(t, q.CheckClock(time.Now().Add(time.Hour)), "one server's clock may be what is wrong")
	})
}

// However small the skew is that a process allows for, it knows the servers' clocks well enough for
// tokens that keep their order when counters are lost, at any moment between two samples of them.
func TestTokensWithALittleSkew(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, redlock.WithClockSkew(time.Millisecond), redlock.WithTTL(time.Minute))
		last := uint64(0)
		for i := range 40 {
			time.Sleep(time.Duration(i) * 700 * time.Millisecond)
			l := acquire(t, q)
			require.Greater(t, l.FencingToken(), last)
			last = l.FencingToken()
			finish(t, l.Release)
			for i := range 3 {
				fleet.Node(i).FlushAll()
			}
		}
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
