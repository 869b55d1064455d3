package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMarkdownBetweenMarks(t *testing.T) {
	b := sample()
	b.finish()
	r := &report{machine: machine("8.0.1", time.Unix(0, 0)), size: quickSize, boards: []*board{b}}
	for _, want := range []string{"1970-01-01 00:00 UTC", "Valkey 8.0.1", "A **quick** run", "GOMAXPROCS", "### pair: ", "bsm/redislock"} {
		require.Contains(t, r.markdown(), want)
	}
	r.size = fullSize
	require.NotContains(t, r.markdown(), "run: the sizes")

	name := filepath.Join(t.TempDir(), "performance.md")
	require.NoError(t, os.WriteFile(name, []byte("before\n"+reportBegin+"old\n"+reportEnd+"after\n"), 0o600))
	require.NoError(t, r.write(name))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "before\n"+reportBegin+"\n"+r.markdown()+reportEnd+"after\n", string(text))

	require.NoError(t, os.WriteFile(name, []byte("no marks\n"), 0o600))
	require.ErrorContains(t, r.write(name), "no place for the report")
	text, err = os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "no marks\n", string(text))
}
