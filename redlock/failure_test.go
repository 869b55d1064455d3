package redlock

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

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
		expired:          alert("expired certificate"),
		"":               &net.DNSError{Err: "timed out", Name: "node", IsTimeout: true},
	} {
		wrapped := fmt.Errorf("tls: failed to verify certificate: %w", err)
		require.Equal(t, want, hintOf(wrapped), "%v", err)
		said := (&member{}).suspect(wrapped)
		require.ErrorIs(t, said, err)
		require.Contains(t, said.Error(), want)
	}
	require.Equal(t, context.Canceled, (&member{}).suspect(context.Canceled))
	m := member{option: valkey.ClientOption{TLSConfig: &tls.Config{}}}
	said := m.suspect(alert("handshake failure"))
	require.ErrorContains(t, said, perhapsMTLS)
	require.Empty(t, hintOf(said), "the hint is no reason")
}

// alert is an alert of TLS that came from the server.
func alert(text string) error {
	return &net.OpError{Op: "remote error", Err: errors.New("tls: " + text)}
}

// A server says in a word why it refuses a certificate. Such a word comes above all from one that
// has answered before: its certificate, its authority or that of the clients was replaced.
func TestAlertsOfAServerThatHasAnswered(t *testing.T) {
	var m member
	m.answered.Store(true)
	for text, want := range map[string]string{
		"bad certificate":                "tls-ca-cert-file",
		"unsupported certificate":        "clientAuth",
		"unknown certificate authority":  "tls-ca-cert-file",
		"certificate required":           "TLSConfig.Certificates",
		"expired certificate":            "renew",
		"protocol version not supported": "tls-protocols",
	} {
		require.ErrorContains(t, m.suspect(alert(text)), want)
	}
}

// A name may have an IPv6 address that is silent: its IPv4 address gets most of the time that there
// is for a connection.
func TestSecondAddressHasItsTime(t *testing.T) {
	for _, ttl := range []time.Duration{time.Second, DefaultTTL} {
		c, err := newConfig([]Option{WithTTL(ttl)})
		require.NoError(t, err)
		o, err := c.nodeOption("valkey://node:6379")
		require.NoError(t, err)
		require.Positive(t, o.Dialer.FallbackDelay)
		require.LessOrEqual(t, o.Dialer.FallbackDelay, min(o.Dialer.Timeout/4, 300*time.Millisecond))
	}
	c, err := newConfig([]Option{WithClientOption(func(_ string, o *valkey.ClientOption) { o.Dialer.FallbackDelay = -1 })})
	require.NoError(t, err)
	o, err := c.nodeOption("valkey://node:6379")
	require.NoError(t, err)
	require.EqualValues(t, -1, o.Dialer.FallbackDelay, "who dials one address at a time does so on")
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

// What is in between may have a node come and go with each request. That fills no log, and hides no
// outage.
func TestNodeThatComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		m := testQuorum(1).nodes[0]
		m.q.news = newNews(slog.New(slog.NewTextHandler(&log, nil)), m.q.clock, newLines())
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			for _, err := range []error{io.EOF, io.EOF, nil} {
				observer{m}.Exchanged(err)
			}
		}
		require.Equal(t, 2, strings.Count(log.String(), "\n"), "%s", &log)
		observer{m}.Exchanged(io.EOF)
		time.Sleep(time.Second)
		observer{m}.Looked(io.EOF)
		require.NotNil(t, m.silent.Load())
		require.Equal(t, 3, strings.Count(log.String(), "\n"), "%s", &log)
	})
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

// The widest skew that any process uses is used for all that the own one is for.
func TestSkewOfOthers(t *testing.T) {
	q := testQuorum(3)
	own := q.cfg.clockSkew
	require.Equal(t, own, q.cfg.skew())
	was := q.cfg.quarantine()
	q.cfg.others.learn(1, 0, 20*time.Second)
	require.Equal(t, 20*time.Second, q.cfg.skew())
	require.Greater(t, q.cfg.quarantine(), was)
	require.Contains(t, q.longer(), "a skew of 20s, by tenure:roster on b:1")
	q.cfg.others.learn(1, 0, own/2)
	require.Equal(t, own, q.cfg.skew())
	require.Equal(t, was, q.cfg.quarantine())
}

