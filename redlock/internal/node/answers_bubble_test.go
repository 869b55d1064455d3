package node

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// What may have been carried out is sent over a new connection only where that is right on a server
// that has forgotten everything, and once.
func TestRequestsOverABrokenConnection(t *testing.T) {
	for op, times := range map[wire.Op]int{wire.Extend: 2, wire.Release: 2, wire.Leave: 2, wire.Observe: 2, wire.Join: 1, wire.Agree: 1} {
		t.Run(op.String(), func(t *testing.T) {
			n, c := voting(t)
			var a answers
			c.say = func(words []string) string { return map[bool]string{true: breaks}[isScript(words)] }
			r := a.send(t, n, op, "key")
			n.send()
			require.True(t, wire.IsBroken(requireOne(t, &a, r, wire.Failed, "it is broken").Err))
			sent := c.sent()
			require.Equal(t, times, sent["EVALSHA"]+sent["EVALSHA_RO"]+sent["EVAL"]+sent["EVAL_RO"])
			require.Equal(t, op == wire.Observe, sent["EVALSHA_RO"] > 0, "what only reads is sent as such")
			require.LessOrEqual(t, n.gate.lookAt, n.cfg.Clock.Now().Add(MaxPause), "another process may answer next")
		})
	}
	n, c := voting(t)
	var a answers
	var broke atomic.Bool
	c.say = func([]string) string {
		if !broke.Swap(true) {
			return breaks
		}
		return asServer
	}
	r := a.send(t, n, wire.Extend, "key")
	n.send()
	requireOne(t, &a, r, wire.OK, "the connection is a new one")
	require.True(t, n.gate.open)
	c.say = func([]string) string { return breaks }
	r = a.send(t, n, wire.Extend, "key")
	n.send()
	require.True(t, wire.IsBroken(requireOne(t, &a, r, wire.Failed, "no connection comes").Err))
}

// The key of a release that was carried out before its connection broke is gone when it is sent
// once more. It was not lost.
func TestReleaseThatWasCarriedOutIsNoLoss(t *testing.T) {
	for _, test := range []struct {
		op     wire.Op
		broken int32
		want   wire.Verdict
	}{{wire.Release, 0, wire.Refused}, {wire.Release, 1, wire.OK}, {wire.Extend, 1, wire.Refused}} {
		n, c := voting(t)
		var a answers
		var sent atomic.Int32
		c.say = func(words []string) string {
			if isScript(words) && sent.Add(1) <= test.broken {
				return breaks
			}
			return map[bool]string{true: bulk("0")}[isScript(words)]
		}
		r := a.send(t, n, test.op, "key")
		n.send()
		requireOne(t, &a, r, test.want, fmt.Sprintf("%v after %d breaks", test.op, test.broken))
	}
}

// What a server answers to an operation may cost it the vote, or a look.
func TestErrorsOfAServer(t *testing.T) {
	const nothing, looks, shut = 0, 1, 2
	for said, want := range map[string]int{
		"READONLY You can't write against a read only replica.": shut, "MASTERDOWN Link with MASTER is down": shut,
		"LOADING Valkey is loading the dataset in memory": shut, "OOM command not allowed when used memory > 'maxmemory'.": looks,
		"NOPERM User u has no permissions to run the 'evalsha' command": looks, "TENUREDAMAGED the counter is 'x'": nothing, "TENUREVERSION 2": nothing,
		"SOMETHING else": nothing, "WRONGTYPE Operation against a key holding the wrong kind of value": nothing,
		"MISCONF Valkey is configured to save RDB snapshots, but it cannot do so.": looks,
	} {
		n, c := voting(t)
		c.say = func([]string) string { return "-" + said + "\r\n" }
		for _, since := range []time.Duration{0, time.Hour} { // the last look
			n.gate.looked = n.cfg.Clock.Now().Add(-since)
			var a answers
			r := a.send(t, n, wire.Extend, "key")
			n.send()
			answer := requireOne(t, &a, r, wire.Failed, "an error")
			require.ErrorContains(t, answer.Err, said)
			require.NotZero(t, answer.Sent, "the server was there then")
			require.Equal(t, want == shut, n.Status().Unseen, said)
			require.Equal(t, want == shut, !n.gate.open, said)
			switch now := n.cfg.Clock.Now(); {
			case want == shut:
				require.Zero(t, n.gate.lookAt)
			case want == nothing:
				require.Greater(t, n.gate.lookAt, now.Add(time.Minute))
			case since > 0:
				require.LessOrEqual(t, n.gate.lookAt, now)
			default:
				require.InDelta(t, recheckEvery, n.gate.lookAt.Sub(n.gate.looked), float64(time.Second), "not more often than one that has no vote")
			}
			if want == shut {
				break
			}
		}
	}
}

