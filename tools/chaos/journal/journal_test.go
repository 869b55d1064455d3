package journal_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/chaos/journal"
)

func TestJournal(t *testing.T) {
	dir := t.TempDir()
	w, err := journal.Create(dir, "c0.1")
	require.NoError(t, err)
	want := []journal.Record{
		{Kind: journal.Want, At: 1, Lease: "c0.1/1", Key: "a", TTL: time.Second, Text: "try"},
		{Kind: journal.Grant, At: 2, Lease: "c0.1/1", Token: 1<<63 + 1, Deadline: 99},
	}
	for _, r := range want {
		require.NoError(t, w.Append(r))
	}
	require.NoError(t, w.Close())
	_, err = journal.Create(dir, "c0.1")
	require.ErrorIs(t, err, os.ErrExist, "a journal is begun once")

	all, err := journal.ReadAll[journal.Record](dir)
	require.NoError(t, err)
	require.Equal(t, map[string][]journal.Record{"c0.1": want}, all)
	require.Error(t, w.Append(want[0]), "it is closed")
}

func TestKilledInTheMiddleOfARecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c0.1"+journal.Suffix)
	require.NoError(t, os.WriteFile(path, []byte(`{"k":"want","t":1}`+"\n"+`{"k":"gr`), 0o600))
	records, err := journal.Read[journal.Record](path)
	require.NoError(t, err)
	require.Equal(t, []journal.Record{{Kind: journal.Want, At: 1}}, records)
}

func TestBrokenJournalIsAnError(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c0.1"+journal.Suffix)
	require.NoError(t, os.WriteFile(path, []byte(`{"k":"gr`+"\n"+`{"k":"want","t":1}`+"\n"), 0o600))
	_, err := journal.Read[journal.Record](path)
	require.ErrorContains(t, err, "record 1 of c0.1")
	_, err = journal.ReadAll[journal.Record](dir)
	require.Error(t, err)
	_, err = journal.Read[journal.Record](path + "x")
	require.Error(t, err)
}

func TestManyGoroutinesWriteWholeRecords(t *testing.T) {
	dir := t.TempDir()
	w, err := journal.Create(dir, "c0.1")
	require.NoError(t, err)
	defer w.Close()
	const writers, each = 8, 100
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				if err := w.Append(journal.Record{Kind: journal.Valid, At: journal.Now()}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	all, err := journal.ReadAll[journal.Record](dir)
	require.NoError(t, err)
	require.Len(t, all["c0.1"], writers*each)
}

func TestNowGoesOn(t *testing.T) {
	a := journal.Now()
	timer := time.NewTimer(5 * time.Millisecond)
	<-timer.C
	b := journal.Now()
	require.GreaterOrEqual(t, b.Sub(a), 5*time.Millisecond)
	require.Equal(t, b, a.Add(b.Sub(a)))
}
