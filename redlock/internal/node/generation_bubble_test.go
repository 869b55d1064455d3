package node

import (
	"testing"

	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// reconnecting is a client whose connection is made anew inside each call, as valkey-go does it
// without a word, before a script is answered so.
func reconnecting(c *fakeClient, answer string) func([]string) string {
	return func(words []string) string {
		if !isScript(words) {
			return asServer
		}
		c.changed()
		return answer
	}
}

// What a server has done counts only if its connection is the same after the exchange as before.
// That it has refused something counts in any case.
func TestConnectionThatIsMadeAnewInsideACall(t *testing.T) {
	for op, counts := range map[wire.Op]bool{wire.Agree: false, wire.Extend: false, wire.Release: true, wire.Join: true, wire.Leave: true} {
		for said, verdict := range map[string]wire.Verdict{":1\r\n": wire.OK, ":0\r\n": wire.Refused} {
			n, c := voting(t)
			c.say = reconnecting(c, said)
			var a answers
			r := a.send(t, n, op, "key")
			n.send()
			if verdict == wire.OK && !counts {
				err := requireOne(t, &a, r, wire.Failed, op.String()).Err
				require.Equal(t, wire.Restarted, wire.FaultOf(err).Condition)
				require.False(t, a.of(r)[0].Unsent, "what was granted is taken back")
			} else {
				requireOne(t, &a, r, verdict, op.String())
			}
			require.True(t, n.gate.open, "the process may be the same")
		}
	}
	// A packet of acquisitions.
	n, c := voting(t)
	c.say = reconnecting(c, granted(0))
	var a answers
	r := a.send(t, n, wire.Acquire, "key")
	n.send()
	requireOne(t, &a, r, wire.Failed, "a grant")

	// Of several leases: that one has none of the keys is no extension that could count.
	held := []wire.Held{{Keys: &wire.Keys{Lock: "a"}, Lock: "1 a"}, {Keys: &wire.Keys{Lock: "b"}, Lock: "1 b"}}
	for each, verdict := range map[string]wire.Verdict{"01": wire.Failed, "00": wire.OK} {
		n, c := voting(t)
		c.say = reconnecting(c, bulk(each))
		var a answers
		r := &Request{Call: wire.NewExtendMany("many", "10000", held, false), To: &a, Expires: never}
		require.NoError(t, n.Send(r))
		n.send()
		requireOne(t, &a, r, verdict, each)
	}
}

// A promoted server, one whose clock has jumped and one that does not say who it is are not vouched
// for either.
func TestConnectionThatIsNotVouchedFor(t *testing.T) {
	for name, say := range map[string]string{
		"another history": infoOf("a", "master_replid:other"),
		"a replica":       infoOf("a", "role:slave", "master_host:h", "master_port:1"),
		"no permission":   "-NOPERM User u has no permissions to run the 'info' command\r\n",
		"loading":         "-LOADING Valkey is loading the dataset in memory\r\n",
	} {
		n, c := voting(t)
		var a answers
		c.changed()
		c.say = func(words []string) string { return map[bool]string{true: say}[words[0] == "INFO"] }
		r := a.send(t, n, wire.Extend, "key")
		n.send()
		requireOne(t, &a, r, wire.Failed, name)
		require.False(t, n.gate.open, name)
	}
	n, c := voting(t)
	require.NoError(t, n.gate.sample(n.cfg.Clock.Now(), n.cfg.Clock.Now(), time.Duration(time.Now().Add(-time.Hour).UnixNano())))
	c.changed()
	var a answers
	r := a.send(t, n, wire.Agree, "key")
	n.send()
	requireOne(t, &a, r, wire.Failed, "its clock has jumped")
	require.Equal(t, wire.ClockJumped, n.Status().Fault.Condition)
	n.cancelLook()
}

// Whatever keeps a process from voting, extensions count as long as it is the one that was vouched
// for: it has not forgotten what it has. What begins to vote again is asked again.
func TestExtensionsCountWhileTheProcessIsTheSame(t *testing.T) {
	for name, test := range map[string]struct {
		closes func(n *Node)
		counts bool
	}{
		"clock jumped": {func(n *Node) { n.gate.close(&wire.Fault{Condition: wire.ClockJumped}, never) }, true},
		"a right less": {func(n *Node) { n.gate.close(&wire.Fault{Condition: wire.NoPermission}, never) }, true},
		"another list": {func(n *Node) { n.gate.close(&wire.Fault{Condition: wire.AnotherList}, never) }, true},
		"no look":      {func(n *Node) { _ = n.gate.failed(errReset); n.gate.lookAt = never }, true},
		"shut":         {func(n *Node) { n.gate.shut(); n.gate.lookAt = never }, false},
		"quarantined":  {func(n *Node) { n.gate.follow(serverInfo("b", time.Hour)); n.gate.decide(serverInfo("b", time.Hour)) }, false},
	} {
		n, c := voting(t)
		test.closes(n)
		var a answers
		r := a.send(t, n, wire.Extend, "key")
		n.send()
		if test.counts {
			requireOne(t, &a, r, wire.OK, name)
		} else {
			require.Error(t, requireOne(t, &a, r, wire.Failed, name).Err)
		}
		require.Equal(t, 1, c.sent()["EVALSHA"], "%s: it is sent in any case", name)
	}
}

// Without a restart gate what any process does counts.
func TestGenerationsAreNotCountedWithoutAGate(t *testing.T) {
	n, c := voting(t)
	n.cfg.RestartGate = false
	c.say = reconnecting(c, ":1\r\n")
	var a answers
	r := a.send(t, n, wire.Agree, "key")
	n.send()
	requireOne(t, &a, r, wire.OK, "it counts")
	require.Equal(t, map[string]int{"EVALSHA": 1}, c.sent(), "nobody is asked")
}

// A batch that was written before a process was vouched for does not count when it is answered
// afterwards, also over the same connection.
func TestVouchedBeforeTheSending(t *testing.T) {
	n, c := voting(t)
	n.gate.vouched = 0
	n.gate.open = false
	var a answers
	r := a.send(t, n, wire.Extend, "key")
	c.say = func(words []string) string {
		n.gate.admit(nil, nil)
		n.gate.vouched = n.generation.Load()
		return asServer
	}
	n.gate.lookAt = never
	n.send()
	requireOne(t, &a, r, wire.Failed, "written before")
}

// The text of a script is sent over each connection once, and when the server does not know it.
func TestScriptsAreSentWhereTheyAreNotKnown(t *testing.T) {
	n, c := voting(t)
	n.knowsIn = 0
	var first answers
	for _, want := range []string{"EVAL", "EVALSHA"} {
		r := first.send(t, n, wire.Leave, "key")
		n.send()
		requireOne(t, &first, r, wire.OK, want)
		require.Equal(t, map[string]int{want: 1}, c.sent())
	}

	n, c = voting(t)
	clear(c.server.scripts)
	var a answers
	extend, agree, observe := a.send(t, n, wire.Extend, "key"), a.send(t, n, wire.Agree, "key"), a.send(t, n, wire.Observe, "key")
	n.send()
	for _, r := range []*Request{extend, agree} {
		requireOne(t, &a, r, wire.OK, r.Call.Op.String())
	}
	require.Len(t, a.of(observe), 1)
	require.Equal(t, map[string]int{"EVALSHA": 2, "EVALSHA_RO": 1, "EVAL": 2, "EVAL_RO": 1}, c.sent())
	require.True(t, n.gate.open, "that says nothing of the process")
	r := a.send(t, n, wire.Extend, "key")
	n.send()
	requireOne(t, &a, r, wire.OK, "it knows it now")
	require.Equal(t, map[string]int{"EVALSHA": 1}, c.sent())

	n, c = voting(t)
	c.say = func(words []string) string {
		return map[string]string{"EVALSHA": "-NOSCRIPT No matching script.\r\n", "EVAL": "-NOPERM User u has no permissions to run the 'eval' command\r\n"}[words[0]]
	}
	r = a.send(t, n, wire.Release, "key")
	n.send()
	require.Equal(t, wire.NoPermission, wire.FaultOf(requireOne(t, &a, r, wire.Failed, "it may not be sent").Err).Condition)
}
