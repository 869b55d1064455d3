package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func sampleReport() *report {
	b := sample()
	b.finish()
	return &report{Machine: thisMachine("8.0.1", time.Unix(0, 0)), Size: "quick", Boards: []*board{b}, Targets: judge([]*board{b}, false)}
}

func TestMarkdownBetweenMarks(t *testing.T) {
	r := sampleReport()
	name := filepath.Join(t.TempDir(), "performance.md")
	require.NoError(t, r.writeMarkdown(name))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, reportBegin+"\n"+r.markdown()+reportEnd, string(text))

	require.NoError(t, os.WriteFile(name, []byte("before\n"+reportBegin+"old\n"+reportEnd+"after\n"), 0o600))
	require.NoError(t, r.writeMarkdown(name))
	text, err = os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "before\n"+reportBegin+"\n"+r.markdown()+reportEnd+"after\n", string(text))

	require.NoError(t, os.WriteFile(name, []byte("no marks\n"), 0o600))
	require.ErrorContains(t, r.writeMarkdown(name), "no place for the report")
	text, err = os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "no marks\n", string(text))
}

func TestMarkdownSaysWhatItIs(t *testing.T) {
	r := sampleReport()
	text := r.markdown()
	for _, want := range []string{"1970-01-01 00:00 UTC", "Valkey 8.0.1", "A **quick** run", "GOMAXPROCS", "### pair: ", "bsm/redislock"} {
		require.Contains(t, text, want)
	}
	r.Size = fullSize().name
	require.NotContains(t, r.markdown(), "run: the sizes")
}

func TestJSON(t *testing.T) {
	r := sampleReport()
	name := filepath.Join(t.TempDir(), "values.json")
	require.NoError(t, r.writeJSON(name))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var back report
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, r, &back)
}
