package redlock_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A queue cannot be kept everywhere. That costs no acquisition and no release, and who waits asks
// again.
func TestWaiterWithoutAQueuePolls(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3, withUser(t, "-zrank", "-zcard", "-zrange", "-zrem"))
	const ttl = 2 * patience // no lease ends by itself meanwhile
	holder, other := openURLs(t, s.userURLs(), redlock.WithMaxTTL(ttl), redlock.WithTTL(ttl)), openURLs(t, s.userURLs(), redlock.WithMaxTTL(ttl))
	l, err := tryUntilAnswered(t, holder, "key")
	require.NoError(t, err)
	_, err = tryUntilAnswered(t, other, "key")
	require.ErrorIs(t, err, redlock.ErrHeld)
	granted := s.acquire(other, "key")
	s.staysHeld(l, serverTTL/2)
	require.NoError(t, l.Release(t.Context()))
	require.NoError(t, receive(t, granted, patience, "without a queue nothing wakes the waiter").err)
}

// Waiters here poll every 10 s, so one that comes within half of that was called.

// requireCalled demands that a waiter came to something long before its poll.
func requireCalled(t *testing.T, granted <-chan grant) grant {
	t.Helper()
	return receive(t, granted, longTTL/2, "nobody called it")
}

// One that was called, came, and was refused keeps its place, which is by its first score.
func TestCalledAndRefusedKeepsItsPlace(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	held := s.hold(s.open(redlock.WithTTL(longTTL)), "key")
	granted := s.wait(s.open(redlock.WithTTL(longTTL)), "key")
	first, err := s.Node(0).Do(t, "ZRANGE", lockKey("key")+":wait", "0", "0").AsStrSlice()
	require.NoError(t, err)
	words := strings.Fields(first[0])
	for i := range s.Nodes() {
		s.do([]string{"ZREM", lockKey("key") + ":wait", first[0]}, i)
		s.do([]string{"PUBLISH", "tenure:call:" + words[2], "1 0 " + words[1] + " somebody"}, i)
	}
	for i := range s.Nodes() { // it comes, and is refused
		require.Eventually(t, func() bool {
			score, err := s.Node(i).Do(t, "ZSCORE", lockKey("key")+":wait", first[0]).ToString()
			return err == nil && score == words[1]
		}, longTTL/2, pollTick, "it has lost its place")
	}
	require.NoError(t, held.Release(t.Context()))
	require.NoError(t, requireCalled(t, granted).err)
}

// A holder that may not publish calls nobody, and so reserves for nobody.
func TestMuteHolderReservesNothing(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	held := s.hold(openURLs(t, s.mute("-publish"), redlock.WithTTL(longTTL)), "key")
	other := s.open()
	s.wait(s.open(redlock.WithTTL(longTTL)), "key")
	require.NoError(t, held.Release(t.Context()))
	_, err := tryUntilAnswered(t, other, "key")
	require.NoError(t, err)
}

// mute are URLs for a user without these rights.
func (s *servers) mute(rights ...string) (urls []string) {
	s.do(append([]string{"ACL", "SETUSER", "mute", "on", ">pass", "~*", "resetchannels", "+@all"}, rights...))
	for _, n := range s.Nodes() {
		urls = append(urls, "valkey://mute:pass@"+n.Addr())
	}
	return urls
}

// A user who may neither publish nor subscribe has no messages at all, and polls.
func TestTrap14WaiterWithoutMessagesPolls(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	urls := s.mute("-publish", "-subscribe")
	held := s.hold(openURLs(t, urls, redlock.WithTTL(longTTL)), "key")
	granted := s.acquire(openURLs(t, urls), "key")
	s.staysHeld(held, serverTTL/2)
	require.NoError(t, held.Release(t.Context()))
	require.NoError(t, receive(t, granted, patience, "without messages nothing wakes the waiter").err)
}

// own returns the commands a node served, without those of the test itself, and of trials, which
// alone delete something here.
func (s *servers) own(node int) map[string]int64 {
	s.t.Helper()
	stats := s.Node(node).CommandStats(s.t)
	for _, mine := range []string{"info", "config|resetstat", "keys", "pubsub|channels"} {
		delete(stats, mine)
	}
	trials := stats["del"]
	for name, times := range map[string]int64{"evalsha": 1, "time": 1, "get": 2, "zscore": 1, "pttl": 1, "set": 2, "pexpire": 2, "del": 1, "exists": 1, "mget": 1,
		"zadd": 1, "zrank": 1, "zcard": 1, "zrange": 1, "zrem": 1, "publish": 1} {
		if stats[name] -= trials * times; stats[name] == 0 {
			delete(stats, name)
		}
	}
	return stats
}

// Counters do not expire, and with the wall clock's microseconds for a hint start above their past.
func TestTokenStartsAboveItsPast(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open()
	before := uint64(time.Now().UnixMicro())
	l := s.hold(q, "key")
	require.GreaterOrEqual(t, l.FencingToken(), before)
	require.Less(t, l.FencingToken(), before+uint64(time.Minute.Microseconds()))
	for _, n := range s.Nodes() {
		ms, err := n.Do(t, "PTTL", fences).AsInt64()
		require.NoError(t, err)
		require.EqualValues(t, -1, ms)
	}
}

