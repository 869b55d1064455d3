package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// vouch looks at the server process and opens the gate for it if it may vote, or closes the gate
// with the reason.
//
// All of it goes over one connection of its own: if the server is restarted in between, that
// connection breaks, and the scripts of the old process cannot reach the new one.
func (g *gate) vouch(ctx context.Context, client valkey.Client) error {
	g.n.awaitVisit()
	conn, err := g.n.looking.dedicate(ctx, client)
	if err != nil {
		return g.failed(err)
	}
	defer conn.Close()
	if server := clientAddr(client); server != "" {
		g.n.server.Store(&server)
	}
	sent := g.n.q.clock.Now()
	results := conn.DoMulti(ctx, wire.InfoCommand(conn), wire.TimeCommand(conn))
	received := g.n.q.clock.Now()
	info, err := infoOf(results[0])
	server, err2 := timeOf(results[1])
	if err = cmp.Or(err, err2); g.isExcused(err) {
		return g.try(ctx, conn, wire.AnyProcess, nil, conn.Do(ctx, g.n.trialOn(conn, false)))
	} else if err != nil {
		return g.failed(explain(err, infoNeeded))
	}
	g.n.ahead.Store(int64(server) - time.Now().UnixNano())
	g.follow(info)
	if err := g.sample(sent, received, server); err != nil {
		return err
	}
	return g.decide(ctx, conn, info)
}

func infoOf(result valkey.ValkeyResult) (*wire.ServerInfo, error) {
	text, err := result.ToString()
	if err != nil {
		return nil, err
	}
	return wire.ParseInfo(text)
}

func timeOf(result valkey.ValkeyResult) (time.Duration, error) {
	found := wire.Decode([]*wire.Call{{Op: wire.Time}}, result, 0, isServerError, nil)[0]
	return found.Server, found.Err
}

// What a server must answer to be vouched for.
const (
	infoNeeded = "the restart gate needs INFO and TIME"
	evalNeeded = "scripts need EVALSHA and all keys of the prefix"
	loadNeeded = "the restart gate needs SCRIPT LOAD"
)

// isExcused reports whether a server does not tell about itself because the user may not ask, and
// need not.
func (g *gate) isExcused(err error) bool {
	var known *ConditionError
	return err != nil && errors.As(diagnose(err), &known) && known.Condition == ConditionNoPermission && !g.n.q.cfg.restartGate
}

// explain names what a server refuses, where it refuses a command. An error that is no server's
// stays as it is.
func explain(err error, needed string) error {
	err = diagnose(err)
	var known *ConditionError
	switch {
	case !errors.As(err, &known) && isServerError(err):
		return &ConditionError{Condition: ConditionUnsupported, Detail: needed + ": " + short(err.Error()), Err: err}
	case known != nil && known.Err != nil && (known.Condition == ConditionNoPermission || known.Condition == ConditionNoCommand) &&
		!strings.Contains(known.Err.Error(), "'select' command"): // which is asked for by the URL
		return &ConditionError{Condition: known.Condition, Detail: needed + ": " + known.Err.Error(), Err: known.Err}
	}
	return err
}

// decide opens or closes the gate for the process that info describes.
func (g *gate) decide(ctx context.Context, conn valkey.DedicatedClient, info *wire.ServerInfo) error {
	now, cfg := g.n.q.clock.Now(), g.n.q.cfg
	why := judge(info, cfg.acceptReplicas)
	if g.n.astray {
		why = errAstray()
	}
	if other := g.n.q.processes.claim(info.RunID, g.n); other != nil {
		why = &ConditionError{Condition: ConditionDuplicate, Detail: "it is the same server process as " + other.addr}
	}
	if why != nil {
		g.close(why, now.Add(recheckEvery))
		return why
	}
	until := g.trusted
	if cfg.restartGate {
		until = max(until, g.born.Add(cfg.quarantine()))
	}
	switch {
	case until <= now && cfg.restartGate:
		return g.load(ctx, conn, info)
	case until <= now:
		return g.try(ctx, conn, wire.AnyProcess, risk(info), conn.Do(ctx, g.n.trialOn(conn, false)))
	case g.jumped != "":
		why = &ConditionError{Condition: ConditionClockJumped, Detail: g.jumped}
	case info.Promoted: //mutant:promotion-unmentioned
		why = &ConditionError{Condition: ConditionQuarantined, Detail: fmt.Sprintf(
			"%s was a replica and was promoted, votes after %v: leases that its master granted and it lacks last as long", g.n.answering(), cfg.quarantine())}
	default:
		why = &ConditionError{Condition: ConditionQuarantined, Detail: fmt.Sprintf(
			"up for %v, votes after %v: leases that it may have forgotten last as long", info.Uptime, cfg.quarantine())}
	}
	g.close(why, until)
	return why
}

