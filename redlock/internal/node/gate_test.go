package node

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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

// The gate is a state machine: it does no I/O, and tells of each state.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(newServer("a"))
		o := cfg.Observer.(*observed)
		g := newGate(&cfg)
		require.False(t, g.open)
		require.ErrorIs(t, g.status.Load().Reason(), errNotConnected)
		time.Sleep(time.Hour)

		// A process that is young has no vote, and is told when it will.
		g.follow(serverInfo("a", time.Second))
		why := g.decide(serverInfo("a", time.Second))
		require.Equal(t, wire.Quarantined, why.Condition)
		require.Equal(t, cfg.Clock.Now().Add(quarantine-time.Second), g.status.Load().Until)
		require.WithinDuration(t, time.Now().Add(quarantine-time.Second), why.Until, 0)
		time.Sleep(quarantine - time.Second)
		require.Nil(t, g.decide(serverInfo("a", quarantine)))
		g.admit(nil, nil)
		require.NoError(t, g.status.Load().Reason())
		require.EqualValues(t, 1, g.status.Load().Opened)
		require.Equal(t, cfg.Clock.Now().Add(cfg.LookEvery), g.lookAt)

		// The same process again is no news, and puts no look off.
		epoch := g.epoch
		time.Sleep(time.Second)
		g.inspect(serverInfo("a", time.Hour))
		require.Equal(t, epoch, g.epoch)
		require.EqualValues(t, 1, g.status.Load().Opened)
		require.Equal(t, cfg.Clock.Now().Add(cfg.LookEvery-time.Second), g.lookAt)

		// Another one closes the gate, and is looked at at once. What uptime it claims does not
		// count.
		g.inspect(serverInfo("b", time.Hour))
		require.False(t, g.open)
		require.True(t, g.status.Load().Unseen)
		require.Zero(t, g.lookAt)
		require.NotEqual(t, epoch, g.epoch)
		g.follow(serverInfo("b", time.Hour))
		require.Equal(t, wire.Quarantined, g.decide(serverInfo("b", time.Hour)).Condition)
		require.Equal(t, cfg.Clock.Now().Add(quarantine), g.status.Load().Until)

		// A look that fails is repeated with pauses that double.
		var pauses []time.Duration
		for range 8 {
			require.ErrorIs(t, g.failed(errors.New("EOF")), g.status.Load().Err)
			pauses = append(pauses, g.lookAt.Sub(cfg.Clock.Now()))
		}
		for i, pause := range pauses {
			most := min(MinPause<<i, MaxPause)
			require.InDelta(t, most, pause, 0.2*float64(most))
		}

		// One that answers with an error has a condition.
		require.Equal(t, wire.Replica, g.decideReplica().Condition)
		require.Equal(t, cfg.Clock.Now().Add(recheckEvery), g.lookAt)
		require.Len(t, o.statuses, 14, "each is told")
	})
}

// decideReplica has the gate decide on a replica.
func (g *gate) decideReplica() *wire.Fault {
	info := serverInfo("b", time.Hour)
	info.Role = "slave"
	return g.decide(info)
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
