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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/resp"
	"github.com/tenure-dev/tenure/internal/valkeytest"
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
	for want, err := range map[string]error{"": nil, "canceled": context.Canceled, "deadline_exceeded": context.DeadlineExceeded, "_OTHER": errors.New("?")} {
		require.Equal(t, want, ErrorType(err))
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

// A server that says that it has counted to what no clock shows is not believed.
func TestInventedCounterIsNotFollowed(t *testing.T) {
	m := testQuorum(1).nodes[0]
	call := &wire.Call{Op: wire.Acquire, Keys: &wire.Keys{Name: "k", Lock: "{k}", Fences: "{k}:fence", Slot: "7"}}
	server := time.Duration(time.Now().UnixNano())
	for lead, sane := range map[time.Duration]bool{0: true, 23 * time.Hour: true, 25 * time.Hour: false, 1000 * time.Hour: false} {
		rep := m.Reply(call, node.Answer{Answer: wire.Answer{Verdict: wire.OK, Server: server, Token: uint64((server + lead).Microseconds())}})
		require.Equal(t, sane, rep.Verdict == wire.OK)
		if !sane {
			require.True(t, wire.IsServerError(rep.Err), "the connection is well")
			require.ErrorContains(t, rep.Err, "{k}:fence 7")
		}
	}
}

// Whatever a client takes the time for, a server lifts no counter beyond its own clock and the
// skew.
func TestServerHoldsAHintToItsClock(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	const skew = 2 * time.Second
	for name, test := range map[string]struct{ hint, most time.Duration }{
		"an hour ahead": {time.Hour, skew}, "within the skew": {time.Second, time.Second}, "an hour behind": {-time.Hour, -time.Hour},
	} {
		k := &wire.Keys{Lock: "{" + name + "}", Fences: "{" + name + "}:fence", Slot: "7"}
		before := time.Now()
		rep := ask(t, n.Client(), &wire.Call{Op: wire.Acquire, Keys: k, Lock: wire.Lock(strconv.FormatInt(before.Add(test.hint).UnixMicro(), 10), "owner"), TTL: "60000",
			Hint: strconv.FormatInt(before.Add(test.hint).UnixMicro(), 10), Skew: strconv.FormatInt(skew.Microseconds(), 10)})[0]
		require.NoError(t, rep.Err)
		require.GreaterOrEqual(t, rep.Token, uint64(before.Add(test.most).UnixMicro()), name)
		require.LessOrEqual(t, rep.Token, uint64(time.Now().Add(test.most).UnixMicro()), name)
	}
}

// ask has a server carry out calls in one command.
func ask(t testing.TB, client valkey.Client, calls ...*wire.Call) []wire.Result {
	command := new(wire.Buffers).Encode(client, calls, &wire.Target{Vouched: true, Whole: true})
	return wire.Decode(calls, client.Do(t.Context(), command), nil)
}

// The widest skew that any process uses is used for all that the own one is for.
func TestSkewOfOthers(t *testing.T) {
	q := testQuorum(3)
	own := q.cfg.clockSkew
	require.Equal(t, own, q.cfg.skew())
	require.Equal(t, q.cfg.ownSkew, q.cfg.skewText())
	was := q.cfg.quarantine()
	q.cfg.others.learn(1, 0, 20*time.Second)
	require.Equal(t, 20*time.Second, q.cfg.skew())
	require.Equal(t, "20000000", q.cfg.skewText())
	require.Greater(t, q.cfg.quarantine(), was)
	require.Contains(t, q.longer(), "a skew of 20s, by tenure:roster on b:1")
	q.cfg.others.learn(1, 0, own/2)
	require.Equal(t, own, q.cfg.skew())
	require.Equal(t, was, q.cfg.quarantine())
}
