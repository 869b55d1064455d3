package node

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// serverInfo is what a server says of itself.
func serverInfo(runID string, uptime time.Duration) *wire.ServerInfo {
	return &wire.ServerInfo{Version: "7.2.4", RunID: strings.Repeat(runID, wire.RunIDLength), Role: "master", Uptime: uptime}
}

// A look that fails is repeated with pauses that double. One that was answered with an error has a
// condition, and is repeated at its pace. The same process again is no news, and puts no look off.
func TestLooksThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, cfg := opened(nil)
		require.Equal(t, cfg.Clock.Now().Add(cfg.LookEvery), g.lookAt)
		time.Sleep(time.Second)
		g.inspect(serverInfo("a", time.Hour))
		require.Equal(t, cfg.Clock.Now().Add(cfg.LookEvery-time.Second), g.lookAt)
		for i := range 8 {
			require.ErrorIs(t, g.failed(errors.New("EOF")), g.status.Load().Err)
			most := min(MinPause<<i, MaxPause)
			require.InDelta(t, most, g.lookAt.Sub(cfg.Clock.Now()), 0.2*float64(most))
		}
		err := g.failed(&wire.Fault{Condition: wire.Loading})
		require.Equal(t, wire.Loading, wire.FaultOf(err).Condition)
		require.Equal(t, cfg.Clock.Now().Add(recheckEvery), g.lookAt)
		require.Equal(t, err, g.status.Load().Reason())
	})
}

// A process that comes back has never ended: there are several servers at the address.
func TestServersThatAnswerByTurns(t *testing.T) {
	for _, gated := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			cfg := config(newServer("a"))
			cfg.RestartGate = gated
			g := newGate(&cfg)
			look := func(process string) *wire.Fault {
				info := serverInfo(process, time.Hour)
				g.follow(info)
				return g.decide(info)
			}
			require.Nil(t, look("a"))
			require.Nil(t, look("a"))
			for i := range maxPast {
				if why := look("b"); gated {
					require.Equal(t, 1+2*i, cfg.Observer.(*observed).another, "it is told of each")
					require.NotNil(t, why)
				}
				time.Sleep(recheckEvery)
				why := look("a")
				require.Equal(t, wire.SeveralServers, why.Condition)
				require.Contains(t, why.Detail, "aaaaaaaa and bbbbbbbb")
				time.Sleep(recheckEvery)
			}
			require.LessOrEqual(t, len(g.past), maxPast)
			time.Sleep(cfg.Quarantine())
			require.Nil(t, look("a"), "it is over when one of them has answered for a quarantine")
		})
	}
}

// A balancer may lead each look to the one, and the connection in use to the other.
func TestLooksAtServersByTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newServer("a"), newServer("b")
		var dials atomic.Int32
		n := started(t, a, func(cfg *Config) {
			cfg.Connect = func(ctx context.Context, changed func()) (valkey.Client, error) {
				s := []*fakeServer{b, a}[dials.Add(1)%2]
				if dials.Load() > 20 {
					time.Sleep(time.Hour)
				}
				return s.connect(ctx, changed)
			}
		})
		time.Sleep(5 * recheckEvery)
		require.Less(t, dials.Load(), int32(10), "looks without a pause")
		require.Equal(t, wire.SeveralServers, n.Status().Fault.Condition)
	})
}

// Others may use a longer TTL than this process has known: what begins to be true later is true of
// the quarantines that have begun, whatever their reason.
func TestQuarantineBecomesLonger(t *testing.T) {
	for name, reason := range map[string]func(*gate){
		"age":       func(g *gate) { g.follow(serverInfo("a", 0)) },
		"restart":   func(g *gate) { g.follow(serverInfo("b", time.Hour)); g.follow(serverInfo("a", time.Hour)) },
		"promotion": func(g *gate) { info := serverInfo("a", time.Hour); info.Promoted = true; g.follow(info) },
		"jump": func(g *gate) {
			g.follow(serverInfo("a", time.Hour))
			now := g.cfg.Clock.Now()
			_ = g.sample(now, now.Add(time.Millisecond), time.Hour)
			_ = g.sample(now, now.Add(time.Millisecond), 3*time.Hour)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg, longest := config(newServer("a")), 5*time.Second
			cfg.Quarantine = func() time.Duration { return longest }
			g := newGate(&cfg)
			reason(g)
			time.Sleep(4 * time.Second)
			longest = 20 * time.Second
			time.Sleep(15 * time.Second)
			require.NotNil(t, g.decide(serverInfo("a", time.Hour)), name)
			time.Sleep(2 * time.Second)
			require.Nil(t, g.decide(serverInfo("a", time.Hour)), name)
		})
	}
}

