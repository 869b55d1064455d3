package redlocktest_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func TestExpiryOnFakeTime(t *testing.T) {
	inBubble(t, func(t *testing.T, n *redlocktest.Node, c valkey.Client) {
		mustDo(t, c, "SET", "k", "v", "NX", "PX", "10000")
		start := time.Now()

		time.Sleep(10*time.Second - time.Millisecond)
		require.Equal(t, time.Millisecond, n.TTL("k"))
		require.Equal(t, 10*time.Second-time.Millisecond, time.Since(start))
		require.True(t, valkey.IsValkeyNil(do(t.Context(), c, "SET", "k", "w", "NX", "PX", "10000").Error()))

		time.Sleep(time.Millisecond)
		mustDo(t, c, "SET", "k", "w", "NX", "PX", "10000")
		v, ok := n.Get("k")
		require.True(t, ok)
		require.Equal(t, "w", v)
	})
}

func TestKeyExpiresWhileKilled(t *testing.T) {
	inBubble(t, func(t *testing.T, n *redlocktest.Node, c valkey.Client) {
		mustDo(t, c, "SET", "short", "v", "PX", "1000")
		mustDo(t, c, "SET", "long", "v", "PX", "5000")
		require.NoError(t, n.Kill())
		require.Equal(t, []string{"long", "short"}, n.Keys())
		time.Sleep(2 * time.Second)
		require.NoError(t, n.Restart(true))
		require.Equal(t, []string{"long"}, n.Keys())
		require.Equal(t, 3*time.Second, n.TTL("long"))
	})
}

func TestKillBreaksAndRefusesConnections(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, f *redlocktest.Fleet) {
		n := f.Node(0)
		c := open(t, f, n)
		mustDo(t, c, "SET", "k", "v")
		idle, err := n.Dial(t.Context())
		require.NoError(t, err)
		defer idle.Close()
		require.NoError(t, idle.SetDeadline(time.Now().Add(10*time.Second)))
		_, err = idle.Write(wire("PING"))
		require.NoError(t, err)
		pong := make([]byte, len("+PONG\r\n"))
		_, err = io.ReadFull(idle, pong)
		require.NoError(t, err)

		require.NoError(t, n.Kill())
		require.NoError(t, n.Kill())
		_, err = idle.Read(pong)
		require.ErrorIs(t, err, io.EOF)
		require.Error(t, do(t.Context(), c, "GET", "k").Error())
		require.Error(t, do(t.Context(), c, "GET", "k").Error())
		_, err = n.Dial(t.Context())
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.Equal(t, "OK", mustString(t, mustDo(t, open(t, f, f.Node(1)), "SET", "k", "v")), "the other node goes on")
	})
}

func TestWritesThatNobodyReads(t *testing.T) {
	n := redlocktest.StartPipes(t, 1).Node(0)
	conn, err := n.Dial(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, n.Freeze())
	require.NoError(t, conn.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
	for err == nil {
		_, err = conn.Write(wire("PING"))
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "a connection has room for so many")
	require.NoError(t, conn.SetWriteDeadline(time.Time{}))
	require.NoError(t, n.Kill())
	_, err = conn.Write(wire("PING"))
	require.ErrorIs(t, err, syscall.EPIPE)
}

func TestRestartKeepsDataOrNot(t *testing.T) {
	for _, keep := range []bool{true, false} {
		for _, killFirst := range []bool{true, false} {
			onBoth(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
				n := f.Node(0)
				url := n.URL()
				c := open(t, f, n)
				mustDo(t, c, "SET", "k", "v")
				if killFirst {
					require.NoError(t, n.Kill())
					v, ok := n.Get("k")
					require.True(t, ok, "data is kept aside")
					require.Equal(t, "v", v)
				}
				require.NoError(t, n.Restart(keep))
				require.Equal(t, url, n.URL())
				reconnect(t, c)
				v, err := do(t.Context(), c, "GET", "k").ToString()
				if keep {
					require.NoError(t, err)
					require.Equal(t, "v", v)
				} else {
					require.True(t, valkey.IsValkeyNil(err), "%v", err)
				}
			})
		}
	}
}

