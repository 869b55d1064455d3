package main

import (
	"errors"
	"net/http"
	"strconv"
)

// tokenHeader is the request header with the fencing token: one decimal number from 1 to 2^53-1,
// without sign or leading zeros. It has no "X-" in front, as RFC 6648 advises, and it is not
// WebDAV's Lock-Token (RFC 4918), which names a lock of the server itself.
const tokenHeader = "Fencing-Token"

// newHandler serves PUT /accounts/{id}?balance=N. The table compares and writes in one step. The
// handler must not compare the token before that, because another request may come between the two
// steps.
func newHandler(a *accounts) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /accounts/{id}", func(w http.ResponseWriter, r *http.Request) {
		values := r.Header.Values(tokenHeader)
		if len(values) == 0 {
			http.Error(w, "send the fencing token of your lease as "+tokenHeader, http.StatusPreconditionRequired)
			return
		}
		token, err := strconv.ParseUint(values[0], 10, 53)
		if err != nil || len(values) > 1 || values[0][0] == '0' { // with two headers the caller's token is unknown
			http.Error(w, tokenHeader+" is one decimal number from 1 to 2^53-1", http.StatusBadRequest)
			return
		}
		balance, err := strconv.ParseInt(r.FormValue("balance"), 10, 64)
		if err != nil {
			http.Error(w, "balance is a decimal number", http.StatusBadRequest)
			return
		}
		switch err := a.set(r.Context(), r.PathValue("id"), balance, token); {
		case errors.Is(err, errStale): // the text leaves the greater token out: no honest client needs it
			http.Error(w, err.Error(), http.StatusPreconditionFailed)
		case err != nil:
			http.Error(w, "the accounts cannot be reached: try again", http.StatusInternalServerError)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	return mux
}