// opened is a gate that is open for process a.
func opened(change func(*Config)) (*gate, *Config) {
	cfg := config(newServer("a"))
	if change != nil {
		change(&cfg)
	}
	g := newGate(&cfg)
	g.follow(serverInfo("a", time.Hour))
	g.admit(nil, nil)
	return g, &cfg
}

var errReset = errors.New("connection reset by peer")

// A server that votes loses its vote when it is found to be another one, or one that may not.
func TestInspectionOfAServerThatVotes(t *testing.T) {
	for name, test := range map[string]struct {
		becomes func(*wire.ServerInfo)
		gate    bool // whether it loses its vote with the restart gate
		none    bool // and without
	}{
		"the same":        {func(*wire.ServerInfo) {}, false, false},
		"another process": {func(i *wire.ServerInfo) { i.RunID = strings.Repeat("b", wire.RunIDLength) }, true, false},
		"another history": {func(i *wire.ServerInfo) { i.ReplID = "other" }, true, false},
		"a replica":       {func(i *wire.ServerInfo) { i.Role = "slave" }, true, true},
		"a master of one": {func(i *wire.ServerInfo) { i.Replicas = 1 }, true, true},
		"loading":         {func(i *wire.ServerInfo) { i.Loading = true }, true, true},
	} {
		for _, gated := range []bool{true, false} {
			g, _ := opened(func(cfg *Config) { cfg.RestartGate = gated })
			info := serverInfo("a", time.Hour)
			test.becomes(info)
			g.inspect(info)
			loses := test.gate && gated || test.none && !gated
			require.Equal(t, loses, !g.open, "%s, gate: %v", name, gated)
			require.Equal(t, loses, g.status.Load().Unseen, "%s, gate: %v", name, gated)
			if !gated {
				require.Equal(t, info.RunID, g.process.id, name)
			}
			g.inspect(info) // one that has no vote is not touched
			g.tried(&trial{why: &wire.Fault{Condition: wire.NoPermission}})
			require.Equal(t, loses, g.status.Load().Unseen, "%s, gate: %v", name, gated)
		}
	}
}

