package main

import (
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openTest(t *testing.T, file string) *accounts {
	t.Helper()
	a, err := openAccounts(t.Context(), file)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.close()) })
	return a
}

// The document quotes the statements of this directory, character by character, and shows what the
// program prints, apart from the tokens.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/leases.md")
	require.NoError(t, err)
	files, err := filepath.Glob("[ah]*.go")
	require.NoError(t, err)
	sources := ""
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		sources += string(source)
	}
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	anonymous := func(text string) string { return regexp.MustCompile(`\b[0-9]{16}\b`).ReplaceAllString(text, "TOKEN") }
	seen := map[string]int{}
	for _, block := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)\n```$").FindAllStringSubmatch(string(text), -1) {
		switch seen[block[1]]++; block[1] {
		case "sql":
			require.Contains(t, sources, block[2])
		case "console":
			require.Equal(t, anonymous(block[2]), anonymous("$ go run ./examples/fencing\n"+strings.TrimSpace(out.String())))
		}
	}
	require.Equal(t, []int{3, 1}, []int{seen["sql"], seen["console"]})
}

func TestTokens(t *testing.T) {
	ctx, file := t.Context(), filepath.Join(t.TempDir(), "accounts.db")
	a := openTest(t, file)
	require.NoError(t, a.set(ctx, "main", 10, 7), "the first write makes the row")
	require.NoError(t, a.set(ctx, "main", 10, 7), "the holder writes again, even the same")
	require.ErrorIs(t, a.set(ctx, "main", 30, 6), errStale)
	balance, err := a.claim(ctx, "main", 8)
	require.NoError(t, err)
	require.EqualValues(t, 10, balance)
	require.ErrorIs(t, a.set(ctx, "main", 20, 7), errStale, "a holder that has only read is protected, too")
	_, err = a.claim(ctx, "main", 7)
	require.ErrorIs(t, err, errStale)
	require.NoError(t, a.set(ctx, "other", 60, 1), "another row has another fence")

	require.ErrorIs(t, openTest(t, file).set(ctx, "main", 20, 7), errStale, "the fence is in the file")
	for _, token := range []uint64{0, 1 << 63, math.MaxUint64} {
		err := a.set(ctx, "main", 10, token)
		require.Error(t, err)
		require.NotErrorIs(t, err, errStale, "that is no token")
	}
	require.NoError(t, a.set(ctx, "main", 10, 1<<53-1))
	require.ErrorIs(t, a.set(ctx, "main", 20, 1<<53-2), errStale, "not rounded")
}

func TestHandler(t *testing.T) {
	h := newHandler(openTest(t, filepath.Join(t.TempDir(), "accounts.db")))
	put := func(balance string, tokens ...string) int {
		r, w := httptest.NewRequest(http.MethodPut, "/accounts/main?balance="+balance, nil), httptest.NewRecorder()
		r.Header[tokenHeader] = tokens
		h.ServeHTTP(w, r)
		return w.Code
	}
	require.Equal(t, 204, put("10", "7"))
	require.Equal(t, 412, put("10", "6"))
	require.Equal(t, 428, put("10"))
	require.Equal(t, 400, put("ten", "8"))
	for _, token := range []string{"", "0", "-1", "+8", "08", "8.0", "1e3", "9007199254740992"} {
		require.Equal(t, 400, put("10", token), "%q", token)
	}
	require.Equal(t, 400, put("10", "8", "8"), "which of them is the caller's?")
	require.Equal(t, 204, put("20", "7"), "nothing of that has left a token")
}