// A value of another type under a name of the library is named with what to do, counts as absent or
// is removed; and a quorum of other nodes does not care.
func TestForeignTypes(t *testing.T) {
	t.Parallel()
	s := startServers(t, 1)
	alone := s.open(redlock.WithTTL(longTTL))
	for _, put := range [][]string{{"RPUSH", "x"}, {"HSET", "x", "y"}, {"SADD", "x"}} {
		for kind, foreign := range map[string]string{"lock": lockKey(put[0]), "counter": fences, "queue": lockKey("of "+put[0]) + ":wait"} {
			key := map[string]string{"lock": put[0], "counter": "any", "queue": "of " + put[0]}[kind]
			s.do([]string{"DEL", foreign}, 0)
			s.do(append([]string{put[0], foreign}, put[1:]...), 0)
			l, err := tryUntilAnswered(t, alone, key)
			if kind == "queue" {
				require.NoError(t, err, key)
				require.NoError(t, l.Release(t.Context()), key)
				continue
			}
			require.ErrorIs(t, err, redlock.ErrNoQuorum, key)
			ce := requireConditionOf(t, err, s.Node(0).Addr(), redlock.ConditionDamaged)
			require.ErrorContains(t, ce, "\""+foreign)
			require.ErrorContains(t, ce, "DEL")
			requireNoLua(t, err)
			if kind == "lock" {
				_, err = alone.Holder(t.Context(), key)
				require.ErrorContains(t, err, fmt.Sprintf("%q", foreign))
				requireNoLua(t, err)
			}
			s.do([]string{"DEL", foreign}, 0)
			require.Eventually(t, func() bool { return alone.Healthy() == nil }, patience, pollTick, "other keys can be had")
		}
	}
}

// Where something else is in the place of a queue, those who wait queue all the same.
func TestForeignQueueIsRemoved(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL))
	l := s.hold(q, "key")
	s.do([]string{"RPUSH", lockKey("key") + ":wait", "x"})
	granted := s.acquire(q, "key")
	for i := range s.Nodes() {
		require.Eventually(t, func() bool {
			n, err := s.Node(i).Do(t, "ZCARD", lockKey("key")+":wait").AsInt64()
			return err == nil && n == 1
		}, longTTL, pollTick)
	}
	require.NoError(t, l.Release(t.Context()))
	require.NoError(t, receive(t, granted, longTTL/4, "it is not called").err)
}

// A lock that something else has written is a holder, whose name is shown in one line.
func TestForeignHolderIsQuoted(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	s.do([]string{"SET", lockKey("key"), "a\r\n-ERR b\x1b[2J"})
	_, err := tryUntilAnswered(t, s.open(), "key")
	held := errorAs[*redlock.HeldError](t, err)
	require.Equal(t, redlock.NoExpiry, held.Holder.TTL)
	require.ErrorContains(t, err, `"a\r\n-ERR b\x1b[2J"`)
	require.ErrorContains(t, err, "without expiry")
}

// requireNoLua demands that an error does not come from within a script.
func requireNoLua(t require.TestingT, err error) {
	if err == nil {
		return
	}
	for _, words := range []string{"user_script", "attempt to", "Error running", "WRONGTYPE", "unexpected reply", "\n"} {
		require.False(t, strings.Contains(err.Error(), words), "%v", err)
	}
}

