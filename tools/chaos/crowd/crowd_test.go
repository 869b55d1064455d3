package crowd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/chaos/client"
	"github.com/tenure-dev/tenure/tools/chaos/crowd"
	"github.com/tenure-dev/tenure/tools/chaos/journal"
)

const (
	patience   = 20 * time.Second
	impatience = 100 * time.Millisecond
)

// start starts a crowd of two dummies. lives ends it and returns what they had.
func start(t *testing.T, prefix string) (c *crowd.Crowd, lives func() []journal.Life) {
	t.Helper()
	dir := t.TempDir()
	c = crowd.New(2, func(number int) client.Assignment {
		return client.Assignment{Journals: dir, Prefix: prefix, Seed: 1}
	})
	t.Cleanup(func() { c.Close() })
	for i := range 2 {
		require.NoError(t, c.Start(i))
	}
	return c, c.Close
}

func say(text string) func(int) string { return func(int) string { return text } }

func TestStopInOrder(t *testing.T) {
	c, lives := start(t, "")
	require.NoError(t, c.Command(say(client.Settle), client.Settled, patience))
	// Seeds and names are each life's own.
	for want, ok := range map[string]bool{"hello c0.1 2": true, "hello c1.1 4294967298": true, "hello c0.1 3": false} {
		err := c.Command(say("name hello"), want, impatience)
		require.Error(t, err, "one of the two answers otherwise")
		require.Equal(t, ok, strings.Count(err.Error(), "was not") == 1, "%s: %v", want, err)
	}
	require.NoError(t, c.Stop(patience))
	for i, life := range lives() {
		require.Equal(t, []string{"c0.1", "c1.1"}[i], life.Name)
		require.Empty(t, life.Err)
		require.Zero(t, life.Killed)
		require.Less(t, life.Began, life.Ended)
	}
	require.Error(t, c.Start(0), "the crowd is closed")
}

func TestKill(t *testing.T) {
	c, lives := start(t, "")
	before := journal.Now()
	require.True(t, c.Kill(1))
	require.False(t, c.Kill(1), "it is dead")
	require.False(t, c.Freeze(1))
	require.ErrorContains(t, c.Command(say(client.Settle), client.Settled, patience), "client 1 is dead")
	require.NoError(t, c.Start(1))
	require.NoError(t, c.Command(say(client.Settle), client.Settled, patience))
	require.NoError(t, c.Stop(patience))
	all := lives()
	require.Len(t, all, 3)
	killed := all[1]
	require.Equal(t, "c1.1", killed.Name)
	require.Equal(t, "c1.2", all[2].Name)
	require.Greater(t, killed.Killed, before)
	require.GreaterOrEqual(t, killed.Ended, killed.Killed)
	require.Equal(t, "signal: killed", killed.Err)
}

func TestFreeze(t *testing.T) {
	c, lives := start(t, "")
	require.True(t, c.Freeze(0))
	require.False(t, c.Freeze(0), "it is frozen")
	require.ErrorContains(t, c.Command(say(client.Settle), client.Settled, impatience), "c0.1 was not settled")
	c.Thaw(0)
	c.Thaw(0)
	require.NoError(t, c.Command(say(client.Settle), client.Settled, patience))
	require.True(t, c.Freeze(1))
	require.True(t, c.Kill(1), "SIGKILL ends the frozen")
	require.NoError(t, c.Stop(patience))
	require.Len(t, lives(), 2)
}

func TestClientThatEndsByItself(t *testing.T) {
	c, lives := start(t, "")
	require.ErrorContains(t, c.Command(say("exit"), client.Settled, patience), "ended before")
	life := lives()[0]
	require.Equal(t, "exit status 5", life.Err)
	require.Zero(t, life.Killed)
}

func TestClientThatDoesNotBegin(t *testing.T) {
	dir := t.TempDir()
	c := crowd.New(1, func(int) client.Assignment { return client.Assignment{Journals: dir, Prefix: "fails"} })
	require.ErrorContains(t, c.Start(0), "ended before")
	require.Equal(t, "I fail.", c.Close()[0].Stderr)
}

func TestClientThatDoesNotStopIsKilled(t *testing.T) {
	c, lives := start(t, "stubborn")
	require.ErrorContains(t, c.Stop(impatience), "did not stop")
	stopped := journal.Now()
	for _, life := range lives() {
		require.NotZero(t, life.Killed)
		require.Less(t, life.Killed, stopped)
	}
}

func TestCloseKillsAll(t *testing.T) {
	c, lives := start(t, "")
	require.True(t, c.Freeze(0))
	for _, life := range lives() {
		require.Equal(t, "signal: killed", life.Err)
	}
}

func TestNumber(t *testing.T) {
	for name, want := range map[string]int{"c3.2/17": 3, "c12.1": 12, "": -1, "x": -1} {
		require.Equal(t, want, crowd.Number(name), name)
	}
}