// follow notices another process, or a server that was promoted, and then counts the quarantine by
// this process's own clock: the server's uptime is its wall clock's, and a promoted replica has
// been up for as long as it was one. That it was one is no secret for long (master_replid2 is
// cleared with the backlog), so what was seen before counts too.
func (g *gate) follow(info *wire.ServerInfo) {
	now := g.n.q.clock.Now()
	first, another := g.process == "", g.process != info.RunID
	promoted := first && info.Promoted || !first && (g.role != info.Role || g.history != info.ReplID) //mutant:gate-promoted-replica
	if g.n.q.cfg.restartGate && (promoted || another && !first) {                                     //mutant:quarantine-by-uptime-only
		g.trusted = now.Add(g.n.q.cfg.quarantine())
	}
	if another && !first {
		g.n.compareAt = now
	}
	if another {
		g.born = now
		g.watch = clockWatch{}
	}
	g.born = min(g.born, now.Add(-info.Uptime)) //mutant:quarantine-by-negative-uptime
	g.process, g.role, g.history = info.RunID, info.Role, info.ReplID
}

// load gives the process its scripts, and tries whether leases can be had.
func (g *gate) load(ctx context.Context, conn valkey.DedicatedClient, info *wire.ServerInfo) error {
	scripts := wire.NewSet(info.RunID)
	g.unloaded = nil
	var commands valkey.Commands
	for _, s := range scripts.Scripts() {
		commands = append(commands, wire.LoadCommand(conn, s))
	}
	results := conn.DoMulti(ctx, append(commands, g.n.trialOn(conn, false))...)
	for _, result := range results[:len(commands)] {
		err := result.Error()
		if err == nil {
			continue
		}
		var known *ConditionError
		if errors.As(diagnose(err), &known) && (known.Condition == ConditionNoPermission || known.Condition == ConditionNoCommand) {
			scripts = wire.NewSelfChecking(info.RunID)
			g.unloaded = &ConditionError{Condition: known.Condition, Detail: slowScripts + ": SCRIPT LOAD: " + known.cause(), Err: known.Err}
			break
		}
		return g.failed(explain(err, loadNeeded))
	}
	return g.try(ctx, conn, scripts, risk(info), results[len(commands)])
}

// trialOn is the command of a trial.
func (n *node) trialOn(conn valkey.DedicatedClient, full bool) valkey.Completed {
	return new(wire.Buffers).Encode(conn, []*wire.Call{n.q.probe(wire.Trial)}, nil, full, "")
}

// try opens the gate for the scripts if the trial went well, which is sent again with its text to a
// server that does not know it.
func (g *gate) try(ctx context.Context, conn valkey.DedicatedClient, scripts *wire.Set, risk *ConditionError, result valkey.ValkeyResult) error {
	if isNoScript(result.Error()) {
		result = conn.Do(ctx, g.n.trialOn(conn, true))
	}
	found := wire.Decode([]*wire.Call{{Op: wire.Trial}}, result, 0, isServerError, nil)[0]
	if found.Err != nil {
		return g.failed(explain(found.Err, evalNeeded))
	}
	t := trialOf(found.Trial)
	if why := t.why; why != nil { //mutant:untried-server-votes
		g.close(why, g.n.q.clock.Now().Add(recheckEvery))
		return why
	}
	g.admitProcess(scripts, risk, t.lacks)
	return nil
}

// quarantine is how long a process must have been up before it votes: the longest TTL, so that
// every lease it has forgotten is over; the allowance for clock skew, so that its next token is
// above every one it has forgotten; both by a clock that may be fast by the drift; and a second,
// because INFO rounds start and present down to whole seconds.
//
// Twice the skew is the least: tokens may be a skew above the median of the servers' clocks when
// they are granted, and a skew below it when the next one is, see docs/guarantees.md.
func (c *config) quarantine() time.Duration {
	longest := max(c.maxTTL, 2*c.clockSkew) + c.clockSkew                                             //mutant:quarantine-without-ttl,quarantine-without-skew,quarantine-below-three-skews
	seconds := math.Ceil((float64(longest)*(1+c.drift) + float64(driftFloor)) / float64(time.Second)) //mutant:quarantine-without-drift
	return time.Duration(seconds+1) * time.Second                                                     //mutant:quarantine-without-rounding
}

// connectionError returns err if it means that the node did not answer.
func connectionError(err error) error {
	if err == nil || isServerError(err) {
		return nil
	}
	return err
}