func TestRestartEmptiesScriptCache(t *testing.T) {
	onOne(t, func(t *testing.T, n *redlocktest.Node, c valkey.Client) {
		for _, keep := range []bool{true, false} {
			sha := mustString(t, mustDo(t, c, "SCRIPT", "LOAD", "return redis.call('SET', KEYS[1], ARGV[1])"))
			mustDo(t, c, "EVALSHA", sha, "1", "k", "v")
			require.NoError(t, n.Restart(keep))
			reconnect(t, c)
			err := do(t.Context(), c, "EVALSHA", sha, "1", "k", "v").Error()
			verr, ok := valkey.IsValkeyErr(err)
			require.True(t, ok, "%v", err)
			require.True(t, verr.IsNoScript(), "%v", err)
		}
	})
}

func TestFrozenNodeRunsCommandsOnThaw(t *testing.T) {
	onOne(t, func(t *testing.T, n *redlocktest.Node, c valkey.Client) {
		mustDo(t, c, "PING")
		require.NoError(t, n.Freeze())
		require.NoError(t, n.Freeze())
		before := n.Commands()
		timeOut(t, c, "SET", "late", "v", "PX", "10000")
		require.Empty(t, n.Keys())
		require.Equal(t, before, n.Commands())

		require.NoError(t, n.Thaw())
		require.NoError(t, n.Thaw())
		require.Eventually(t, func() bool { v, _ := n.Get("late"); return v == "v" }, 10*time.Second, time.Millisecond,
			"the client has closed its connection; the command runs nevertheless")
		require.InDelta(t, 10*time.Second, n.TTL("late"), float64(5*time.Second), "with its full TTL")
		reconnect(t, c)
	})
}

func TestFrozenNodeAcceptsAndAnswersOnThaw(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		n := f.Node(0)
		require.NoError(t, n.Freeze())
		conn, err := n.Dial(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write(slices.Concat(wire("SET", "a", "1"), wire("INCR", "a"), wire("INCR", "a")))
		require.NoError(t, err, "a write goes into the socket's buffer")
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		_, err = conn.Read(make([]byte, 1))
		var timeout interface{ Timeout() bool }
		require.ErrorAs(t, err, &timeout)
		require.True(t, timeout.Timeout())

		require.NoError(t, n.Thaw())
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
		r := bufio.NewReader(conn)
		for _, want := range []string{"+OK\r\n", ":2\r\n", ":3\r\n"} {
			got, err := r.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	})
}

func TestKilledWhileFrozen(t *testing.T) {
	onOne(t, func(t *testing.T, n *redlocktest.Node, c valkey.Client) {
		require.NoError(t, n.Freeze())
		timeOut(t, c, "SET", "k", "v")
		require.NoError(t, n.Kill())
		require.ErrorContains(t, n.Freeze(), "is not running: call Restart")
		require.NoError(t, n.Thaw())
		require.NoError(t, n.Restart(true))
		reconnect(t, c)
		require.Empty(t, n.Keys(), "a command that a killed process never ran is lost")
	})
}

func TestRestartEndsFreeze(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		n := f.Node(0)
		require.NoError(t, n.Freeze())
		require.NoError(t, n.Restart(true))
		mustDo(t, open(t, f, n), "PING")
	})
}

func TestDelayOnFakeTime(t *testing.T) {
	inBubble(t, func(t *testing.T, n *redlocktest.Node, c valkey.Client) {
		n.SetDelay(3 * time.Second)
		start := time.Now()
		done := make(chan error, 1)
		go func() { done <- do(t.Context(), c, "SET", "k", "v").Error() }()
		synctest.Wait()
		require.Equal(t, []string{"k"}, n.Keys(), "only the answer is late")
		require.NoError(t, <-done)
		require.Equal(t, 3*time.Second, time.Since(start))

		start = time.Now()
		for _, r := range c.DoMulti(t.Context(), c.B().Get().Key("k").Build(), c.B().Get().Key("k").Build(), c.B().Get().Key("k").Build()) {
			require.NoError(t, r.Error())
		}
		require.Equal(t, 3*time.Second, time.Since(start), "delays do not add up")

		require.NoError(t, n.Restart(true))
		reconnect(t, c)
		start = time.Now()
		mustDo(t, c, "PING")
		require.Equal(t, 3*time.Second, time.Since(start), "a restart does not end it")
		n.SetDelay(0)
		start = time.Now()
		mustDo(t, c, "PING")
		require.Zero(t, time.Since(start))
	})
}