// Requests that fail together may fail because of one of them, so each is sent alone, and so is
// what a server has left. Of an attempt that has ended meanwhile nobody knows what became.
func TestRequestsThatFailTogetherAreSentAlone(t *testing.T) {
	for _, together := range []string{"-ERR one of them\r\n", bulk("1780000000 5  222")} {
		n, c := voting(t)
		var a answers
		var ended atomic.Bool
		c.say = func(words []string) string {
			if keys := words[2]; keys != "2" { // those of an acquisition
				ended.Store(true)
				return together
			}
			return granted(0)
		}
		first, second := a.send(t, n, wire.Acquire, "one"), a.send(t, n, wire.Acquire, "two")
		third := &Request{Call: callOf(wire.Acquire, "three"), To: &a, Expires: n.cfg.Clock.Now().Add(time.Minute), Ended: &ended}
		n.Send(third)
		n.send()
		require.EqualValues(t, 17, requireOne(t, &a, first, wire.OK, "alone").Token)
		requireOne(t, &a, second, wire.OK, "alone")
		dropped := requireOne(t, &a, third, wire.Failed, "ended")
		require.ErrorIs(t, dropped.Err, ErrAbandoned)
		require.False(t, dropped.Unsent)
		require.Equal(t, map[string]int{"EVALSHA": 3}, c.sent(), "together, and two of them alone")
		require.True(t, first.alone)
	}
}

// A server that votes is asked for its clock and whether leases can be had, and looked at over a
// new connection. Where there is none, the one in use is asked, and why is told.
func TestServerThatVotesIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newServer("a")
		n := started(t, c, func(cfg *Config) { cfg.SampleEvery, cfg.LookEvery = time.Second, time.Minute })
		synctest.Wait()
		require.NoError(t, n.Status().Reason())
		c.sent()
		c.set(func() { c.dedicated = nil })
		time.Sleep(10*time.Minute - 1)
		synctest.Wait()
		sent := c.sent()
		require.InDelta(t, 600-9, sent["TIME"], 2, "a look tells it, too")
		require.Equal(t, 9, sent["EVALSHA"]+sent["EVAL"])
		require.Zero(t, sent["INFO"])
		c.set(func() {
			require.Len(t, c.dedicated, 9, "INFO")
			c.refuses = true
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 1, c.sent()["INFO"])
		require.NoError(t, n.Status().Reason(), "it answers over the connection in use")
		w := n.cfg.Observer.(*observed)
		w.add(func() { require.Error(t, w.refused[10]) })
		c.set(func() { c.refuses = false })
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, c.sent()["INFO"])
		w.add(func() { require.Equal(t, []error{nil}, w.refused[11:], "each look tells it once") })

		// A server that votes may become one without a right.
		for at, text := range map[int]string{4: "set", 13: "zadd"} {
			c.set(func() { c.say = trialSays("-NOPERM User u has no permissions to run the '"+text+"' command\r\n", at) })
			time.Sleep(time.Minute)
			synctest.Wait()
			status := n.Status()
			require.Equal(t, at == 4, status.Reason() != nil)
			require.Equal(t, at == 13, status.Lacks != nil)
			c.set(func() { c.say = nil })
			time.Sleep(time.Minute + time.Second)
			synctest.Wait()
			require.NoError(t, n.Status().Reason())
			require.Nil(t, n.Status().Lacks)
		}
	})
}

// Nothing is concluded from a connection that cannot be made, whatever it says: the one in use goes
// on, and why is told.
func TestLookThatFindsNothingEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newServer("a")
		n := started(t, c, func(cfg *Config) { cfg.LookEvery = 10 * time.Second })
		w := n.cfg.Observer.(*observed)
		synctest.Wait()
		c.set(func() { c.refuses = true })
		for range 60 {
			time.Sleep(10 * time.Second)
			synctest.Wait()
			require.NoError(t, n.Status().Reason())
			var a answers
			r := a.send(t, n, wire.Extend, "key")
			synctest.Wait()
			require.NoError(t, a.of(r)[0].Err)
		}
		require.Zero(t, w.elsewhere)
		w.add(func() { require.Error(t, w.refused[len(w.refused)-1]) })
	})
}