// A process is as old as its uptime says, or as it was seen to be; one that was promoted, or took
// the place of another one, counts from when that was seen.
func TestQuarantines(t *testing.T) {
	type seen struct {
		after time.Duration // since the one before
		info  *wire.ServerInfo
	}
	with := func(runID string, uptime time.Duration, change func(*wire.ServerInfo)) *wire.ServerInfo {
		info := serverInfo(runID, uptime)
		change(info)
		return info
	}
	promoted := func(i *wire.ServerInfo) { i.Promoted = true }
	replica := func(i *wire.ServerInfo) { i.Role = "slave" }
	for name, test := range map[string]struct {
		seen  []seen
		until time.Duration // when it votes, from the last time
		said  string
	}{
		"old":                      {[]seen{{0, serverInfo("a", time.Hour)}}, 0, ""},
		"young":                    {[]seen{{0, serverInfo("a", time.Second)}}, quarantine - time.Second, "up for 1s"},
		"its clock was set back":   {[]seen{{0, serverInfo("a", time.Second)}, {time.Second, serverInfo("a", 0)}}, quarantine - 2*time.Second, "up for 0s"},
		"its clock was set ahead":  {[]seen{{0, serverInfo("a", 0)}, {time.Second, serverInfo("a", time.Hour)}}, 0, ""},
		"another one":              {[]seen{{0, serverInfo("a", time.Hour)}, {time.Second, serverInfo("b", time.Hour)}}, quarantine, "another process than it was"},
		"promoted before":          {[]seen{{0, with("a", time.Hour, promoted)}}, quarantine, "was promoted"},
		"that is known":            {[]seen{{0, with("a", time.Hour, promoted)}, {time.Second, with("a", time.Hour, promoted)}}, quarantine - time.Second, "was promoted"},
		"promoted since":           {[]seen{{0, with("a", time.Hour, replica)}, {time.Second, serverInfo("a", time.Hour)}}, quarantine, "another process than it was"},
		"with another replication": {[]seen{{0, serverInfo("a", time.Hour)}, {time.Second, with("a", time.Hour, func(i *wire.ServerInfo) { i.ReplID = "x" })}}, quarantine, "another process than it was"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, gated := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(2 * time.Hour)
					cfg := config(newServer("a"))
					cfg.AcceptReplicas, cfg.RestartGate = true, gated
					g := newGate(&cfg)
					time.Sleep(2 * time.Hour)
					for _, s := range test.seen {
						time.Sleep(s.after)
						g.follow(s.info)
					}
					why := g.decide(test.seen[len(test.seen)-1].info)
					if test.until == 0 || !gated {
						require.Nil(t, why)
						return
					}
					require.Equal(t, wire.Quarantined, why.Condition)
					require.Contains(t, why.Detail, test.said)
					require.Equal(t, cfg.Clock.Now().Add(test.until), g.status.Load().Until)
				})
			}
		})
	}
}

// What a server answers to a question about itself costs it the vote, unless the user may not ask
// and need not.
func TestErrorsOfProbes(t *testing.T) {
	noRight := &wire.Fault{Condition: wire.NoPermission, Err: errors.New("NOPERM no permissions to run the 'info' command")}
	odd := wire.ErrUnexpected
	for _, test := range []struct {
		op     wire.Op
		err    error
		gated  bool
		detail string // empty where it votes on
	}{
		{wire.Enroll, noRight, true, evalNeeded}, {wire.Enroll, noRight, false, evalNeeded}, {wire.Info, noRight, true, infoNeeded},
		{wire.Info, noRight, false, ""}, {wire.Info, odd, false, infoNeeded}, {wire.Time, odd, true, infoNeeded},
	} {
		g, cfg := opened(func(cfg *Config) { cfg.RestartGate = test.gated })
		g.answeredError(test.op, test.err, cfg.Clock.Now())
		if require.Equal(t, test.detail == "", g.open, "%+v", test); !g.open {
			require.Contains(t, g.status.Load().Fault.Detail, test.detail, "%+v", test)
		}
	}
}

// A server that has answered an operation with an error is tried once more, and not with each look.
func TestServerIsTriedOnceAfterAnError(t *testing.T) {
	n, _ := voting(t)
	n.gate.answeredError(wire.Acquire, &wire.Fault{Condition: wire.OutOfMemory}, n.cfg.Clock.Now())
	for _, trials := range []int{1, 0} {
		n.gate.lookAt, n.gate.sampleAt, n.pending = 0, never, nil
		n.doDue()
		require.Len(t, n.pending, trials)
		n.send()
		n.cancelLook()
	}
	n.work.Wait()
}

