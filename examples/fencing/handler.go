package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
)

// newHandler serves a store of accounts:
//
//	GET  /accounts/{id}        the balance
//	PUT  /accounts/{id}        sets it to the decimal number in the body
//	POST /accounts/{id}/claim  the balance, and no holder before the caller writes any more
//
// PUT and POST need a Fencing-Token header. Without one the answer is 428 (RFC 6585), with a
// malformed one 400, and with a stale one 412: a condition in the request header that is false (RFC
// 9110, section 15.5.13). The store compares and writes in one step. The handler must not compare
// before it: between two steps another request comes.
func newHandler(s store, logger *slog.Logger) http.Handler {
	h := &handler{store: s, logger: logger}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /accounts/{id}", h.get)
	mux.HandleFunc("PUT /accounts/{id}", withToken(h.put))
	mux.HandleFunc("POST /accounts/{id}/claim", withToken(h.claim))
	return mux
}

type handler struct {
	store  store
	logger *slog.Logger
}

// maxBody is more than any balance has digits.
const maxBody = 32

// withToken turns requests without a readable token away. Whether the token is stale is for the
// store to say.
func withToken(next func(w http.ResponseWriter, r *http.Request, token uint64)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch token, err := parseToken(r.Header); {
		case errors.Is(err, errNoToken):
			http.Error(w, err.Error(), http.StatusPreconditionRequired)
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		default:
			next(w, r, token)
		}
	}
}

func (h *handler) get(w http.ResponseWriter, r *http.Request) {
	balance, err := h.store.balance(r.Context(), r.PathValue("id"))
	if err != nil {
		h.fail(w, r, err)
		return
	}
	fmt.Fprintln(w, balance)
}

func (h *handler) put(w http.ResponseWriter, r *http.Request, token uint64) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "fencing: cannot read the body: send a decimal number", http.StatusBadRequest)
		return
	}
	balance, err := strconv.ParseInt(strings.TrimSpace(string(body)), 10, 64)
	if err != nil {
		http.Error(w, "fencing: the body is no balance: send a decimal number", http.StatusBadRequest)
		return
	}
	if err := h.store.set(r.Context(), r.PathValue("id"), balance, token); err != nil {
		h.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (h *handler) claim(w http.ResponseWriter, r *http.Request, token uint64) {
	balance, err := h.store.claim(r.Context(), r.PathValue("id"), token)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	fmt.Fprintln(w, balance)
}

// fail answers with the status of an error. A refusal does not tell the greater token: a client has
// no honest use for it.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, errStale):
		http.Error(w, err.Error(), http.StatusPreconditionFailed)
	case errors.Is(err, errNoAccount):
		http.Error(w, err.Error(), http.StatusNotFound)
	default:
		h.logger.ErrorContext(r.Context(), "cannot serve a request", "method", r.Method, "path", r.URL.Path, "error", err)
		http.Error(w, "fencing: the accounts cannot be reached: try again", http.StatusInternalServerError)
	}
}