// trialSays is a server that answers one command of a trial so.
func trialSays(text string, at int) func(words []string) string {
	return func(words []string) string {
		if !isTrial(words) {
			return asServer
		}
		parts := slices.Repeat([]string{":1\r\n"}, len(wire.Trials))
		parts[at] = text
		return enrolled(parts)
	}
}

// isTrial reports whether a command is a trial.
func isTrial(words []string) bool { return isScript(words) && slices.Contains(words, "p:roster") }

// Requests that wait for a look are sent in the order in which they came, before later ones.
func TestWaitingRequestsKeepTheirOrder(t *testing.T) {
	n, c := voting(t)
	var a answers
	n.gate.open = false
	n.look = &look{epoch: n.gate.epoch, goesOn: make(chan bool, 1), end: func() {}, self: self{err: context.DeadlineExceeded}}
	for _, key := range []string{"one", "two"} {
		a.send(t, n, wire.Agree, key)
		n.send()
	}
	require.Len(t, n.held, 2)
	a.send(t, n, wire.Agree, "three")
	n.collect()
	n.look.epoch-- // it opened meanwhile
	n.gate.open = true
	n.heed(n.look)
	require.Empty(t, n.held)
	n.send()
	var keys []string
	for _, words := range c.commands {
		keys = append(keys, words[3])
	}
	require.Equal(t, []string{"one", "two", "three"}, keys)
}

// A request that waited for a look joins no queue once its attempt has ended: what takes the waiter
// out of the queue does not wait for a look, and was sent before.
func TestWaiterThatHasGoneJoinsNothingAfterALook(t *testing.T) {
	n, c := voting(t)
	n.gate.open = false
	n.look = &look{epoch: n.gate.epoch, goesOn: make(chan bool, 1), end: func() {}, self: self{err: context.DeadlineExceeded}}
	var a answers
	var ended atomic.Bool
	acquires := &Request{Call: callOf(wire.Acquire, "key"), To: &a, Expires: n.cfg.Clock.Now().Add(time.Minute), Ended: &ended}
	acquires.Call.Member = wire.NewMember(1, wire.NewProcess(), "waiter")
	n.Send(acquires)
	n.send()
	require.Len(t, n.held, 1)
	ended.Store(true)
	leaves := a.send(t, n, wire.Leave, "key")
	n.send()
	requireOne(t, &a, leaves, wire.OK, "it does not wait")
	n.heed(n.look)
	n.send()
	require.ErrorIs(t, requireOne(t, &a, acquires, wire.Failed, "its attempt has ended").Err, ErrAbandoned)
	require.Len(t, c.commands, 1, "the leave, and no join behind it")
}

// As many wait for a look as for the writer; others are refused.
func TestWaitingRequestsAreBounded(t *testing.T) {
	n, _ := voting(t)
	n.gate.shut()
	n.look = &look{goesOn: make(chan bool, 1), end: func() {}}
	n.held = make([]*Request, maxQueue-1)
	var a answers
	first, second := &Request{Call: callOf(wire.Agree, "one"), To: &a}, &Request{Call: callOf(wire.Agree, "two"), To: &a}
	info := &Request{Call: callOf(wire.Info, "three"), To: &a}
	own := &Request{Call: n.cfg.probe(wire.Info)}
	require.Equal(t, []*Request{info, own}, n.admitted([]*Request{first, second, info, own}), "questions can be asked all the same")
	require.Empty(t, a.of(first))
	require.Equal(t, wire.Restarted, wire.FaultOf(requireOne(t, &a, second, wire.Failed, "no place").Err).Condition)
	require.Len(t, n.held, maxQueue)

	n.held = nil
	require.Equal(t, []*Request{own}, n.admitted([]*Request{own}), "the node's own questions wait for no look")
	require.Empty(t, n.admitted([]*Request{info}))
	require.Equal(t, []*Request{info}, n.held)
}

