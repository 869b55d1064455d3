package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valkey-io/valkey-go"
)

// exampleURL is what a node's URL looks like.
const exampleURL = "for example valkey://user:password@host:6379/0"

// parseURL reads a node's URL. Its errors say what is wrong with it and repeat nothing that may be
// part of a password: neither what precedes an @ nor the path.
func parseURL(text string) (valkey.ClientOption, error) {
	if why := wrongURL(text); why != "" {
		return valkey.ClientOption{}, fmt.Errorf("%s (%s)", why, exampleURL)
	}
	o, err := valkey.ParseURL(text)
	if err != nil {
		// The parser's own text may quote the URL, and with it the password.
		return o, fmt.Errorf("cannot be read (%s)", exampleURL)
	}
	return o, nil
}

// encodeAdvice is for a password that has been taken for something else.
const encodeAdvice = "in user and password write % as %25, @ as %40, : as %3A, / as %2F, ? as %3F and # as %23"

// wrongURL says what is wrong with a URL; empty if nothing is.
func wrongURL(text string) string {
	if text == "" {
		return "is empty"
	}
	if text != strings.TrimSpace(text) || strings.ContainsFunc(text, func(r rune) bool { return r == ' ' || isControl(r) }) {
		return "contains a blank, a line end or another control character"
	}
	scheme, _, found := strings.Cut(text, "://")
	if !found {
		return "has no scheme: begin it with valkey://, or with valkeys:// for TLS"
	}
	switch scheme = strings.ToLower(scheme); scheme {
	case "valkey", "valkeys", "redis", "rediss", "unix":
	default:
		return "has a scheme that is none of valkey, valkeys (with TLS), redis, rediss (with TLS) and unix"
	}
	u, err := url.Parse(text)
	var escape url.EscapeError
	switch {
	case errors.As(err, &escape):
		return "has a % without two hexadecimal digits: " + encodeAdvice
	case err != nil && strings.Contains(err.Error(), "invalid port"):
		return "has a port that is not a number, or a password with a special character: " + encodeAdvice
	case err != nil:
		return "has a host, or a password, with a character that must be percent-encoded: " + encodeAdvice
	case scheme == "unix" && (u.Host != "" || strings.Trim(u.Path, "/") == ""):
		return "names no socket, or a part of its path as a host: write unix:///path/of/the/socket"
	case scheme == "unix":
		return wrongParameters(u)
	case strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") || u.Fragment != "":
		return "has a /, ? or # before its last @, or a #: " + encodeAdvice
	case u.Hostname() == "":
		return "names no host"
	case strings.ContainsAny(u.Host, ",;"):
		return "names several servers: give each node a URL of its own"
	case strings.Contains(u.Hostname(), ":") && !strings.HasPrefix(u.Host, "["): // it is not known where its port begins
		return "has an IPv6 address without brackets: write valkey://[::1]:6379"
	}
	if n, err := strconv.Atoi(cmp.Or(u.Port(), "1")); err != nil || n < 1 || n > 65535 {
		return "has a port that is not between 1 and 65535, or names no host behind user and password" // what stands for the port is a password then
	}
	if path := strings.TrimPrefix(u.Path, "/"); u.Path != "" && !isDatabase(path) {
		return "has a path that is no database number: end it after the port, or with a number, such as /0"
	}
	return wrongParameters(u)
}

func isDatabase(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 0
}

// parameters has the parameters of a URL's query, each with a check of its value.
var parameters = map[string]func(string) bool{
	"db":            isDatabase,
	"dial_timeout":  isDuration,
	"write_timeout": isDuration,
	"skip_verify":   func(text string) bool { _, err := strconv.ParseBool(text); return text == "" || err == nil },
	"protocol":      anyText,
	"client_cache":  anyText,
	"max_retries":   anyText,
	"client_name":   anyText,
	"name":          func(text string) bool { return text != "" },
}

func anyText(string) bool { return true }

func isDuration(text string) bool {
	_, err := time.ParseDuration(text)
	return err == nil
}

// noSentinel is the error of a URL or an option that names a Sentinel's group.
const noSentinel = "names a group of a Sentinel: a promoted replica may lack what its master granted, so a node is one server; " +
	"use independent masters, or look the master's address up in a DialCtxFn (WithClientOption, WithReplicas)"

// wrongParameters says what is wrong with a URL's parameters; empty if nothing is. It does not
// repeat an unknown name, which may be a part of a password with a ? in it.
func wrongParameters(u *url.URL) string {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "has a query that cannot be read: " + encodeAdvice
	}
	if query.Has("master_set") {
		return noSentinel
	}
	for name, values := range query {
		is := parameters[name]
		if is == nil {
			return "has a parameter that is none of " + strings.Join(slices.Sorted(maps.Keys(parameters)), ", ")
		}
		for _, value := range values {
			if !is(value) {
				return fmt.Sprintf("has a parameter %s with a value that cannot be one", name)
			}
		}
	}
	return ""
}

// nodeName returns the name that a URL gives its node, or else the node's address.
func nodeName(text, addr string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", errors.New("cannot be read") // not reached: the URL was read before
	}
	name := u.Query().Get("name")
	if len(name) > maxName || name == "-" || strings.ContainsFunc(name, func(r rune) bool { return isControl(r) || r == utf8.RuneError }) {
		return "", errors.New("has a name that is longer than 128 bytes, is a dash, or has a control character in it or no character")
	}
	return cmp.Or(name, addr), nil
}

const maxName = 128
