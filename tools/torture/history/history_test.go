package history_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/history"
)

func TestJournal(t *testing.T) {
	dir := t.TempDir()
	w, err := history.Create(filepath.Join(dir, "c0.1"+history.Suffix))
	require.NoError(t, err)
	want := []history.Record{
		{Kind: "want", At: 1, Text: "try"},
		{Kind: "grant", At: 2, Token: 1<<63 + 1},
	}
	for _, r := range want {
		require.NoError(t, w.Append(r))
	}
	require.NoError(t, w.Close())
	_, err = history.Create(filepath.Join(dir, "none", "c0.1"))
	require.ErrorIs(t, err, os.ErrNotExist)

	all, err := history.ReadAll(dir)
	require.NoError(t, err)
	require.Equal(t, map[string][]history.Record{"c0.1": want}, all)
	require.Error(t, w.Append(want[0]), "it is closed")
}

// A process may be killed in the middle of its last record. Any other broken record is an error.
func TestBrokenJournals(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c0.1"+history.Suffix)
	require.NoError(t, os.WriteFile(path, []byte(`{"k":"want","t":1}`+"\n"+`{"k":"gr`), 0o600))
	records, err := history.Read(path)
	require.NoError(t, err)
	require.Equal(t, []history.Record{{Kind: "want", At: 1}}, records)
	require.NoError(t, os.WriteFile(path, []byte(`{"k":"gr`+"\n"+`{"k":"want","t":1}`+"\n"), 0o600))
	_, err = history.Read(path)
	require.ErrorContains(t, err, "record 1 of c0.1")
	_, err = history.ReadAll(dir)
	require.Error(t, err)
	_, err = history.Read(path + "x")
	require.Error(t, err)
}
