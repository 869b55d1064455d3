package main

import (
	"log/slog"
	"math"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func openTest(t *testing.T, file string) *accounts {
	t.Helper()
	a, err := openAccounts(t.Context(), file)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.close()) })
	return a
}

// serveTest puts a store behind HTTP.
func serveTest(t *testing.T, s store) *remote {
	t.Helper()
	server := httptest.NewServer(newHandler(s, slog.New(slog.DiscardHandler)))
	t.Cleanup(server.Close)
	return &remote{base: server.URL, client: server.Client()}
}

// onBoth runs a test on a new store of each kind.
func onBoth(t *testing.T, test func(t *testing.T, s store)) {
	t.Run("SQLite", func(t *testing.T) { test(t, openTest(t, filepath.Join(t.TempDir(), "accounts.db"))) })
	t.Run("HTTP", func(t *testing.T) {
		test(t, serveTest(t, openTest(t, filepath.Join(t.TempDir(), "accounts.db"))))
	})
}

func requireBalance(t *testing.T, s store, id string, want int64) {
	t.Helper()
	balance, err := s.balance(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, want, balance)
}

func TestSet(t *testing.T) {
	onBoth(t, func(t *testing.T, s store) {
		ctx := t.Context()
		_, err := s.balance(ctx, "a b/c")
		require.ErrorIs(t, err, errNoAccount)
		require.NoError(t, s.set(ctx, "a b/c", 10, 7), "the first write makes the row")
		require.NoError(t, s.set(ctx, "a b/c", 10, 7), "the holder writes again, even the same")
		require.NoError(t, s.set(ctx, "a b/c", -20, 7))
		require.ErrorIs(t, s.set(ctx, "a b/c", 30, 6), errStale)
		requireBalance(t, s, "a b/c", -20)
		require.NoError(t, s.set(ctx, "a b/c", 40, 8))
		require.ErrorIs(t, s.set(ctx, "a b/c", 50, 7), errStale)
		requireBalance(t, s, "a b/c", 40)
		require.NoError(t, s.set(ctx, "other", 60, 1), "another row has another fence")
	})
}

// A holder that has only read is protected from the one before it, too.
func TestClaim(t *testing.T) {
	onBoth(t, func(t *testing.T, s store) {
		ctx := t.Context()
		balance, err := s.claim(ctx, "main", 7)
		require.NoError(t, err)
		require.Zero(t, balance, "a claim makes the row")
		require.NoError(t, s.set(ctx, "main", 10, 7))
		balance, err = s.claim(ctx, "main", 8)
		require.NoError(t, err)
		require.EqualValues(t, 10, balance)
		require.ErrorIs(t, s.set(ctx, "main", 20, 7), errStale)
		_, err = s.claim(ctx, "main", 7)
		require.ErrorIs(t, err, errStale)
		balance, err = s.claim(ctx, "main", 8)
		require.NoError(t, err)
		require.EqualValues(t, 10, balance)
	})
}

// The fence is in the file, and so is as durable as the balance.
func TestFenceSurvivesARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "accounts.db")
	before, err := openAccounts(t.Context(), file)
	require.NoError(t, err)
	require.NoError(t, before.set(t.Context(), "main", 10, 7))
	require.NoError(t, before.close())
	after := openTest(t, file)
	require.ErrorIs(t, after.set(t.Context(), "main", 20, 6), errStale)
	require.NoError(t, after.set(t.Context(), "main", 30, 7))
}

func TestTokensThatAreNone(t *testing.T) {
	onBoth(t, func(t *testing.T, s store) {
		for _, token := range []uint64{0, 1 << 63, math.MaxUint64} {
			err := s.set(t.Context(), "main", 10, token)
			require.ErrorContains(t, err, "fencing: ")
			require.NotErrorIs(t, err, errStale)
			_, err = s.claim(t.Context(), "main", token)
			require.ErrorContains(t, err, "fencing: ")
			require.NotErrorIs(t, err, errStale)
		}
		_, err := s.balance(t.Context(), "main")
		require.ErrorIs(t, err, errNoAccount)
		const largest = 1<<53 - 1
		require.NoError(t, s.set(t.Context(), "main", 10, largest))
		require.ErrorIs(t, s.set(t.Context(), "main", 20, largest-1), errStale, "not rounded")
	})
}

func TestOpenWhereNoFileCanBe(t *testing.T) {
	_, err := openAccounts(t.Context(), filepath.Join(t.TempDir(), "missing", "accounts.db"))
	require.ErrorContains(t, err, "fencing: cannot make the account table")
}

func TestTransfer(t *testing.T) {
	a := openTest(t, filepath.Join(t.TempDir(), "accounts.db"))
	ctx := t.Context()
	require.NoError(t, a.set(ctx, "from", 100, 5))
	require.NoError(t, a.set(ctx, "to", 0, 7))
	requireBalances := func(from, to int64) {
		t.Helper()
		requireBalance(t, a, "from", from)
		requireBalance(t, a, "to", to)
	}

	require.ErrorIs(t, a.transfer(ctx, "from", "to", 30, 6), errStale, "stale at the second row")
	requireBalances(100, 0)
	require.NoError(t, a.set(ctx, "from", 100, 5), "the fence of the first row was undone as well")

	require.NoError(t, a.transfer(ctx, "from", "to", 30, 7))
	requireBalances(70, 30)
	require.ErrorIs(t, a.set(ctx, "from", 0, 6), errStale, "a transfer leaves its token in both")
	require.NoError(t, a.transfer(ctx, "to", "from", 10, 7))
	requireBalances(80, 20)

	err := a.transfer(ctx, "from", "nobody", 10, 8)
	require.ErrorIs(t, err, errNoAccount, "no row is another thing than a stale token")
	require.NotErrorIs(t, err, errStale)
	requireBalances(80, 20)
	require.ErrorContains(t, a.transfer(ctx, "from", "to", 10, math.MaxUint64), "fencing: ")
	requireBalances(80, 20)
}