// TestFormats pins what is written to servers. Processes of two versions share servers as long as
// both write the same: a change here has to be in the changelog, and one of members or of messages
// needs another version of it (memberVersion, messageVersion, and lib/version.lua of wire).
func TestFormats(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	holder := s.gated(redlock.WithTTL(longTTL), redlock.WithIdentity("the holder"))
	waiter := s.gated(redlock.WithTTL(longTTL), redlock.WithIdentity("the waiter"))
	held := s.hold(holder, "key")
	granted := s.wait(waiter, "key")
	for _, n := range s.Nodes() {
		require.Eventually(t, func() bool { return len(n.Keys(t)) == 3 }, longTTL, pollTick)
		require.Equal(t, []string{"tenure:fences", "tenure:{key}", "tenure:{key}:wait"}, n.Keys(t))
		text := func(want string, command ...string) {
			require.Eventually(t, func() bool {
				got, err := n.Do(t, command...).ToString()
				return err == nil && regexp.MustCompile(want).MatchString(got)
			}, longTTL, pollTick, "%v is not %s", command, want)
		}
		text(`^[1-9][0-9]{15} the holder/[A-Za-z0-9_-]{22}$`, "GET", "tenure:{key}")
		text(`^[1-9][0-9]{15}$`, "ZSCORE", "tenure:fences", wire.NewKeys("tenure", "key").Slot)
		list := []string{"list", "true", "10s", "1ms"}
		for _, n := range s.Nodes() {
			list = append(list, url.QueryEscape(n.Addr()))
		}
		slices.Sort(list[4:])
		text(`^[0-9]{13} [0-9]+ the[+](holder|waiter)$`, "HGET", "tenure:roster", strings.Join(list, " "))
		text(`^[0-9]{13} [0-9]+ the[+](holder|waiter) 127.0.0.1%3A[0-9]+$`, "HGET", "tenure:roster", "at "+url.QueryEscape(n.Addr())+" "+runIDOf(t, n))
		members, err := n.Do(t, "ZRANGE", "tenure:{key}:wait", "0", "-1").AsStrSlice()
		require.NoError(t, err)
		require.Len(t, members, 1)
		require.Regexp(t, `^1 [0-9]{16} [A-Za-z0-9_-]{22} the waiter$`, members[0])
		require.Eventually(t, func() bool {
			channels, err := n.Do(t, "PUBSUB", "CHANNELS").AsStrSlice()
			return err == nil && len(channels) == 1 && regexp.MustCompile(`^tenure:call:[A-Za-z0-9_-]{22}$`).MatchString(channels[0])
		}, longTTL, pollTick)
	}
	n := s.Node(0)
	channels, err := n.Do(t, "PUBSUB", "CHANNELS").AsStrSlice()
	require.NoError(t, err)
	heard := make(chan string, 1)
	listener, stop := n.Client().Dedicate()
	defer stop()
	ended := listener.SetPubSubHooks(valkey.PubSubHooks{OnMessage: func(m valkey.PubSubMessage) { heard <- m.Message }})
	require.NoError(t, listener.Do(t.Context(), listener.B().Subscribe().Channel(channels[0]).Build()).Error())
	require.NoError(t, held.Release(t.Context()))
	select {
	case message := <-heard:
		require.Regexp(t, `^1 0 [0-9]{16} [1-9][0-9]{15} the holder/[A-Za-z0-9_-]{22}$`, message)
	case err := <-ended:
		require.NoError(t, err, "the listener's connection has ended")
	}
	require.NoError(t, receive(t, granted, longTTL, "not called").err)
}

// runIDOf is that of a server's process.
func runIDOf(t *testing.T, n *valkeytest.Node) string {
	t.Helper()
	text, err := n.Do(t, "INFO", "server").ToString()
	require.NoError(t, err)
	info, err := wire.ParseInfo(text)
	require.NoError(t, err)
	return info.RunID
}

// What another version of the library has written on the same servers, see docs/reference.md: it
// is written by hand. Waiters poll every 10 s, so one that comes within half of that was called.
func TestTwoVersionsShareServers(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]func(t *testing.T, s *servers){
		"an owner value of another form is a holder":            versionsHold,
		"a reservation of the other version is kept for a turn": versionsReserve,
		"a message of the other version wakes nobody":           versionsCall,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row(t, startServers(t, 3))
		})
	}
}

// onServers are the values of a key on all servers; empty where there is none.
func (s *servers) onServers(key string) (values []string) {
	s.t.Helper()
	for _, n := range s.Nodes() {
		text, _ := n.Do(s.t, "GET", key).ToString()
		values = append(values, text)
	}
	return values
}

func versionsHold(t *testing.T, s *servers) {
	s.do([]string{"SET", lockKey("key"), "2 newer " + strings.Repeat("r", 40), "PX", "60000"})
	_, err := tryUntilAnswered(t, s.open(), "key")
	held := errorAs[*redlock.HeldError](t, err)
	require.Contains(t, held.Holder.Identity, "newer")
	require.Contains(t, s.onServers(lockKey("key"))[0], "2 newer")
}

func versionsReserve(t *testing.T, s *servers) {
	q := s.open(redlock.WithTTL(longTTL))
	until := time.Now().Add(900 * time.Millisecond).Truncate(time.Millisecond)
	s.do([]string{"SET", lockKey("key"), "R 2 1790000000000000 " + strings.Repeat("p", 22) + " newer", "PX", "900"})
	require.Eventually(t, func() bool {
		_, err := q.TryAcquire(t.Context(), "key")
		return err == nil
	}, patience, pollTick)
	require.False(t, time.Now().Before(until))
}

func versionsCall(t *testing.T, s *servers) {
	s.squat("key", longTTL)
	granted := s.wait(s.open(redlock.WithTTL(longTTL)), "key")
	time.Sleep(lateness) // until it has seen that it can be called
	members, err := s.Node(0).Do(t, "ZRANGE", lockKey("key")+":wait", "0", "0").AsStrSlice()
	require.NoError(t, err)
	words := strings.Fields(members[0])
	s.do([]string{"DEL", lockKey("key")})
	for _, version := range []string{"2", "0", "11"} {
		s.do([]string{"PUBLISH", "tenure:call:" + words[2], version + " 0 " + words[1] + " released"})
	}
	s.do([]string{"PUBLISH", "tenure:call:" + words[2], "0 " + words[1] + " released"})
	select {
	case <-granted:
		require.Fail(t, "it believed a message that it cannot know")
	case <-time.After(2 * lateness):
	}
	s.do([]string{"PUBLISH", "tenure:call:" + words[2], "1 0 " + words[1] + " released"})
	require.NoError(t, requireCalled(t, granted).err)
}