// What servers say, word for word: Redis 7.0.15 and 8.0.2, Valkey 8.0.1 and 8.1.1, where they
// differ. TestWordsOfThisServer asks the one that the tests run on.
func TestWordsOfServers(t *testing.T) {
	for text, want := range map[string]Condition{
		// Redis 7.0.
		"NOPERM this user has no permissions to run the 'evalsha' command":                                                        ConditionNoPermission,
		"NOPERM this user has no permissions to run the 'eval' command":                                                           ConditionNoPermission,
		"NOPERM this user has no permissions to access one of the keys used as arguments":                                         ConditionNoPermission,
		"NOPERM this user has no permissions to access one of the channels used as arguments":                                     ConditionNoPermission,
		"The user executing the script can't run this command or subcommand script: 71923a30, on @user_script:1.":                 ConditionNoPermission,
		"The user executing the script can't access at least one of the keys mentioned in the command arguments script: 2c, on @": ConditionNoPermission,
		"The user executing the script can't access at least one of the keys mentioned in the command arguments":                  ConditionNoPermission,
		"The user executing the script can't publish to the channel mentioned in the command script: 50f4f0f7, on @user_script:1": ConditionNoPermission,
		// Redis 7.2 and later, Valkey.
		"NOPERM User u has no permissions to run the 'evalsha' command":                                                  ConditionNoPermission,
		"NOPERM No permissions to access a key":                                                                          ConditionNoPermission,
		"NOPERM No permissions to access a channel":                                                                      ConditionNoPermission,
		"ACL failure in script: User u has no permissions to run the 'del' command script: 71923a30, on @user_script:1.": ConditionNoPermission,
		"ACL failure in script: No permissions to access a key script: 2c72deee, on @user_script:1.":                     ConditionNoPermission,
		"ACL failure in script: No permissions to access a channel":                                                      ConditionNoPermission,
		"OOM command not allowed when used memory > 'maxmemory'. script: 71923a30, on @user_script:1.":                   ConditionOutOfMemory,
		"OOM command not allowed when used memory > 'maxmemory'.":                                                        ConditionOutOfMemory,
		"NOAUTH Authentication required.":                                                                                ConditionNoAuth,
		"WRONGPASS invalid username-password pair or user is disabled.":                                                  ConditionNoAuth,
		"max number of clients reached":                                                                                  Condition(wire.TooManyUsers),
		"READONLY You can't write against a read only replica.":                                                          Condition(wire.ReadOnly),
		"READONLY You can't write against a read only replica. script: 71923a30, on @user_script:1.":                     Condition(wire.ReadOnly),
		"LOADING Redis is loading the dataset in memory":                                                                 Condition(wire.Loading),
		"LOADING Valkey is loading the dataset in memory":                                                                Condition(wire.Loading),
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":                         Condition(wire.Busy),
		"BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":                        Condition(wire.Busy),
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":                               Condition(wire.Masterless),
		"NOREPLICAS Not enough good replicas to write.":                                                                  Condition(wire.FewReplicas),
		"MISCONF Errors writing to the AOF file: No space left on device":                                                Condition(wire.NotSaving),
		"DENIED Redis is running in protected mode because protected mode is enabled and no password is set":             Condition(wire.Protected),
		"NOSCRIPT No matching script. Please use EVAL.":                                                                  ConditionRestarted,
		"unknown command 'EVALSHA', with args beginning with: 'x'":                                                       Condition(wire.NoCommand),
		"Unknown Redis command called from script script: 71923a30, on @user_script:1.":                                  Condition(wire.NoCommand),
		"wrong number of arguments for 'evalsha' command":                                                                "",
	} {
		condition, found := wire.ConditionOf(text)
		require.Equal(t, want, Condition(condition), text)
		require.Equal(t, want != "", found, text)
	}
}

// A time has its date where that is not today's, so that nobody waits until a time that has passed.
func TestMomentHasItsDateUnlessItIsToday(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	now := time.Date(2026, 3, 4, 22, 30, 0, 0, zone)
	require.Equal(t, "23:59:59", moment(now.Add(time.Hour+29*time.Minute+59*time.Second), now))
	require.Equal(t, "2026-03-05 07:34:00", moment(time.Date(2026, 3, 5, 7, 34, 0, 0, zone), now))
	require.Equal(t, "2026-03-03 22:30:00", moment(now.AddDate(0, 0, -1), now))
	require.Equal(t, "21:00:00", moment(now.Add(30*time.Minute).In(time.UTC), now), "the same day there")

	long := &ConditionError{Condition: ConditionQuarantined, Until: time.Now().Add(25 * time.Hour)}
	require.Contains(t, long.Error(), " until "+long.Until.Format(time.DateTime))
}

// What a program may ask for has the same name and value as what servers are found to be, and of
// each condition is said what to do.
func TestConditionsHaveTheSameNames(t *testing.T) {
	conditions := func(file, name string) map[string]string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all := make(map[string]string)
		for _, found := range regexp.MustCompile(`(?m)^\t`+name+`(\w+) +Condition = "(\w+)"`).FindAllStringSubmatch(string(text), -1) {
			all[found[1]] = found[2]
		}
		return all
	}
	servers, users := conditions("internal/wire/fault.go", ""), conditions("condition.go", "Condition")
	require.NotEmpty(t, users)
	require.Subset(t, servers, users)
	require.Len(t, slices.Compact(slices.Sorted(maps.Values(servers))), len(servers))
	for name, value := range servers {
		require.NotEmpty(t, advice[wire.Condition(value)], name)
		e := testQuorum(1).conditionError(&wire.Fault{Condition: wire.Condition(value), Detail: "seen"})
		require.Equal(t, value, ErrorType(e))
		require.Contains(t, e.Error(), advice[wire.Condition(value)])
	}
	require.Len(t, advice, len(servers))
}