// A connection that breaks is no answer, also for what is sent once more over another one: a server
// that is gone is not taken for one that was there a moment ago.
func TestBrokenConnectionIsNoAnswer(t *testing.T) {
	n, c := voting(t)
	c.say = func([]string) string { return breaks }
	before := n.gate.answered
	time.Sleep(time.Millisecond)
	var a answers
	r := a.send(t, n, wire.Release, "key")
	n.send()
	requireOne(t, &a, r, wire.Failed, "it was repeated once")
	require.Equal(t, before, n.gate.answered)
	c.say = nil
	r = a.send(t, n, wire.Release, "key")
	n.send()
	requireOne(t, &a, r, wire.OK, "")
	require.Greater(t, n.gate.answered, before)
}

// What a server grants that was silent for long does not count: others may do without it. It is
// looked at first.
func TestGrantAfterAnAbsenceDoesNotCount(t *testing.T) {
	for _, absent := range []bool{false, true} {
		n, _ := voting(t)
		n.cfg.Absence = 20 * time.Second
		if n.gate.answered = n.cfg.Clock.Now().Add(-19 * time.Second); absent {
			n.gate.answered = n.cfg.Clock.Now().Add(-21 * time.Second)
		}
		var a answers
		r := a.send(t, n, wire.Agree, "key")
		n.send()
		if !absent {
			requireOne(t, &a, r, wire.OK, "it was there a moment ago")
			require.True(t, n.gate.open)
			continue
		}
		why := wire.FaultOf(requireOne(t, &a, r, wire.Failed, "").Err)
		require.Equal(t, wire.Restarted, why.Condition)
		require.False(t, n.gate.open)
	}
}

// listen runs a node in a bubble, and returns what it tells of exchanges since the last time. Its
// samples are not due at the same moments as its trials, behind which they would not be answered.
func listen(t *testing.T, c *fakeServer, absence time.Duration) (n *Node, told func() []error) {
	n = started(t, c, func(cfg *Config) {
		cfg.SampleEvery, cfg.LookEvery, cfg.Absence = 870*time.Millisecond, 10*time.Second, absence
	})
	w := n.cfg.Observer.(*observed)
	return n, func() (all []error) {
		synctest.Wait()
		w.add(func() { all, w.exchanged = w.exchanged, nil })
		return all
	}
}

// holding are what a server says that holds back what may write, as CLIENT PAUSE WRITE does.
func holding(words []string) string {
	if isScript(words) {
		return hangs
	}
	return asServer
}

// That a server answers INFO and TIME does not make good that it answers no script: it fails until
// it does, and is tried at a steady pace.
func TestServerThatHoldsWritesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newServer("a")
		n, told := listen(t, c, time.Hour)
		synctest.Wait()
		require.NoError(t, n.Status().Reason())
		c.set(func() { c.say = holding })
		time.Sleep(time.Minute)
		all := told()
		failed := slices.IndexFunc(all, func(err error) bool { return err != nil })
		require.Equal(t, ErrTimeout, all[failed], "it may be silent")
		for _, err := range all[failed+1:] {
			require.Equal(t, ErrHeldBack, err)
		}
		require.InDelta(t, 50*time.Second/(recheckEvery+timeout), len(all)-failed, 8)
		require.NoError(t, n.Status().Reason(), "who may vouch for it has nothing against it")

		c.set(func() { c.say = nil })
		time.Sleep(recheckEvery + timeout)
		all = told()
		require.NotEmpty(t, all)
		require.NoError(t, all[len(all)-1], "it is well at once")
		time.Sleep(time.Minute)
		require.NotContains(t, told(), ErrHeldBack)
	})
}

// What others may have agreed to do without is looked at anew, also where it has answered INFO and
// TIME all the while: it has not said who uses it.
func TestServerThatHoldsWritesBackIsAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newServer("a")
		n, told := listen(t, c, 30*time.Second)
		told()
		opened := n.Status().Opened
		c.set(func() { c.say = holding })
		time.Sleep(40 * time.Second)
		for range 20 {
			time.Sleep(time.Second)
			synctest.Wait()
			require.Equal(t, ErrHeldBack, n.Status().Reason())
		}
		c.set(func() { c.say = nil })
		time.Sleep(MaxPause + timeout + recheckEvery)
		synctest.Wait()
		require.NoError(t, n.Status().Reason())
		require.Equal(t, opened+1, n.Status().Opened)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.NoError(t, n.Status().Reason())
	})
}