// What a trial found to be missing is told with what suffers. A key of somebody else is none of it.
func TestTrialOf(t *testing.T) {
	noperm := func(command string) error {
		return errors.New("NOPERM User u has no permissions to run the '" + command + "' command")
	}
	index := func(command string, lost string) int {
		for i, tried := range wire.Trials {
			if tried.Command == command && tried.Lost == lost {
				return i
			}
		}
		panic(command)
	}
	answers := func(errs map[int]error) *trial {
		all := make([]error, len(wire.Trials))
		for i, err := range errs {
			all[i] = err
		}
		return trialOf(all)
	}
	require.Equal(t, &trial{}, answers(nil))
	require.Equal(t, &trial{}, answers(map[int]error{0: errors.New("WRONGTYPE Operation against a key")}))

	got := answers(map[int]error{index("SET", wire.ForLeases): noperm("set"), index("DEL", wire.ForLeases): errors.New("odd")})
	require.Equal(t, wire.NoPermission, got.why.Condition, "the first one counts")
	require.Contains(t, got.why.Detail, "SET: NOPERM")
	require.Nil(t, got.lacks)

	got = answers(map[int]error{index("ZRANK", wire.ForQueues): errors.New("odd"), index("ZREM", wire.ForQueues): errors.New("odd too"), index("EXISTS", wire.ForRosters): noperm("exists")})
	require.Nil(t, got.why)
	require.Equal(t, wire.NoPermission, got.lacks.Condition)
	require.Equal(t, wire.ForRosters+": EXISTS: "+noperm("exists").Error()+"; "+wire.ForQueues+": ZRANK: odd", got.lacks.Detail)
	require.Equal(t, wire.Unsupported, answers(map[int]error{0: errors.New("odd")}).why.Condition)
}

// What keeps a server from voting whatever its age, and what is a risk.
func TestJudge(t *testing.T) {
	for name, test := range map[string]struct {
		is      func(*wire.ServerInfo)
		want    wire.Condition
		accepts wire.Condition // where replicas are accepted
	}{
		"a master":          {func(*wire.ServerInfo) {}, "", ""},
		"too old":           {func(i *wire.ServerInfo) { i.Version = "6.2.14" }, wire.Unsupported, wire.Unsupported},
		"no version":        {func(i *wire.ServerInfo) { i.Version = "" }, wire.Unsupported, wire.Unsupported},
		"loading":           {func(i *wire.ServerInfo) { i.Loading, i.Role = true, "slave" }, wire.Loading, wire.Loading},
		"a replica":         {func(i *wire.ServerInfo) { i.Role, i.Master = "slave", "m:1" }, wire.Replica, wire.Replica},
		"part of a cluster": {func(i *wire.ServerInfo) { i.Cluster = true }, wire.Moved, wire.Moved},
		"with replicas":     {func(i *wire.ServerInfo) { i.Replicas = 2 }, wire.Replicated, ""},
		"was a replica":     {func(i *wire.ServerInfo) { i.Promoted = true }, wire.Replicated, ""},
	} {
		for accept, want := range map[bool]wire.Condition{false: test.want, true: test.accepts} {
			info := serverInfo("a", time.Hour)
			test.is(info)
			why := Judge(info, accept)
			require.Equal(t, want != "", why != nil, "%s, accepted: %v", name, accept)
			if why != nil {
				require.Equal(t, want, why.Condition, name)
				require.NotEmpty(t, why.Detail, name)
			}
		}
	}
	replica := &wire.ServerInfo{Version: "7.2.4", Role: "slave", Master: "m:1"}
	require.Equal(t, `its role is "slave", its master m:1`, Judge(replica, true).Detail)
	for policy, risky := range map[string]bool{"noeviction": false, "": false, "allkeys-lru": true, "volatile-ttl": true} {
		require.Equal(t, risky, Risk(&wire.ServerInfo{Limit: 1, Policy: policy}) != nil, policy)
		require.Nil(t, Risk(&wire.ServerInfo{Policy: policy}), "it has no bound")
	}
}

// sampleAt is an answer that took rtt, from a server whose clock is ahead of ours by ahead.
func sampleAt(w *Watch, at, rtt, ahead time.Duration) time.Duration {
	sent := clock.Instant(at)
	return w.observe(sent, sent.Add(rtt), at+rtt/2+ahead, 0.01)
}

