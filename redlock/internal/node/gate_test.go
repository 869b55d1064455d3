package node

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// serverInfo is what a server says of itself.
func serverInfo(runID string, uptime time.Duration) *wire.ServerInfo {
	return &wire.ServerInfo{Version: "7.2.4", RunID: strings.Repeat(runID, wire.RunIDLength), Role: "master", Uptime: uptime}
}

// Why there is no first connection is the reason until a look has found one, and puts off no look.
func TestReasonBeforeTheFirstLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(newServer("a"))
		g := newGate(&cfg)
		epoch, lookAt := g.epoch, g.lookAt
		none := &wire.Fault{Condition: wire.NoDatabase, Detail: "DB index is out of range"}
		g.unreached(none)
		require.Equal(t, error(none), g.status.Load().Reason())
		require.Equal(t, epoch, g.epoch)
		require.Equal(t, lookAt, g.lookAt)

		g.unreached(errUnsteady)
		require.Equal(t, error(none), g.status.Load().Reason(), "a later one is left to the looks")
	})
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

// A clock that jumps forward closes the gate for a quarantine, and a grant of that answer does not
// count.
func TestGateOfAClockThatJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(newServer("a"))
		g := newGate(&cfg)
		g.follow(serverInfo("a", time.Hour))
		sample := func(ahead time.Duration) error {
			now := cfg.Clock.Now()
			return g.sample(now, now.Add(time.Millisecond), time.Duration(now)+ahead)
		}
		require.NoError(t, sample(0))
		g.admit(nil, nil)
		granted := &wire.Answer{Verdict: wire.OK}
		require.NoError(t, g.counts(wire.Acquire, granted, cfg.Clock.Now()))
		time.Sleep(time.Second)
		require.NoError(t, sample(-time.Minute), "backward: keys live longer")
		require.True(t, g.open)
		time.Sleep(time.Second)
		require.Error(t, sample(time.Minute))
		require.False(t, g.open)
		require.Error(t, g.counts(wire.Acquire, granted, cfg.Clock.Now()))
		require.NoError(t, g.counts(wire.Extend, granted, cfg.Clock.Now()))
		require.Equal(t, wire.ClockJumped, g.decide(serverInfo("a", time.Hour)).Condition)
		time.Sleep(quarantine + time.Millisecond)
		require.Nil(t, g.decide(serverInfo("a", time.Hour)))

		// Another process has a clock of its own, and another reason.
		g.follow(serverInfo("b", time.Hour))
		require.Equal(t, wire.Quarantined, g.decide(serverInfo("b", time.Hour)).Condition)
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
			for range maxPast {
				if why := look("b"); gated {
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

// A quarantine that goes on ends when it was said to, to the nanosecond: a later end is news.
func TestQuarantineEndsWhenItWasSaidTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(newServer("a"))
		late := 3 * time.Microsecond
		cfg.Quarantine = func() time.Duration {
			time.Sleep(late)
			return quarantine
		}
		g := newGate(&cfg)
		time.Sleep(time.Hour)
		g.follow(serverInfo("a", time.Second))
		began := cfg.Clock.Now().Add(-time.Second)
		for late > 0 {
			require.NotNil(t, g.decide(serverInfo("a", time.Second)))
			require.Equal(t, began.Add(quarantine), g.status.Load().Until)
			late -= time.Microsecond
			time.Sleep(time.Second)
		}
	})
}

// opened is a gate that is open for process a.
func opened(change func(*Config)) (*gate, *Config) {
	cfg := config(newServer("a"))
	cfg.Observer = &watcher{}
	if change != nil {
		change(&cfg)
	}
	g := newGate(&cfg)
	g.follow(serverInfo("a", time.Hour))
	g.admit(nil, nil)
	return g, &cfg
}

var errReset = errors.New("connection reset by peer")

// Each time that the gate opens or closes, what was asked before is out of date.
func TestEpochs(t *testing.T) {
	for name, move := range map[string]func(g *gate){
		"shut":     func(g *gate) { g.shut() },
		"close":    func(g *gate) { g.close(&wire.Fault{Condition: wire.Loading}, 1) },
		"failed":   func(g *gate) { _ = g.failed(errReset) },
		"reopened": func(g *gate) { g.shut(); g.admit(nil, nil) },
	} {
		g, _ := opened(nil)
		before := g.epoch
		g.admit(nil, nil)
		g.inspect(serverInfo("a", time.Hour))
		g.tried(trialOf(make([]error, len(wire.Trials))))
		require.Equal(t, before, g.epoch, "it stays open")
		move(g)
		require.Greater(t, g.epoch, before, name)
	}
}