// reconnecting is a client whose connection is made anew inside each call, as valkey-go does it
// without a word, before a script is answered so.
func reconnecting(c *fakeServer, answer string) func([]string) string {
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
		for said, verdict := range map[string]wire.Verdict{bulk("1"): wire.OK, bulk("0"): wire.Refused} {
			n, c := voting(t)
			c.say = reconnecting(c, said)
			var a answers
			r := a.send(t, n, op, "key")
			n.send()
			if op == wire.Leave {
				verdict = wire.OK // whoever has the key
			}
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
	for each, verdict := range map[string]wire.Verdict{"01": wire.Failed, "00": wire.OK} {
		n, c := voting(t)
		c.say = reconnecting(c, bulk(each))
		var a answers
		r := &Request{Call: wire.NewExtendMany("many", "10000", []string{"a", "b", "fences"}, []string{"1 a", "1 b"}), To: &a, Expires: never}
		n.Send(r)
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
	clear(c.scripts)
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

// A release whose text the server has refused as well is repeated with it: a server that a script
// keeps busy has taken none.
func TestTextThatWasRefusedIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := voting(t)
		clear(c.scripts)
		c.say = func(words []string) string {
			return map[string]string{"EVAL": "-BUSY Valkey is busy running a script\r\n"}[words[0]]
		}
		go n.Run()
		defer n.Wait()
		defer n.Close()
		var a answers
		r := a.send(t, n, wire.Release, "key")
		synctest.Wait()
		require.Equal(t, wire.Busy, wire.FaultOf(requireOne(t, &a, r, wire.Failed, "it is busy").Err).Condition)
		c.set(func() { c.say = nil })
		time.Sleep(4 * MaxPause)
		require.Empty(t, n.retries.take(never))
	})
}

// A request that a server knew no script for brings the text itself: batches in flight have no
// order, so the text that another one brings may come after it.
func TestEachBatchBringsTheScriptThatWasNotKnown(t *testing.T) {
	n, c := voting(t)
	n.window = far()
	c.say = func(words []string) string {
		return map[bool]string{true: "-NOSCRIPT No matching script.\r\n"}[words[0] == "EVALSHA"]
	}
	var a answers
	var all []*Request
	for i := range maxBatch + 1 {
		all = append(all, a.send(t, n, wire.Extend, fmt.Sprint(i)))
	}
	n.send()
	require.Len(t, n.window.inFlight, 2)
	n.landAll()
	require.Len(t, n.pending, len(all))
	for len(n.pending) > 0 {
		b := n.window.take(&n.pending)
		b.client = *n.client.Load()
		n.encode(b, b.requests)
		require.Equal(t, "EVAL", b.commands[0].Commands()[0])
	}
}

// Before a batch is written over a connection that was made anew the server is asked who it is. The
// same process goes on to count.
func TestConnectionThatIsMadeAnewBetweenCalls(t *testing.T) {
	n, c := voting(t)
	var a answers
	c.changed()
	r := a.send(t, n, wire.Agree, "key")
	n.send()
	requireOne(t, &a, r, wire.OK, "the same process")
	require.Equal(t, map[string]int{"INFO": 1, "EVAL": 1}, c.sent())
	r = a.send(t, n, wire.Extend, "key")
	n.send()
	requireOne(t, &a, r, wire.OK, "and again")
	require.Equal(t, map[string]int{"EVAL": 1}, c.sent(), "it was asked once")

	// Another one is looked at first. It is sent what is not only for one that was vouched for.
	c.set(func() { c.runID = newServer("b").runID })
	c.changed()
	extend, agree := a.send(t, n, wire.Extend, "key"), a.send(t, n, wire.Agree, "key")
	made := n.generation.Load()
	n.send()
	require.Equal(t, wire.Restarted, wire.FaultOf(requireOne(t, &a, extend, wire.Failed, "another process").Err).Condition)
	require.Empty(t, a.of(agree), "it waits for the look")
	require.False(t, n.gate.open)
	require.Zero(t, n.gate.vouched)
	require.Equal(t, made+1, n.generation.Load(), "and the connection is given up: new ones may lead elsewhere")
	n.cancelLook()
	(*n.client.Load()).Close()
}