func TestClockWatch(t *testing.T) {
	const rtt = 2 * time.Millisecond
	type step struct{ at, rtt, ahead time.Duration }
	for _, test := range []struct {
		name  string
		steps []step // the last one decides
		want  int    // sign of the jump
	}{
		{"the first sample says nothing", []step{{0, rtt, time.Hour}}, 0},
		{"a steady offset", []step{{0, rtt, time.Hour}, {time.Second, rtt, time.Hour}, {time.Minute, rtt, time.Hour}}, 0},
		{"a jump forward", []step{{0, rtt, 0}, {time.Second, rtt, 50 * time.Millisecond}}, 1},
		{"a jump backward", []step{{0, rtt, 0}, {time.Second, rtt, -50 * time.Millisecond}}, -1},
		{"within the drift", []step{{0, rtt, 0}, {10 * time.Second, rtt, 95 * time.Millisecond}}, 0},
		{"beyond the drift", []step{{0, rtt, 0}, {10 * time.Second, rtt, 110 * time.Millisecond}}, 1},
		{"an hour out of reach", []step{{0, rtt, 0}, {time.Hour, rtt, 3600 * time.Millisecond}}, 0},
		{"an hour out of reach does not hide a jump", []step{{0, rtt, 0}, {time.Hour, rtt, 4 * time.Second}}, 1},
		{"nor one backward", []step{{0, rtt, 0}, {time.Hour, rtt, -4 * time.Second}}, -1},
		{"a slow answer proves nothing", []step{{0, rtt, 0}, {time.Second, time.Second, 300 * time.Millisecond}}, 0},
		{"a slow answer does not forget", []step{{0, rtt, 0}, {time.Second, time.Second, 0}, {2 * time.Second, rtt, 100 * time.Millisecond}}, 1},
		{"after a jump the new offset counts", []step{{0, rtt, 0}, {time.Second, rtt, time.Second}, {2 * time.Second, rtt, time.Second}}, 0},
		{"small steps within the drift do not add up unseen", []step{{0, rtt, 0},
			{100 * time.Millisecond, rtt, 8 * time.Millisecond}, {200 * time.Millisecond, rtt, 16 * time.Millisecond}}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			var w Watch
			var jump time.Duration
			for _, s := range test.steps {
				jump = sampleAt(&w, s.at, s.rtt, s.ahead)
			}
			switch {
			case test.want > 0:
				require.Positive(t, jump)
			case test.want < 0:
				require.Negative(t, jump)
			default:
				require.Zero(t, jump)
			}
		})
	}
}

// Of two batches that were in flight together the one whose answers came first may be looked at
// second, and the other may have been slow on its way there or back.
func TestClockWatchOutOfOrder(t *testing.T) {
	at := func(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
	for _, slow := range []float64{10.1, 609.9} { // on its way back, or there
		for _, other := range []float64{11.1, 18.9} {
			var w Watch
			require.Zero(t, w.observe(clock.Instant(at(0)), clock.Instant(at(1)), at(0.5), 0.01))
			require.Zero(t, w.observe(clock.Instant(at(10)), clock.Instant(at(610)), at(slow), 0.01))
			require.Zero(t, w.observe(clock.Instant(at(11)), clock.Instant(at(19)), at(other), 0.01), "after %v: %v", slow, other)
		}
	}
}

// Steps below the allowance must not add up with every look to more than the drift explains.
func TestClockWatchSeesACreepingClock(t *testing.T) {
	for _, test := range []struct {
		name        string
		every, step time.Duration
		seen        bool
	}{
		{"eight percent fast", 10 * time.Millisecond, 800 * time.Microsecond, true},
		{"steps below the floor", time.Millisecond, 1500 * time.Microsecond, true},
		{"within the drift", 10 * time.Millisecond, 90 * time.Microsecond, false},
		{"as slow as the drift allows", 10 * time.Millisecond, -90 * time.Microsecond, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var w Watch
			var ahead time.Duration
			for i := range 1000 {
				if jump := sampleAt(&w, time.Duration(i)*test.every, 100*time.Microsecond, ahead); jump != 0 {
					require.True(t, test.seen, "after %v", time.Duration(i)*test.every)
					require.Less(t, ahead, 20*time.Millisecond)
					return
				}
				ahead += test.step
			}
			require.False(t, test.seen)
		})
	}
}

// Two clocks that time daemons adjust are nobody's jump, whatever allowance the user set.
func TestClockWatchToleratesSlewing(t *testing.T) {
	var w Watch
	for i := range 1000 {
		at := time.Duration(i) * time.Second
		sent := clock.Instant(at)
		require.Zero(t, w.observe(sent, sent.Add(time.Millisecond), at+at/1100, 0))
	}
}