// A quarantine is not waited for without a look: the server may be restarted once more. A condition
// that does not end by itself is looked for at its own time.
func TestWhenAClosedGateLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, cfg := opened(nil)
		now := cfg.Clock.Now()
		for condition, want := range map[wire.Condition]clock.Instant{
			wire.Quarantined: now.Add(cfg.LookEvery), wire.ClockJumped: now.Add(cfg.LookEvery), wire.Replica: now.Add(time.Hour),
		} {
			why := &wire.Fault{Condition: condition}
			g.close(why, now.Add(time.Hour))
			require.Equal(t, want, g.lookAt, condition)
			require.Equal(t, condition == wire.Replica, why.Until.IsZero(), condition)
			require.Equal(t, condition == wire.Replica, g.status.Load().Until == 0, condition)
			g.close(why, now.Add(time.Second))
			require.Equal(t, now.Add(time.Second), g.lookAt, condition)
		}
	})
}

// What is known of a server outlasts the closing of its gate, but not why it refused connections.
func TestWhatIsKnownOfAServerThatLosesItsVote(t *testing.T) {
	for name, move := range map[string]func(g *gate){
		"shut":   func(g *gate) { g.shut() },
		"close":  func(g *gate) { g.close(&wire.Fault{Condition: wire.Loading}, 1) },
		"failed": func(g *gate) { _ = g.failed(errReset) },
	} {
		g, cfg := opened(nil)
		w := cfg.Observer.(*watcher)
		evicting := serverInfo("a", time.Hour)
		evicting.Limit, evicting.Policy = 1000, "allkeys-lru"
		lacks := &wire.Fault{Condition: wire.NoPermission}
		g.tried(&trial{lacks: lacks})
		g.inspect(evicting)
		require.Same(t, lacks, g.status.Load().Lacks)
		g.refused = errReset
		g.tried(&trial{lacks: lacks})
		require.Equal(t, errReset, w.refused[len(w.refused)-1])
		status := g.status.Load()
		require.Equal(t, wire.Evicting, status.Risk.Condition)
		require.Same(t, lacks, status.Lacks)

		move(g)
		require.False(t, g.open, name)
		require.Equal(t, wire.Evicting, g.status.Load().Risk.Condition, name)
		require.Same(t, lacks, g.status.Load().Lacks, name)
		require.EqualValues(t, 1, g.status.Load().Opened, name)
		g.admit(nil, nil)
		require.EqualValues(t, 2, g.status.Load().Opened, name)
		require.NoError(t, w.refused[len(w.refused)-1], name)
		require.NoError(t, g.status.Load().Reason(), name)
		require.Nil(t, g.status.Load().Risk, name)
	}
}

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
		"another one":              {[]seen{{0, serverInfo("a", time.Hour)}, {time.Second, serverInfo("b", time.Hour)}}, quarantine, "up for 1h"},
		"promoted before":          {[]seen{{0, with("a", time.Hour, promoted)}}, quarantine, "was promoted"},
		"that is known":            {[]seen{{0, with("a", time.Hour, promoted)}, {time.Second, with("a", time.Hour, promoted)}}, quarantine - time.Second, "was promoted"},
		"promoted since":           {[]seen{{0, with("a", time.Hour, replica)}, {time.Second, serverInfo("a", time.Hour)}}, quarantine, "up for 1h"},
		"with another replication": {[]seen{{0, serverInfo("a", time.Hour)}, {time.Second, with("a", time.Hour, func(i *wire.ServerInfo) { i.ReplID = "x" })}}, quarantine, "up for 1h"},
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

// Another process has a clock of its own: that its time is another one is no jump. The same one is
// sampled again after a while, and its grants count while nothing is known against its clock.
func TestClockOfAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, cfg := opened(func(cfg *Config) { cfg.RestartGate = false })
		now := cfg.Clock.Now()
		require.NoError(t, g.sample(now, now.Add(1), time.Hour))
		require.Equal(t, now.Add(1).Add(cfg.SampleEvery), g.sampleAt)
		g.inspect(serverInfo("b", time.Hour))
		require.NoError(t, g.sample(now, now.Add(1), 2*time.Hour))
		require.Error(t, g.sample(now, now.Add(1), 3*time.Hour))
		g.close(&wire.Fault{Condition: wire.Loading}, 1)
		require.NoError(t, g.counts(wire.Acquire, &wire.Answer{Verdict: wire.OK}, now), "only a jump takes a grant back")
	})
}