func TestDelayedAnswerOfKilledNodeNeverArrives(t *testing.T) {
	inBubble(t, func(t *testing.T, n *redlocktest.Node, c valkey.Client) {
		n.SetDelay(time.Second)
		done := make(chan error, 1)
		go func() { done <- do(t.Context(), c, "SET", "k", "v").Error() }()
		synctest.Wait()
		require.NoError(t, n.Restart(true))
		require.Error(t, <-done)
		require.Equal(t, []string{"k"}, n.Keys())
	})
}

func TestBlockedCommandEndsWithKill(t *testing.T) {
	onOne(t, func(t *testing.T, n *redlocktest.Node, c valkey.Client) {
		before := n.Commands()
		for range 2 {
			done := make(chan error, 1)
			go func() { done <- c.Do(t.Context(), c.B().Blpop().Key("queue").Timeout(0).Build()).Error() }()
			require.Eventually(t, func() bool { return n.Commands() > before }, 10*time.Second, time.Millisecond)
			require.NoError(t, n.Restart(true))
			require.Error(t, <-done)
			reconnect(t, c)
			before = n.Commands()
		}
		done := make(chan error, 1)
		go func() { done <- c.Do(t.Context(), c.B().Blpop().Key("queue").Timeout(0).Build()).Error() }()
		require.Eventually(t, func() bool { return n.Commands() > before }, 10*time.Second, time.Millisecond)
		mustDo(t, c, "RPUSH", "queue", "v")
		require.NoError(t, <-done, "blocking commands work after a restart")
	})
}

func TestInspection(t *testing.T) {
	onOne(t, func(t *testing.T, n *redlocktest.Node, c valkey.Client) {
		mustDo(t, c, "SET", "b", "1")
		mustDo(t, c, "HSET", "a", "f", "1")
		require.Equal(t, []string{"a", "b"}, n.Keys())
		_, ok := n.Get("a")
		require.False(t, ok, "not a string")
		_, ok = n.Get("missing")
		require.False(t, ok)
		require.Zero(t, n.TTL("b"))

		before := n.Commands()
		mustDo(t, c, "EVAL", "redis.call('INCR', KEYS[1]) redis.call('INCR', KEYS[1]) return redis.call('GET', KEYS[1])", "1", "b")
		require.Equal(t, before+1, n.Commands(), "what a script calls is not counted")

		require.NoError(t, n.Freeze())
		require.Equal(t, []string{"a", "b"}, n.Keys())
		require.NoError(t, n.Thaw())
		n.FlushAll()
		require.Empty(t, n.Keys())
	})
}

// Scripts, freezes and restarts race here. The race detector and miniredis's own
// panics are assertions too.
func TestFaultsNeverCutScripts(t *testing.T) {
	const script = "for i = 1, 2 do for _ = 1, 100 do redis.call('INCR', KEYS[i]) end end"
	for name, start := range map[string]func(testing.TB, int) *redlocktest.Fleet{
		"tcp": redlocktest.Start, "pipes": redlocktest.StartPipes,
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, 1)
			n := f.Node(0)
			ctx, cancel := context.WithCancel(t.Context())
			var load sync.WaitGroup
			defer load.Wait()
			defer cancel()
			for range 4 {
				c := open(t, f, n)
				load.Go(func() {
					for ctx.Err() == nil {
						do(ctx, c, "EVAL", script, "2", "a", "b")
					}
				})
			}
			for i := range 40 {
				at := n.Commands()
				require.Eventually(t, func() bool { return n.Commands() > at+5 }, 10*time.Second, 100*time.Microsecond)
				require.NoError(t, n.Freeze())
				if i%2 == 0 {
					require.NoError(t, n.Thaw())
					continue
				}
				require.NoError(t, n.Kill())
				a, ok := n.Get("a")
				require.True(t, ok)
				b, _ := n.Get("b")
				require.Equal(t, a, b)
				require.NoError(t, n.Restart(true))
			}
		})
	}
}

func TestJumpClockMovesTimeUptimeAndExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := redlocktest.StartPipes(t, 2)
		jumped, other := open(t, f, f.Node(0)), open(t, f, f.Node(1))
		uptime := func(c valkey.Client) string {
			m := mustDo(t, c, "INFO", "server")
			_, rest, _ := strings.Cut(mustString(t, m), "uptime_in_seconds:")
			seconds, _, _ := strings.Cut(rest, "\r\n")
			return seconds
		}
		now := func(c valkey.Client) time.Time {
			parts, err := do(t.Context(), c, "TIME").AsIntSlice()
			require.NoError(t, err)
			return time.UnixMicro(parts[0]*1_000_000 + parts[1])
		}
		for _, c := range []valkey.Client{jumped, other} {
			mustDo(t, c, "SET", "k", "v", "PX", "3600000")
			mustDo(t, c, "SET", "long", "v", "PX", "7200001")
		}
		f.Node(0).JumpClock(2 * time.Hour)
		require.True(t, now(jumped).Equal(time.Now().Add(2*time.Hour)))
		require.Equal(t, "180000", uptime(jumped)) // two days and two hours
		require.Equal(t, []string{"long"}, f.Node(0).Keys())
		require.Equal(t, time.Millisecond, f.Node(0).TTL("long"))
		require.True(t, now(other).Equal(time.Now()))
		require.Equal(t, "172800", uptime(other))
		require.Len(t, f.Node(1).Keys(), 2)
		require.NoError(t, f.Node(1).Kill())
		f.Node(1).JumpClock(24 * time.Hour)
		require.NoError(t, f.Node(1).Restart(true))
		require.Len(t, f.Node(1).Keys(), 2, "a killed node has no clock")
	})
}

// What a server refuses or knows, a node does.
func TestSmallThings(t *testing.T) {
	onOne(t, func(t *testing.T, n *redlocktest.Node, c valkey.Client) {
		require.ErrorContains(t, do(t.Context(), c, "SELECT", "16").Error(), "DB index is out of range")
		mustDo(t, c, "SELECT", "15")
		mustDo(t, c, "SELECT", "0")
		mustDo(t, c, "HSET", "hash", "empty", "")
		for field, there := range map[string]bool{"empty": true, "none": false} {
			_, ok := n.HGet("hash", field)
			require.Equal(t, there, ok, field)
		}
		_, ok := n.HGet("none", "x")
		require.False(t, ok)
	})
}

func TestFlushScriptsForgetsScriptsOnly(t *testing.T) {
	onOne(t, func(t *testing.T, n *redlocktest.Node, c valkey.Client) {
		mustDo(t, c, "SET", "k", "v")
		m := mustDo(t, c, "SCRIPT", "LOAD", "return 1")
		sha := mustString(t, m)
		mustDo(t, c, "EVALSHA", sha, "0")
		n.FlushScripts()
		require.ErrorContains(t, do(t.Context(), c, "EVALSHA", sha, "0").Error(), "NOSCRIPT")
		require.Equal(t, []string{"k"}, n.Keys())
	})
}

// A text that a node had before is not parsed again, and is a script like any other.
func TestScriptThatWasLoadedBefore(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, f *redlocktest.Fleet) {
		const text = "return {KEYS[1], ARGV[1]}"
		for _, n := range f.Nodes() {
			c := open(t, f, n)
			require.ErrorContains(t, do(t.Context(), c, "SCRIPT", "LOAD", "return +").Error(), "syntax error")
			sha := mustString(t, mustDo(t, c, "SCRIPT", "LOAD", text))
			for _, word := range []string{"EVALSHA", "EVALSHA_RO"} {
				got, err := do(t.Context(), c, word, sha, "1", "k", "v").AsStrSlice()
				require.NoError(t, err)
				require.Equal(t, []string{"k", "v"}, got)
			}
			exist := func() []int64 {
				got, err := do(t.Context(), c, "SCRIPT", "EXISTS", sha, strings.Repeat("0", 40)).AsIntSlice()
				require.NoError(t, err)
				return got
			}
			require.Equal(t, []int64{1, 0}, exist())
			mustDo(t, c, "SCRIPT", "FLUSH")
			require.Equal(t, []int64{0, 0}, exist())
			require.ErrorContains(t, do(t.Context(), c, "EVALSHA", sha, "1", "k", "v").Error(), "NOSCRIPT")
		}
	})
}
