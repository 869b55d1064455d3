package redlock

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"log/slog"
	"net"
	"os"
	"regexp"

	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/resp"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Why a node has not carried something out is told in words that are promised.
func TestTypesOfErrorsOfNodes(t *testing.T) {
	m := testQuorum(1).nodes[0]
	dead := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}
	for want, errs := range map[string][]error{
		"abandoned":     {node.ErrAbandoned},
		"overloaded":    {node.ErrOverloaded},
		"timeout":       {node.ErrTimeout},
		"closed":        {node.ErrClosed},
		"connection":    {dead, errors.New("EOF")},
		"other_process": {&wire.Fault{Condition: wire.Restarted}},
	} {
		for _, err := range errs {
			require.Equal(t, want, m.failure(OpAcquire, err).ErrorType(), "%v", err)
		}
	}
	require.ErrorIs(t, m.failure(OpAcquire, node.ErrTimeout), ErrTimeout)
	require.ErrorIs(t, m.failure(OpAcquire, node.ErrClosed), ErrClosed)
}

// What a server says before it ends a connection tells more than that nobody asked for it.
func TestConditionOfARefusal(t *testing.T) {
	for said, want := range map[string]Condition{
		"ERR max number of clients reached":   Condition(wire.TooManyUsers),
		"DENIED Redis is in protected mode":   Condition(wire.Protected),
		"ERR something that nobody has heard": Condition(wire.BadReply),
		"":                                    Condition(wire.BadReply),
	} {
		err := testQuorum(1).nodes[0].known(wire.Diagnose(&resp.Error{What: "a reply to no command", Said: said}))
		require.Equal(t, string(want), ErrorType(err), "%q", said)
		require.ErrorContains(t, err, said)
		require.False(t, wire.IsServerError(err), "it has not answered")
	}
}

// What is wrong with a certificate or a name is told with what to do.
func TestHints(t *testing.T) {
	for want, err := range map[string]error{
		unknownAuthority: x509.UnknownAuthorityError{},
		otherName:        x509.HostnameError{Certificate: &x509.Certificate{}, Host: "node"},
		invalid:          x509.CertificateInvalidError{Reason: x509.Expired},
		noSuchHost:       &net.DNSError{Err: "no such host", Name: "node", IsNotFound: true},
		"":               &net.DNSError{Err: "timed out", Name: "node", IsTimeout: true},
	} {
		wrapped := fmt.Errorf("tls: failed to verify certificate: %w", err)
		require.Equal(t, want, hintOf(wrapped), "%v", err)
		said := (&member{}).suspect(wrapped)
		require.ErrorIs(t, said, err)
		require.Contains(t, said.Error(), want)
	}
	require.Equal(t, context.Canceled, (&member{}).suspect(context.Canceled))
}

// docs/operations.md says what each condition means and what to do.
func TestConditionsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "### Conditions of a node\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n#### ")
	for condition, do := range advice {
		require.NotEmpty(t, do)
		require.Regexp(t, "(?m)^\\|.*`"+string(condition)+"`.*\\|.*\\|.*\\|$", table)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?`) \\|").FindAllStringSubmatch(table, -1) {
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[1], -1) {
			require.Contains(t, advice, wire.Condition(name[1]))
		}
	}
}

func TestQuorumErrorNamesSilentNodesOnlyAfterTheTimeout(t *testing.T) {
	q := testQuorum(3)
	rd := q.newOperation(OpAcquire, 2)
	rd.Answer(1, vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}, Err: errors.New("refused")})
	rd.Answer(2, vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}, Err: errors.New("refused")})
	err := q.quorumError(OpAcquire, "k", rd.Outcome())
	require.Equal(t, `redlock: no quorum to acquire "k": 0 of 3 nodes, 2 needed, 1 not waited for: node b:1: acquire: refused; node c:1: acquire: refused`, err.Error())
	require.Equal(t, "no_quorum", err.ErrorType())

	rd = q.newOperation(OpAcquire, 2)
	rd.Answer(0, vote.Reply{Answer: wire.Answer{Verdict: wire.OK}})
	rd.Expire()
	err = q.quorumError(OpAcquire, "k", rd.Outcome())
	require.Len(t, err.Errs, 2)
	require.ErrorIs(t, err, ErrTimeout)
	require.Equal(t, "timeout", err.ErrorType())
}

// A trouble is told when it begins, with each further reason once, and when it is over; of more
// than some nothing is. The line of who asks for the key is no lock for whoever hears it.
func TestNews(t *testing.T) {
	var log bytes.Buffer
	n := newNews(slog.New(slog.NewTextHandler(&log, nil)), clock.New(), newLines())
	about := matter{damagedKey, &member{addr: "a:1"}, "counter"}
	require.False(t, n.over(about, "key"))
	require.True(t, n.is(about, "one", "key", "reason", "r"))
	require.Contains(t, log.String(), `level=WARN msg="redlock: node does not vote for a key" node=a:1 key=key reason=r`)
	require.False(t, n.is(about, "one", "key"))
	require.True(t, n.is(about, "two", "key"))
	require.False(t, n.is(about, "one", "key"), "it was told")
	require.True(t, n.over(about, "key"))
	require.Contains(t, log.String(), `level=INFO msg="redlock: node votes for a key again" node=a:1 key=key after=`)
	require.False(t, n.over(about, "key"))
	require.True(t, n.is(about, "one", "key"), "it begins again")
	require.Equal(t, 4, strings.Count(log.String(), "\n"))
	for i := range 2 * maxTold {
		n.is(matter{damagedKey, about.node, fmt.Sprint(i)}, "", "key")
	}
	require.Equal(t, 4+maxTold-1, strings.Count(log.String(), "\n"))
	require.Len(t, n.told, maxTold)
	require.Empty(t, n.lines.away)
}