// A connection that has broken is found out by using it, and the next one by the next call. One
// that breaks each time is no connection.
func TestConnectionThatBreaksWhileItIsVouchedFor(t *testing.T) {
	for breaksFor, works := range map[int]bool{maxTries: true, maxTries + 1: false} {
		n, c := voting(t)
		asked := 0
		c.say = func(words []string) string {
			if words[0] == "INFO" {
				if asked++; asked <= breaksFor {
					c.changed()
				}
			}
			return asServer
		}
		c.changed()
		var a answers
		r := a.send(t, n, wire.Agree, "key")
		n.send()
		require.True(t, n.gate.open)
		if got := requireOne(t, &a, r, map[bool]wire.Verdict{true: wire.OK, false: wire.Failed}[works], "a connection that lasts"); !works {
			require.ErrorIs(t, got.Err, errUnsteady)
			require.True(t, got.Unsent)
		}
	}
}

// A user who may not ask for INFO has leases where no gate needs that.
func TestServerThatDoesNotTellAboutItself(t *testing.T) {
	for _, gate := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newServer("a")
			c.say = func(words []string) string {
				return map[bool]string{true: "-NOPERM User u has no permissions to run the 'info' command\r\n"}[words[0] == "INFO"]
			}
			n := started(t, c, func(cfg *Config) { cfg.RestartGate = gate })
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			require.Equal(t, gate, n.Status().Reason() != nil)
		})
	}
}

// A server that votes and does not count any more has no vote until it has joined again.
func TestServerThatDoesNotCountJoinsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var forgotten, refused atomic.Bool
		n := started(t, newServer("a"), func(cfg *Config) {
			cfg.LookEvery, cfg.Counts = 5*time.Second, func() bool { return !forgotten.Load() }
			cfg.Join = func(context.Context, string, clock.Instant, time.Duration) (time.Duration, error) {
				if refused.Load() {
					return time.Second, &wire.Fault{Condition: wire.AnotherList}
				}
				forgotten.Store(false)
				return 0, nil
			}
		})
		time.Sleep(time.Minute)
		forgotten.Store(true)
		refused.Store(true)
		time.Sleep(6 * time.Second)
		require.ErrorContains(t, n.Status().Reason(), string(wire.AnotherList))
		refused.Store(false)
		time.Sleep(2 * time.Second)
		require.NoError(t, n.Status().Reason())
		require.False(t, forgotten.Load())
	})
}

// A release that fails again and again is repeated after its own pause, and not with each one that
// has just failed: a node that is down may be owed thousands, and get new ones all the time.
func TestReleasesAreRepeatedAfterTheirOwnPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := voting(t)
		sent := 0
		c.say = func(words []string) string {
			if !slices.Contains(words, "1 owner") { // no release
				return asServer
			}
			if slices.Contains(words, "old") {
				sent++
			}
			return "-BUSY Valkey is busy running a script\r\n"
		}
		go n.Run()
		defer n.Wait()
		defer n.Close()
		var a answers
		a.send(t, n, wire.Release, "old")
		for i := range 500 {
			time.Sleep(10 * time.Millisecond)
			a.send(t, n, wire.Release, fmt.Sprint("key", i))
		}
		synctest.Wait()
		require.InDelta(t, 15, sent, 10, "in five seconds, by itself and with others")
	})
}

// Each batch for a server that takes no connections, or refuses the login, makes one. So after the
// second that fails at once those of the next moment fail unsent.
func TestNodeThatIsDownGetsFewConnections(t *testing.T) {
	for _, login := range []bool{false, true} {
		t.Run(fmt.Sprint("login: ", login), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, c := voting(t)
				tries := 0
				c.say = func([]string) string { tries++; return breaks }
				if login {
					n.leave(*n.client.Load())
					c.login = "-WRONGPASS invalid username-password pair\r\n"
					n.cfg.Connect = func(ctx context.Context, changed func()) (valkey.Client, error) {
						tries++
						return c.connect(ctx, changed)
					}
				}
				go n.Run()
				defer n.Wait()
				defer n.Close()
				var a answers
				for i := range 1000 {
					time.Sleep(time.Millisecond)
					r := a.send(t, n, wire.Acquire, fmt.Sprint("key", i))
					synctest.Wait()
					requireOne(t, &a, r, wire.Failed, "at once")
				}
				require.InDelta(t, 60, tries, 40, "in a second")
				c.set(func() { c.say, c.login = nil, "" })
				time.Sleep(MinPause)
				r := a.send(t, n, wire.Extend, "key")
				synctest.Wait()
				requireOne(t, &a, r, wire.OK, "it is back")
			})
		})
	}
}

