package main

import (
	"errors"
	"net/http"
	"strconv"
)

// tokenHeader is the request header with the fencing token: one decimal number from 1 to 2^53-1,
// without sign or leading zeros. It has no "X-" in front, as RFC 6648 advises, and it is not
// WebDAV's Lock-Token (RFC 4918), which names a lock of the server itself. The number is no Integer
// of RFC 9651: that ends at fifteen digits, and a token has sixteen.
const tokenHeader = "Fencing-Token"

var (
	errNoToken        = errors.New("fencing: no " + tokenHeader + " header: send the fencing token of your lease")
	errMalformedToken = errors.New("fencing: bad " + tokenHeader + " header: give it once, a decimal number from 1 to 2^53-1")
)

// tokenBits is the size of a fencing token.
const tokenBits = 53

// parseToken reads the token of a request. Two tokens are malformed: which of them is the caller's
// would be a guess.
func parseToken(h http.Header) (uint64, error) {
	values := h.Values(tokenHeader)
	if len(values) == 0 {
		return 0, errNoToken
	}
	if len(values) > 1 {
		return 0, errMalformedToken
	}
	token, err := strconv.ParseUint(values[0], 10, tokenBits)
	if err != nil || values[0][0] == '0' {
		return 0, errMalformedToken
	}
	return token, nil
}

// setToken gives a request the token of a lease.
func setToken(h http.Header, token uint64) { h.Set(tokenHeader, strconv.FormatUint(token, 10)) }