// The rights that a user is advised to have are the commands of the scripts and those that are sent
// beside them.
func TestRightsAreWhatIsUsed(t *testing.T) {
	beside := []string{"ping", "info", "time", "eval", "eval_ro", "evalsha", "evalsha_ro", "subscribe"}
	used := slices.Clone(beside)
	call := regexp.MustCompile(`(?:redis\.p?call|run|write|try|may)\('([A-Z_]+)'`) // try and may are the trial's, run the roster's
	for _, s := range wire.Scripts() {
		calls := strings.Count(s.Text(), "redis.call(") + strings.Count(s.Text(), "redis.pcall(") +
			strings.Count(s.Text(), "try('") + strings.Count(s.Text(), "run('") + strings.Count(s.Text(), "write('") + strings.Count(s.Text(), "may('") - strings.Count(s.Text(), "redis.pcall(...)")
		require.Len(t, call.FindAllString(s.Text(), -1), calls, "a command that this test does not see: %s", s.Text())
		for _, found := range call.FindAllStringSubmatch(s.Text(), -1) {
			used = append(used, strings.ToLower(found[1]))
		}
	}
	slices.Sort(used)
	granted := strings.Fields(strings.ReplaceAll(Rights, "+", ""))
	slices.Sort(granted)
	require.Equal(t, slices.Compact(used), granted)
}

// A right that is missing shows at the next look: the trial tries each of them, but for what
// carries the trial itself, and what the look asks beside it.
func TestTrialTriesAllRights(t *testing.T) {
	tried := []string{"evalsha", "info"}
	for _, trial := range wire.Trials {
		tried = append(tried, strings.ToLower(trial.Command))
	}
	slices.Sort(tried)
	granted := strings.Fields(strings.ReplaceAll(Rights, "+", ""))
	slices.Sort(granted)
	require.Equal(t, granted, slices.Compact(tried))
}

// Whatever a server answers instead of INFO, its warning has the type that is promised.
func TestWarningsAreConditions(t *testing.T) {
	n := testQuorum(1).nodes[0]
	for kind, err := range map[Condition]error{Condition(wire.BadReply): fmt.Errorf("%w: 7", wire.ErrUnexpected), Condition(wire.Busy): &wire.Fault{Condition: wire.Busy}} {
		var s NodeStatus
		s.fill(n, &vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}, Err: err}, 0, nil)
		require.True(t, s.Reachable)
		require.Len(t, s.Warnings, 1)
		require.IsType(t, &ConditionError{}, s.Warnings[0])
		require.Equal(t, kind == Condition(wire.Busy), s.Warnings[0].(*ConditionError).Condition == Condition(wire.Busy))
	}
}

// A node that answers INFO, and not what a lease needs, does not vote, and says that.
func TestNodeThatAnswersNoTrial(t *testing.T) {
	q := testQuorum(1)
	n := q.nodes[0]
	tried := q.probe(t.Context(), wire.Enroll, 1, nil)
	require.True(t, unanswered(t.Context(), &tried.Outcome().Replies[0]))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.False(t, unanswered(ended, &tried.Outcome().Replies[0]), "nobody waited")
	q.fake(0).answer(0, wire.Answer{Verdict: wire.Failed}, node.ErrTimeout)
	require.True(t, unanswered(t.Context(), &tried.Outcome().Replies[0]))
	tried = q.probe(t.Context(), wire.Enroll, 1, nil)
	q.fake(0).answer(1, wire.Answer{Verdict: wire.OK}, nil)
	require.False(t, unanswered(t.Context(), &tried.Outcome().Replies[0]))

	voted := false // until the gate closes, while it is asked
	tried = q.probe(t.Context(), wire.Enroll, 1, func(int) bool { was := voted; voted = true; return !was })
	q.fake(0).answer(2, wire.Answer{Verdict: wire.OK}, nil)
	require.False(t, unanswered(t.Context(), &tried.Outcome().Replies[0]))
	s := NodeStatus{Node: n.addr, Reachable: true}
	s.judge(n, false)
	require.True(t, s.Votes)
	require.NoError(t, s.Err)
	s.judge(n, true)
	require.False(t, s.Votes)
	require.ErrorIs(t, s.Err, ErrTimeout)
	require.ErrorContains(t, s.Err, "CLIENT UNPAUSE")
}

// A server is what it says it is: Valkey keeps redis_version at what it was like when it left.
func TestNamesOfServers(t *testing.T) {
	for text, name := range map[string]string{
		"":                     "",
		"redis_version:7.0.15": "redis 7.0.15",
		"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1": "valkey 8.0.1",
	} {
		info, err := wire.ParseInfo(text + "\r\nrun_id:" + strings.Repeat("0", wire.RunIDLength) + "\r\nuptime_in_seconds:5\r\nserver_time_usec:1795748159874704\r\nrole:master\r\n")
		require.NoError(t, err)
		require.Equal(t, name, info.Name)
	}
	for _, mode := range []string{"redis_mode:sentinel", "server_mode:sentinel"} {
		_, err := wire.ParseInfo("redis_version:7.2.4\r\n" + mode + "\r\n")
		require.Equal(t, wire.Sentinel, wire.FaultOf(err).Condition, "which is no server that is old")
	}
}
