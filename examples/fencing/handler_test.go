package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// send sends a request with these Fencing-Token headers, each a line of its own.
func send(h http.Handler, method, path, body string, tokens ...string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	for _, token := range tokens {
		request.Header.Add(tokenHeader, token)
	}
	response := httptest.NewRecorder()
	h.ServeHTTP(response, request)
	return response
}

func TestHandler(t *testing.T) {
	h := newHandler(openTest(t, filepath.Join(t.TempDir(), "accounts.db")), slog.New(slog.DiscardHandler))
	for _, step := range []struct {
		name, method, path, body string
		tokens                   []string
		status                   int
		text                     string // the answer contains it
	}{
		{"nothing there", "GET", "/accounts/main", "", nil, http.StatusNotFound, "no such account"},
		{"no token", "PUT", "/accounts/main", "1", nil, http.StatusPreconditionRequired, "send the fencing token of your lease"},
		{"no token for a claim", "POST", "/accounts/main/claim", "", nil, http.StatusPreconditionRequired, "Fencing-Token"},
		{"empty token", "PUT", "/accounts/main", "1", []string{""}, http.StatusBadRequest, "Fencing-Token"},
		{"no number", "PUT", "/accounts/main", "1", []string{"seven"}, http.StatusBadRequest, "Fencing-Token"},
		{"zero", "PUT", "/accounts/main", "1", []string{"0"}, http.StatusBadRequest, "Fencing-Token"},
		{"leading zero", "PUT", "/accounts/main", "1", []string{"07"}, http.StatusBadRequest, "Fencing-Token"},
		{"plus", "PUT", "/accounts/main", "1", []string{"+7"}, http.StatusBadRequest, "Fencing-Token"},
		{"minus", "PUT", "/accounts/main", "1", []string{"-7"}, http.StatusBadRequest, "Fencing-Token"},
		{"hexadecimal", "PUT", "/accounts/main", "1", []string{"0x7"}, http.StatusBadRequest, "Fencing-Token"},
		{"underscore", "PUT", "/accounts/main", "1", []string{"1_000"}, http.StatusBadRequest, "Fencing-Token"},
		{"fraction", "PUT", "/accounts/main", "1", []string{"7.0"}, http.StatusBadRequest, "Fencing-Token"},
		{"exponent", "PUT", "/accounts/main", "1", []string{"7e3"}, http.StatusBadRequest, "Fencing-Token"},
		{"space", "PUT", "/accounts/main", "1", []string{"7 8"}, http.StatusBadRequest, "Fencing-Token"},
		{"too large", "PUT", "/accounts/main", "1", []string{"9007199254740992"}, http.StatusBadRequest, "2^53-1"},
		{"far too large", "PUT", "/accounts/main", "1", []string{"99999999999999999999999"}, http.StatusBadRequest, "2^53-1"},
		{"two lines", "PUT", "/accounts/main", "1", []string{"7", "7"}, http.StatusBadRequest, "give it once"},
		{"a list", "PUT", "/accounts/main", "1", []string{"7, 8"}, http.StatusBadRequest, "give it once"},
		{"malformed for a claim", "POST", "/accounts/main/claim", "", []string{"x"}, http.StatusBadRequest, "Fencing-Token"},
		{"no body", "PUT", "/accounts/main", "", []string{"7"}, http.StatusBadRequest, "decimal number"},
		{"body no number", "PUT", "/accounts/main", "much", []string{"7"}, http.StatusBadRequest, "decimal number"},
		{"body too long", "PUT", "/accounts/main", strings.Repeat("1", 1000), []string{"7"}, http.StatusBadRequest, "cannot read the body"},
		{"still nothing there", "GET", "/accounts/main", "", nil, http.StatusNotFound, "no such account"},

		{"first", "PUT", "/accounts/main", "10", []string{"7"}, http.StatusNoContent, ""},
		{"again", "PUT", "/accounts/main", "20\n", []string{"7"}, http.StatusNoContent, ""},
		{"stale", "PUT", "/accounts/main", "30", []string{"6"}, http.StatusPreconditionFailed, "another holder exists, stop"},
		{"stale claim", "POST", "/accounts/main/claim", "", []string{"6"}, http.StatusPreconditionFailed, "another holder exists, stop"},
		{"bad body comes before stale", "PUT", "/accounts/main", "much", []string{"6"}, http.StatusBadRequest, "decimal number"},
		{"unchanged", "GET", "/accounts/main", "", nil, http.StatusOK, "20\n"},
		{"claim", "POST", "/accounts/main/claim", "", []string{"8"}, http.StatusOK, "20\n"},
		{"overtaken", "PUT", "/accounts/main", "40", []string{"7"}, http.StatusPreconditionFailed, "another holder exists, stop"},
		{"largest", "PUT", "/accounts/main", "50", []string{"9007199254740991"}, http.StatusNoContent, ""},
		{"changed", "GET", "/accounts/main", "", nil, http.StatusOK, "50\n"},
		{"other methods", "DELETE", "/accounts/main", "", []string{"7"}, http.StatusMethodNotAllowed, ""},
	} {
		response := send(h, step.method, step.path, step.body, step.tokens...)
		require.Equal(t, step.status, response.Code, "%s: %s", step.name, response.Body)
		require.Contains(t, response.Body.String(), step.text, step.name)
	}
}

// The refused client does not learn the token that would have been accepted.
func TestRefusalKeepsTheGreaterTokenToItself(t *testing.T) {
	h := newHandler(openTest(t, filepath.Join(t.TempDir(), "accounts.db")), slog.New(slog.DiscardHandler))
	require.Equal(t, http.StatusNoContent, send(h, "PUT", "/accounts/main", "10", "4711").Code)
	response := send(h, "PUT", "/accounts/main", "10", "42")
	require.Equal(t, http.StatusPreconditionFailed, response.Code)
	require.NotContains(t, response.Body.String(), "4711")
	require.Empty(t, response.Header().Values(tokenHeader))
}

// brokenStore fails.
type brokenStore struct{ store }

func (brokenStore) set(context.Context, string, int64, uint64) error {
	return errors.New("disk secret")
}

func TestBrokenStore(t *testing.T) {
	var log bytes.Buffer
	response := send(newHandler(brokenStore{}, slog.New(slog.NewTextHandler(&log, nil))), "PUT", "/accounts/main", "10", "7")
	require.Equal(t, http.StatusInternalServerError, response.Code)
	require.NotContains(t, response.Body.String(), "secret")
	require.Contains(t, log.String(), "disk secret")
}

func TestRemoteErrors(t *testing.T) {
	ctx := t.Context()
	c := serveTest(t, brokenStore{})
	err := c.set(ctx, "main", 10, 7)
	require.ErrorContains(t, err, "fencing: PUT /accounts/main answered 500 Internal Server Error: ")
	require.NotErrorIs(t, err, errStale)
	require.ErrorContains(t, c.set(ctx, "main", 10, 0), "428 Precondition Required", "a token that was forgotten is not sent")

	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })
	server := httptest.NewServer(mux)
	c = &remote{base: server.URL, client: server.Client()}
	_, err = c.balance(ctx, "main")
	require.ErrorContains(t, err, "answered no balance")
	server.Close()
	require.ErrorContains(t, c.set(ctx, "main", 10, 7), "fencing: cannot reach the accounts")
	c.base = "http://\x7f"
	require.ErrorContains(t, c.set(ctx, "main", 10, 7), "fencing: cannot make a request")
}