// What a server answers to a question about itself costs it the vote, unless the user may not ask
// and need not.
func TestErrorsOfProbes(t *testing.T) {
	noRight := &wire.Fault{Condition: wire.NoPermission, Err: errors.New("NOPERM no permissions to run the 'info' command")}
	odd := wire.ErrUnexpected
	for name, test := range map[string]struct {
		op     wire.Op
		err    error
		gated  bool
		opens  bool
		detail string
	}{
		"a trial":             {wire.Trial, noRight, true, false, evalNeeded},
		"a trial, no gate":    {wire.Trial, noRight, false, false, evalNeeded},
		"a question":          {wire.Info, noRight, true, false, infoNeeded},
		"a question, no gate": {wire.Info, noRight, false, true, ""},
		"an odd answer":       {wire.Info, odd, false, false, infoNeeded},
		"the time":            {wire.Time, odd, true, false, infoNeeded},
	} {
		g, cfg := opened(func(cfg *Config) { cfg.RestartGate = test.gated })
		g.answeredError(test.op, test.err, cfg.Clock.Now())
		require.Equal(t, test.opens, g.open, name)
		if !test.opens {
			require.Contains(t, g.status.Load().Fault.Detail, test.detail, name)
			before := g.epoch
			g.answeredError(test.op, test.err, cfg.Clock.Now())
			require.Equal(t, before, g.epoch, "one that has no vote is left alone: %s", name)
		}
	}
}

// An error that is not the server's keeps its name, and one of the URL has its own advice.
func TestExplain(t *testing.T) {
	require.Equal(t, errReset, explain(errReset, "x"))
	require.NoError(t, explain(nil, "x"))
	url := &wire.Fault{Condition: wire.NoPermission, Err: errors.New("NOPERM User u has no permissions to run the 'select' command")}
	require.Equal(t, url, explain(url, "x"))
	loading := &wire.Fault{Condition: wire.Loading, Err: errors.New("LOADING")}
	require.Equal(t, loading, explain(loading, "x"))
	odd := wire.FaultOf(explain(wire.ErrUnexpected, "x is needed"))
	require.Equal(t, wire.Unsupported, odd.Condition)
	require.Contains(t, odd.Detail, "x is needed: ")
	require.ErrorIs(t, odd, wire.ErrUnexpected)
	disabled := wire.FaultOf(explain(&wire.Fault{Condition: wire.NoCommand, Err: errors.New("unknown command 'EVALSHA'")}, "x is needed"))
	require.Equal(t, wire.NoCommand, disabled.Condition)
	require.Equal(t, "x is needed: unknown command 'EVALSHA'", disabled.Detail)
}

// What a trial found to be missing is told with what suffers. A key of somebody else is none of it.
func TestTrialOf(t *testing.T) {
	noperm := func(command string) error {
		return errors.New("NOPERM User u has no permissions to run the '" + command + "' command")
	}
	index := func(command string, need wire.Need) int {
		for i, tried := range wire.Trials {
			if tried.Command == command && tried.For == need {
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

	got = answers(map[int]error{index("ZADD", wire.ForQueues): errors.New("odd"), index("ZREM", wire.ForQueues): errors.New("odd too"), index("EXISTS", wire.ForRosters): noperm("exists")})
	require.Nil(t, got.why)
	require.Equal(t, wire.NoPermission, got.lacks.Condition)
	require.Equal(t, noRosters+": EXISTS: "+noperm("exists").Error()+"; "+SlowHandovers+": ZADD: odd", got.lacks.Detail)
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
	for policy, risky := range map[string]bool{"noeviction": false, "": false, "allkeys-lru": true, "volatile-ttl": true} {
		require.Equal(t, risky, Risk(&wire.ServerInfo{Limit: 1, Policy: policy}) != nil, policy)
		require.Nil(t, Risk(&wire.ServerInfo{Policy: policy}), "it has no bound")
	}
}
