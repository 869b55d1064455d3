package redlock

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

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
