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
		text(`^[1-9][0-9]{15}$`, "HGET", "tenure:fences", wire.NewKeys("tenure", "key").Slot)
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
		"an owner value of another form is a holder":                             versionsHold,
		"a crowd of the other version is passed over":                            versionsCrowd,
		"a reservation of the other version is kept for a turn":                  versionsReserve,
		"a reservation of the other version that is over, or none, stops nobody": versionsReserveNothing,
		"a message of the other version wakes nobody":                            versionsCall,
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

// otherMembers puts waiters of the other version before everybody else, with a score or, if it is
// empty, with their number.
func (s *servers) otherMembers(n int, score string) {
	s.t.Helper()
	command := []string{"ZADD", lockKey("key") + ":wait"}
	since := time.Now().Add(-time.Minute).UnixMicro()
	for i := range n {
		number := fmt.Sprint(since + int64(i))
		at := score
		if score == "" {
			at = number
		}
		command = append(command, at, "2 "+number+" "+strings.Repeat("p", 22)+" newer")
	}
	s.do(command)
	s.do([]string{"PEXPIRE", lockKey("key") + ":wait", "60000"})
	s.do([]string{"HSET", fences, "queues", fmt.Sprint(time.Now().Add(time.Minute).UnixMilli())}) // as who joins does
}

func versionsHold(t *testing.T, s *servers) {
	s.do([]string{"SET", lockKey("key"), "2 newer " + strings.Repeat("r", 40), "PX", "60000"})
	_, err := tryUntilAnswered(t, s.open(), "key")
	var held *redlock.HeldError
	require.ErrorAs(t, err, &held)
	require.Contains(t, held.Holder.Identity, "newer")
	require.Contains(t, s.onServers(lockKey("key"))[0], "2 newer")
}

func versionsCrowd(t *testing.T, s *servers) {
	l := s.hold(s.open(redlock.WithTTL(longTTL)), "key")
	s.otherMembers(100, "")
	granted := s.wait(s.open(redlock.WithTTL(longTTL)), "key")
	require.NoError(t, l.Release(t.Context()))
	require.NoError(t, requireCalled(t, granted).err)
	for i := range s.Nodes() {
		members, err := s.Node(i).Do(t, "ZRANGE", lockKey("key")+":wait", "0", "-1").AsStrSlice()
		require.NoError(t, err)
		require.Len(t, slices.DeleteFunc(members, func(m string) bool { return !strings.HasPrefix(m, "2 ") }), 100, "node %d", i)
	}
}

func versionsReserve(t *testing.T, s *servers) {
	q := s.open(redlock.WithTTL(longTTL))
	until := time.Now().Add(900 * time.Millisecond).Truncate(time.Millisecond)
	s.otherMembers(1, "-"+fmt.Sprint(until.UnixMilli()))
	_, err := q.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrHeld)
	require.Eventually(t, func() bool {
		_, err = q.TryAcquire(t.Context(), "key")
		return err == nil
	}, longTTL/2, pollTick)
	require.False(t, time.Now().Before(until))
}

func versionsReserveNothing(t *testing.T, s *servers) {
	q := s.open(redlock.WithTTL(longTTL))
	for _, score := range []string{"-inf", "-9999999999999", "-1"} {
		s.otherMembers(1, score)
		l, err := tryUntilAnswered(t, q, "key")
		require.NoError(t, err, score)
		require.NoError(t, l.Release(t.Context()))
		s.do([]string{"DEL", lockKey("key") + ":wait"})
	}
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