// What was under way when the node failed, on the same connection or on another, may fail as well.
// That is one failure: the next batch is sent at once.
func TestBatchesUnderWayFailWithTheNode(t *testing.T) {
	for _, same := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n, c := voting(t)
			const far = 10 * time.Millisecond
			n.window.trip = roundTrip{least: far, before: far, until: 1 << 60}
			ends := []chan struct{}{make(chan struct{}), make(chan struct{})}
			scripts := 0
			c.say = func(words []string) string {
				if !isScript(words) {
					return asServer
				}
				scripts++
				<-ends[scripts-1]
				return breaks
			}
			var a answers
			for i := range ends {
				a.send(t, n, wire.Acquire, fmt.Sprint("key", i))
				n.send()
				synctest.Wait()
				if !same {
					n.leave(*n.client.Load())
				}
			}
			require.Len(t, n.window.inFlight, 2)
			for _, end := range ends {
				time.Sleep(time.Millisecond)
				close(end)
				<-n.window.back()
				n.land()
			}
			c.set(func() { c.say = nil })
			r := a.send(t, n, wire.Extend, "key")
			n.send()
			n.landAll()
			requireOne(t, &a, r, wire.OK, "over a new connection")
			n.leave(*n.client.Load())
			n.work.Wait()
		})
	}
}

// A connection that is silent is given up. valkey-go does so by itself only with one over which it
// has never sent a command while another was on its way.
func TestSilentConnectionIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := voting(t)
		client, both := *n.client.Load(), sync.WaitGroup{}
		c.set(func() { c.slow = time.Millisecond })
		for range 2 {
			both.Go(func() { assert.NoError(t, client.Do(t.Context(), wire.TimeCommand(client)).Error()) })
		}
		both.Wait()
		c.set(func() { c.say = func([]string) string { return hangs } })
		var a answers
		r := a.send(t, n, wire.Extend, "key")
		n.send()
		require.Equal(t, ErrTimeout, requireOne(t, &a, r, wire.Failed, "it is silent").Err)
		c.set(func() { c.say = nil })
		r = a.send(t, n, wire.Extend, "key")
		n.send()
		requireOne(t, &a, r, wire.OK, "over a new connection")
		n.leave(*n.client.Load())
		n.work.Wait()
	})
}

// After two failures in a row nothing is tried for a moment. A server that hangs needs no such
// pause, because each failure takes long.
func TestNodeRestsAfterTwoFailures(t *testing.T) {
	for _, test := range []struct {
		outcomes []error
		rests    bool
	}{
		{[]error{io.EOF}, false}, {[]error{io.EOF, io.EOF}, true}, {[]error{io.EOF, ErrTimeout, io.EOF}, true},
		{[]error{io.EOF, nil, io.EOF}, false}, {[]error{io.EOF, context.DeadlineExceeded}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			n, _ := voting(t)
			for _, err := range test.outcomes {
				time.Sleep(time.Millisecond)
				n.exchanged(err, n.cfg.Clock.Now(), false)
			}
			b := &batch{ctx: t.Context()}
			require.Equal(t, test.rests, n.reach(b) != nil, "%v", test.outcomes)
			time.Sleep(MinPause)
			require.NoError(t, n.reach(b))
		})
	}
}

// Close sends the releases that are left, also to a node that was down a moment ago.
func TestReleasesAreSentToANodeThatIsBackAtClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := voting(t)
		c.say = func([]string) string { return breaks }
		go n.Run()
		var a answers
		for _, op := range []wire.Op{wire.Extend, wire.Extend, wire.Release} {
			time.Sleep(time.Millisecond)
			r := a.send(t, n, op, "key")
			synctest.Wait()
			requireOne(t, &a, r, wire.Failed, "it is down")
		}
		c.set(func() { c.say = nil })
		c.sent()
		n.Close()
		n.Wait()
		sent := c.sent()
		require.Equal(t, 1, sent["EVALSHA"]+sent["EVAL"], "%v", sent)
	})
}
