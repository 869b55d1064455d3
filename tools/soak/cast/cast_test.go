package cast_test

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/tools/soak/cast"
	"github.com/tenure-dev/tenure/tools/soak/story"
)

// trait is the settings of the replicas here.
type trait struct {
	Word  string
	Fails bool
	Leaks bool
}

const variable = "TENURE_SOAK_TEST"

// Environment implements cast.Environment.
func (t trait) Environment() []string { return []string{variable + "=" + t.Word} }

func TestMain(m *testing.M) {
	if os.Getenv(cast.Variable) != "" {
		os.Exit(cast.Main(os.Stdin, os.Stdout, play))
	}
	goleak.VerifyTestMain(m)
}

func play(role *cast.Role) (func() error, error) {
	var t trait
	if err := role.Settings(&t); err != nil {
		return nil, err
	}
	if t.Fails {
		return nil, errors.New("stage fright")
	}
	if t.Leaks {
		go func() { select {} }()
	}
	role.Append(story.Record{Kind: story.Start, Text: t.Word + os.Getenv(variable)})
	return func() error { return nil }, nil
}

func newCast(t *testing.T, traits ...trait) (*cast.Cast, string) {
	t.Helper()
	dir := t.TempDir()
	c, err := cast.New(len(traits), dir, func(n int) any { return traits[n] })
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c, dir
}

func TestLivesOfReplicas(t *testing.T) {
	c, dir := newCast(t, trait{Word: "a"}, trait{Word: "b"})
	require.NoError(t, c.StartAll())
	require.NoError(t, c.Stop(0))
	require.NoError(t, c.Start(0))
	require.True(t, c.Freeze(1))
	require.False(t, c.Freeze(1))
	c.Thaw(1)
	require.True(t, c.Kill(1))
	require.False(t, c.Kill(1))
	require.NoError(t, c.Start(1))
	require.NoError(t, c.StopAll())
	lives := c.Close()
	var names []string
	for _, life := range lives {
		names = append(names, life.Name)
		require.NotZero(t, life.Ended)
		require.Equal(t, life.Name == "r1.1", life.Killed != 0)
		require.Equal(t, life.Killed != 0, life.Err != "")
	}
	require.Equal(t, []string{"r0.1", "r0.2", "r1.1", "r1.2"}, names)

	records, err := cast.Journals(dir, 2)
	require.NoError(t, err)
	require.Len(t, records, 4)
	for name, kinds := range map[string][]story.Kind{
		"r0.1": {story.Start, story.Stopping, story.Stop}, "r1.1": {story.Start}, "r1.2": {story.Start, story.Stopping, story.Stop},
	} {
		var got []story.Kind
		for _, r := range records[name] {
			got = append(got, r.Kind)
			require.NotZero(t, r.At)
		}
		require.Equal(t, kinds, got, name)
	}
	require.Equal(t, "aa", records["r0.2"][0].Text)
	require.Equal(t, "bb", records["r1.2"][0].Text)
}

func TestKillAll(t *testing.T) {
	c, _ := newCast(t, trait{}, trait{})
	require.NoError(t, c.StartAll())
	c.KillAll()
	for _, life := range c.Close() {
		require.NotZero(t, life.Killed)
	}
}

func TestReplicaThatFails(t *testing.T) {
	c, _ := newCast(t, trait{Fails: true})
	require.ErrorContains(t, c.StartAll(), "replica 0")
	lives := c.Close()
	require.Contains(t, lives[0].Stderr, "stage fright")
	require.Zero(t, lives[0].Killed)
}

func TestLeakIsWrittenDown(t *testing.T) {
	c, dir := newCast(t, trait{Leaks: true})
	require.NoError(t, c.StartAll())
	require.NoError(t, c.StopAll())
	records, err := cast.Journals(dir, 1)
	require.NoError(t, err)
	last := records["r0.1"][len(records["r0.1"])-1]
	require.Equal(t, story.Stop, last.Kind)
	require.Contains(t, last.Text, "cast_test.play")
}

func TestMainWithoutAProgramThatStartsIt(t *testing.T) {
	in, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer in.Close()
	require.Equal(t, 1, cast.Main(in, os.Stdout, play))
}
